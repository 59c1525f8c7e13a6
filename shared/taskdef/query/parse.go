package query

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	maxLength     = 2000 // characters
	maxPattern    = 256  // characters
	maxDepth      = 50
	subjectPrefix = "attribute:"
)

// What ECS has and an instance's attributes cannot answer.
var (
	otherSubjects  = []string{"agentConnected", "agentVersion", "ec2InstanceId", "registeredAt", "runningTasksCount", "task:group"}
	otherOperators = []string{">", ">=", "<", "<=", "greater_than", "greater_than_equal", "less_than", "less_than_equal"}
)

var attributeForm = regexp.MustCompile(`^[A-Za-z0-9_./\\-]{1,128}$`)

// Parse reads an expression. Its error is an *Error.
func Parse(text string) (Expr, error) {
	if n := utf8.RuneCountInString(text); n > maxLength {
		return nil, &Error{Position: maxLength + 1, Message: "the expression is longer than 2000 characters"}
	}
	p := &parser{text: text}
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	p.space()
	if p.at < len(p.text) {
		return nil, p.fail(p.at, "%s after a complete expression; and, or are allowed", p.here())
	}
	return e, nil
}

type parser struct {
	text  string
	at    int // byte
	depth int
}

func (p *parser) or() (Expr, error) {
	left, err := p.and()
	for err == nil && p.word("or", "||") {
		var right Expr
		if right, err = p.and(); err == nil {
			left = Or{left, right}
		}
	}
	return left, err
}

func (p *parser) and() (Expr, error) {
	left, err := p.unary()
	for err == nil && p.word("and", "&&") {
		var right Expr
		if right, err = p.unary(); err == nil {
			left = And{left, right}
		}
	}
	return left, err
}

func (p *parser) unary() (Expr, error) {
	p.depth++
	defer func() { p.depth-- }()
	if p.depth > maxDepth {
		return nil, p.fail(p.at, "more than %d parentheses and negations in each other", maxDepth)
	}
	if p.word("not", "!") {
		e, err := p.unary()
		if err != nil {
			return nil, err
		}
		return Not{e}, nil
	}
	if !p.sign("(") {
		return p.term()
	}
	open := p.at - 1
	e, err := p.or()
	if err != nil {
		return nil, err
	}
	if !p.sign(")") {
		return nil, p.fail(p.at, "%s where the parenthesis opened at character %d should close", p.here(), p.position(open))
	}
	return e, nil
}

// term is a subject, an operator and, for most, an argument.
func (p *parser) term() (Expr, error) {
	p.space()
	start := p.at
	subject := p.until(" \t\r\n()[],=!<>&|\"'")
	if subject == "" {
		return nil, p.fail(start, "%s where a subject should be: attribute:NAME", p.here())
	}
	name, ok := strings.CutPrefix(subject, subjectPrefix)
	switch {
	case slices.Contains(otherSubjects, subject):
		return nil, p.fail(start, "%s is not supported; allowed is attribute:NAME", subject)
	case !ok:
		return nil, p.fail(start, "%s is not a subject; allowed is attribute:NAME", show(subject))
	case !attributeForm.MatchString(name):
		return nil, p.fail(start, "%s is not the name of an attribute: up to 128 letters, digits and - _ . / \\", show(name))
	}
	return p.operation(name)
}

func (p *parser) operation(name string) (Expr, error) {
	p.space()
	start := p.at
	switch operator := p.operator(); operator {
	case "==", "equals":
		v, err := p.argument(false)
		return Equal{name, v}, err
	case "!=", "not_equals":
		v, err := p.argument(false)
		return Not{Equal{name, v}}, err
	case "=~", "matches":
		return p.pattern(name)
	case "!~", "not_matches":
		e, err := p.pattern(name)
		return Not{e}, err
	case "in":
		v, err := p.list()
		return In{name, v}, err
	case "!in", "not_in":
		v, err := p.list()
		return Not{In{name, v}}, err
	case "exists":
		return Exists{name}, nil
	case "!exists", "not_exists":
		return Not{Exists{name}}, nil
	case "":
		return nil, p.fail(start, "%s where an operator should be: %s", p.here(), operators)
	default:
		if slices.Contains(otherOperators, operator) {
			return nil, p.fail(start, "the operator %s is not supported; allowed are %s", operator, operators)
		}
		return nil, p.fail(start, "%s is not an operator; allowed are %s", show(operator), operators)
	}
}

const operators = "==, !=, =~, !~, in, !in, exists, !exists"

// operator reads a word or a run of signs; !in and !exists are a sign and a word.
func (p *parser) operator() string {
	rest := p.text[p.at:]
	n := len(rest) - len(strings.TrimLeft(rest, "=!~<>"))
	if n == 0 || rest[:n] == "!" {
		n += len(rest[n:]) - len(strings.TrimLeft(rest[n:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"))
	}
	p.at += n
	return rest[:n]
}

func (p *parser) pattern(name string) (Expr, error) {
	p.space()
	start := p.at
	text, err := p.argument(true)
	if err != nil {
		return nil, err
	}
	if n := utf8.RuneCountInString(text); n > maxPattern {
		return nil, p.fail(start, "the pattern is longer than %d characters", maxPattern)
	}
	// Alone first: "a)|(b" is a pattern only inside the parentheses that follow.
	if _, bad := regexp.Compile(text); bad != nil {
		return nil, p.fail(start, "%s is not a pattern: %s", show(text), bad.Error())
	}
	whole, bad := regexp.Compile(`^(?:` + text + `)$`)
	if bad != nil {
		return nil, p.fail(start, "%s is not a pattern: %s", show(text), bad.Error())
	}
	return Like{name, text, whole}, nil
}

// argument is a value: quoted, or up to what ends a bare one. A bare pattern may hold commas, brackets and balanced
// parentheses.
func (p *parser) argument(pattern bool) (string, error) {
	p.space()
	if p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'') {
		return p.quoted()
	}
	start := p.at
	if pattern {
		open := 0
		for p.at < len(p.text) && !strings.ContainsRune(" \t\r\n\"'", rune(p.text[p.at])) {
			switch p.text[p.at] {
			case '(':
				open++
			case ')':
				open--
			}
			if open < 0 {
				break
			}
			p.at++
		}
	} else {
		p.until(" \t\r\n()[],\"'")
	}
	if p.at == start {
		return "", p.fail(start, "%s where a value should be", p.here())
	}
	return p.text[start:p.at], nil
}

func (p *parser) quoted() (string, error) {
	start := p.at
	mark := p.text[start : start+1]
	end := strings.Index(p.text[start+1:], mark)
	if end < 0 {
		return "", p.fail(start, "the quote that opens here does not close")
	}
	p.at = start + 1 + end + 1
	return p.text[start+1 : start+1+end], nil
}

func (p *parser) list() ([]string, error) {
	if !p.sign("[") {
		return nil, p.fail(p.at, "%s where a list should be: [a, b]", p.here())
	}
	open := p.at - 1
	var values []string
	for {
		v, err := p.argument(false)
		if err != nil {
			return nil, err
		}
		values = append(values, v)
		switch {
		case p.sign(","):
		case p.sign("]"):
			return values, nil
		default:
			return nil, p.fail(p.at, "%s where the list opened at character %d should go on or close", p.here(), p.position(open))
		}
	}
}
