package awsprovider

import (
	"context"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

func initialization(err error) error { return begin(agent.NoSecrets, err) }

func filesFault(err error) error { return begin(agent.NoFiles, err) }

func begin(words string, err error) error {
	return &fault.Error{Kind: fault.Of(err), Message: words, Cause: err}
}

// passing are the codes of answers after which the same may work later.
var passing = []string{
	"Throttl", "RequestLimitExceeded", "TooManyRequests", "SlowDown", "InternalFailure", "InternalError", "InternalServiceError", "InternalServerError", "ServiceUnavailable", "ServerException",
	"RequestTimeout", "RequestExpired", "ExpiredToken", "UnrecognizedClient", "RequestTimeTooSkewed",
}

// classify gives a service's error its kind, and only such text as says nothing of
// values: the service's own code and message, or that there was no answer.
func classify(err error, what string) error {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		kind := fault.Invalid
		switch code := api.ErrorCode(); {
		case slices.ContainsFunc(passing, func(sign string) bool { return strings.Contains(code, sign) }), api.ErrorFault() == smithy.FaultServer, status(err) >= 500:
			kind = fault.Unavailable
		case strings.Contains(code, "AccessDenied"), status(err) == 403:
			kind = fault.Denied
		}
		return fault.New(kind, "%s: %s", what, strings.TrimSuffix(api.ErrorCode()+": "+api.ErrorMessage(), ": "))
	}
	text := "no answer that can be understood"
	if op, ok := errors.AsType[*net.OpError](err); ok {
		text = "no answer: " + op.Error()
	} else if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		text = "no answer in time"
	}
	return fault.New(fault.Unavailable, "%s: %s", what, text)
}

func status(err error) int {
	if r, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}
