//go:build docker

package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// pump passes on what the agent has said, and what the control plane answers; it returns
// how much that was, for there may be more of it than one call brings.
func (p *program) pump(plane *agenttest.Plane) (heard int) {
	p.Helper()
	for _, url := range []string{p.reports, p.beats} {
		out, err := p.client.ReceiveMessage(p.Context(), &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, VisibilityTimeout: 3600})
		if err != nil {
			p.Fatal(err)
		}
		for _, m := range out.Messages {
			read, err := wire.Decode([]byte(*m.Body))
			if err != nil {
				p.Fatal(err)
			}
			plane.Hear(read)
			heard++
		}
	}
	for plane.Inbox.Len() > 0 {
		commands, err := plane.Inbox.Receive(p.Context())
		if err != nil {
			p.Fatal(err)
		}
		for _, c := range commands {
			p.send(c.Message)
			if err := plane.Inbox.Delete(p.Context(), []string{c.Receipt}); err != nil {
				p.Fatal(err)
			}
		}
	}
	return heard
}

// ecs-agent#2618: twenty SIGKILLs of a real process on a real engine, at random
// moments of the lives of twenty tasks. Then the journal, Docker and the control
// plane are laid side by side, while some tasks run and once all have ended.
func TestProgram_KilledTwentyTimesTheJournalDockerAndTheControlPlaneAgree(t *testing.T) {
	const kills = 20
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, seed))
	p := newProgram(t)
	r := p.welcomed()
	plane := agenttest.NewPlane(p.instance, 100, agenttest.NewInbox())
	plane.Hear(r)
	p.pump(plane)
	for n := range kills {
		script := goesOn
		if n%4 > 0 {
			script = fmt.Sprintf("sleep 0.%d; exit %d", random.IntN(9), 10+n)
		}
		c := p.container("app", script)
		def := taskdef.TaskDefinition{Revision: 1, Spec: taskdef.Spec{Family: "program", NetworkMode: taskdef.NetworkNone, ContainerDefinitions: []taskdef.ContainerDefinition{c}}}
		plane.Assign(&wire.Assign{
			Header: wire.Header{Instance: p.instance}, Epoch: 100, Task: taskID(n), Attempt: 1, TaskARN: "arn:aws:ecs:us-east-1:000000000000:task/default/" + taskID(n),
			Cluster: "default", Family: "program", Revision: 1, Definition: []byte(taskdef.Canonical(def)),
		})
		p.pump(plane)
		moment := time.After(time.Duration(random.IntN(700)) * time.Millisecond)
		<-moment
		p.signal(syscall.SIGKILL)
		p.start()
	}
	over := func() (n int) {
		for _, told := range plane.Tasks() {
			if told.Over() {
				n++
			}
		}
		return n
	}
	// settle waits until so many have ended, and lays all three side by side.
	settle := func(ended int) {
		t.Helper()
		for running, deadline := -1, time.Now().Add(patience); over() != ended || running != kills-ended; {
			p.pump(plane)
			running = 0
			for _, told := range plane.Tasks() {
				if told.Status == task.Running {
					running++
				}
			}
			if time.Now().After(deadline) {
				t.Fatalf("want %d ends, there are %d, and %d run: %+v", ended, over(), running, plane.Tasks())
			}
		}
		state, engine := p.agree(plane, r.Identity)
		t.Logf("%d tasks in the journal, %d containers, %d of %d ended for the control plane", len(state.Tasks), len(engine), over(), kills)
	}
	settle(kills - kills/4)
	for n := range kills {
		if told := plane.Tasks()[taskID(n)]; n%4 > 0 && !slices.Equal(told.Codes, []int{10 + n}) {
			t.Errorf("task %d is %+v", n, told)
		}
	}
	p.start()
	for n := 0; n < kills; n += 4 {
		p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(n), Attempt: 1})
	}
	settle(kills)
	p.start()
	p.await("everything to be removed", func() bool {
		p.pump(plane)
		list, err := p.engine.List(t.Context())
		return err == nil && len(list) == 0
	})
}

// agree ends the agent, hears it to the last word that it had sent, and lays its
// journal, the engine and the control plane side by side.
func (p *program) agree(plane *agenttest.Plane, identity string) (agent.State, map[agent.ContainerID]agent.Seen) {
	p.Helper()
	if code := p.signal(syscall.SIGTERM); code != exitOK {
		p.Fatalf("SIGTERM ended it with %d", code)
	}
	for p.pump(plane) > 0 {
	}
	state := p.journal(identity)
	list, err := p.engine.List(p.Context())
	if err != nil {
		p.Fatal(err)
	}
	engine := map[agent.ContainerID]agent.Seen{}
	for _, s := range list {
		engine[s.ContainerID] = s
	}
	for _, wrong := range plane.Differs(state, engine) {
		p.Error(wrong)
	}
	return state, engine
}

// journal is what the agent's holds, once it has ended.
func (p *program) journal(identity string) agent.State {
	p.Helper()
	dir := p.TempDir() // a copy: opening writes it anew
	text, err := os.ReadFile(filepath.Join(p.dir, "data", "journal.db"))
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "journal.db"), text, 0o600); err != nil {
		p.Fatal(err)
	}
	j, how, err := journal.Open(dir, journal.Owner{Identity: identity}, func() string { return "none" }, time.Now())
	if err != nil || how.Fresh {
		p.Fatalf("%v, %+v", err, how)
	}
	defer j.Close()
	state, err := j.Load()
	if err != nil {
		p.Fatal(err)
	}
	return state
}
