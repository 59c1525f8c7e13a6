//go:build e2e

package chaos

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/link"
	"github.com/longshore-run/longshore/test/local"
)

// ample ends a wait in vain: how fast a machine is is not looked at.
const ample = 4 * time.Minute

// What users of other agents and schedulers have reported, on one stage: each has
// agents of its own.
func TestScenarios(t *testing.T) {
	g := enter(t, 35*time.Second)
	w := g.watch()
	defer w.end()
	def := g.register("scenario", nil)
	var all sync.WaitGroup // at once: they wait more than they work
	for name, f := range map[string]func(*stage, *witness, string){
		"roadmap#2040 an agent stopped on purpose is replaced, and on its return one copy is left": stoppedOnPurpose,
		"nomad#1795 after the reboot of a reaped host its old tasks do not start":                  rebooted,
		"ecs-agent#577 after a black hole heartbeats resume and every end arrives":                 blackHole,
		"ecs-agent#2618 an agent killed at twenty random points knows what Docker knows":           killedAtRandom,
	} {
		all.Go(func() { t.Run(name, func(t *testing.T) { f(g.on(t), w, def) }) })
	}
	all.Wait()
	for n := 1; n <= agents; n++ {
		g.awaitClean(n, ample)
	}
	if held := g.allFree(); held != "" {
		t.Error(held)
	}
	if got := Judge(w.heard()); len(got.Doubles) > 0 {
		t.Errorf("doubles: %s", strings.Join(got.Doubles, "\n"))
	}
}

