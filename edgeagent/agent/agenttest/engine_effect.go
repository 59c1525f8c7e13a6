package agenttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// EngineEffect is the part of EngineSuite that is seen from inside a container,
// and from the host beside it.
func EngineEffect(t *testing.T, newEngine func(instance string) agent.Engine, image string) {
	for name, test := range map[string]func(*bench){
		"Program_HasItsEnvironmentUserAndFolder":        program,
		"Program_EntryPointComesBeforeTheCommand":       entryPoint,
		"Program_ThatIsNotThereIsInvalidAndSaysSo":      noProgram,
		"Port_OneThatTheEngineChoosesIsShownOnce":       dynamicPort,
		"Port_ARangeIsAsManyOfTheHostsInARow":           portRow,
		"Port_OneThatIsNamedIsTheHosts":                 staticPort,
		"Port_TwoProtocolsOfOneNumberAreTwo":            udpPort,
		"Port_TakenByAStrangerIsAConflictThatNamesIt":   takenPort,
		"Port_TakenByAnotherTaskIsAConflictThatNamesIt": takenByTask,
		"Port_OfTheHostsNetworkIsShown":                 hostNetwork,
		"Volume_OfATaskIsSharedWithinItAndEndsWithIt":   taskVolume,
		"Volume_OfAnAttemptIsNotTheNextOnes":            attemptVolume,
		"Volume_SharedOutlivesItsTasks":                 sharedVolume,
		"Volume_SharedThatMayNotBeMadeMustBeThere":      noVolume,
		"Volume_FolderOfTheHostCanBeReadOnly":           folder,
		"Health_FollowsTheChecksAndIsTold":              health,
		"Group_ALinkIsANameAndVolumesAreLent":           group,
		"Group_NamespacesOfTheHostAndNone":              namespaces,
		"Group_NamespacesOfTheTaskAreHeldAndShared":     together,
		"Network_CanBeOffForOneContainer":               offline,
		"Root_ReadOnlyCannotBeWrittenButItsTmpfsCan":    readOnlyRoot,
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.HasPrefix(name, "Port_") { // two tests could find the same port free
				t.Parallel()
			}
			test(newBench(t, newEngine, image))
		})
	}
}

// script is a program that ends with 0 if all its tests hold, else with the
// number of the first that does not.
func script(tests ...string) []string {
	var text strings.Builder
	for i, line := range tests {
		fmt.Fprintf(&text, "%s || exit %d\n", line, i+1)
	}
	return []string{"sh", "-c", text.String()}
}

type change = func(*taskdef.TaskDefinition)

func first(change func(*taskdef.ContainerDefinition)) change {
	return func(d *taskdef.TaskDefinition) { change(&d.ContainerDefinitions[0]) }
}

func bridge(d *taskdef.TaskDefinition) { d.NetworkMode = taskdef.NetworkBridge }

func program(b *bench) {
	s := b.spec(script(`test "$GREETING" = "hello there"`, `test "$FROM_AGENT" = yes`, `test "$(pwd)" = /var/tmp/here`,
		`test "$(id -u):$(id -g)" = 1234:5678`, `test "$(hostname)" = boxed`),
		first(func(c *taskdef.ContainerDefinition) {
			c.Environment = []taskdef.KeyValuePair{{Name: "GREETING", Value: "hello there"}, {Name: "FROM_AGENT", Value: "no"}}
			c.WorkingDirectory, c.User, c.Hostname = "/var/tmp/here", "1234:5678", "boxed"
		}))
	s.Environment = map[string]string{"FROM_AGENT": "yes"}
	b.exits(b.run(s), 0)
}

func entryPoint(b *bench) {
	s := b.spec([]string{"exit $#", "name", "one", "two", "three"}, first(func(c *taskdef.ContainerDefinition) {
		c.EntryPoint = []string{"sh", "-c"}
	}))
	b.exits(b.run(s), 3)
}

func health(b *bench) {
	news := b.watch()
	s := b.spec(script("touch /tmp/well", "sleep 600"), checked("CMD", "test", "-e", "/tmp/well"))
	s.Definition.ContainerDefinitions[0].HealthCheck.Interval = new(1) // less than may be registered
	b.start(s)
	well := b.hear(news, func(n agent.Seen) bool { return n.ContainerID == s.ContainerID && n.Health == task.Healthy }, "that it is healthy")
	if well.HealthAt.Before(well.StartedAt) {
		b.Fatalf("found at %s, running since %s", well.HealthAt, well.StartedAt)
	}
	ill := b.spec(Sleep(0), checked("CMD-SHELL", "exit 1"))
	ill.Definition.ContainerDefinitions[0].HealthCheck.Interval = new(1)
	b.start(ill)
	b.hear(news, func(n agent.Seen) bool { return n.ContainerID == ill.ContainerID && n.Health == task.Unhealthy }, "that the other is not")
}

func noProgram(b *bench) {
	s := b.spec([]string{"/no/such/program"})
	b.create(s)
	b.kind(b.Start(b.ctx, s.ContainerID), fault.Invalid)
	if got := b.observe(s.ContainerID); got.Running || got.ExitCode != nil || got.Error == "" {
		b.Fatalf("after a start that failed it is seen as %+v, want the error and no exit code", got)
	}
}

