// Package event is between Lambda's events and the use cases: it reads what a
// queue or a rule delivers, strictly and message by message, hands it to control
// in its own terms, and answers in Lambda's. It decides nothing, keeps nothing
// and calls no AWS API. Only the mains under lambdas import it.
package event

import (
	"context"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// countUndecodable counts messages that nobody can make sense of.
const countUndecodable = "UndecodableMessages"

// DeadLetters puts a message that can not be understood aside, with why and
// where it came from.
type DeadLetters interface {
	DeadLetter(ctx context.Context, queueURL, body string, about map[string]string) error
}

// senderOf is what SQS itself says about a message.
func senderOf(m events.SQSMessage) (control.Sender, error) {
	ms, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
	if err != nil || ms <= 0 {
		return control.Sender{}, fault.Field("attributes.SentTimestamp", "must be milliseconds since 1970, not %.32q", m.Attributes["SentTimestamp"])
	}
	return control.Sender{
		Identity:  m.Attributes["SenderId"],
		SentAt:    time.UnixMilli(ms).UTC(),
		MessageID: m.MessageId,
	}, nil
}

// maxLetter bounds what is put aside of a message: what SQS takes at least. One that
// is as large as SQS takes leaves no room for what is said of it.
const maxLetter = 200 * 1024

// letter is the body to put aside.
func letter(m events.SQSMessage) string {
	return strings.ToValidUTF8(m.Body[:min(len(m.Body), maxLetter)], "")
}

// aboutLetter is what is put aside with a message: why, and what SQS says of it.
func aboutLetter(m events.SQSMessage, why error) map[string]string {
	return map[string]string{
		"bytes":  strconv.Itoa(len(m.Body)),
		"reason": why.Error(), "queue": nameOf(m.EventSourceARN), "messageId": m.MessageId,
		"senderId": m.Attributes["SenderId"], "sentTimestamp": m.Attributes["SentTimestamp"],
	}
}

// nameOf is the queue's name, the last part of its ARN or URL.
func nameOf(arnOrURL string) string {
	return arnOrURL[strings.LastIndexAny(arnOrURL, ":/")+1:]
}

// again says whether a message with this error is to be delivered again. One
// that is invalid never becomes valid.
func again(err error) bool { return err != nil && !fault.Is(err, fault.Invalid) }

// guarded runs f; a panic becomes an error of kind Internal, so that one message
// does not take the others of its batch with it.
func guarded(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "%s: panic: %v\n%s", what, p, debug.Stack())
		}
	}()
	return f()
}
