package wire_test

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// write makes the golden file of a message that has none yet. What has been
// shipped is never written over: agents of that version are out there.
var write = flag.Bool("write", false, "write golden files that are missing")

const (
	identity = "AROAEXAMPLE:i-0123456789abcdef0"
	job      = "0123456789abcdef0123456789abcdef"
)

var (
	instance = wire.InstanceID(identity)
	at       = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	to       = wire.Header{Version: 1, Instance: instance}
	from     = wire.Origin{Incarnation: "7f3c", N: 42}
)

func header(t wire.Type) wire.Header { h := to; h.Type = t; return h }

// messages is one of each, every member set.
func messages() []wire.Message {
	return []wire.Message{
		&wire.Register{Header: header(wire.RegisterType), Origin: from, Identity: identity, Session: "s-1", Cluster: "default", Epoch: 1767323045,
			WireVersions: []int{1}, AgentVersion: "1.2.3", AgentHash: "abc", DockerVersion: "28.5", EC2InstanceID: "i-0123456789abcdef0", Zone: "eu-west-1a",
			CPU: 4096, MemoryMiB: 7680, ReservedTCP: []int{22, 2376}, ReservedUDP: []int{68}, GPUs: []string{"GPU-0"}, Attributes: map[string]string{"rack": "7"}},
		&wire.Report{Header: header(wire.ReportType), Origin: from, Snapshot: wire.Snapshot{Task: job, Attempt: 2, Epoch: 1767323045, Status: task.Stopped,
			Cause: task.ExitedCause, Reason: "Essential container in task exited", PullStartedAt: at, PullStoppedAt: at, StartedAt: at, StoppingAt: at, StoppedAt: at,
			Containers: []task.Container{{Name: "main", Status: task.ContainerStopped, RuntimeID: "c1", Image: "busybox", ImageDigest: "sha256:1", ExitCode: new(7), Reason: "OOM",
				Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 32768, Protocol: "tcp"}}, GPUs: []string{"GPU-0"}, StartedAt: at, StoppedAt: at}}}},
		&wire.Refused{Header: header(wire.RefusedType), Origin: from, Task: job, Attempt: 1, Epoch: 1767323045, Code: wire.RefusedPort, Reason: "port 80 is taken", TCP: []int{80}, UDP: []int{53}},
		&wire.Heartbeat{Header: header(wire.HeartbeatType), Origin: from, Session: "s-1", Epoch: 1767323045, Docker: wire.DockerImpaired, DockerReason: "no answer", FreeDiskMiB: 1024,
			Inventory: []wire.Entry{{Task: job, Attempt: 2, Epoch: 1767323045, Phase: wire.PhaseRunning}}, UnknownLabels: 1},
		&wire.Probe{Header: wire.Header{Version: 1, Type: wire.ProbeType}, ID: "probe-1"},
		&wire.Assign{Header: header(wire.AssignType), Epoch: 1767323045, Task: job, Attempt: 2, TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + job, Cluster: "default",
			Family: "web", Revision: 3, Definition: json.RawMessage(`{"family":"web"}`), GPUs: []string{"GPU-0"}, Group: "family:web", StartedBy: "alice", ServiceName: "web"},
		&wire.Stop{Header: header(wire.StopType), Task: job, Attempt: 2, Reason: "Task stopped by user"},
		&wire.Ack{Header: header(wire.AckType), Task: job, Attempt: 2},
		&wire.Welcome{Header: header(wire.WelcomeType), Incarnation: "7f3c", ContainerInstanceARN: "arn:aws:ecs:eu-west-1:000000000000:container-instance/default/" + instance,
			Cluster: "default", Epoch: 1767323045, N: 41, HeartbeatEveryS: 60},
		&wire.Fence{Header: header(wire.FenceType), Incarnation: "7f3c", Epoch: 1767323046, Closed: []wire.Attempt{{Task: job, Attempt: 2}}, Terminal: true, Reason: "LOST"},
		&wire.Resync{Header: header(wire.ResyncType), Tasks: []string{job}},
	}
}

