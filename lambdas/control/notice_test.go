package control

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/task"
)

// told says of each member of the records whether its change is a state change. A
// member that is not here fails the test: somebody has to decide.
var told = map[Kind]map[string]bool{
	TaskKind: {
		"LastStatus": true, "DesiredStatus": true, "Attempt": true, "Containers": true, "Health": true, "Instance": true, "Kept": true,
		"PullStartedAt": true, "PullStoppedAt": true, "StartedAt": true, "StoppingAt": true, "ExecStoppedAt": true, "StoppedAt": true,
		"StopCause": true, "StoppedReason": true,
		// As it was made.
		"ID": false, "Version": false, "Cluster": false, "Family": false, "Number": false, "Overrides": false, "Needs": false, "Group": false,
		"StartedBy": false, "Service": false, "Schedule": false, "Launch": false, "Exec": false, "Constraints": false, "Strategy": false, "Priority": false,
		"MaxWait": false, "Pinned": false, "NoWait": false, "CreatedAt": false,
		// The control plane's own notes. An admission is told by the status.
		"WaitingReason": false, "Epoch": false, "Incarnation": false, "N": false, "Shown": false, "Held": false, "Dispatched": false,
		"DispatchAt": false, "AdmittedAt": false, "ExpiresAt": false, "Tags": false, "ProtectedUntil": false,
	},
	InstanceKind: {
		"Cluster": true, "EC2InstanceID": true, "Zone": true, "Attributes": true, "AgentVersion": true, "AgentHash": true, "DockerVersion": true, "RegisteredAt": true,
		"Custom": true, "Foreign": false, "ID": false, "Version": false, "Identity": false, "Incarnation": false, "Replacing": false, "Tags": false, "WireVersions": false, "GoneAt": false, "ExpiresAt": false,
	},
	LedgerKind: {
		"Status": true, "Connected": true, "Epoch": true, "Registered": true, "Held": true, "NoRoom": true,
		// Open follows Held; what is stale is closed with it.
		"ID": false, "Version": false, "Cluster": false, "SinceEpoch": false, "Stale": false, "Open": false, "Cause": false, "RaisedAt": false,
		"EndCause": false, "LostBy": false, "Leaving": false, "Refusals": false, "DrainingSince": false, "KeptUntil": false, "ExpiresAt": false,
	},
}

func TestNoteworthy_EveryMemberIsDecidedOn(t *testing.T) {
	for _, r := range []Record{&Task{}, &Instance{}, &Ledger{}} {
		seen := map[string]bool{}
		for i := range reflect.TypeOf(r).Elem().NumField() {
			name := reflect.TypeOf(r).Elem().Field(i).Name
			want, decided := told[r.Kind()][name]
			if !decided {
				t.Errorf("is a change of %s.%s a state change? Say so in noteworthy and here", r.Kind(), name)
			}
			seen[name] = true
			a, b := reflect.New(reflect.TypeOf(r).Elem()), reflect.New(reflect.TypeOf(r).Elem())
			other(b.Elem().Field(i))
			if got := noteworthy(Change{Old: a.Interface().(Record), New: b.Interface().(Record)}); got != want {
				t.Errorf("a change of %s.%s: %v, want %v", r.Kind(), name, got, want)
			}
		}
		for name := range told[r.Kind()] {
			if !seen[name] {
				t.Errorf("%s has no member %s", r.Kind(), name)
			}
		}
	}
}

// other sets a member to something else than its zero.
func other(v reflect.Value) {
	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Unix(1, 0)))
		return
	case map[string]string:
		v.Set(reflect.ValueOf(map[string]string{"a": "b"}))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("other")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Uint8:
		v.SetUint(7)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		other(v.Index(0))
	case reflect.Struct:
		other(v.Field(0))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	default:
		panic("no other " + v.Type().String())
	}
}

