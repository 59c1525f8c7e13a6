//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// A service of three over two agents, as its owner and its clients see it: it
// rolls within its bounds under load, a bad revision goes back, and an agent that
// is killed for good in the middle of each keeps neither from its end.
func TestServices(t *testing.T) {
	t.Parallel()
	s := up(t, local.Options{Agents: 2, HeartbeatEvery: 2 * time.Second, SuspectAfter: 8 * time.Second, ReapAfter: 25 * time.Second, CleanupWait: time.Second})
	w := watch(s)
	defer w.end()
	for range 3 {
		s.register("web", nil)
	}
	s.register("bad", func(_ *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		c.Command = []string{"/there/is/no/such/file"}
	})

	s.aws("create-service", "--service-name", "web", "--task-definition", "web:1", "--desired-count", "3",
		"--deployment-configuration", "deploymentCircuitBreaker={enable=true,rollback=true},maximumPercent=200,minimumHealthyPercent=100")
	w.stable("made", "web:1")

	w.least.Store(3)
	s.roll("web:2")
	w.stable("rolled", "web:2")

	s.roll("web:3")
	s.eventually("under way is the rollout", func() bool { return w.running("web:3") > 0 })
	w.least.Store(0) // from here on it is not our own doing
	s.vanish(1)
	w.stable("rolled without agent 1", "web:3")
	s.eventually("LOST is agent 1", func() bool {
		return strings.HasPrefix(aws.ToString(s.instance(s.Agent(1).Instance).StatusReason), "LOST")
	})

	if err := s.Agent(1).Start(); err != nil {
		t.Fatal(err)
	}
	s.eventually("back is agent 1", func() bool { return s.instance(s.Agent(1).Instance).AgentConnected })
	w.least.Store(3)
	s.roll("bad:1")
	s.eventually("failing is the bad revision", func() bool {
		for _, d := range s.service().Deployments {
			if d.FailedTasks > 0 || d.RolloutState == types.DeploymentRolloutStateFailed {
				return true
			}
		}
		return false
	})
	w.least.Store(0)
	s.vanish(2)
	w.stable("went back without agent 2", "web:3")
	s.eventually("over is the rollback in the history of four", func() bool { // written when agent 2's tasks are elsewhere, too
		rows, err := s.ecs.ListServiceDeployments(t.Context(), &ecs.ListServiceDeploymentsInput{Cluster: aws.String(local.Cluster), Service: aws.String("web")})
		if err != nil || len(rows.ServiceDeployments) != 4 {
			t.Fatalf("history %+v, %v", rows, err)
		}
		return rows.ServiceDeployments[0].Status == types.ServiceDeploymentStatusRollbackSuccessful
	})
	if !w.told("deployment failed: tasks failed to start.") || !w.told("has reached a steady state.") {
		t.Errorf("events are %+v", s.service().Events)
	}

	s.aws("delete-service", "--service", "web", "--force")
	s.aws("wait", "services-inactive", "--services", "web")
	w.end()
	t.Logf("%d samples: %d to %d tasks lived, at least %d ran where nobody was killed", w.samples, w.fewest, w.most, w.fewestRunning)
}

func (s *stack) roll(definition string) {
	s.t.Helper()
	s.aws("update-service", "--service", "web", "--task-definition", definition)
}

// vanish ends an agent and its containers at once, for good.
func (s *stack) vanish(n int) {
	s.t.Helper()
	if err := s.Agent(n).Vanish(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stack) service() types.Service {
	s.t.Helper()
	out, err := s.ecs.DescribeServices(s.t.Context(), &ecs.DescribeServicesInput{Cluster: aws.String(local.Cluster), Services: []string{"web"}})
	if err != nil || len(out.Services) != 1 {
		s.t.Fatalf("describe service web: %v %+v", err, out)
	}
	return out.Services[0]
}

// watched samples a service's tasks, puts load on the cluster and runs the reaper.
type watched struct {
	s     *stack
	least atomic.Int32 // tasks that must run; 0 for any number
	stop  context.CancelFunc
	done  sync.WaitGroup

	mu                                   sync.Mutex
	tasks                                []types.Task // of the last sample
	samples, fewest, most, fewestRunning int
}

func watch(s *stack) *watched {
	ctx, stop := context.WithCancel(s.t.Context())
	w := &watched{s: s, stop: stop, fewest: 1000, fewestRunning: 1000}
	load := s.register("load", nil)
	w.every(ctx, 5*time.Second, func() error { return s.Tick(ctx) })
	w.every(ctx, 500*time.Millisecond, func() error { return w.sample(ctx, false) })
	w.every(ctx, 2*time.Second, func() error {
		run, err := s.ecs.RunTask(ctx, &ecs.RunTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &load})
		if err != nil || len(run.Tasks) != 1 {
			return fmt.Errorf("run: %w, %v", err, run)
		}
		_, err = s.ecs.StopTask(ctx, &ecs.StopTaskInput{Cluster: aws.String(local.Cluster), Task: run.Tasks[0].TaskArn})
		return err
	})
	return w
}

