package command

import (
	"io"
	"sync"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// statusLine is one line that says how it goes: written over on a terminal,
// written anew where it changed elsewhere. Other output goes through it, so that
// the two do not mix.
type statusLine struct {
	mu      sync.Mutex
	w       io.Writer
	live    bool
	colours bool
	shown   string // key of what stands there
	text    string
}

func (s *session) statusLine() *statusLine {
	_, plain := s.Lookup("NO_COLOR")
	live := s.live(s.Err)
	return &statusLine{w: s.Err, live: live, colours: live && !plain}
}

// set shows text. Where lines are not written over it is shown when key changes,
// so that an age that counts up does not fill a log.
func (l *statusLine) set(key, text string, c output.Colour) {
	l.mu.Lock()
	defer l.mu.Unlock()
	text = output.Visible(text)
	if l.live {
		l.text = output.Paint(text, c, l.colours)
		l.draw()
		return
	}
	if key != l.shown {
		l.shown = key
		_, _ = io.WriteString(l.w, text+"\n")
	}
}

func (l *statusLine) draw() {
	if l.text != "" {
		_, _ = io.WriteString(l.w, "\r\x1b[K"+l.text)
	}
}

// keep leaves what is shown where it is; what follows comes below.
func (l *statusLine) keep() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.live && l.text != "" {
		_, _ = io.WriteString(l.w, "\n")
		l.text = ""
	}
}

// over is a writer whose output pushes the line down.
func (l *statusLine) over(w io.Writer) io.Writer { return &overLine{l, w} }

type overLine struct {
	line *statusLine
	w    io.Writer
}

func (o *overLine) Write(p []byte) (int, error) {
	o.line.mu.Lock()
	defer o.line.mu.Unlock()
	if o.line.live && o.line.text != "" {
		_, _ = io.WriteString(o.line.w, "\r\x1b[K")
	}
	n, err := o.w.Write(p)
	if o.line.live && len(p) > 0 && p[len(p)-1] == '\n' {
		o.line.draw()
	}
	return n, err
}
