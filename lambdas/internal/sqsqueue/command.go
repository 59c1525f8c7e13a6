package sqsqueue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	batchMessages = 10
	batchBytes    = wire.MaxBytes // of all bodies together
	batchTries    = 3             // for entries that SQS could not take just then
	queuesAtOnce  = 8
)

// Commands implements control.Queue: each instance's messages in their order,
// instances side by side. Those that could be sent are, whatever becomes of the
// others; the error joins one for each instance that lacks some.
func (q *Queue) Commands(ctx context.Context, commands ...wire.Message) error {
	inboxes, order, err := sorted(commands)
	var (
		mu    sync.Mutex
		wg    sync.WaitGroup
		errs  = []error{err}
		slots = make(chan struct{}, queuesAtOnce)
	)
	for _, instance := range order {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			if err := q.deliver(ctx, instance, inboxes[instance]); err != nil {
				mu.Lock()
				defer mu.Unlock()
				errs = append(errs, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// sorted encodes the commands by instance. One that cannot be encoded is named
// in the error and left out.
func sorted(commands []wire.Message) (inboxes map[string][]string, order []string, err error) {
	inboxes = map[string][]string{}
	var errs []error
	for _, m := range commands {
		body, err := wire.Encode(m)
		if err != nil {
			errs = append(errs, fmt.Errorf("encode %s: %w", wire.TypeOf(m), err))
			continue
		}
		to := wire.HeaderOf(m).Instance
		if len(inboxes[to]) == 0 {
			order = append(order, to)
		}
		inboxes[to] = append(inboxes[to], string(body))
	}
	return inboxes, order, errors.Join(errs...)
}

// deliver sends one instance's messages.
func (q *Queue) deliver(ctx context.Context, instance string, bodies []string) error {
	url := q.inboxURL(instance)
	for batch := range batches(bodies) {
		if err := q.sendBatch(ctx, url, batch); err != nil {
			return wrap(err, "send commands to instance %s", instance)
		}
	}
	return nil
}

// batches cuts bodies into what one call takes.
func batches(bodies []string) func(func([]string) bool) {
	return func(yield func([]string) bool) {
		for len(bodies) > 0 {
			n, size := 0, 0
			for n < len(bodies) && n < batchMessages && (n == 0 || size+len(bodies[n]) <= batchBytes) {
				size += len(bodies[n])
				n++
			}
			if !yield(bodies[:n]) {
				return
			}
			bodies = bodies[n:]
		}
	}
}

// sendBatch sends at most ten messages, again where SQS failed with some.
func (q *Queue) sendBatch(ctx context.Context, url string, bodies []string) error {
	var entries []types.SendMessageBatchRequestEntry
	for i, body := range bodies {
		entries = append(entries, types.SendMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), MessageBody: aws.String(body)})
	}
	for try := 1; ; try++ {
		out, err := q.client.SendMessageBatch(ctx, &sqs.SendMessageBatchInput{QueueUrl: &url, Entries: entries})
		if err != nil {
			return err
		}
		if len(out.Failed) == 0 {
			return nil
		}
		var refused []string
		left := map[string]bool{}
		for _, f := range out.Failed {
			if f.SenderFault {
				refused = append(refused, aws.ToString(f.Code)+" "+aws.ToString(f.Message))
			}
			left[aws.ToString(f.Id)] = true
		}
		if len(refused) > 0 {
			return fault.New(fault.Invalid, "SQS refuses %d messages: %s", len(refused), strings.Join(refused, "; "))
		}
		if try == batchTries || ctx.Err() != nil {
			return fault.New(fault.Unavailable, "SQS took %d of %d messages", len(entries)-len(left), len(entries))
		}
		entries = slices.DeleteFunc(entries, func(e types.SendMessageBatchRequestEntry) bool { return !left[*e.Id] })
	}
}