func TestNoteworthy_Tasks(t *testing.T) {
	code, other := 0, 1
	at := time.Unix(1_700_000_000, 0)
	running := Task{LastStatus: task.Running, DesiredStatus: task.DesiredRunning, StartedAt: at,
		Containers: []task.Container{{Name: "main", Status: task.ContainerRunning, RuntimeID: "r"}}}
	for name, c := range map[string]struct {
		change func(*Task)
		want   bool
	}{
		"written again as it was":                {func(*Task) {}, false},
		"written by another clock's zone":        {func(t *Task) { t.StartedAt = at.In(time.FixedZone("x", 60)) }, false},
		"a stop sent again":                      {func(t *Task) { t.Dispatched, t.DispatchAt = 4, at }, false},
		"a report that says nothing new":         {func(t *Task) { t.N = 8 }, false},
		"seen in an inventory":                   {func(t *Task) { t.Shown = true }, false},
		"it waits for something else":            {func(t *Task) { t.WaitingReason = "RESOURCE:CPU" }, false},
		"another tag":                            {func(t *Task) { t.Tags = map[string]string{"a": "b"} }, false},
		"taken into another epoch":               {func(t *Task) { t.Epoch = 9 }, false},
		"it is to stop":                          {func(t *Task) { t.DesiredStatus = task.DesiredStopped }, true},
		"it has stopped":                         {func(t *Task) { t.LastStatus = task.Stopped }, true},
		"its instance is away, and it is kept":   {func(t *Task) { t.Kept = at }, true},
		"another container":                      {func(t *Task) { t.Containers = append(t.Containers, task.Container{Name: "side"}) }, true},
		"a container's end":                      {func(t *Task) { t.Containers[0].Status = task.ContainerStopped }, true},
		"a container's exit code, filled in":     {func(t *Task) { t.Containers[0].ExitCode = &code }, true},
		"a container's reason, filled in":        {func(t *Task) { t.Containers[0].Reason = "OutOfMemoryError" }, true},
		"a container's ports":                    {func(t *Task) { t.Containers[0].Bindings = []task.Binding{{HostPort: 80}} }, true},
		"an end's reason, filled in":             {func(t *Task) { t.StoppedReason = "because" }, true},
		"refused, and waiting for another place": {func(t *Task) { t.LastStatus, t.Attempt = task.Provisioning, 2 }, true},
	} {
		a, b := running, running
		a.Containers, b.Containers = append([]task.Container(nil), running.Containers...), append([]task.Container(nil), running.Containers...)
		c.change(&b)
		if got := noteworthy(Change{Old: &a, New: &b}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	a, b := running, running
	a.Containers, b.Containers = []task.Container{{ExitCode: &code}}, []task.Container{{ExitCode: &other}}
	if !noteworthy(Change{Old: &a, New: &b}) {
		t.Error("another exit code is no change")
	}
}

// Of a container everything is told but what its image is, which the definition
// says, and its own times.
func TestNoteworthy_EveryMemberOfAContainerIsDecidedOn(t *testing.T) {
	quiet := map[string]bool{"Image": true, "StartedAt": true, "StoppedAt": true}
	for i := range reflect.TypeFor[task.Container]().NumField() {
		name := reflect.TypeFor[task.Container]().Field(i).Name
		var k task.Container
		other(reflect.ValueOf(&k).Elem().Field(i))
		if got := noteworthy(Change{Old: &Task{Containers: make([]task.Container, 1)}, New: &Task{Containers: []task.Container{k}}}); got == quiet[name] {
			t.Errorf("a change of a container's %s: %v", name, got)
		}
	}
}

func TestNewEvents_AreThoseWithANameThatWereNotThereBefore(t *testing.T) {
	at := func(ids ...string) *ServiceEvents {
		s := &ServiceEvents{}
		for _, id := range ids {
			s.Events = append(s.Events, ServiceEvent{ID: id, Name: strings.TrimLeft(id, "0123456789")})
		}
		return s
	}
	for _, c := range []struct {
		old, now *ServiceEvents
		want     string
	}{
		{nil, at("2B", "1A"), "1A 2B"},
		{at("1A"), at("3C", "2B", "1A"), "2B 3C"},
		{at("1A"), at("2", "1A"), ""},
		{at("2B", "1A"), at("2B"), ""},
		{at("1A"), at("3C", "2B"), "2B 3C"}, // the old ones were pushed out
	} {
		var got []string
		for _, e := range newEvents(c.old, c.now) {
			got = append(got, e.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v after %v: %v", c.now, c.old, got)
		}
		if noteworthy(Change{Old: orNil(c.old), New: c.now}) != (c.want != "") {
			t.Errorf("%v after %v is noteworthy or not", c.now, c.old)
		}
	}
}

func orNil(r *ServiceEvents) Record {
	if r == nil {
		return nil
	}
	return r
}

func TestNoteworthy_WhatIsNewIsAndWhatIsForgottenIsNot(t *testing.T) {
	for _, r := range []Record{&Task{}, &Instance{}, &Ledger{}} {
		name := strings.ToLower(string(r.Kind()))
		if !noteworthy(Change{New: r}) {
			t.Errorf("a new %s is no state change", name)
		}
		if noteworthy(Change{Old: r}) || noteworthy(Change{Old: r, Expired: true}) {
			t.Errorf("a forgotten %s is a state change", name)
		}
	}
	for _, r := range []Record{&Lease{}, &Probe{}, &Guard{}, &Brake{}, &Cluster{}, &QueueState{}, &Family{}, &Definition{}, &Token{}, &Live{}, &Service{}, &ServiceRevision{}, &ServiceDeployment{}} {
		if noteworthy(Change{New: r}) {
			t.Errorf("a new %s is a state change", r.Kind())
		}
	}
}