// grown are messages with members that came after the first of their kind was
// shipped, by their golden file. Those files do not change either.
func grown() map[string]wire.Message {
	return map[string]wire.Message{
		"heartbeat.notice.v1.json": &wire.Heartbeat{Header: header(wire.HeartbeatType), Origin: from, Session: "s-1", Epoch: 1767323045, Docker: wire.DockerOK, Inventory: []wire.Entry{},
			Notice: &wire.Notice{Kind: wire.NoticeSpot, Action: "terminate", At: at}},
		"heartbeat.gpus.v1.json": &wire.Heartbeat{Header: header(wire.HeartbeatType), Origin: from, Session: "s-1", Epoch: 1767323045, Docker: wire.DockerOK,
			Inventory: []wire.Entry{{Task: job, Attempt: 2, Epoch: 1767323045, Phase: wire.PhaseRunning, GPUs: []string{"GPU-0"}}}},
		"heartbeat.room.v1.json": &wire.Heartbeat{Header: header(wire.HeartbeatType), Origin: from, Session: "s-1", Epoch: 1767323045, Docker: wire.DockerOK, Inventory: []wire.Entry{},
			NoRoom: "no room for images: the disk of /var/lib/docker is 97 % full"},
		"report.health.v1.json": &wire.Report{Header: header(wire.ReportType), Origin: from, Snapshot: wire.Snapshot{Task: job, Attempt: 2, Epoch: 1767323045, Status: task.Running,
			Health:     task.Unhealthy,
			Containers: []task.Container{{Name: "main", Status: task.ContainerRunning, Health: task.Unhealthy}, {Name: "db", Status: task.ContainerRunning, Health: task.Healthy}}}},
		"report.ports.v1.json": &wire.Report{Header: header(wire.ReportType), Origin: from, Snapshot: wire.Snapshot{Task: job, Attempt: 2, Epoch: 1767323045, Status: task.Running,
			Containers: []task.Container{{Name: "main", Status: task.ContainerRunning, Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPortRange: "7000-7009", HostPortRange: "50000-50009", Protocol: "udp"}}}}}},
	}
}

// shipped is every message by its golden file.
func shipped() map[string]wire.Message {
	all := grown()
	for _, m := range messages() {
		all[string(wire.TypeOf(m))+".v1.json"] = m
	}
	return all
}

func sample(t *testing.T, kind wire.Type) wire.Message {
	t.Helper()
	for _, m := range messages() {
		if wire.TypeOf(m) == kind {
			return m
		}
	}
	t.Fatalf("no sample of %s", kind)
	return nil
}

func TestEncode_WritesEveryMessageAsItWasShipped(t *testing.T) {
	for file, m := range shipped() {
		path := filepath.Join("testdata", file)
		b, err := wire.Encode(m)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		b = append(b, '\n')
		want, err := os.ReadFile(path)
		if os.IsNotExist(err) && *write {
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v; -write makes the file of a new message", err)
		} else if string(want) != string(b) {
			t.Errorf("%s is written as\n%s\nand was shipped as\n%s", file, b, want)
		}
	}
}

func TestDecode_ReadsEveryMessageEverShipped(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(shipped()) {
		t.Fatalf("%d golden files for %d messages", len(files), len(shipped()))
	}
	for file, m := range shipped() {
		b, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			t.Fatal(err)
		}
		got, err := wire.Decode(b)
		if err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("%s: %v\n%+v\n%+v", file, err, got, m)
		}
	}
}

func TestTypes_AreAllCovered(t *testing.T) {
	all := []wire.Type{wire.RegisterType, wire.ReportType, wire.RefusedType, wire.HeartbeatType, wire.ProbeType,
		wire.AssignType, wire.StopType, wire.AckType, wire.WelcomeType, wire.FenceType, wire.ResyncType}
	if len(all) != len(messages()) {
		t.Fatalf("%d types, %d samples", len(all), len(messages()))
	}
	for _, kind := range all {
		m := sample(t, kind)
		if wire.HeaderOf(m).Type != kind {
			t.Errorf("%s has type %s", kind, wire.HeaderOf(m).Type)
		}
	}
	if wire.TypeOf(&wire.Unreadable{}) != "" {
		t.Error("what can not be read has a type")
	}
}

