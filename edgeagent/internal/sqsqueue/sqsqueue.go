// Package sqsqueue is the agent's side of SQS: the inbox it receives commands
// from, and the outbox it sends reports and heartbeats to. It maps SQS's errors
// to kinds and decides nothing else. Only the agent's main imports it.
package sqsqueue

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	longPoll = 20 * time.Second
	// visibility is how soon a command comes again that could not be judged, or
	// that went to an agent killed with its poll open: SQS does not know that the
	// poller is gone. A command is journaled and deleted within milliseconds.
	visibility = 10 * time.Second
	// answer is how long SQS may take beyond the long poll: a connection that
	// is only half there is given up then.
	answer = 10 * time.Second
	// maxBatch bounds the bytes of one batch; some stacks allow no more.
	maxBatch = 256 * 1024
)

// Inbox is an instance's command queue.
type Inbox struct {
	client *sqs.Client
	name   string

	mu  sync.Mutex
	url string
}

var _ agent.Inbox = (*Inbox)(nil)

// NewInbox receives from the queue of that name, which need not exist yet.
func NewInbox(client *sqs.Client, name string) *Inbox { return &Inbox{client: client, name: name} }

// Receive waits up to 20 s for up to ten commands.
func (q *Inbox) Receive(ctx context.Context) ([]agent.Command, error) {
	url, err := q.find(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, longPoll+answer)
	defer cancel()
	out, err := q.client.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: agent.MaxBatch,
		WaitTimeSeconds: int32(longPoll / time.Second), VisibilityTimeout: int32(visibility / time.Second),
	})
	if err != nil {
		return nil, q.fault(err, "receive commands")
	}
	commands := make([]agent.Command, len(out.Messages))
	for i, m := range out.Messages {
		commands[i].Receipt = aws.ToString(m.ReceiptHandle)
		// Of a message that cannot be read only the fault is passed on.
		if read, err := wire.Decode([]byte(aws.ToString(m.Body))); err != nil {
			commands[i].Fault = err
		} else {
			commands[i].Message = read
		}
	}
	return commands, nil
}

// Delete deletes commands that are dealt with.
func (q *Inbox) Delete(ctx context.Context, receipts []string) error {
	if len(receipts) == 0 {
		return nil
	}
	url, err := q.find(ctx)
	if err != nil {
		return err
	}
	in := &sqs.DeleteMessageBatchInput{QueueUrl: &url}
	for i, r := range receipts {
		in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: &r})
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	out, err := q.client.DeleteMessageBatch(ctx, in)
	if err != nil {
		return q.fault(err, "delete commands")
	}
	for _, f := range out.Failed {
		if !f.SenderFault { // a receipt that is too old deletes nothing: the command comes again
			return fault.New(fault.Unavailable, "delete commands: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message))
		}
	}
	return nil
}

// find is the queue's URL, asked for once.
func (q *Inbox) find(ctx context.Context) (string, error) {
	q.mu.Lock()
	url := q.url
	q.mu.Unlock()
	if url != "" {
		return url, nil
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	out, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &q.name})
	if err != nil {
		return "", classify(err, "find command queue "+q.name)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.url = aws.ToString(out.QueueUrl)
	return q.url, nil
}

// fault classifies an error; a queue that is gone may come back at another URL.
func (q *Inbox) fault(err error, what string) error {
	err = classify(err, what)
	if fault.Is(err, fault.NotFound) {
		q.mu.Lock()
		q.url = ""
		q.mu.Unlock()
	}
	return err
}

// Outbox sends to the queues for reports and for heartbeats.
type Outbox struct {
	client              *sqs.Client
	reports, heartbeats string
}

var _ agent.Outbox = (*Outbox)(nil)

// NewOutbox sends to the queues of those URLs.
func NewOutbox(client *sqs.Client, reportsURL, heartbeatsURL string) *Outbox {
	return &Outbox{client: client, reports: reportsURL, heartbeats: heartbeatsURL}
}

// SendHeartbeat sends one heartbeat.
func (o *Outbox) SendHeartbeat(ctx context.Context, beat *wire.Heartbeat) error {
	body, err := wire.Encode(beat)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	_, err = o.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &o.heartbeats, MessageBody: aws.String(string(body))})
	return classify(err, "send heartbeat")
}

// SendReports sends messages in as few batches as their sizes allow.
func (o *Outbox) SendReports(ctx context.Context, messages []wire.Message) []error {
	errs := make([]error, len(messages))
	var batch []types.SendMessageBatchRequestEntry
	size := 0
	flush := func() {
		if len(batch) > 0 {
			o.sendBatch(ctx, batch, errs)
		}
		batch, size = nil, 0
	}
	for i, m := range messages {
		body, err := wire.Encode(m)
		if err != nil {
			errs[i] = err
			continue
		}
		if len(batch) == agent.MaxBatch || size+len(body) > maxBatch {
			flush()
		}
		batch = append(batch, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(string(body))})
		size += len(body)
	}
	flush()
	return errs
}

// sendBatch sends one batch; an entry's id is the index of its error.
func (o *Outbox) sendBatch(ctx context.Context, batch []types.SendMessageBatchRequestEntry, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()
	note := func(id *string, err error) {
		if i, bad := strconv.Atoi(aws.ToString(id)); bad == nil && i < len(errs) {
			errs[i] = err
		}
	}
	out, err := o.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &o.reports, Entries: batch})
	if err != nil {
		for _, e := range batch {
			note(e.Id, classify(err, "send reports"))
		}
		return
	}
	for _, f := range out.Failed {
		kind := fault.Unavailable
		if f.SenderFault {
			kind = fault.Invalid
		}
		note(f.Id, fault.New(kind, "send report: %s: %s", aws.ToString(f.Code), aws.ToString(f.Message)))
	}
}

// classify gives an error of SQS its kind. What is not known to be final may
// work later.
func classify(err error, what string) error {
	if err == nil {
		return nil
	}
	kind := fault.Unavailable
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "AWS.SimpleQueueService.NonExistentQueue", "QueueDoesNotExist", "NonExistentQueue":
			kind = fault.NotFound
		case "AccessDenied", "AccessDeniedException", "SignatureDoesNotMatch", "InvalidClientTokenId", "UnrecognizedClientException":
			kind = fault.Denied
		case "InvalidMessageContents", "BatchRequestTooLong", "AWS.SimpleQueueService.BatchRequestTooLong":
			kind = fault.Invalid
		}
	} else if r, ok := errors.AsType[interface {
		error
		HTTPStatusCode() int
	}](err); ok && r.HTTPStatusCode() == http.StatusForbidden {
		kind = fault.Denied
	}
	return fault.Wrap(kind, err, "%s", what)
}
