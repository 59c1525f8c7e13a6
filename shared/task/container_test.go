package task_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/shared/task"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// history is what an agent would report of a container over its life: facts only
// come to be known, and never change.
func history(name string, exit int) []task.Container {
	pending := task.Container{Name: name, Status: task.ContainerPending, Image: "busybox"}
	running := pending
	running.Status, running.RuntimeID, running.ImageDigest, running.StartedAt = task.ContainerRunning, "id-"+name, "sha256:1", t0
	running.Bindings, running.GPUs = []task.Binding{{ContainerPort: 80, HostPort: 8080, Protocol: "tcp"}}, []string{"gpu0"}
	stopped := running
	stopped.Status, stopped.ExitCode, stopped.Reason, stopped.StoppedAt = task.ContainerStopped, &exit, "done", t0.Add(time.Minute)
	return []task.Container{pending, running, stopped}
}

// Reports may be lost, repeated and reordered: what is known after all of them
// is what the newest of them says.
func TestMergeContainers_AnyOrderOfOneHistoryComesToTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		names := []string{"a", "b", "c"}[:rapid.IntRange(1, 3).Draw(t, "containers")]
		var known []task.Container
		for _, n := range names {
			known = append(known, task.Container{Name: n, Status: task.ContainerPending})
		}
		steps := rapid.SliceOfN(rapid.IntRange(0, 2), 1, 8).Draw(t, "steps")
		report := func(step int) []task.Container {
			var out []task.Container
			for i, n := range names {
				out = append(out, history(n, i+1)[step])
			}
			return out
		}
		merge := func(order []int) []task.Container {
			out := known
			for _, i := range order {
				out = task.MergeContainers(out, report(steps[i]))
			}
			return out
		}
		order := make([]int, len(steps))
		highest := 0
		for i, s := range steps {
			order[i], highest = i, max(highest, s)
		}
		first := merge(order)
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		r.Shuffle(len(order), func(i, k int) { order[i], order[k] = order[k], order[i] })
		if second := merge(order); !reflect.DeepEqual(first, second) {
			t.Fatalf("%v\n%+v\n%+v", order, first, second)
		}
		if want := report(highest); !reflect.DeepEqual(first, want) {
			t.Fatalf("known %+v, said %+v", first, want)
		}
	})
}

func anyContainer(t *rapid.T, label string) task.Container {
	k := task.Container{
		Name:      rapid.SampledFrom([]string{"a", "b", "stranger"}).Draw(t, label+" name"),
		Status:    rapid.SampledFrom([]task.ContainerStatus{task.ContainerPending, task.ContainerRunning, task.ContainerStopped}).Draw(t, label+" status"),
		RuntimeID: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, label+" id"),
		Reason:    rapid.SampledFrom([]string{"", "r", "s"}).Draw(t, label+" reason"),
	}
	if code := rapid.IntRange(-1, 2).Draw(t, label+" exit"); code >= 0 {
		k.ExitCode = &code
	}
	if rapid.Bool().Draw(t, label+" started") {
		k.StartedAt = t0.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, label+" at")) * time.Second)
	}
	return k
}

func TestMergeContainers_IsIdempotentMonotoneAndKeepsWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := anyContainer(t, "a")
		a.Name = "a"
		b := anyContainer(t, "b")
		b.Name = "b"
		known := []task.Container{a, b}
		before := fmt.Sprintf("%+v %+v", a, b)
		var said []task.Container
		for i := range rapid.IntRange(0, 3).Draw(t, "said") {
			said = append(said, anyContainer(t, fmt.Sprint("said ", i)))
		}
		got := task.MergeContainers(known, said)
		if fmt.Sprintf("%+v %+v", known[0], known[1]) != before {
			t.Fatal("an argument was changed")
		}
		if again := task.MergeContainers(got, said); !reflect.DeepEqual(got, again) {
			t.Fatalf("not idempotent: %+v, %+v", got, again)
		}
		if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" {
			t.Fatalf("a container nobody knows was taken: %+v", got)
		}
		for i, k := range known {
			g := got[i]
			switch {
			case g.Status.Rank() < k.Status.Rank():
				t.Fatalf("status went back: %+v, %+v", k, g)
			case k.ExitCode != nil && *g.ExitCode != *k.ExitCode, k.Reason != "" && g.Reason != k.Reason,
				k.RuntimeID != "" && g.RuntimeID != k.RuntimeID, !k.StartedAt.IsZero() && !g.StartedAt.Equal(k.StartedAt):
				t.Fatalf("a known fact was overwritten: %+v, %+v", k, g)
			case k.ExitCode == nil && g.ExitCode != nil && g.Status != task.ContainerStopped:
				t.Fatalf("an exit code of what runs: %+v", g)
			}
		}
	})
}

func TestMergeContainers_TakesAllWhenNoneIsKnown(t *testing.T) {
	said := history("a", 1)[1:2]
	got := task.MergeContainers(nil, said)
	if !reflect.DeepEqual(got, said) {
		t.Fatalf("%+v", got)
	}
	got[0].Name = "changed"
	if said[0].Name != "a" {
		t.Fatal("the report was changed")
	}
}

func TestStopContainers_StopsWhatRunsAndKeepsWhatEnded(t *testing.T) {
	all := []task.Container{history("a", 3)[1], history("b", 3)[2], {Name: "c", Status: task.ContainerPending, Reason: "pulling"}}
	got := task.StopContainers(all, "host lost", t0.Add(time.Hour))
	if got[0].Status != task.ContainerStopped || got[0].Reason != "host lost" || got[0].ExitCode != nil || !got[0].StoppedAt.Equal(t0.Add(time.Hour)) {
		t.Errorf("%+v", got[0])
	}
	if !reflect.DeepEqual(got[1], all[1]) {
		t.Errorf("%+v", got[1])
	}
	if got[2].Status != task.ContainerStopped || got[2].Reason != "pulling" {
		t.Errorf("%+v", got[2])
	}
	if all[0].Status != task.ContainerRunning {
		t.Error("an argument was changed")
	}
	// What the agent tells later of a container that was stopped for it is filled in.
	late := task.MergeContainers(got, []task.Container{history("a", 3)[2]})
	if late[0].ExitCode == nil || *late[0].ExitCode != 3 || late[0].Reason != "host lost" {
		t.Errorf("%+v", late[0])
	}
}

func TestContainerStatus_Ranks(t *testing.T) {
	if !(task.ContainerPending.Rank() < task.ContainerRunning.Rank() && task.ContainerRunning.Rank() < task.ContainerStopped.Rank()) {
		t.Error("ranks do not rise")
	}
	if task.ContainerStatus("EXITED").Known() || !task.ContainerStopped.Known() {
		t.Error("known")
	}
}