func encoded(t *testing.T, m wire.Message) string {
	t.Helper()
	b, err := wire.Encode(m)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestDecode_IsStrictAndKeepsTheHeader(t *testing.T) {
	stop := encoded(t, sample(t, wire.StopType))
	for name, c := range map[string]struct {
		body  string
		says  string
		keeps bool // the header
	}{
		"empty":             {"", "header", false},
		"no JSON":           {"hello", "header", false},
		"a list":            {"[]", "header", false},
		"half":              {stop[:len(stop)-2], "header", false},
		"too big":           {strings.Repeat(" ", wire.MaxBytes) + stop, "at most 262144", false},
		"no version":        {strings.Replace(stop, `"v":1`, `"v":0`, 1), "v: version 0", true},
		"a later version":   {strings.Replace(stop, `"v":1`, `"v":2`, 1), "v: version 2", true},
		"an unknown type":   {strings.Replace(stop, `"stop"`, `"halt"`, 1), `"halt"`, true},
		"an unknown member": {strings.Replace(stop, `{"v"`, `{"extra":1,"v"`, 1), "extra", true},
		"a wrong type":      {strings.Replace(stop, `"attempt":2`, `"attempt":"2"`, 1), "attempt", true},
		"something behind":  {stop + `{}`, "header", false},
		"a bad member":      {strings.Replace(stop, `"attempt":2`, `"attempt":0`, 1), "attempt", true},
	} {
		m, err := wire.Decode([]byte(c.body))
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		u, _ := m.(*wire.Unreadable)
		if c.keeps != (u != nil) || u != nil && u.Instance != instance {
			t.Errorf("%s: message %+v", name, m)
		}
	}
	if m, err := wire.Decode([]byte(stop + " \n")); err != nil || m == nil {
		t.Errorf("white space at the end: %v", err)
	}
}

func TestCheck_NamesTheMemberThatIsOutOfBounds(t *testing.T) {
	long := strings.Repeat("x", 5000)
	many := func(n int) []int {
		out := make([]int, n)
		for i := range out {
			out[i] = i + 1
		}
		return out
	}
	register := func(f func(m *wire.Register)) wire.Message {
		m := sample(t, wire.RegisterType).(*wire.Register)
		f(m)
		return m
	}
	report := func(f func(m *wire.Report)) wire.Message {
		m := sample(t, wire.ReportType).(*wire.Report)
		f(m)
		return m
	}
	beat := func(f func(m *wire.Heartbeat)) wire.Message {
		m := sample(t, wire.HeartbeatType).(*wire.Heartbeat)
		f(m)
		return m
	}
	refused := func(f func(m *wire.Refused)) wire.Message {
		m := sample(t, wire.RefusedType).(*wire.Refused)
		f(m)
		return m
	}
	for _, c := range []struct {
		field string
		m     wire.Message
	}{
		{"instance", register(func(m *wire.Register) { m.Instance = "x" })},
		{"instance", register(func(m *wire.Register) { m.Identity = "AROAEXAMPLE:other" })},
		{"identity", register(func(m *wire.Register) { m.Identity = "" })},
		{"incarnation", register(func(m *wire.Register) { m.Incarnation = "" })},
		{"n", register(func(m *wire.Register) { m.N = -1 })},
		{"n", register(func(m *wire.Register) { m.N = 1 << 53 })},
		{"session", register(func(m *wire.Register) { m.Session = "a b" })},
		{"cluster", register(func(m *wire.Register) { m.Cluster = "a/b" })},
		{"epoch", register(func(m *wire.Register) { m.Epoch = -1 })},
		{"epoch", register(func(m *wire.Register) { m.Epoch = 1 << 53 })},
		{"wireVersions", register(func(m *wire.Register) { m.WireVersions = nil })},
		{"wireVersions", register(func(m *wire.Register) { m.WireVersions = many(21) })},
		{"cpu", register(func(m *wire.Register) { m.CPU = 0 })},
		{"memory", register(func(m *wire.Register) { m.MemoryMiB = -1 })},
		{"reservedTcp", register(func(m *wire.Register) { m.ReservedTCP = []int{0} })},
		{"reservedUdp", register(func(m *wire.Register) { m.ReservedUDP = many(201) })},
		{"gpus", register(func(m *wire.Register) { m.GPUs = []string{"a", "a"} })},
		{"gpus", register(func(m *wire.Register) { m.GPUs = []string{""} })},
		{"attributes", register(func(m *wire.Register) { m.Attributes = map[string]string{"k": long[:129]} })},
		{"agentVersion", register(func(m *wire.Register) { m.AgentVersion = long })},
		{"zone", register(func(m *wire.Register) { m.Zone = long })},
		{"task", report(func(m *wire.Report) { m.Task = strings.ToUpper(job) })},
		{"attempt", report(func(m *wire.Report) { m.Attempt = 0 })},
		{"status", report(func(m *wire.Report) { m.Status = task.Provisioning })},
		{"status", report(func(m *wire.Report) { m.Status = "DEPROVISIONING" })},
		{"reason", report(func(m *wire.Report) { m.Reason = long })},
		{"containers", report(func(m *wire.Report) { m.Containers = make([]task.Container, 33) })},
		{"containers.name", report(func(m *wire.Report) { m.Containers[0].Name = "" })},
		{"containers.status", report(func(m *wire.Report) { m.Containers[0].Status = "EXITED" })},
		{"containers.reason", report(func(m *wire.Report) { m.Containers[0].Reason = long })},
		{"healthStatus", report(func(m *wire.Report) { m.Health = "FINE" })},
		{"containers.healthStatus", report(func(m *wire.Report) { m.Containers[0].Health = "healthy" })},
		{"containers.bindings.containerPortRange", report(func(m *wire.Report) { m.Containers[0].Bindings[0].ContainerPortRange = long[:17] })},
		{"containers.bindings.hostPortRange", report(func(m *wire.Report) { m.Containers[0].Bindings[0].HostPortRange = long[:17] })},
		{"containers.bindings", report(func(m *wire.Report) { m.Containers[0].Bindings = make([]task.Binding, 201) })},
		{"code", refused(func(m *wire.Refused) { m.Code = "" })},
		{"tcp", refused(func(m *wire.Refused) { m.TCP = []int{65536} })},
		{"reason", refused(func(m *wire.Refused) { m.Reason = long })},
		{"docker", beat(func(m *wire.Heartbeat) { m.Docker = "" })},
		{"dockerReason", beat(func(m *wire.Heartbeat) { m.DockerReason = long })},
		{"unknown", beat(func(m *wire.Heartbeat) { m.UnknownLabels = -1 })},
		{"inventory", beat(func(m *wire.Heartbeat) { m.Inventory = make([]wire.Entry, 2001) })},
		{"inventory.phase", beat(func(m *wire.Heartbeat) { m.Inventory[0].Phase = "done" })},
		{"task", beat(func(m *wire.Heartbeat) { m.Inventory[0].Task = "" })},
		{"id", &wire.Probe{ID: ""}},
		{"definition", &wire.Assign{Header: to, Task: job, Attempt: 1, Epoch: 1}},
		{"epoch", &wire.Welcome{Header: to, Incarnation: "a", HeartbeatEveryS: 1}},
		{"heartbeatEvery", &wire.Welcome{Header: to, Incarnation: "a", Epoch: 1}},
		{"incarnation", &wire.Fence{Header: to, Epoch: 1}},
		{"attempt", &wire.Fence{Header: to, Incarnation: "a", Epoch: 1, Closed: []wire.Attempt{{Task: job}}}},
		{"tasks", &wire.Resync{Header: to, Tasks: []string{"x"}}},
	} {
		_, err := wire.Encode(c.m)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != fault.Invalid || f.Field != c.field {
			t.Errorf("%s of %T: %v", c.field, c.m, err)
		}
	}
}

func TestEncode_RefusesWhatIsTooBigToBeRead(t *testing.T) {
	m := sample(t, wire.AssignType).(*wire.Assign)
	m.Definition = json.RawMessage(`"` + strings.Repeat("x", wire.MaxBytes) + `"`)
	if _, err := wire.Encode(m); !fault.Is(err, fault.Invalid) {
		t.Fatal(err)
	}
}

func TestEncode_TheLargestInventoryFits(t *testing.T) {
	m := sample(t, wire.HeartbeatType).(*wire.Heartbeat)
	m.Inventory = nil
	for n := range 1000 { // what the design promises; MaxInventory bounds the work, MaxBytes the rest
		m.Inventory = append(m.Inventory, wire.Entry{Task: job, Attempt: n + 1, Epoch: 1767323045, Phase: wire.PhaseRunning})
	}
	if b := encoded(t, m); len(b) > wire.MaxBytes/2 {
		t.Fatalf("%d bytes", len(b))
	}
}

func TestInstanceID_IsTheStartOfTheIdentitysHash(t *testing.T) {
	if got := wire.InstanceID("AROAEXAMPLE:i-0123456789abcdef0"); got != instance || len(got) != 32 || got != "0307bb292631d11ee473da8882873cbf" {
		t.Fatal(got)
	}
}
