package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/image"
)

const (
	cluster   = "bench"
	memoryMiB = 32
	epoch     = 1
)

// command ends at once when it is told to.
var command = []string{"sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait"}

// agentSide is a process of the agent, and the control plane for it.
type agentSide struct {
	api      *client.Client
	queues   *queues
	server   *httptest.Server
	process  *exec.Cmd
	dir      string
	instance string
	tasks    int
	open     []string // tasks that were started and not stopped yet
}

func startAgent(ctx context.Context, program string, api *client.Client) (_ *agentSide, err error) {
	identity := "AROABENCH:" + rand.Text() // nobody's containers are this agent's
	a := &agentSide{api: api, queues: newQueues(identity), instance: wire.InstanceID(identity)}
	a.server = httptest.NewServer(a.queues)
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.dir, err = os.MkdirTemp("", "longshore-bench-"); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(a.dir, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	a.process = exec.Command(program)
	a.process.Stderr = log
	a.process.Env = append(os.Environ(),
		"AWS_ENDPOINT_URL="+a.server.URL, "AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=bench", "AWS_SECRET_ACCESS_KEY=bench", "AWS_EC2_METADATA_DISABLED=true",
		"LONGSHORE_CLUSTER="+cluster, "LONGSHORE_DATA_DIR="+filepath.Join(a.dir, "data"),
		"LONGSHORE_REPORTS_QUEUE_URL="+a.server.URL+"/000000000000/reports", "LONGSHORE_HEARTBEATS_QUEUE_URL="+a.server.URL+"/000000000000/heartbeats",
		"LONGSHORE_IMAGE_PULL_BEHAVIOR=prefer-cached", "LONGSHORE_CLEANUP_WAIT=1s", "LONGSHORE_INTROSPECTION_ADDRESS=off")
	if err := a.process.Start(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 30*time.Second, errors.New("the agent did not register"))
	defer cancel()
	return a, a.until(ctx, func(m wire.Message) (bool, error) {
		r, ok := m.(*wire.Register)
		if !ok {
			return false, nil
		}
		return true, a.queues.put(&wire.Welcome{
			Header: a.header(), Incarnation: r.Incarnation, Cluster: cluster, Epoch: epoch, HeartbeatEveryS: 60,
			ContainerInstanceARN: "arn:aws:ecs:eu-central-1:000000000000:container-instance/" + cluster + "/" + a.instance,
		})
	})
}

func (a *agentSide) header() wire.Header { return wire.Header{Instance: a.instance} }

func (a *agentSide) pid() int { return a.process.Process.Pid }

// until reads what the agent sends until one says that it is enough.
func (a *agentSide) until(ctx context.Context, enough func(wire.Message) (bool, error)) error {
	for {
		select {
		case m := <-a.queues.sent:
			if done, err := enough(m); done || err != nil {
				return err
			}
		case <-ctx.Done():
			log, _ := os.ReadFile(filepath.Join(a.dir, "log"))
			return fmt.Errorf("%w; the end of the agent's log:\n%s", context.Cause(ctx), log[max(0, len(log)-2000):])
		}
	}
}

// each waits until every open task has been reported in a status.
func (a *agentSide) each(ctx context.Context, status task.Status, then func(wire.Snapshot) error) error {
	left := map[string]bool{}
	for _, id := range a.open {
		left[id] = true
	}
	return a.until(ctx, func(m wire.Message) (bool, error) {
		switch m := m.(type) {
		case *wire.Refused:
			return true, fmt.Errorf("the agent refused a task: %s", m.Reason)
		case *wire.Report:
			if m.Status == status && left[m.Task] {
				delete(left, m.Task)
				if err := then(m.Snapshot); err != nil {
					return true, err
				}
			} else if m.Status == task.Stopped && left[m.Task] {
				return true, fmt.Errorf("a task has ended: %s", m.Reason)
			}
		}
		return len(left) == 0, nil
	})
}

func (a *agentSide) start(ctx context.Context, mode string, n int) (time.Time, []string, error) {
	definition, err := json.Marshal(taskdef.TaskDefinition{Spec: taskdef.Spec{
		Family: "bench", NetworkMode: mode,
		ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main", Image: image.Ref, Command: command, Memory: new(memoryMiB)}},
	}})
	if err != nil {
		return time.Time{}, nil, err
	}
	var assigns []wire.Message
	for range n {
		a.tasks++
		id := wire.InstanceID(fmt.Sprint("task ", a.tasks)) // as long as a task's, and as random
		a.open = append(a.open, id)
		assigns = append(assigns, &wire.Assign{
			Header: a.header(), Epoch: epoch, Task: id, Attempt: 1, TaskARN: "arn:aws:ecs:eu-central-1:000000000000:task/" + cluster + "/" + id,
			Cluster: cluster, Family: "bench", Revision: 1, Definition: definition,
		})
	}
	if err := a.queues.put(assigns...); err != nil {
		return time.Time{}, nil, err
	}
	var ids []string
	err = a.each(ctx, task.Running, func(s wire.Snapshot) error {
		for _, c := range s.Containers {
			ids = append(ids, c.RuntimeID)
		}
		return nil
	})
	return a.queues.receivedAt(), ids, err
}

func (a *agentSide) clear(ctx context.Context) error {
	if len(a.open) == 0 || a.process == nil {
		return nil
	}
	var stops, acks []wire.Message
	for _, id := range a.open {
		stops = append(stops, &wire.Stop{Header: a.header(), Task: id, Attempt: 1})
		acks = append(acks, &wire.Ack{Header: a.header(), Task: id, Attempt: 1})
	}
	if err := a.queues.put(stops...); err != nil {
		return err
	}
	if err := a.each(ctx, task.Stopped, func(wire.Snapshot) error { return nil }); err != nil {
		return err
	}
	a.open = nil
	if err := a.queues.put(acks...); err != nil {
		return err
	}
	return gone(ctx, a.api, a.label())
}

func (a *agentSide) label() string { return "run.longshore.instance=" + a.instance }

func (a *agentSide) close() error {
	var errs []error
	if a.process != nil && a.process.Process != nil {
		errs = append(errs, a.process.Process.Signal(syscall.SIGTERM))
		if err := a.process.Wait(); err != nil {
			errs = append(errs, fmt.Errorf("the agent: %w", err))
		}
	}
	errs = append(errs, removeAll(a.api, a.label())) // what a round that failed has left
	a.server.CloseClientConnections()
	a.server.Close()
	if a.dir != "" {
		errs = append(errs, os.RemoveAll(a.dir))
	}
	return errors.Join(errs...)
}
