package query

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

func (p *parser) space() {
	p.at = len(p.text) - len(strings.TrimLeft(p.text[p.at:], " \t\r\n"))
}

// sign takes s if it is next.
func (p *parser) sign(s string) bool {
	p.space()
	if !strings.HasPrefix(p.text[p.at:], s) {
		return false
	}
	p.at += len(s)
	return true
}

// word takes the word or the sign if one of them is next; a word must end there.
func (p *parser) word(word, sign string) bool {
	if p.sign(sign) {
		return true
	}
	rest := p.text[p.at:]
	if !strings.HasPrefix(rest, word) || len(rest) > len(word) && !strings.ContainsRune(" \t\r\n(!", rune(rest[len(word)])) {
		return false
	}
	p.at += len(word)
	return true
}

// until reads up to the first of the stops.
func (p *parser) until(stops string) string {
	start := p.at
	if n := strings.IndexAny(p.text[start:], stops); n >= 0 {
		p.at += n
	} else {
		p.at = len(p.text)
	}
	return p.text[start:p.at]
}

// here says what stands where the parser is.
func (p *parser) here() string {
	if p.at >= len(p.text) {
		return "the expression ends"
	}
	r, _ := utf8.DecodeRuneInString(p.text[p.at:])
	return fmt.Sprintf("%q stands", string(r))
}

// position is where a byte is, in characters from 1.
func (p *parser) position(at int) int { return utf8.RuneCountInString(p.text[:at]) + 1 }

func (p *parser) fail(at int, format string, args ...any) error {
	return &Error{Position: p.position(at), Message: fmt.Sprintf(format, args...)}
}

func show(s string) string {
	const most = 60
	if len(s) > most {
		return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
	}
	return fmt.Sprintf("%q", s)
}
