// Package exit is how the command ends: its exit codes, and errors that say
// what was tried, why it did not work and what to do next. It knows the error
// names of the API and of AWS; it prints nothing. Packages of the command
// import it.
package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/smithy-go"
)

// Exit codes. `run` passes on its task's instead, and ends with NoCode where
// there is none.
const (
	OK          = 0
	Failed      = 1
	Usage       = 2
	NotFound    = 3
	Timeout     = 4
	Denied      = 5
	NoCode      = 125
	Interrupted = 130
)

// Error is an error with an exit code and what to do next.
type Error struct {
	Code  int
	Text  string // what, and why if there is no cause
	Next  string
	Cause error
}

func (e *Error) Error() string {
	text := e.Text
	if e.Cause != nil {
		text = join(text, ": ", e.Cause.Error())
	}
	return join(text, "; ", e.Next)
}

func join(a, between, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + between + b
}

func (e *Error) Unwrap() error { return e.Cause }

// New makes an error of a code.
func New(code int, next, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...), Next: next}
}

// Status is an exit code alone: there is nothing to say that was not said.
type Status int

func (s Status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Code is the exit code of an error.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if s, ok := errors.AsType[Status](err); ok {
		return int(s)
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return Explain(err).Code
}

// advice is what is known of an error's name.
type advice struct {
	code int
	next string
}

var advices = map[string]advice{
	"ClusterNotFoundException":    {NotFound, "name another cluster with --cluster, or make it: aws ecs create-cluster --cluster-name NAME"},
	"ServiceNotFoundException":    {NotFound, "see which there are: longshore services list"},
	"ServiceNotActiveException":   {NotFound, "it was deleted; see which there are: longshore services list"},
	"AccessDeniedException":       {Denied, "callers need the managed policy CallerPolicyArn of the stack's outputs; see who you are: aws sts get-caller-identity"},
	"AccessDenied":                {Denied, "your identity lacks this right; see who you are: aws sts get-caller-identity"},
	"UnrecognizedClientException": {Denied, "the credentials are not of this account; check --profile and AWS_PROFILE"},
	"InvalidClientTokenId":        {Denied, "the credentials are not of this account; check --profile and AWS_PROFILE"},
	"SignatureDoesNotMatch":       {Denied, "the secret key or this machine's clock is wrong; check --profile, and the time"},
	"InvalidSignatureException":   {Denied, "the secret key or this machine's clock is wrong; check --profile, and the time"},
	"ExpiredToken":                {Denied, "sign in again, such as by: aws sso login"},
	"ExpiredTokenException":       {Denied, "sign in again, such as by: aws sso login"},
	"ThrottlingException":         {Failed, "try again in a moment"},
	"ServerException":             {Failed, "try again; if it stays, run: longshore doctor"},
	"UnknownOperationException":   {Failed, "this control plane does not do that; compare with: longshore version"},
	"UnsupportedFeatureException": {Failed, "docs/design/api.md lists what is supported"},
	"ConflictException":           {Failed, "the same client token was used for another request"},
	"ResourceInUseException":      {Failed, "somebody else is changing it; try again in a moment"},
	"DeploymentNotFoundException": {NotFound, "see the service's deployments: longshore describe service NAME"},
	"ResourceNotFoundException":   {NotFound, ""},
}

// Explain gives any error its code and, where one is known, its next step.
func Explain(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return &Error{Code: e.Code, Next: e.Next, Text: strings.TrimSuffix(err.Error(), "; "+e.Next), Cause: nil}
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: Timeout, Cause: err, Next: "wait longer with --timeout"}
	case errors.Is(err, context.Canceled):
		return &Error{Code: Interrupted, Text: "interrupted"}
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return explainAPI(api)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "get credentials"), strings.Contains(text, "refresh cached credentials"), strings.Contains(text, "there are no credentials"):
		return &Error{Code: Denied, Text: "no AWS credentials: " + End(text), Next: "sign in (aws sso login), or set AWS_PROFILE"}
	case strings.Contains(text, "dial tcp"), strings.Contains(text, "no such host"), strings.Contains(text, "connection refused"):
		if at := strings.LastIndex(text, "dial tcp"); at > 0 { // what stands before is the SDK's bookkeeping
			text = text[at:]
		}
		return &Error{Code: Failed, Text: "the API does not answer: " + End(text), Next: "check --endpoint-url, or run: longshore doctor"}
	}
	if answer, ok := errors.AsType[*awshttp.ResponseError](err); ok && answer.HTTPStatusCode() == 403 {
		return &Error{Code: Denied, Text: "the API refused the request (403)", Next: advices["AccessDeniedException"].next}
	}
	return &Error{Code: Failed, Text: text}
}

// explainAPI words what the API refused: its own message is for people already.
func explainAPI(e smithy.APIError) *Error {
	message := e.ErrorMessage()
	if message == "" {
		message = e.ErrorCode()
	}
	a, known := advices[e.ErrorCode()]
	if !known {
		a = advice{code: Failed}
		if strings.Contains(message, "not found") || strings.HasPrefix(message, "Unable to describe") {
			a.code = NotFound
		}
		// ECS has one error name for all that a client does wrong.
		if a.code == NotFound && strings.Contains(strings.ToLower(strings.ReplaceAll(message, " ", "")), "taskdefinition") {
			a.next = "see which there are: longshore definitions list"
		}
	}
	return &Error{Code: a.code, Text: fmt.Sprintf("%s (%s)", strings.TrimSuffix(message, "."), e.ErrorCode()), Next: a.next}
}

// End is the end of a chain of errors, where the reason stands: as many whole
// links of it as are good to read.
func End(text string) string {
	const most = 160
	for len(text) > most {
		_, rest, more := strings.Cut(text, ": ")
		if !more {
			return "… " + strings.ToValidUTF8(text[len(text)-most:], "")
		}
		text = rest
	}
	return text
}
