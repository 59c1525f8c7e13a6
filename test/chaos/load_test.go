//go:build e2e

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// accepted is a task that the API has answered with, and what is to come of it.
type accepted struct {
	arn  string
	code int  // that it ends with by itself
	stop bool // it was asked to stop
	keep bool // it is not to be lost with its agent
}

// load is what users do meanwhile. Whatever the API accepted is written down; what
// it did not answer is asked again with the same token.
type load struct {
	g      *stage
	job    string   // a definition whose tasks end by themselves
	big    string   // the same, of which an instance has room for one: they wait
	web    []string // a service's definitions
	stop   context.CancelFunc
	done   sync.WaitGroup
	tokens atomic.Int64 // requests made with a token that was used before
	rolls  atomic.Int64

	sitting []string // tasks that stay on one agent each

	mu  sync.Mutex
	all []accepted
}

const service = "web"

func (g *stage) load(seed uint64) *load {
	g.t.Helper()
	l := &load{g: g, job: g.register("job", nil)}
	for _, r := range g.instance(1).RegisteredResources {
		if aws.ToString(r.Name) == "MEMORY" {
			l.big = g.register("big", func(_ *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
				c.Memory, c.MemoryReservation = nil, aws.Int32(r.IntegerValue*7/10)
			})
		}
	}
	for n := range 3 {
		l.web = append(l.web, g.register("web", func(_ *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
			c.Environment = []types.KeyValuePair{{Name: aws.String("REVISION"), Value: aws.String(fmt.Sprint(n))}}
		}))
	}
	_, err := g.ecs.CreateService(g.t.Context(), &ecs.CreateServiceInput{
		Cluster: aws.String(local.Cluster), ServiceName: aws.String(service), TaskDefinition: &l.web[0], DesiredCount: aws.Int32(3),
		DeploymentConfiguration: &types.DeploymentConfiguration{MaximumPercent: aws.Int32(200), MinimumHealthyPercent: aws.Int32(50)},
	})
	if err != nil {
		g.t.Fatal(err)
	}
	for n := 1; n <= agents; n++ {
		l.sit(n)
	}
	ctx, stop := context.WithCancel(g.t.Context())
	l.stop = stop
	const users = 3
	for n := range uint64(users) {
		r := rand.New(rand.NewPCG(seed, n+1))
		l.every(ctx, func() time.Duration { return between(r, 300*time.Millisecond, 2500*time.Millisecond) }, func() { l.use(ctx, r) })
	}
	r := rand.New(rand.NewPCG(seed, 0))
	l.every(ctx, func() time.Duration { return between(r, 8*time.Second, 16*time.Second) }, func() { l.roll(ctx, r) })
	return l
}

func (l *load) every(ctx context.Context, pause func() time.Duration, do func()) {
	l.done.Go(func() {
		for {
			timer := time.NewTimer(pause())
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			do()
		}
	})
}

// end lets the requests under way come to their answers, and makes no more but to
// stop what is there for as long as the load.
func (l *load) end() {
	l.stop()
	l.done.Wait()
	for _, arn := range l.sitting {
		l.stopTask(arn)
	}
}

// sit has a task on one agent for as long as the load: whatever else chance brings
// there, this one is lost when the agent is reaped.
func (l *load) sit(agent int) {
	arn, ok := l.run(&ecs.RunTaskInput{
		Cluster: aws.String(local.Cluster), TaskDefinition: &l.job, Overrides: override([]string{"sleep", "3600"}),
		PlacementConstraints: []types.PlacementConstraint{{
			Type: types.PlacementConstraintTypeMemberOf, Expression: aws.String(fmt.Sprintf("attribute:seat == %d", agent)),
		}},
	})
	if ok {
		l.sitting = append(l.sitting, arn)
		l.all = append(l.all, accepted{arn: arn, stop: true})
	}
}

// use is one thing that a user does.
func (l *load) use(ctx context.Context, r *rand.Rand) {
	a := accepted{code: 1 + r.IntN(100)}
	definition, seconds := l.job, 0.1+3*r.Float64()
	switch r.IntN(8) {
	case 0:
		definition, seconds = l.big, 1+r.Float64()
	case 1, 2:
		a.stop, seconds = true, 600
	case 3, 4: // so long that an agent may be reaped meanwhile
		seconds, a.keep = 10+20*r.Float64(), r.IntN(2) == 0
	}
	in := &ecs.RunTaskInput{
		Cluster: aws.String(local.Cluster), TaskDefinition: &definition, ClientToken: aws.String(fmt.Sprintf("chaos-%016x", r.Uint64())),
		Overrides: override([]string{"sh", "-c", fmt.Sprintf("sleep %.2f; exit %d", seconds, a.code)}),
	}
	if a.keep {
		in.Tags = kept
	}
	arn, ok := l.run(in)
	if !ok {
		return
	}
	a.arn = arn
	if r.IntN(3) == 0 { // the user has not seen the answer
		l.tokens.Add(1)
		if again, ok := l.run(in); ok && again != arn {
			l.g.t.Errorf("the same token gave %s and %s", arn, again)
		}
	}
	l.mu.Lock()
	l.all = append(l.all, a)
	l.mu.Unlock()
	if !a.stop {
		return
	}
	until := time.NewTimer(time.Duration(r.IntN(5000)) * time.Millisecond)
	defer until.Stop()
	select {
	case <-until.C:
	case <-ctx.Done(): // what is asked to stop is stopped, also at the end
	}
	l.stopTask(arn)
}

