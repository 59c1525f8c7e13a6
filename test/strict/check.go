package strict

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Check holds an answer against the model and tells all that is wrong with it, in a fixed order; nothing when it is
// what the operation answers. An answer below 400 is judged as the operation's output, any other as an error.
func (m *Model) Check(operation string, status int, body []byte) []string {
	c := &checker{model: m}
	o, known := m.Operations[operation]
	switch {
	case !known && status < 400:
		c.say("", "the model has no operation %q, and it is answered", operation)
	case status >= 400:
		c.failure(operation, status, body)
	case status != 200:
		c.say("", "status %d; success is 200", status)
	default:
		c.success(operation, o, body)
	}
	for i := range c.found {
		c.found[i] = operation + ": " + c.found[i]
	}
	return c.found
}

// checker gathers what is wrong with one answer.
type checker struct {
	model *Model
	found []string
}

func (c *checker) say(path, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if path != "" {
		text = path + " " + text
	}
	c.found = append(c.found, text)
}

func (c *checker) success(name string, o Operation, body []byte) {
	fields, ok := c.members("", body)
	if !ok {
		return
	}
	c.structure("", o.Output.Shape, fields)
	for _, member := range slices.Sorted(maps.Keys(c.model.Shapes[o.Output.Shape].Members)) {
		shape := c.model.Shapes[o.Output.Shape].Members[member].Shape
		if _, sent := fields[member]; !sent && c.model.Shapes[shape].Type == "list" && !mayLack(name, member) {
			c.say(member, "is a list and is left out: clients index it, so an empty one is sent")
		}
	}
}

// mayLack says which lists of an answer mean something by their absence: the tags beside a task definition are shown
// if they were asked for.
func mayLack(operation, member string) bool {
	return member == "tags" && strings.Contains(operation, "TaskDefinition")
}

// everywhere are the errors that any operation may answer, from the page of common errors of every AWS reference.
var everywhere = []string{
	"AccessDeniedException", "ExpiredTokenException", "IncompleteSignature", "InternalFailure", "InvalidSignatureException",
	"MissingAuthenticationTokenException", "NotAuthorized", "OptInRequired", "RequestExpired", "SerializationException",
	"ServiceUnavailable", "ThrottlingException", "UnknownOperationException", "UnrecognizedClientException", "ValidationException",
}

func (c *checker) failure(operation string, status int, body []byte) {
	fields, ok := c.members("", body)
	if !ok {
		return
	}
	var kind string
	if err := json.Unmarshal(fields["__type"], &kind); err != nil || kind == "" {
		c.say("__type", "must name the error: clients know no other place for it")
		return
	}
	delete(fields, "__type")
	kind = kind[strings.LastIndexByte(kind, '#')+1:]
	kind, _, _ = strings.Cut(kind, ":")
	modelled := slices.Contains(c.model.Errors(operation), kind)
	if !modelled && !slices.Contains(everywhere, kind) {
		c.say("__type", "is %s, which the operation does not have", kind)
	}
	want := 400
	if c.model.Shapes[kind].Fault || kind == "InternalFailure" || kind == "ServiceUnavailable" {
		want = 500
	}
	if status != want && (want == 400 || status != 503) {
		c.say("", "status %d with %s; it is %d", status, kind, want)
	}
	var message string
	if err := json.Unmarshal(fields["message"], &message); err != nil || message == "" {
		c.say("message", "must say what is wrong")
	}
	if modelled {
		c.structure("", kind, fields)
		return
	}
	delete(fields, "message")
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		c.say(name, "is no member of %s", kind)
	}
}

// members reads an object's members, each once.
func (c *checker) members(path string, raw []byte) (map[string]json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	if !json.Valid(raw) {
		c.say(path, "is not JSON: %.60q", raw)
		return nil, false
	}
	if raw[0] != '{' {
		c.say(path, "is %.40s; it is an object", raw)
		return nil, false
	}
	out := map[string]json.RawMessage{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // raw is valid and begins with {
	for dec.More() {
		token, _ := dec.Token()
		name, _ := token.(string)
		var value json.RawMessage
		_ = dec.Decode(&value)
		if _, twice := out[name]; twice {
			c.say(join(path, name), "stands twice")
		}
		out[name] = value
	}
	return out, true
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func (c *checker) structure(path, shape string, fields map[string]json.RawMessage) {
	s := c.model.Shapes[shape]
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		member, ok := s.Members[name]
		if !ok {
			c.say(join(path, name), "is no member of %s", shape)
			continue
		}
		c.value(join(path, name), member.Shape, fields[name])
	}
	for _, name := range s.Required {
		if _, ok := fields[name]; !ok {
			c.say(join(path, name), "is missing: %s requires it", shape)
		}
	}
	if s.Union && len(fields) != 1 {
		c.say(path, "has %d members; %s has exactly one", len(fields), shape)
	}
}

func (c *checker) value(path, shape string, raw []byte) {
	raw = bytes.TrimSpace(raw)
	s := c.model.Shapes[shape]
	if s.Document {
		return
	}
	if string(raw) == "null" {
		c.say(path, "is null; what is not there is left out")
		return
	}
	switch s.Type {
	case "structure":
		if fields, ok := c.members(path, raw); ok {
			c.structure(path, shape, fields)
		}
	case "map":
		fields, _ := c.members(path, raw)
		for _, key := range slices.Sorted(maps.Keys(fields)) {
			c.value(path+"["+strconv.Quote(key)+"]", s.Value.Shape, fields[key])
		}
	case "list":
		var items []json.RawMessage
		if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
			c.say(path, "is %.40s; it is a list", raw)
		}
		for i, item := range items {
			c.value(path+"["+strconv.Itoa(i)+"]", s.Member.Shape, item)
		}
	default:
		c.scalar(path, s, raw)
	}
}

func (c *checker) scalar(path string, s Shape, raw []byte) {
	text := string(raw)
	switch s.Type {
	case "string":
		var v string
		if raw[0] != '"' || json.Unmarshal(raw, &v) != nil {
			c.say(path, "is %.40s; it is a string", text)
		} else if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
			c.say(path, "is %q, which is none of its choices", v)
		}
	case "boolean":
		if text != "true" && text != "false" {
			c.say(path, "is %.40s; it is true or false", text)
		}
	case "integer", "long":
		bits := map[string]int{"integer": 32, "long": 64}[s.Type]
		if _, err := strconv.ParseInt(text, 10, bits); err != nil {
			c.say(path, "is %.40s; it is a whole number of %d bits, written as one", text, bits)
		}
	case "double", "float":
		if _, err := strconv.ParseFloat(text, 64); err != nil {
			c.say(path, "is %.40s; it is a number", text)
		}
	case "timestamp":
		// 2000 to 2100: a time in milliseconds is a wrong year to every client.
		if v, err := strconv.ParseFloat(text, 64); err != nil || v < 946684800 || v > 4102444800 {
			c.say(path, "is %.40s; it is a number of seconds since 1970", text)
		}
	default:
		c.say(path, "is of the type %q, which this check does not know", s.Type)
	}
}
