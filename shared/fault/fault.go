// Package fault gives errors the one thing their caller has to decide on: a
// kind. It knows nothing of transports; an adapter maps a kind to a status, a
// retry or a dead-letter queue. Anybody may import it.
package fault

import (
	"errors"
	"fmt"
)

// Kind says what the caller should do about an error.
type Kind string

const (
	NotFound    Kind = "not_found"   // the thing named does not exist
	Conflict    Kind = "conflict"    // somebody else wrote first: read again, decide again
	Invalid     Kind = "invalid"     // the request can never succeed as it stands
	Unsupported Kind = "unsupported" // well formed, but Longshore does not do this
	Denied      Kind = "denied"      // the caller may not do this
	Unavailable Kind = "unavailable" // try the same again later
	Internal    Kind = "internal"    // a bug, or an error nobody gave a kind
)

// Error is an error with a kind, the field at fault (a JSON path, where there
// is one) and, for errors that reach API callers, ECS's own exception name.
type Error struct {
	Kind    Kind
	Code    string
	Field   string
	Message string
	Cause   error
}

func (e *Error) Error() string {
	switch {
	case e.Cause != nil && e.Message != "":
		return e.Message + ": " + e.Cause.Error()
	case e.Cause != nil:
		return e.Cause.Error()
	}
	return e.Message
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of a kind.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Field makes an Invalid error about one member of a request or message. The
// message must say what is allowed.
func Field(path, format string, args ...any) *Error {
	return &Error{Kind: Invalid, Field: path, Message: path + ": " + fmt.Sprintf(format, args...)}
}

// Wrap gives err a kind and keeps it as the cause; nil stays nil.
func Wrap(kind Kind, err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Cause: err}
}

// maxSaid bounds what of a decoder's error is kept.
const maxSaid = 200

// Malformed makes an Invalid error of what a decoder said. It is cut: decoders
// repeat what they could not read, which may be all of a large input, and errors
// are logged and put aside beside it.
func Malformed(err error, format string, args ...any) *Error {
	return New(Invalid, "%s: %.*s", fmt.Sprintf(format, args...), maxSaid, err.Error())
}

// WithCode names ECS's exception for the error.
func (e *Error) WithCode(code string) *Error {
	e.Code = code
	return e
}

// Of is the kind of err: the outermost one given, Internal if none was, and ""
// for nil.
func Of(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// Is says whether err is of the kind.
func Is(err error, kind Kind) bool { return Of(err) == kind }
