package sqsqueue

import (
	"context"
	"crypto/rand"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// maxReason bounds an attribute of a message put aside.
const maxReason = 1024

// DeadLetter puts a message that nobody can read aside, with why and where it
// came from as message attributes. queueURL is the dead-letter queue of the
// queue it came through.
func (q *Queue) DeadLetter(ctx context.Context, queueURL, body string, about map[string]string) error {
	if body == "" {
		body = " " // SQS takes no empty body
	}
	attributes := map[string]types.MessageAttributeValue{}
	for name, value := range about {
		if value = sendable(value); value != "" {
			attributes[name] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: &value}
		}
	}
	in := &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &body, MessageAttributes: attributes}
	if strings.HasSuffix(queueURL, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String("unreadable"), aws.String(rand.Text())
	}
	_, err := q.client.SendMessage(ctx, in)
	return wrap(err, "put a message aside")
}

// sendable is text with what SQS refuses replaced, cut to a bound.
func sendable(s string) string {
	s = strings.Map(func(r rune) rune {
		if r == '\t' || r == '\n' || r == '\r' || r >= ' ' && r != utf8.RuneError && r != '\uFFFE' && r != '\uFFFF' {
			return r
		}
		return '?'
	}, s)
	for len(s) > maxReason {
		_, size := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-size]
	}
	return s
}
