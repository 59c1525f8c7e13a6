// Package query is the cluster query language of placement constraints: the expressions of memberOf.
//
//	attribute:zone == edge and not (attribute:disk =~ "hdd.*" or attribute:role in [batch, spare])
//
// Parse makes an Expr, whose Match looks at the attributes of one instance. Subjects are attribute:NAME; ECS's other
// subjects (task:group, runningTasksCount, …) and its ordering operators are refused by name, as is everything else that
// cannot be judged by attributes alone.
//
//	operators  ==  !=  =~  !~  in  !in  exists  !exists, and their words: equals not_equals matches not_matches in not_in
//	           exists not_exists
//	logic      and && or || not ! and parentheses; and binds closer than or
//	values     bare (to the next space, comma, bracket or closing parenthesis) or in 'single' or "double" quotes
//
// An attribute an instance does not have equals nothing, matches nothing and is in no list; the negated operators are the
// exact opposites and so hold for it. A pattern must match the whole value.
//
// What it does not do: no I/O, no choice of instances. Who may import it: anyone.
package query

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Expr is a parsed expression.
type Expr interface {
	// Match says whether an instance with these attributes is a member.
	Match(attributes map[string]string) bool
	// String writes the expression so that Parse reads it again.
	String() string
}

// And holds if both sides do.
type And struct{ Left, Right Expr }

// Or holds if one side does.
type Or struct{ Left, Right Expr }

// Not holds if its operand does not.
type Not struct{ Operand Expr }

// Equal holds if the attribute is there and has this value.
type Equal struct{ Attribute, Value string }

// In holds if the attribute is there and has one of these values.
type In struct {
	Attribute string
	Values    []string
}

// Exists holds if the attribute is there, whatever its value.
type Exists struct{ Attribute string }

// Like holds if the attribute is there and the pattern matches the whole of its value.
type Like struct {
	Attribute, Pattern string

	whole *regexp.Regexp
}

// Match implements Expr.
func (e And) Match(a map[string]string) bool { return e.Left.Match(a) && e.Right.Match(a) }

// Match implements Expr.
func (e Or) Match(a map[string]string) bool { return e.Left.Match(a) || e.Right.Match(a) }

// Match implements Expr.
func (e Not) Match(a map[string]string) bool { return !e.Operand.Match(a) }

// Match implements Expr.
func (e Equal) Match(a map[string]string) bool {
	v, ok := a[e.Attribute]
	return ok && v == e.Value
}

// Match implements Expr.
func (e In) Match(a map[string]string) bool {
	v, ok := a[e.Attribute]
	return ok && slices.Contains(e.Values, v)
}

// Match implements Expr.
func (e Exists) Match(a map[string]string) bool {
	_, ok := a[e.Attribute]
	return ok
}

// Match implements Expr.
func (e Like) Match(a map[string]string) bool {
	v, ok := a[e.Attribute]
	return ok && e.whole.MatchString(v)
}

func (e And) String() string { return "(" + e.Left.String() + " and " + e.Right.String() + ")" }

func (e Or) String() string { return "(" + e.Left.String() + " or " + e.Right.String() + ")" }

func (e Not) String() string { return "not (" + e.Operand.String() + ")" }

func (e Equal) String() string { return subjectPrefix + e.Attribute + " == " + quote(e.Value) }

func (e In) String() string {
	quoted := make([]string, len(e.Values))
	for i, v := range e.Values {
		quoted[i] = quote(v)
	}
	return subjectPrefix + e.Attribute + " in [" + strings.Join(quoted, ", ") + "]"
}

func (e Exists) String() string { return subjectPrefix + e.Attribute + " exists" }

func (e Like) String() string { return subjectPrefix + e.Attribute + " =~ " + quote(e.Pattern) }

// quote takes the quotes that the value does not hold; no value can hold both, as there is no escape.
func quote(s string) string {
	if strings.Contains(s, `"`) {
		return "'" + s + "'"
	}
	return `"` + s + `"`
}

// Error is why an expression cannot be used, and where: Position counts characters from 1.
type Error struct {
	Position int
	Message  string
}

func (e *Error) Error() string { return fmt.Sprintf("at character %d: %s", e.Position, e.Message) }