// stoppedOnPurpose has agents 1 and 5.
func stoppedOnPurpose(g *stage, w *witness, def string) {
	t := g.t
	_, err := g.ecs.CreateService(t.Context(), &ecs.CreateServiceInput{
		Cluster: aws.String(local.Cluster), ServiceName: aws.String("edge"), TaskDefinition: &def, DesiredCount: aws.Int32(1),
		PlacementConstraints: []types.PlacementConstraint{{Type: types.PlacementConstraintTypeMemberOf, Expression: aws.String("attribute:seat in [1, 5]")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if _, err := g.ecs.DeleteService(t.Context(), &ecs.DeleteServiceInput{Cluster: aws.String(local.Cluster), Service: aws.String("edge"), Force: aws.Bool(true)}); err != nil {
			t.Error(err)
		}
	}()
	var first types.Task
	g.eventually(ample, "running is the service's task", func() (bool, any) {
		all := g.members("edge")
		if len(all) == 1 {
			first = all[0]
		}
		return len(all) == 1 && aws.ToString(first.LastStatus) == "RUNNING", len(all)
	})
	victim, other := 1, 5
	if strings.HasSuffix(aws.ToString(first.ContainerInstanceArn), g.Agent(5).Instance) {
		victim, other = 5, 1
	}
	out, err := g.ecs.StartTask(t.Context(), &ecs.StartTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &def, ContainerInstances: []string{g.Agent(victim).Instance}, Tags: kept})
	if err != nil || len(out.Tasks) != 1 {
		t.Fatalf("start a task that is to be kept: %v %+v", err, out)
	}
	stays := g.awaitStatus(aws.ToString(out.Tasks[0].TaskArn), "RUNNING", ample)
	if err := g.Agent(victim).Signal(t.Context(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	old := id(first)
	g.awaitLost(victim)
	if got := g.awaitStatus(aws.ToString(first.TaskArn), "STOPPED", ample); got.StopCode != "InfrastructureHealth" {
		t.Error(told(got))
	}
	var second types.Task
	g.eventually(ample, "running is a replacement", func() (bool, any) {
		for _, m := range g.members("edge") {
			if id(m) != old && aws.ToString(m.LastStatus) == "RUNNING" {
				second = m
				return true, nil
			}
		}
		return false, nil
	})
	if got := g.task(aws.ToString(stays.TaskArn)); aws.ToString(got.LastStatus) != "RUNNING" || got.Connectivity != types.ConnectivityDisconnected {
		t.Errorf("kept, while its agent is away: %s, %s", told(got), got.Connectivity)
	}
	if run := g.running(); len(run[id(stays)]) != 1 || len(run[old]) != 1 || len(run[id(second)]) != 1 || run[id(second)][0] != other {
		t.Errorf("without its agent the old container goes on, and the new one is elsewhere: %v", run)
	}
	if err := g.Agent(victim).Start(); err != nil {
		t.Fatal(err)
	}
	g.awaitBack(victim, ample)
	run := g.running()
	if len(run[old]) != 0 || len(run[id(second)]) != 1 {
		t.Errorf("after the return: %v, want only %s", run, id(second))
	}
	if all := g.members("edge"); len(all) != 1 || id(all[0]) != id(second) {
		t.Errorf("the service has %d tasks after the return", len(all))
	}
	got := g.task(aws.ToString(stays.TaskArn))
	if aws.ToString(got.LastStatus) != "RUNNING" || aws.ToString(got.Containers[0].RuntimeId) != aws.ToString(stays.Containers[0].RuntimeId) || w.starts(id(stays)) != 1 {
		t.Errorf("kept, after the return: %s, started %d times", told(got), w.starts(id(stays)))
	}
	g.stop(aws.ToString(stays.TaskArn))
	g.awaitStatus(aws.ToString(stays.TaskArn), "STOPPED", ample)
}

func id(t types.Task) string {
	arn := aws.ToString(t.TaskArn)
	return arn[strings.LastIndex(arn, "/")+1:]
}

// members are a service's tasks that are to run.
func (g *stage) members(service string) []types.Task {
	g.t.Helper()
	list, err := g.ecs.ListTasks(g.t.Context(), &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), ServiceName: &service})
	if err != nil {
		g.t.Fatal(err)
	}
	if len(list.TaskArns) == 0 {
		return nil
	}
	return g.tasks(list.TaskArns)
}

// rebooted has agent 2. One task ran at the reboot, another was on its way to it.
func rebooted(g *stage, w *witness, def string) {
	t, victim := g.t, g.Agent(2)
	ran := g.start(2, def)
	g.awaitStatus(ran, "RUNNING", ample)
	if err := victim.Signal(t.Context(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	way := g.start(2, def)
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	all, err := local.Containers(t.Context(), victim.Instance)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d containers, %v", len(all), err)
	}
	if err := api.ContainerKill(t.Context(), all[0].ID, "KILL"); err != nil {
		t.Fatal(err)
	}
	g.awaitLost(2)
	for _, arn := range []string{ran, way} {
		if got := g.awaitStatus(arn, "STOPPED", ample); got.StopCode != "InfrastructureHealth" {
			t.Error(told(got))
		}
	}
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	g.awaitBack(2, ample)
	again := g.start(2, def, "sh", "-c", "exit 6") // through the same queue: what was before it has been read
	if got := g.awaitStatus(again, "STOPPED", ample); code(got) != 6 {
		t.Error(told(got))
	}
	for what, arn := range map[string]string{"1 that ran before": ran, "0 that was on its way": way} {
		if n := w.starts(arn[strings.LastIndex(arn, "/")+1:]); n != int(what[0]-'0') {
			t.Errorf("the task %s was started %d times in all", what[2:], n)
		}
	}
	g.eventually(ample, "there is the exit code of the reboot, which arrives late", func() (bool, any) {
		got := g.task(ran)
		return code(got) == 137, told(got)
	})
}

// code is the exit code of a task's one container, -1 if there is none.
func code(t types.Task) int {
	if len(t.Containers) != 1 || t.Containers[0].ExitCode == nil {
		return -1
	}
	return int(*t.Containers[0].ExitCode)
}

// blackHole has agent 3: longer than a request waits for its answer, shorter than
// reapAfter.
func blackHole(g *stage, w *witness, def string) {
	t, out := g.t, g.t.TempDir()
	if err := os.Chmod(out, 0o777); err != nil {
		t.Fatal(err)
	}
	ends := g.register("black-hole", func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		in.Volumes = []types.Volume{{Name: aws.String("out"), Host: &types.HostVolumeProperties{SourcePath: &out}}}
		c.MountPoints = []types.MountPoint{{SourceVolume: aws.String("out"), ContainerPath: aws.String("/out")}}
	})
	arns := []string{g.start(3, def)}
	for n := range 3 {
		arns = append(arns, g.start(3, ends, "sh", "-c", fmt.Sprintf("until test -e /out/%d; do sleep 0.1; done; exit %d", n, 3+n)))
	}
	for _, arn := range arns {
		g.awaitStatus(arn, "RUNNING", ample)
	}
	g.clouds[3].Set(link.Fault{Kind: link.BlackHole})
	holed := time.Now()
	for n, arn := range arns[1:] { // one after the other, and all of them in the hole
		if err := os.WriteFile(filepath.Join(out, strconv.Itoa(n)), nil, 0o666); err != nil {
			t.Fatal(err)
		}
		g.eventually(ample, "ended is "+arn, func() (bool, any) { return len(g.running()[arn[strings.LastIndex(arn, "/")+1:]]) == 0, nil })
	}
	g.eventually(ample, "disconnected is agent 3", func() (bool, any) {
		if err := g.Tick(t.Context()); err != nil {
			return false, err
		}
		return !g.instance(3).AgentConnected, nil
	})
	until := time.After(time.Until(holed.Add(13 * time.Second)))
	<-until
	g.clouds[3].Mend()
	mended := time.Now()
	g.awaitBack(3, ample)
	beat := time.Since(mended)
	var ended []time.Time
	for n, arn := range arns[1:] {
		got := g.awaitStatus(arn, "STOPPED", ample)
		if code(got) != 3+n || got.StopCode != "EssentialContainerExited" {
			t.Error(told(got))
		}
		ended = append(ended, aws.ToTime(got.ExecutionStoppedAt))
	}
	t.Logf("mended after %s: connected after %s, all ends there after %s", mended.Sub(holed).Round(time.Second), beat.Round(100*time.Millisecond), time.Since(mended).Round(100*time.Millisecond))
	const oneTimeout = 10*time.Second + heartbeatEvery
	if most := oneTimeout + 15*time.Second; beat > most { // what else there is lasts for half a minute and more
		t.Errorf("connected %s after the link was mended, want about %s", beat, oneTimeout)
	}
	for n := 1; n < len(ended); n++ {
		if !ended[n].After(ended[n-1]) {
			t.Errorf("ends are out of order: %v", ended)
		}
	}
	if got := g.task(arns[0]); aws.ToString(got.LastStatus) != "RUNNING" || w.starts(id(got)) != 1 {
		t.Errorf("the one that goes on: %s, started %d times", told(got), w.starts(id(got)))
	}
	g.stop(arns[0])
	g.awaitStatus(arns[0], "STOPPED", ample) // a poll that was deaf when the link was mended lasts for half a minute
}

func (g *stage) stop(arn string) {
	g.t.Helper()
	if _, err := g.ecs.StopTask(g.t.Context(), &ecs.StopTaskInput{Cluster: aws.String(local.Cluster), Task: &arn, Reason: aws.String("the test wants it")}); err != nil {
		g.t.Fatal(err)
	}
}

// killedAtRandom has agent 4.
func killedAtRandom(g *stage, w *witness, def string) {
	t, victim := g.t, g.Agent(4)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, seed))
	var arns []string
	for n := range 20 {
		arns = append(arns, g.start(4, def, "sh", "-c", fmt.Sprintf("sleep 0.%d; exit %d", r.IntN(5), n)))
		until := time.After(time.Duration(r.IntN(700)) * time.Millisecond)
		<-until
		if err := victim.Signal(t.Context(), syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := victim.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for n, arn := range arns {
		got := g.awaitStatus(arn, "STOPPED", ample)
		g.eventually(ample, "heard of is the start of "+arn, func() (bool, any) { return w.starts(id(got)) > 0, told(got) })
		if code(got) != n || got.StopCode != "EssentialContainerExited" || w.starts(id(got)) != 1 {
			t.Errorf("started %d times: %s, want code %d", w.starts(id(got)), told(got), n)
		}
	}
}