func (w *watched) every(ctx context.Context, pause time.Duration, do func() error) {
	w.done.Go(func() {
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := do(); err != nil && ctx.Err() == nil {
				w.s.t.Errorf("meanwhile: %v", err)
			}
		}
	})
}

func (w *watched) end() {
	w.stop()
	w.done.Wait()
}

// sample reads the service's tasks that are not STOPPED, and holds them against
// the bounds. They are listed and then read: one that came meanwhile is missing, and
// one that went for it is counted as gone. So too few are counted again at once.
func (w *watched) sample(ctx context.Context, again bool) error {
	least := w.least.Load()
	var arns []string
	for _, desired := range []types.DesiredStatus{types.DesiredStatusRunning, types.DesiredStatusStopped} {
		list, err := w.s.ecs.ListTasks(ctx, &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), ServiceName: aws.String("web"), DesiredStatus: desired})
		if err != nil {
			if strings.Contains(err.Error(), "ServiceNotFoundException") {
				return nil // not made yet
			}
			return err
		}
		arns = append(arns, list.TaskArns...)
	}
	if len(arns) == 0 {
		return nil
	}
	out, err := w.s.ecs.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: arns[:min(len(arns), 100)]})
	if err != nil {
		return err
	}
	living, running := 0, 0
	for _, t := range out.Tasks {
		if aws.ToString(t.LastStatus) != "STOPPED" {
			living++
		}
		if aws.ToString(t.LastStatus) == "RUNNING" && aws.ToString(t.DesiredStatus) == "RUNNING" {
			running++
		}
	}
	if !again && running < int(least) {
		return w.sample(ctx, true)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tasks, w.samples = out.Tasks, w.samples+1
	w.fewest, w.most = min(w.fewest, living), max(w.most, living)
	if living > 6 {
		w.s.t.Errorf("%d tasks live, more than 200 %% of 3", living)
	}
	if least > 0 && least == w.least.Load() {
		w.fewestRunning = min(w.fewestRunning, running)
		if running < int(least) {
			w.s.t.Errorf("%d tasks run, fewer than 100 %% of 3", running)
		}
	}
	return nil
}

// running is how many tasks of a definition ran at the last sample.
func (w *watched) running(definition string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, t := range w.tasks {
		if path.Base(aws.ToString(t.TaskDefinitionArn)) == definition && aws.ToString(t.LastStatus) == "RUNNING" {
			n++
		}
	}
	return n
}

func (w *watched) told(message string) bool {
	for _, e := range w.s.service().Events {
		if strings.Contains(aws.ToString(e.Message), message) {
			return true
		}
	}
	return false
}

// stable waits until the service is, with the waiter's own question, and then
// has the stock waiter say so too.
func (w *watched) stable(what, definition string) {
	w.s.t.Helper()
	begun := time.Now()
	var got types.Service
	defer func() {
		if w.s.t.Failed() {
			for _, d := range got.Deployments {
				w.s.t.Logf("deployment %s of %s: %s, %d of %d run, %d pend, %d failed: %s", aws.ToString(d.Id), path.Base(aws.ToString(d.TaskDefinition)), d.RolloutState, d.RunningCount, d.DesiredCount, d.PendingCount, d.FailedTasks, aws.ToString(d.RolloutStateReason))
			}
			for _, e := range got.Events {
				w.s.t.Logf("event at %s: %s", e.CreatedAt.Format(time.TimeOnly), aws.ToString(e.Message))
			}
		}
	}()
	w.s.eventually(what, func() bool {
		got = w.s.service()
		return len(got.Deployments) == 1 && got.RunningCount == got.DesiredCount && path.Base(aws.ToString(got.TaskDefinition)) == definition
	})
	w.s.aws("wait", "services-stable", "--services", "web")
	w.s.t.Logf("%s after %s", what, time.Since(begun).Round(100*time.Millisecond))
}
