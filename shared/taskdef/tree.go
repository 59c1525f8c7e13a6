package taskdef

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// node is a JSON value with its members in the order they came, so that faults are told in that order and a member
// given twice is seen.
type node struct {
	shape   byte // one of '{', '[', 's'tring, 'n'umber, 'b'oolean, '0' for null
	text    string
	truth   bool
	names   []string
	items   []node
	doubles []string
}

// tooDeep is past what any member of ECS nests.
const tooDeep = 24

var errDeep = fmt.Errorf("nests deeper than %d levels", tooDeep)

// parse reads exactly one JSON value.
func parse(data []byte) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	n, err := parseValue(dec, 0)
	if err != nil {
		return node{}, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return node{}, errors.New("has more after its end")
	}
	return n, nil
}

func parseValue(dec *json.Decoder, depth int) (node, error) {
	if depth > tooDeep {
		return node{}, errDeep
	}
	token, err := dec.Token()
	if err != nil {
		return node{}, malformed(err, dec.InputOffset())
	}
	switch t := token.(type) {
	case json.Delim:
		return parseInside(dec, byte(t), depth)
	case string:
		return node{shape: 's', text: t}, nil
	case json.Number:
		return node{shape: 'n', text: t.String()}, nil
	case bool:
		return node{shape: 'b', truth: t}, nil
	}
	return node{shape: '0'}, nil
}

func parseInside(dec *json.Decoder, open byte, depth int) (node, error) {
	n := node{shape: open}
	seen := map[string]bool{}
	for dec.More() {
		if open == '{' {
			token, err := dec.Token()
			if err != nil {
				return node{}, malformed(err, dec.InputOffset())
			}
			name := token.(string) // the decoder lets nothing else stand here
			if seen[name] {
				n.doubles = append(n.doubles, name)
			}
			seen[name] = true
			n.names = append(n.names, name)
		}
		item, err := parseValue(dec, depth+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, item)
	}
	if _, err := dec.Token(); err != nil {
		return node{}, malformed(err, dec.InputOffset())
	}
	return n, nil
}

func malformed(err error, offset int64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("ends too early")
	}
	return fmt.Errorf("is not JSON at byte %d: %w", offset, err)
}

// what says what a value is, for messages.
func (n node) what() string {
	switch n.shape {
	case '{':
		return "an object"
	case '[':
		return "a list"
	case 's':
		return "the string " + show(n.text)
	case 'n':
		return "the number " + show(n.text)[1:len(show(n.text))-1]
	case 'b':
		return fmt.Sprint(n.truth)
	}
	return "null"
}

// asksNothing says whether a value is one that stands for absence.
func (n node) asksNothing() bool {
	switch n.shape {
	case '{', '[':
		return len(n.items) == 0
	case 's':
		return n.text == ""
	case 'b':
		return !n.truth
	}
	return n.shape == '0'
}
