package output

import (
	"strings"
	"unicode"
)

// Visible is text for a terminal, on one line: what would move its cursor or
// change its state is shown as a dot, and the end of a line as a blank. Reasons
// come from agents and containers, so whoever has one of those could otherwise
// write on the terminal of whoever looks.
func Visible(text string) string { return shown(text, ' ') }

// VisibleLines is the same of text that may have several lines.
func VisibleLines(text string) string { return shown(text, '\n') }

func shown(text string, newline rune) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return newline
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r):
			return '·'
		}
		return r
	}, text)
}