func port(container, host int, protocol string) change {
	return first(func(c *taskdef.ContainerDefinition) {
		c.PortMappings = append(c.PortMappings, taskdef.PortMapping{ContainerPort: new(container), HostPort: new(host), Protocol: protocol})
	})
}

func dynamicPort(b *bench) {
	s := b.spec(Sleep(0), bridge, port(8080, 0, ""), port(9090, 0, "tcp"))
	b.start(s)
	got := b.observe(s.ContainerID).Bindings
	if len(got) != 2 || got[0].ContainerPort != 8080 || got[1].ContainerPort != 9090 ||
		got[0].HostPort == 0 || got[1].HostPort == 0 || got[0].HostPort == got[1].HostPort {
		b.Fatalf("bindings %+v, want one for 8080 and one for 9090", got)
	}
	b.must(b.Stop(b.ctx, s.ContainerID, 0))
	if left := b.ended(s.ContainerID).Bindings; len(left) != 0 {
		b.Fatalf("after its end it still shows %+v", left)
	}
}

func portRow(b *bench) {
	s := b.spec(Sleep(0), bridge, port(80, 0, "tcp"), first(func(c *taskdef.ContainerDefinition) {
		c.PortMappings = append(c.PortMappings, taskdef.PortMapping{ContainerPortRange: "7000-7003", Protocol: "udp"})
	}))
	b.start(s)
	got := b.observe(s.ContainerID).Bindings
	if len(got) != 2 || got[0].ContainerPortRange != "7000-7003" || got[0].Protocol != "udp" || got[0].ContainerPort != 0 || got[1].ContainerPort != 80 {
		b.Fatalf("bindings %+v, want one for the range and one for 80", got)
	}
	var from, to int
	if _, err := fmt.Sscanf(got[0].HostPortRange, "%d-%d", &from, &to); err != nil || to-from != 3 {
		b.Fatalf("the host's range is %q: %v", got[0].HostPortRange, err)
	}
}

func staticPort(b *bench) {
	n := freePort(b)
	s := b.spec(Sleep(0), bridge, port(80, n, "tcp"))
	b.start(s)
	got := b.observe(s.ContainerID).Bindings
	if len(got) != 1 || got[0].HostPort != n || got[0].ContainerPort != 80 || got[0].Protocol != "tcp" {
		b.Fatalf("bindings %+v, want %d to 80/tcp", got, n)
	}
}

func udpPort(b *bench) {
	n := freePort(b)
	s := b.spec(Sleep(0), bridge, port(53, n, "udp"), port(53, n, "tcp"))
	b.start(s)
	got := b.observe(s.ContainerID).Bindings
	if len(got) != 2 || got[0].Protocol != "tcp" || got[1].Protocol != "udp" || got[0].HostPort != n || got[1].HostPort != n {
		b.Fatalf("bindings %+v, want %d for tcp and for udp", got, n)
	}
}

// freePort is a port of the host that nobody listens on.
func freePort(b *bench) int {
	b.Helper()
	l, n := listen(b)
	b.must(l.Close())
	return n
}

