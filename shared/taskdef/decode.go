package taskdef

import (
	"bytes"
	"encoding/json"
	"slices"
	"sync"
)

// MaxSize is the largest definition, in bytes of its canonical form.
const MaxSize = 64 << 10

// maxBody bounds what is parsed at all: a body of MaxSize with room for white space.
const maxBody = 4 * MaxSize

// The trees of both tables are grown when they are first needed, and by functions: a variable with an initial value would
// put the tables into every program that imports this package, the agent too, which judges nothing.
var register, override struct {
	once sync.Once
	tree *schema
}

func registerSchema() *schema {
	register.once.Do(func() { register.tree = grow("RegisterTaskDefinition", registerMembers()) })
	return register.tree
}

func overrideSchema() *schema {
	override.once.Do(func() { override.tree = grow("overrides", overrideMembers()) })
	return override.tree
}

// Decode reads and judges the body of RegisterTaskDefinition. The error is a Faults that names everything wrong with it;
// the rules of ECS are judged once the JSON has the right types.
func Decode(body []byte) (Input, error) {
	var in Input
	faults, ok := decode(body, "", registerSchema(), &in)
	if ok {
		faults = append(faults, rules(in)...)
	}
	if len(faults) > 0 {
		return Input{}, faults
	}
	return in, nil
}

// Validate judges an Input as Decode does.
func Validate(in Input) error {
	var again Input
	faults, _ := decode(encode(in), "", registerSchema(), &again)
	return append(faults, rules(in)...).err()
}

// decode walks the document, and reads it into target if its types are right.
func decode(body []byte, path string, s *schema, target any) (Faults, bool) {
	var w walk
	if len(body) > maxBody {
		w.faults.invalid(path, "is %d bytes long; allowed are %d", len(body), maxBody)
		return w.faults, false
	}
	tree, err := parse(body)
	if err != nil {
		w.faults.add(Malformed, path, "%s", err.Error())
		return w.faults, false
	}
	if tree.shape != '{' {
		w.wrong(path, tree, Object.String())
		return w.faults, false
	}
	w.object(path, s, tree)
	if slices.ContainsFunc(w.faults, func(f Fault) bool { return f.Kind == WrongType }) {
		return w.faults, false
	}
	if err := json.Unmarshal(body, target); err != nil {
		// encoding/json takes a member in any case, so one that was told as unknown may be of another type.
		if len(w.faults) == 0 {
			w.faults.add(Malformed, path, "cannot be read: %s", err.Error())
		}
		return w.faults, false
	}
	return w.faults, true
}

// Canonical is the storage form of a definition: compact JSON with its members in a fixed order.
func Canonical(def TaskDefinition) []byte { return encode(def) }

// ParseStored reads what Canonical wrote. Members it does not know are ignored: a newer release may have written them.
func ParseStored(data []byte) (TaskDefinition, error) {
	var def TaskDefinition
	if err := json.Unmarshal(data, &def); err != nil {
		return TaskDefinition{}, Faults{{Message: "cannot be read: " + err.Error(), Kind: Malformed}}
	}
	return def, nil
}

// encode writes compact JSON without escaping what HTML escapes.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("taskdef: encode: " + err.Error()) // our own types hold nothing that JSON cannot
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
