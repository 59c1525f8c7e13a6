//go:build emulator

package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/edgeagent/internal/sqsqueue"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// queue is a queue of the emulator, seen from the other side.
type queue struct {
	t      *testing.T
	client *sqs.Client
	name   string
	url    *string
}

func newQueue(t *testing.T) *queue {
	client := sqs.NewFromConfig(emulator.Shared(t).AWSConfig())
	name := "agent-test-" + rand.Text()
	return &queue{t: t, client: client, name: name, url: aws.String(emulator.Shared(t).QueueURL(name))}
}

func (q *queue) create() {
	q.t.Helper()
	out, err := q.client.CreateQueue(q.t.Context(), &sqs.CreateQueueInput{QueueName: &q.name})
	if err != nil {
		q.t.Fatal(err)
	}
	q.url = out.QueueUrl
	q.t.Cleanup(func() { // a test may have done it
		_, err := q.client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: q.url})
		if _, gone := errors.AsType[*types.QueueDoesNotExist](err); err != nil && !gone {
			q.t.Error(err)
		}
	})
}

// take waits until n messages have come.
func (q *queue) take(n int) (all []wire.Message) {
	q.t.Helper()
	for deadline := time.Now().Add(time.Minute); len(all) < n; {
		out, err := q.client.ReceiveMessage(q.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			q.t.Fatal(err)
		}
		for _, m := range out.Messages {
			read, err := wire.Decode([]byte(*m.Body))
			if err != nil {
				q.t.Fatal(err)
			}
			all = append(all, read)
		}
		if time.Now().After(deadline) {
			q.t.Fatalf("%d of %d messages came", len(all), n)
		}
	}
	return all
}

func TestInbox_OnSQSDoesWhatEveryInboxMust(t *testing.T) {
	agenttest.InboxSuite(t, func(t *testing.T) agenttest.InboxRig {
		q := newQueue(t)
		return agenttest.InboxRig{
			Inbox: sqsqueue.NewInbox(q.client, q.name), Create: q.create,
			Put: func(body []byte) {
				if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String(string(body))}); err != nil {
					t.Fatal(err)
				}
			},
			Return: func(receipt string) {
				if _, err := q.client.ChangeMessageVisibility(t.Context(), &sqs.ChangeMessageVisibilityInput{QueueUrl: q.url, ReceiptHandle: &receipt}); err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

func TestOutbox_OnSQSDoesWhatEveryOutboxMust(t *testing.T) {
	agenttest.OutboxSuite(t, func(t *testing.T) agenttest.OutboxRig {
		reports, beats := newQueue(t), newQueue(t)
		return agenttest.OutboxRig{
			Outbox:  sqsqueue.NewOutbox(reports.client, *reports.url, *beats.url),
			Create:  func() { reports.create(); beats.create() },
			Reports: reports.take, Heartbeats: beats.take,
		}
	})
}

// A queue that was deleted and made again is found again.
func TestInbox_FindsAQueueThatWasMadeAgain(t *testing.T) {
	q := newQueue(t)
	inbox := sqsqueue.NewInbox(q.client, q.name)
	q.create()
	if err := inbox.Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := q.client.DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: q.url}); err != nil {
		t.Fatal(err)
	}
	if _, err := inbox.Receive(t.Context()); err == nil {
		t.Fatal("received from a queue that is gone")
	}
	q.create()
	if _, err := q.client.SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: q.url, MessageBody: aws.String("x")}); err != nil {
		t.Fatal(err)
	}
	got, err := inbox.Receive(t.Context())
	if err != nil || len(got) != 1 {
		t.Fatalf("received %v, %v", got, err)
	}
}
