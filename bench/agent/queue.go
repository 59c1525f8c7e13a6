package main

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/wire"
)

// queues are the operations of SQS that an agent calls, and the one of STS: the
// commands it takes are those put here, what it sends is read here.
type queues struct {
	identity string            // whom STS says the agent is
	sent     chan wire.Message // by the agent

	mu       sync.Mutex
	commands []letter
	changed  chan struct{}
	receipts int
	handed   time.Time // when the first command of those put last was given away
}

type letter struct{ body, receipt string }

func newQueues(identity string) *queues {
	return &queues{identity: identity, sent: make(chan wire.Message, 4096), changed: make(chan struct{})}
}

// put has the agent receive commands.
func (q *queues) put(all ...wire.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range all {
		body, err := wire.Encode(m)
		if err != nil {
			return err
		}
		q.receipts++
		q.commands = append(q.commands, letter{string(body), strconv.Itoa(q.receipts)})
	}
	q.handed = time.Time{}
	close(q.changed)
	q.changed = make(chan struct{})
	return nil
}

// receivedAt is when the agent was given the first of the commands put last.
func (q *queues) receivedAt() time.Time {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.handed
}

// take waits for commands, as a long poll does. What was given away is gone.
func (q *queues) take(ctx context.Context, wait time.Duration, most int) []letter {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for {
		q.mu.Lock()
		n := min(len(q.commands), most)
		got, changed := q.commands[:n:n], q.changed
		q.commands = q.commands[n:]
		if n > 0 && q.handed.IsZero() {
			q.handed = time.Now()
		}
		q.mu.Unlock()
		if n > 0 {
			return got
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (q *queues) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 2<<20))
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	target := r.Header.Get("X-Amz-Target")
	if target == "" && strings.Contains(string(body), "GetCallerIdentity") {
		fmt.Fprintf(w, `<GetCallerIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><GetCallerIdentityResult><Arn>arn:aws:sts::000000000000:assumed-role/bench/i-0bench</Arn><UserId>%s</UserId><Account>000000000000</Account></GetCallerIdentityResult></GetCallerIdentityResponse>`, q.identity)
		return
	}
	answer, err := q.answer(r.Context(), strings.TrimPrefix(target, "AmazonSQS."), body, "http://"+r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	_ = json.NewEncoder(w).Encode(answer) // an agent that does not read it has gone
}

type object map[string]any

func (q *queues) answer(ctx context.Context, operation string, body []byte, host string) (any, error) {
	var in struct {
		QueueName           string
		MessageBody         string
		WaitTimeSeconds     int
		MaxNumberOfMessages int
		Entries             []struct{ Id, MessageBody string }
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, err
	}
	switch operation {
	case "GetQueueUrl":
		return object{"QueueUrl": host + "/000000000000/" + in.QueueName}, nil
	case "ReceiveMessage":
		var messages []object
		for _, c := range q.take(ctx, time.Duration(in.WaitTimeSeconds)*time.Second, max(1, in.MaxNumberOfMessages)) {
			messages = append(messages, object{"MessageId": c.receipt, "ReceiptHandle": c.receipt, "Body": c.body, "MD5OfBody": sum(c.body)})
		}
		return object{"Messages": messages}, nil
	case "DeleteMessageBatch", "SendMessageBatch":
		done := []object{}
		for _, e := range in.Entries {
			if operation == "SendMessageBatch" {
				if err := q.read(ctx, e.MessageBody); err != nil {
					return nil, err
				}
			}
			done = append(done, object{"Id": e.Id, "MessageId": e.Id, "MD5OfMessageBody": sum(e.MessageBody)})
		}
		return object{"Successful": done, "Failed": []object{}}, nil
	case "SendMessage":
		return object{"MessageId": "1", "MD5OfMessageBody": sum(in.MessageBody)}, q.read(ctx, in.MessageBody)
	}
	return nil, fmt.Errorf("%q is no operation of this queue", operation)
}

func (q *queues) read(ctx context.Context, body string) error {
	m, err := wire.Decode([]byte(body))
	if err != nil {
		return err
	}
	select {
	case q.sent <- m:
	case <-ctx.Done():
	}
	return nil
}

func sum(body string) string {
	s := md5.Sum([]byte(body)) // SQS's own check of a message
	return hex.EncodeToString(s[:])
}
