// Package doctor looks at one installation and says what is wrong with it and
// what to do next. It only reads. The command doctor imports it.
package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// State is how serious a finding is.
type State string

const (
	OK   State = "ok"
	Warn State = "warn" // look at it, or it could not be looked at
	Fail State = "fail" // it does not work
)

// Finding is what a check found.
type Finding struct {
	Check string `json:"check"`
	State State  `json:"state"`
	Text  string `json:"text"`
	Next  string `json:"next,omitempty"`
}

// Installation is what is looked at.
type Installation struct {
	AWS      aws.Config
	ECS      *ecs.Client
	Endpoint string
	Stack    string
	Cluster  string
	Now      time.Time
	outputs  map[string]string
}

const checkWithin = 20 * time.Second

type check struct {
	name string
	look func(context.Context, *Installation) ([]Finding, error)
}

// checks are in the order in which a fault would hide the later ones.
var checks = []check{
	{"credentials", credentials},
	{"api", api},
	{"stack", stack},
	{"functions", functions},
	{"event sources", sources},
	{"rules", rules},
	{"dead letters", deadLetters},
	{"queues", queues},
	{"alarms", alarms},
	{"expiry", expiry},
	{"roles", roles},
	{"instances", instances},
	{"waiting tasks", waiting},
}

// Examine runs every check and tells each finding as it comes. A check that may
// not look, or gets no answer, is a finding too.
func Examine(ctx context.Context, in *Installation, tell func(Finding)) error {
	for _, c := range checks {
		if err := ctx.Err(); err != nil {
			return err
		}
		once, cancel := context.WithTimeout(ctx, checkWithin)
		found, err := c.look(once, in)
		cancel()
		if err != nil && ctx.Err() == nil {
			found = append(found, unseen(err))
		}
		for _, f := range found {
			f.Check = c.name
			tell(f)
		}
	}
	return ctx.Err()
}

// unseen is a finding about a check that could not be made.
func unseen(err error) Finding {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		if strings.Contains(e.ErrorCode(), "AccessDenied") || strings.Contains(e.ErrorCode(), "Unauthorized") {
			return Finding{State: Warn, Text: "may not be looked at: " + e.ErrorMessage(), Next: "run doctor with the rights to read (ViewOnlyAccess is enough)"}
		}
		return Finding{State: Warn, Text: "could not be looked at: " + e.ErrorCode() + ": " + e.ErrorMessage()}
	}
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return Finding{State: Warn, Text: "could not be looked at: the answer is none that this client reads", Next: "in an emulator it may be so; in an AWS account, look at what stands between"}
	}
	return Finding{State: Warn, Text: "could not be looked at: " + exit.End(err.Error())}
}

// good is one finding that all is well.
func good(format string, args ...any) []Finding {
	return []Finding{{State: OK, Text: fmt.Sprintf(format, args...)}}
}

// orGood is the faults, or that there are none.
func orGood(faults []Finding, format string, args ...any) []Finding {
	if len(faults) > 0 {
		return faults
	}
	return good(format, args...)
}