// listen takes a port below those that a kernel or an engine gives to who asks for any:
// once it is let go, nobody else gets it by chance.
func listen(b *bench) (net.Listener, int) {
	b.Helper()
	var err error
	for range 100 {
		n := 20000 + rand.IntN(10000)
		l, taken := new(net.ListenConfig).Listen(b.ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", n))
		if taken == nil {
			return l, n
		}
		err = taken
	}
	b.Fatalf("no port is free: %v", err)
	return nil, 0
}

func takenPort(b *bench) {
	l, n := listen(b)
	defer l.Close()
	s := b.spec(Sleep(0), bridge, port(80, n, "tcp"))
	b.create(s)
	b.names(b.Start(b.ctx, s.ContainerID), n)
	if b.observe(s.ContainerID).Running {
		b.Fatal("it runs without its port")
	}
	b.must(l.Close())
	b.must(b.Start(b.ctx, s.ContainerID))
}

func takenByTask(b *bench) {
	n := freePort(b)
	b.start(b.spec(Sleep(0), bridge, port(80, n, "tcp")))
	s := b.spec(Sleep(0), bridge, port(80, n, "tcp"))
	b.create(s)
	b.names(b.Start(b.ctx, s.ContainerID), n)
}

// names says whether err is a Conflict about one TCP port.
func (b *bench) names(err error, port int) {
	b.Helper()
	b.kind(err, fault.Conflict)
	ports, ok := errors.AsType[*agent.PortsTaken](err)
	if !ok || !slices.Equal(ports.TCP, []int{port}) || len(ports.UDP) > 0 {
		b.Fatalf("the error is %v, which does not name port %d alone", err, port)
	}
}

func hostNetwork(b *bench) {
	s := b.spec(Sleep(0), func(d *taskdef.TaskDefinition) { d.NetworkMode = taskdef.NetworkHost }, port(18080, 18080, "tcp"))
	b.start(s)
	if got := b.observe(s.ContainerID).Bindings; len(got) != 1 || got[0].HostPort != 18080 || got[0].ContainerPort != 18080 {
		b.Fatalf("bindings %+v, want 18080", got)
	}
}

// volumed gives the definition a volume and mounts it at /data.
func volumed(v taskdef.Volume, readOnly bool) change {
	return func(d *taskdef.TaskDefinition) {
		d.Volumes = append(d.Volumes, v)
		c := &d.ContainerDefinitions[0]
		c.MountPoints = append(c.MountPoints, taskdef.MountPoint{SourceVolume: v.Name, ContainerPath: "/data", ReadOnly: &readOnly})
	}
}

// beside is a second container of the same task, after the model of the first.
func beside(s agent.Spec, name string, command []string) agent.Spec {
	def := *s.Definition
	c := def.ContainerDefinitions[0]
	c.Name, c.Command = name, command
	def.ContainerDefinitions = append(slices.Clone(def.ContainerDefinitions), c)
	s.Definition, s.Container = &def, name
	return s
}

var (
	writes = script("test ! -e /data/note", "echo kept > /data/note")
	reads  = script(`test "$(cat /data/note)" = kept`)
)

func taskVolume(b *bench) {
	for _, v := range []taskdef.Volume{
		{Name: "scratch"},
		{Name: "scratch", Host: &taskdef.HostVolume{}},
		{Name: "scratch", DockerVolumeConfiguration: &taskdef.DockerVolumeConfiguration{Scope: taskdef.ScopeTask, Driver: "local"}},
	} {
		s := b.spec(writes, volumed(v, false))
		b.exits(b.run(s), 0)
		reader := beside(s, "reader", reads)
		b.exits(b.run(reader), 0)
		b.exits(b.run(b.spec(writes, volumed(v, false))), 0) // another task's is empty
		b.kind(b.RemoveTask(b.ctx, s.Task, s.Attempt), fault.Conflict)
		b.must(b.Remove(b.ctx, s.ContainerID))
		b.must(b.Remove(b.ctx, reader.ContainerID))
		b.must(b.RemoveTask(b.ctx, s.Task, s.Attempt))
		b.must(b.RemoveTask(b.ctx, s.Task, s.Attempt))
		b.exits(b.run(s), 0) // it is empty again
	}
}

func attemptVolume(b *bench) {
	s := b.spec(writes, volumed(taskdef.Volume{Name: "scratch"}, false))
	b.exits(b.run(s), 0)
	again := s
	again.Attempt = 2
	b.exits(b.run(again), 0)
}

// SharedVolumePrefix opens the names of the shared volumes that the suite makes.
// An engine never deletes one, so that is left to who runs the suite.
const SharedVolumePrefix = "longshore-suite-"

func sharedVolume(b *bench) {
	v := taskdef.Volume{Name: SharedVolumePrefix + RandomID()[:12], DockerVolumeConfiguration: &taskdef.DockerVolumeConfiguration{
		Scope: taskdef.ScopeShared, Autoprovision: new(true), Driver: "local", DriverOpts: tmpFolder(b),
	}}
	s := b.spec(writes, volumed(v, false))
	b.exits(b.run(s), 0)
	b.must(b.Remove(b.ctx, s.ContainerID))
	b.must(b.RemoveTask(b.ctx, s.Task, s.Attempt))
	b.exits(b.run(b.spec(reads, volumed(v, false))), 0)
	v.DockerVolumeConfiguration.Autoprovision = new(false)
	b.exits(b.run(b.spec(reads, volumed(v, true))), 0)
	v.DockerVolumeConfiguration.DriverOpts = map[string]string{"type": "tmpfs", "device": "tmpfs"}
	b.refuses(b.spec(reads, volumed(v, false)), fault.Invalid)
}

func noVolume(b *bench) {
	b.refuses(b.spec(reads, volumed(taskdef.Volume{Name: SharedVolumePrefix + RandomID()[:12],
		DockerVolumeConfiguration: &taskdef.DockerVolumeConfiguration{Scope: taskdef.ScopeShared}}, false)), fault.Invalid)
}

// tmpFolder are driver options that keep a volume's data in the test's folder.
func tmpFolder(b *bench) map[string]string {
	return map[string]string{"type": "none", "o": "bind", "device": b.TempDir()}
}

func folder(b *bench) {
	dir := b.TempDir() + "/made/on/demand"
	v := taskdef.Volume{Name: "host", Host: &taskdef.HostVolume{SourcePath: dir}}
	b.exits(b.run(b.spec(writes, volumed(v, false))), 0)
	b.exits(b.run(b.spec(script(`test "$(cat /data/note)" = kept`, `! echo other > /data/note`), volumed(v, true))), 0)
}

func readOnlyRoot(b *bench) {
	b.exits(b.run(b.spec(script("! echo x > /file", "echo x > /run/here/file"), first(func(c *taskdef.ContainerDefinition) {
		c.ReadonlyRootFilesystem = new(true)
		c.LinuxParameters = &taskdef.LinuxParameters{Tmpfs: []taskdef.Tmpfs{{ContainerPath: "/run/here", Size: new(1)}}}
	}))), 0)
}
