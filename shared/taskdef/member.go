package taskdef

import "strings"

// State says what becomes of a member that somebody uses.
type State int

// The states of a member or of one of its values.
const (
	Run   State = iota // the agent does it
	Never              // it is refused, and Why says why
)

// Type is the JSON type of a member.
type Type int

// The types of members.
const (
	Object Type = iota
	Objects
	Strings
	Integers
	StringMap
	String
	Integer
	Boolean
)

// String says what a value of the type looks like, for messages.
func (t Type) String() string {
	switch t {
	case Object:
		return "an object"
	case Objects:
		return "a list of objects"
	case Strings:
		return "a list of strings"
	case Integers:
		return "a list of whole numbers"
	case StringMap:
		return "an object of strings"
	case String:
		return "a string"
	case Integer:
		return "a whole number"
	case Boolean:
		return "true or false"
	}
	return "unknown"
}

// Choice is one value of a member that has a fixed set of them.
type Choice struct {
	Text  string
	State State
	Why   string
}

// Member is what ECS has at a path, and what Longshore makes of it.
type Member struct {
	Path    string // containerDefinitions[].name; a list of objects ends without brackets itself
	Type    Type
	State   State
	Why     string   // for Never
	Choices []Choice // the values allowed, if they are a fixed set
}

// Members returns the table of RegisterTaskDefinition's members.
func Members() []Member { return registerMembers() }

// OverrideMembers returns the table of the members of RunTask's and StartTask's overrides.
func OverrideMembers() []Member { return overrideMembers() }

func run(path string, t Type, choices ...Choice) Member {
	return Member{Path: path, Type: t, State: Run, Choices: choices}
}

func never(path string, t Type, why string, choices ...Choice) Member {
	return Member{Path: path, Type: t, State: Never, Why: why, Choices: choices}
}

// can makes choices that are all in state Run.
func can(texts ...string) []Choice {
	choices := make([]Choice, len(texts))
	for i, t := range texts {
		choices[i] = Choice{Text: t, State: Run}
	}
	return choices
}

func (m Member) choice(text string) (Choice, bool) {
	for _, c := range m.Choices {
		if c.Text == text {
			return c, true
		}
	}
	return Choice{}, false
}

// offer lists the values somebody may choose today.
func (m Member) offer() string {
	var texts []string
	for _, c := range m.Choices {
		if c.State == Run {
			texts = append(texts, c.Text)
		}
	}
	return strings.Join(texts, ", ")
}

// schema is a table as a tree, for walking a document beside it.
type schema struct {
	Member
	of    string // what it is a member of, for messages
	order []string
	below map[string]*schema
}

// grow makes the tree of a table. Each member stands after the one it is in.
func grow(root string, table []Member) *schema {
	top := &schema{Member: Member{Type: Object}, of: root, below: map[string]*schema{}}
	for _, m := range table {
		at, name := top, m.Path
		for {
			head, rest, more := strings.Cut(name, ".")
			if !more {
				break
			}
			at, name = at.below[strings.TrimSuffix(head, "[]")], rest
		}
		node := &schema{Member: m, of: m.Path, below: map[string]*schema{}}
		at.below[name] = node
		at.order = append(at.order, name)
	}
	return top
}

// near is the member somebody may have meant by name: the same but for case, or one letter away.
func (s *schema) near(name string) string {
	for _, n := range s.order {
		if strings.EqualFold(n, name) || oneEdit(n, name) {
			return n
		}
	}
	return ""
}

// oneEdit says whether a becomes b by one insertion, deletion or replacement.
func oneEdit(a, b string) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(b)-len(a) > 1 {
		return false
	}
	i := 0
	for i < len(a) && a[i] == b[i] {
		i++
	}
	if len(a) == len(b) {
		return i == len(a) || a[i+1:] == b[i+1:]
	}
	return a[i:] == b[i+1:]
}
