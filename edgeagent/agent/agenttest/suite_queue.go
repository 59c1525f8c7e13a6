package agenttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// InboxRig is one inbox of the suite, with the hands of the other side.
type InboxRig struct {
	Inbox  agent.Inbox
	Create func() // makes the queue, which is not there before
	Put    func(body []byte)
	Return func(receipt string) // ends a message's invisibility
}

const suiteInstance = "0123456789abcdef0123456789abcdef"

func suiteStop(n int) *wire.Stop {
	return &wire.Stop{Header: wire.Header{Instance: suiteInstance}, Task: fmt.Sprintf("%032x", n), Attempt: 1}
}

func encoded(t *testing.T, m wire.Message) []byte {
	t.Helper()
	body, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// InboxSuite is what every inbox must do.
func InboxSuite(t *testing.T, open func(t *testing.T) InboxRig) {
	receive := func(t *testing.T, r InboxRig) []agent.Command {
		t.Helper()
		got, err := r.Inbox.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	t.Run("a queue that is not there is NotFound, until it is", func(t *testing.T) {
		r := open(t)
		if _, err := r.Inbox.Receive(t.Context()); !fault.Is(err, fault.NotFound) && !fault.Is(err, fault.Denied) {
			t.Fatalf("received %v", err)
		}
		r.Create()
		r.Put(encoded(t, suiteStop(1)))
		if got := receive(t, r); len(got) != 1 {
			t.Errorf("%d commands", len(got))
		}
	})
	t.Run("a command comes as it was sent, and again until it is deleted", func(t *testing.T) {
		r := open(t)
		r.Create()
		r.Put(encoded(t, suiteStop(7)))
		for range 3 {
			got := receive(t, r)
			if len(got) != 1 || got[0].Fault != nil || got[0].Message.(*wire.Stop).Task != suiteStop(7).Task {
				t.Fatalf("received %+v", got)
			}
			r.Return(got[0].Receipt)
		}
		got := receive(t, r)
		for range 2 { // twice is once
			if err := r.Inbox.Delete(t.Context(), []string{got[0].Receipt}); err != nil {
				t.Fatal(err)
			}
		}
		r.Put(encoded(t, suiteStop(8)))
		if got := receive(t, r); len(got) != 1 || got[0].Message.(*wire.Stop).Task != suiteStop(8).Task {
			t.Errorf("after the delete: %+v", got)
		}
	})
	t.Run("what cannot be read comes with its fault and can be deleted", func(t *testing.T) {
		r := open(t)
		r.Create()
		r.Put([]byte("this is not a message"))
		got := receive(t, r)
		if len(got) != 1 || got[0].Message != nil || !fault.Is(got[0].Fault, fault.Invalid) {
			t.Fatalf("received %+v", got)
		}
		if err := r.Inbox.Delete(t.Context(), []string{got[0].Receipt}); err != nil {
			t.Error(err)
		}
	})
	t.Run("many come in batches, each once", func(t *testing.T) {
		r := open(t)
		r.Create()
		for n := range 23 {
			r.Put(encoded(t, suiteStop(n)))
		}
		seen := map[string]int{}
		for len(seen) < 23 {
			got := receive(t, r)
			if len(got) > agent.MaxBatch {
				t.Fatalf("a batch of %d", len(got))
			}
			var receipts []string
			for _, c := range got {
				seen[c.Message.(*wire.Stop).Task]++
				receipts = append(receipts, c.Receipt)
			}
			if err := r.Inbox.Delete(t.Context(), receipts); err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("deleting nothing is nothing", func(t *testing.T) {
		r := open(t)
		r.Create()
		if err := r.Inbox.Delete(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
	t.Run("an empty queue is waited at, and left when the context ends", func(t *testing.T) {
		r := open(t)
		r.Create()
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		got, err := r.Inbox.Receive(ctx)
		if err == nil || len(got) != 0 || time.Since(began) < time.Second || time.Since(began) > 10*time.Second {
			t.Errorf("after %s: %v, %v", time.Since(began), got, err)
		}
	})
}

// OutboxRig is one outbox of the suite; Reports and Heartbeats wait for as many
// messages as they are told and return what has come.
type OutboxRig struct {
	Outbox     agent.Outbox
	Create     func()
	Reports    func(n int) []wire.Message
	Heartbeats func(n int) []wire.Message
}

func suiteReport(n int, reason string) *wire.Report {
	return &wire.Report{Header: wire.Header{Instance: suiteInstance}, Origin: wire.Origin{Incarnation: "a", N: int64(n)}, Snapshot: wire.Snapshot{
		Task: suiteStop(n).Task, Attempt: 1, Epoch: 1, Status: task.Running, Reason: reason,
	}}
}

// OutboxSuite is what every outbox must do.
func OutboxSuite(t *testing.T, open func(t *testing.T) OutboxRig) {
	send := func(t *testing.T, r OutboxRig, messages ...wire.Message) {
		t.Helper()
		errs := r.Outbox.SendReports(t.Context(), messages)
		if len(errs) != len(messages) {
			t.Fatalf("%d answers to %d messages", len(errs), len(messages))
		}
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	numbers := func(all []wire.Message) map[int64]int {
		seen := map[int64]int{}
		for _, m := range all {
			seen[m.(*wire.Report).N]++
		}
		return seen
	}
	t.Run("reports and heartbeats go each their way", func(t *testing.T) {
		r := open(t)
		r.Create()
		var batch []wire.Message
		for n := range agent.MaxBatch {
			batch = append(batch, suiteReport(n, ""))
		}
		send(t, r, batch...)
		beat := &wire.Heartbeat{Header: wire.Header{Instance: suiteInstance}, Origin: wire.Origin{Incarnation: "a", N: 99}, Session: "s", Docker: wire.DockerOK, Inventory: []wire.Entry{}}
		if err := r.Outbox.SendHeartbeat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		if seen := numbers(r.Reports(agent.MaxBatch)); len(seen) != agent.MaxBatch {
			t.Errorf("reports that came: %v", seen)
		}
		if all := r.Heartbeats(1); len(all) != 1 || all[0].(*wire.Heartbeat).N != 99 {
			t.Errorf("heartbeats that came: %v", all)
		}
	})
	t.Run("a message that can never be sent does not hold up the others", func(t *testing.T) {
		r := open(t)
		r.Create()
		bad := suiteReport(1, "")
		bad.Task = "not an id"
		errs := r.Outbox.SendReports(t.Context(), []wire.Message{suiteReport(0, ""), bad, suiteReport(2, "")})
		if errs[0] != nil || !fault.Is(errs[1], fault.Invalid) || errs[2] != nil {
			t.Fatalf("answers: %v", errs)
		}
		if seen := numbers(r.Reports(2)); seen[0] != 1 || seen[2] != 1 {
			t.Errorf("reports that came: %v", seen)
		}
	})
	t.Run("a batch of large messages arrives whole", func(t *testing.T) {
		r := open(t)
		r.Create()
		var batch []wire.Message
		for n := range agent.MaxBatch {
			m := suiteReport(n, strings.Repeat("r", wire.MaxReason))
			for k := range wire.MaxContainers {
				m.Containers = append(m.Containers, task.Container{Name: fmt.Sprintf("c%d", k), Status: task.ContainerRunning, Reason: strings.Repeat("x", 1000)})
			}
			batch = append(batch, m)
		}
		send(t, r, batch...)
		if seen := numbers(r.Reports(agent.MaxBatch)); len(seen) != agent.MaxBatch {
			t.Errorf("reports that came: %v", seen)
		}
	})
	t.Run("queues that are not there are an error for each", func(t *testing.T) {
		r := open(t)
		for i, err := range r.Outbox.SendReports(t.Context(), []wire.Message{suiteReport(1, ""), suiteReport(2, "")}) {
			if k := fault.Of(err); k != fault.NotFound && k != fault.Denied && k != fault.Unavailable {
				t.Errorf("message %d: %v", i, err)
			}
		}
	})
}