func (l *load) stopTask(arn string) {
	if _, err := insist(l.g.t.Context(), patience, func() (*ecs.StopTaskOutput, error) {
		return l.g.ecs.StopTask(l.g.t.Context(), &ecs.StopTaskInput{Cluster: aws.String(local.Cluster), Task: &arn, Reason: aws.String("a user")})
	}); err != nil {
		l.g.t.Errorf("stop %s: %v", arn, err)
	}
}

// kept is what a task that stays with a silent host is tagged with.
var kept = []types.Tag{{Key: aws.String("longshore:onDisconnect"), Value: aws.String("keep")}}

// run insists on an answer, past the end of the load: what may have been accepted
// must be known.
func (l *load) run(in *ecs.RunTaskInput) (string, bool) {
	ctx := l.g.t.Context()
	out, err := insist(ctx, patience, func() (*ecs.RunTaskOutput, error) { return l.g.ecs.RunTask(ctx, in) })
	if err != nil || len(out.Tasks) != 1 {
		if ctx.Err() == nil {
			l.g.t.Errorf("run: %v %+v", err, out)
		}
		return "", false
	}
	return aws.ToString(out.Tasks[0].TaskArn), true
}

// roll gives the service another definition or another size.
func (l *load) roll(ctx context.Context, r *rand.Rand) {
	in := &ecs.UpdateServiceInput{Cluster: aws.String(local.Cluster), Service: aws.String(service)}
	if r.IntN(3) > 0 {
		in.TaskDefinition = &l.web[r.IntN(len(l.web))]
		in.ForceNewDeployment = r.IntN(2) == 0
	} else {
		in.DesiredCount = aws.Int32(int32(2 + r.IntN(3)))
	}
	if _, err := insist(l.g.t.Context(), patience, func() (*ecs.UpdateServiceOutput, error) { return l.g.ecs.UpdateService(l.g.t.Context(), in) }); err != nil && ctx.Err() == nil {
		l.g.t.Errorf("update the service: %v", err)
		return
	}
	l.rolls.Add(1)
}

func (l *load) arns() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	arns := make([]string, 0, len(l.all))
	for _, a := range l.all {
		arns = append(arns, a.arn)
	}
	return arns
}

// settle waits until every task that was accepted has ended, and the service is at
// rest.
func (l *load) settle(most time.Duration) {
	l.g.t.Helper()
	arns := l.arns() // that have not ended, when last seen
	l.g.eventually(most, "at rest is all that was accepted", func() (bool, any) {
		var open, matter []string
		for _, t := range l.g.tasks(arns) {
			if aws.ToString(t.LastStatus) != "STOPPED" {
				open, matter = append(open, aws.ToString(t.TaskArn)), append(matter, told(t))
			}
		}
		if arns = open; len(open) > 0 {
			return false, matter[:min(len(matter), 8)]
		}
		out, err := l.g.ecs.DescribeServices(l.g.t.Context(), &ecs.DescribeServicesInput{Cluster: aws.String(local.Cluster), Services: []string{service}})
		if err != nil || len(out.Services) != 1 {
			return false, err
		}
		s := out.Services[0]
		rests := len(s.Deployments) == 1 && s.RunningCount == s.DesiredCount && s.PendingCount == 0 && s.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted
		return rests, fmt.Sprintf("service: %d deployments, %d of %d run, %d pend", len(s.Deployments), s.RunningCount, s.DesiredCount, s.PendingCount)
	})
}

// outcome counts how what was accepted has ended, and says what should not be.
type outcome struct {
	Exited, Stopped, Lost int
	Kept                  int // of those that exited, tasks that were to be kept
	LostToldLate          int // lost, and its end was told after the host had returned
}

func (l *load) outcome() outcome {
	l.g.t.Helper()
	var o outcome
	l.mu.Lock()
	all := slices.Clone(l.all)
	l.mu.Unlock()
	for n, t := range l.g.tasks(l.arns()) {
		a := all[n]
		switch {
		case t.StopCode == types.TaskStopCodeEssentialContainerExited && code(t) == a.code && !a.stop:
			o.Exited++
			if a.keep {
				o.Kept++
			}
		case t.StopCode == types.TaskStopCodeUserInitiated && a.stop:
			o.Stopped++
		case string(t.StopCode) == "InfrastructureHealth" && !a.keep:
			o.Lost++
			if code(t) >= 0 {
				o.LostToldLate++
			}
		default:
			l.g.t.Errorf("ended as it should not: %s; wanted code %d; asked to stop %v, to be kept %v", told(t), a.code, a.stop, a.keep)
		}
	}
	return o
}

// listed is every task of the load that the API lists, whether it answered with it
// or not.
func (l *load) listed() (n int) {
	l.g.t.Helper()
	for _, family := range []string{"job", "big"} {
		for _, desired := range []types.DesiredStatus{types.DesiredStatusRunning, types.DesiredStatusStopped} {
			pages := ecs.NewListTasksPaginator(l.g.ecs, &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), Family: &family, DesiredStatus: desired})
			for pages.HasMorePages() {
				page, err := pages.NextPage(l.g.t.Context())
				if err != nil {
					l.g.t.Fatal(err)
				}
				n += len(page.TaskArns)
			}
		}
	}
	return n
}
