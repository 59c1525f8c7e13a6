//go:build emulator

package dynamostore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/test/emulator"
)

// meter adds up the write units that calls are told they cost.
type meter struct {
	mu    sync.Mutex
	units float64
}

func (m *meter) attach(stack *middleware.Stack) error {
	return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("meter", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		switch p := in.Parameters.(type) {
		case *dynamodb.PutItemInput:
			p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		case *dynamodb.UpdateItemInput:
			p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		case *dynamodb.TransactWriteItemsInput:
			p.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
		}
		out, metadata, err := next.HandleInitialize(ctx, in)
		switch o := out.Result.(type) {
		case *dynamodb.PutItemOutput:
			m.add(o.ConsumedCapacity)
		case *dynamodb.UpdateItemOutput:
			m.add(o.ConsumedCapacity)
		case *dynamodb.TransactWriteItemsOutput:
			for _, c := range o.ConsumedCapacity {
				m.add(&c)
			}
		}
		return out, metadata, err
	}), middleware.Before)
}

func (m *meter) add(c *types.ConsumedCapacity) {
	if c == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units += aws.ToFloat64(c.CapacityUnits)
}

// One task's life, as the use cases write it, must stay within the design's 35
// write units: created with a client token, admitted, seen running, ended and
// released.
func TestStore_ATasksLifeCostsFewWriteUnits(t *testing.T) {
	config := emulator.Shared(t).AWSConfig()
	m := &meter{}
	names := makeTables(t, dynamodb.NewFromConfig(config))
	config.APIOptions = append(config.APIOptions, m.attach)
	s := dynamostore.New(config, names, time.Now)
	commit := func(what string, writes ...control.Write) {
		t.Helper()
		before := m.units
		if err := s.Commit(t.Context(), writes...); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %.1f", what, m.units-before)
	}
	now := time.Now()
	id, hash := fmt.Sprintf("%032x", 1), strings.Repeat("a", 64)
	ledger := &control.Ledger{ID: fmt.Sprintf("%032x", 2), Cluster: "default", Status: control.Active, Connected: true, Epoch: now.Unix(), Registered: control.Held{CPU: 4096, MemoryMiB: 8192, TCP: []int{22}}}
	instance := &control.Instance{ID: ledger.ID, Cluster: "default"}
	commit("(instance)", control.Put(ledger), control.Put(instance))
	m.units = 0
	one := &control.Task{
		ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1, Family: "web", Number: 3, Group: "family:web",
		Needs: taskdef.Resources{CPU: 256, MemoryMiB: 512, TCP: []int{80}, UDP: []int{}}, Launch: "EC2", Priority: 50, CreatedAt: now, WaitingSince: now, StartedBy: "ci",
		Tags: map[string]string{"team": "payments"},
	}
	commit("created", control.Put(&control.Token{Scope: "RunTask#default", Token: id, Request: hash, IDs: []string{id}, ExpiresAt: now.Add(time.Hour)}),
		control.Put(one), control.Check(&control.Cluster{Name: "default"}))
	one.LastStatus, one.Instance, one.Epoch, one.Incarnation, one.AdmittedAt = task.Pending, ledger.ID, ledger.Epoch, id, now
	one.Held = &control.Held{CPU: 256, MemoryMiB: 512, TCP: []int{80}}
	ledger.Held, ledger.Open = *one.Held, 1
	commit("admitted", control.Put(one), control.Put(ledger), control.Check(instance))
	zero := 0
	one.LastStatus, one.Shown, one.N, one.StartedAt, one.PullStartedAt, one.PullStoppedAt = task.Running, true, 7, now, now, now
	one.Containers = []task.Container{{
		Name: "main", Status: task.ContainerRunning, RuntimeID: hash, Image: "registry.example.com/shop/web:2026-03-01", ImageDigest: "sha256:" + hash,
		StartedAt: now, Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 80, Protocol: "tcp"}},
	}}
	commit("running", control.Put(one), control.Check(ledger))
	one.LastStatus, one.DesiredStatus, one.Held, one.StoppedAt, one.StoppingAt, one.ExecStoppedAt = task.Stopped, task.DesiredStopped, nil, now, now, now
	one.StopCause, one.StoppedReason, one.ExpiresAt = "exited", "Essential container in task exited", now.Add(24*time.Hour)
	one.Containers[0].Status, one.Containers[0].ExitCode, one.Containers[0].StoppedAt = task.ContainerStopped, &zero, now
	ledger.Held, ledger.Open = control.Held{}, 0
	commit("ended", control.Put(one), control.Put(ledger))
	if m.units == 0 || m.units > 35 {
		t.Fatalf("a task's life costs %.1f write units, the design allows 35", m.units)
	}
}
