// Package output writes what a command found: a table for people, or JSON and
// YAML in the API's own shapes for programs. It asks nothing and knows no
// command. Packages of the command import it.
package output

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Format is how things are written.
type Format string

const (
	AsTable Format = "table"
	AsJSON  Format = "json"
	AsYAML  Format = "yaml"
)

// Formats lists them.
func Formats() []string { return []string{string(AsTable), string(AsJSON), string(AsYAML)} }

// Valid says whether it is one of them.
func (f Format) Valid() bool { return f == AsTable || f == AsJSON || f == AsYAML }

// Colour is how a cell stands out on a terminal; a table that is not for one has none.
type Colour string

const (
	Plain  Colour = ""
	Good   Colour = "32" // green
	Warn   Colour = "33" // yellow
	Bad    Colour = "31" // red
	Faint  Colour = "2"
	Strong Colour = "1"
)

// Paint puts a text in a colour, if colours are wanted.
func Paint(text string, c Colour, colours bool) string {
	if !colours || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Cell is a text and how it stands out.
type Cell struct {
	Text   string
	Colour Colour
}

// Table is rows under a head.
type Table struct {
	Head []string
	Rows [][]Cell
	// Empty is said instead of a table without rows.
	Empty string
}

// Add adds a row of strings and Cells.
func (t *Table) Add(cells ...any) {
	var row []Cell
	for _, c := range cells {
		cell, ok := c.(Cell)
		if !ok {
			cell = Cell{Text: fmt.Sprint(c)}
		}
		cell.Text = Visible(cell.Text)
		row = append(row, cell)
	}
	t.Rows = append(t.Rows, row)
}

// Write writes the table with its columns in line; no line ends in blanks.
func (t *Table) Write(w io.Writer, colours bool) error {
	if len(t.Rows) == 0 && t.Empty != "" {
		_, err := fmt.Fprintln(w, t.Empty)
		return err
	}
	var head []Cell
	for _, h := range t.Head {
		head = append(head, Cell{h, Faint})
	}
	rows := t.Rows
	if len(head) > 0 {
		rows = append([][]Cell{head}, rows...)
	}
	var widths []int
	for _, row := range rows {
		for i, c := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(c.Text))
		}
	}
	for _, row := range rows {
		if _, err := io.WriteString(w, line(row, widths, colours)); err != nil {
			return err
		}
	}
	return nil
}

func line(row []Cell, widths []int, colours bool) string {
	last := -1
	for i, c := range row {
		if c.Text != "" {
			last = i
		}
	}
	var b strings.Builder
	for i, c := range row[:last+1] {
		b.WriteString(Paint(c.Text, c.Colour, colours))
		if i < last {
			b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c.Text)+2))
		}
	}
	b.WriteByte('\n')
	return b.String()
}

// Value writes a value for programs.
func Value(w io.Writer, f Format, v any) error {
	text, err := JSON(v)
	if err != nil {
		return err
	}
	if f == AsYAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(w, strings.TrimRight(string(text), "\n"))
	return err
}

// toYAML writes JSON as YAML, in the same order.
func toYAML(text []byte) ([]byte, error) {
	var n yaml.Node
	if err := yaml.Unmarshal(text, &n); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	block(&n)
	var b strings.Builder
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&n); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return []byte(b.String()), nil
}

// block takes JSON's braces and quotes from a node; quotes that are needed come back.
func block(n *yaml.Node) {
	n.Style = 0
	if (n.Kind == yaml.MappingNode || n.Kind == yaml.SequenceNode) && len(n.Content) == 0 {
		n.Style = yaml.FlowStyle
	}
	for _, c := range n.Content {
		block(c)
	}
}

// FromYAML reads YAML, or JSON, as JSON.
func FromYAML(text []byte) ([]byte, error) {
	var v any
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	text, err := JSON(v)
	if err != nil {
		return nil, err
	}
	// 0 and "0" are two keys in YAML, and one name in JSON.
	if err := yaml.Unmarshal(text, &v); err != nil {
		return nil, err
	}
	return text, nil
}
