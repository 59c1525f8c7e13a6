package taskdef

import (
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
)

// Kind sorts faults, for a caller that answers them differently.
type Kind string

// The kinds of a Fault.
const (
	Malformed   Kind = "malformed"   // not JSON, or a member twice
	Unknown     Kind = "unknown"     // ECS has no such member
	WrongType   Kind = "wrongType"   // JSON of another type than the member's
	Unsupported Kind = "unsupported" // ECS has it, Longshore does not
	Invalid     Kind = "invalid"     // a rule is broken
)

// Fault is one thing wrong with a document, and where.
type Fault struct {
	Path    string // as in containerDefinitions[0].name; empty for the document itself
	Message string // continues the path: "is required"
	Kind    Kind
}

func (f Fault) Error() string {
	if f.Path == "" {
		return "the document " + f.Message
	}
	return f.Path + " " + f.Message
}

// Faults is everything wrong with a document, in the order of its members. Functions of this package that return an
// error return a Faults or nil.
type Faults []Fault

// maxShown bounds the text that one hostile document can make us write.
const maxShown = 40

func (fs Faults) Error() string {
	var b strings.Builder
	for i, f := range fs {
		if i == maxShown {
			fmt.Fprintf(&b, "; and %d more", len(fs)-maxShown)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		b.WriteString(f.Error())
	}
	return b.String()
}

// Unwrap gives the faults the kind that package fault knows, so that who looks only there decides rightly too.
func (fs Faults) Unwrap() error {
	if len(fs) == 0 {
		return nil
	}
	kind := fault.Unsupported
	if slices.ContainsFunc(fs, func(f Fault) bool { return f.Kind != Unsupported }) {
		kind = fault.Invalid
	}
	return &fault.Error{Kind: kind, Field: fs[0].Path, Message: fs.Error()}
}

// err is fs as an error, nil if there is nothing in it.
func (fs Faults) err() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}

func (fs *Faults) add(kind Kind, path, format string, args ...any) {
	*fs = append(*fs, Fault{Path: path, Message: fmt.Sprintf(format, args...), Kind: kind})
}

func (fs *Faults) invalid(path, format string, args ...any) { fs.add(Invalid, path, format, args...) }

// show quotes a value for a message, shortened.
func show(s string) string {
	const most = 60
	if len(s) <= most {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprintf("%q…", strings.ToValidUTF8(s[:most], ""))
}
