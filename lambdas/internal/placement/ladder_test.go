package placement_test

import (
	"fmt"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// idle strategies prefer nothing; a chain with so many of them is followed host by host.
var idle = slices.Repeat([]placement.Strategy{{Type: "none"}}, 5)

// A plan that finds its hosts by ladders is the very plan that a look at each host makes.
func TestPlan_ByLaddersIsThatByALookAtEachHost(t *testing.T) {
	strategies := []placement.Strategy{
		{Type: placement.Binpack, Field: "cpu"}, {Type: placement.Binpack, Field: "memory"}, {Type: placement.Spread, Field: "instanceId"},
		{Type: placement.Spread, Field: "attribute:" + placement.ZoneAttribute}, {Type: placement.Spread, Field: "attribute:rack"},
	}
	chosen := 0
	rapid.Check(t, func(r *rapid.T) {
		in := placement.Input{Now: now, StarvationAge: 2 * time.Minute, EarmarkFor: 10 * time.Minute}
		for i := range rapid.IntRange(0, 12).Draw(r, "hosts") {
			h := host(fmt.Sprintf("i%02d", i), 1000, 100)
			h.Free = placement.Size{CPU: rapid.IntRange(0, 1000).Draw(r, "cpu"), MemoryMiB: rapid.IntRange(0, 100).Draw(r, "memory")}
			h.Attributes = map[string]string{placement.ZoneAttribute: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "zone"), "rack": rapid.SampledFrom([]string{"1", "2"}).Draw(r, "rack")}
			h.Open = rapid.IntRange(0, 3).Draw(r, "open")
			in.Instances = append(in.Instances, h)
		}
		if rapid.Bool().Draw(r, "groups known") {
			in.GroupTasks = map[string]map[string]int{"g0": {"i00": 2, "i01": 1}, "g1": {}}
		}
		chains := rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(strategies), 0, 4), 1, 2).Draw(r, "chains")
		shapes := []taskdef.Resources{{CPU: 10, MemoryMiB: 10}, {CPU: 50, MemoryMiB: 5}, {CPU: 1, MemoryMiB: 60}, {CPU: 5, MemoryMiB: 5, TCP: []int{80}}}
		for i := range rapid.IntRange(0, 40).Draw(r, "tasks") {
			task := placement.Task{
				ID: fmt.Sprintf("t%02d", i), Group: rapid.SampledFrom([]string{"g0", "g1", "g2"}).Draw(r, "group"), Priority: 50,
				Needs: rapid.SampledFrom(shapes).Draw(r, "shape"), Since: now.Add(-time.Duration(rapid.IntRange(0, 200).Draw(r, "age")) * time.Second),
				Strategy: rapid.SampledFrom(chains).Draw(r, "chain"), Distinct: rapid.IntRange(0, 5).Draw(r, "distinct") == 0,
			}
			in.Tasks = append(in.Tasks, task)
		}
		ladders := placement.Plan(in)
		for i := range in.Tasks {
			task := &in.Tasks[i]
			if len(task.Strategy) == 0 { // the default counts the tasks of all
				if in.GroupTasks != nil {
					return
				}
				task.Strategy = []placement.Strategy{{Type: placement.Spread, Field: "attribute:" + placement.ZoneAttribute}, {Type: placement.Binpack, Field: "memory"}}
			}
			task.Strategy = slices.Concat(task.Strategy, idle)
		}
		looked := placement.Plan(in)
		if !reflect.DeepEqual(ladders, looked) {
			r.Fatalf("by ladders\n%+v\nby a look at each\n%+v", ladders, looked)
		}
		chosen += len(looked.Assign)
	})
	if chosen == 0 {
		t.Error("nothing was placed at all")
	}
}

// crowd is a cluster and what waits for it, of a few shapes.
func crowd(instances, tasks int, strategy ...placement.Strategy) placement.Input {
	in := placement.Input{Now: now, StarvationAge: 2 * time.Minute, EarmarkFor: 10 * time.Minute, GroupTasks: map[string]map[string]int{"family:app": {}}}
	for n := range instances {
		size := placement.Size{CPU: 1 << 20, MemoryMiB: 1 << 20}
		in.Instances = append(in.Instances, placement.Instance{
			ID: fmt.Sprintf("%032x", n*7919), Attributes: map[string]string{placement.ZoneAttribute: string(rune('a' + n%3)), "ecs.instance-type": "m5.large"},
			Registered: size, Free: placement.Size{CPU: size.CPU - n%5, MemoryMiB: size.MemoryMiB - n%7}, Open: n % 4,
		})
	}
	for n := range tasks {
		in.Tasks = append(in.Tasks, placement.Task{ID: fmt.Sprintf("%032x", n), Group: "family:app", Priority: 50, Since: now,
			Needs: taskdef.Resources{CPU: 1 + n%4, MemoryMiB: 1 + n%4}, Strategy: strategy})
	}
	return in
}

// computed is how long this process has computed, on all cores: on a machine that
// others use, the clock on the wall tells of them.
func computed(b *testing.B) time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		b.Fatal(err)
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// Each is a plan of so many tasks; cpu-ns/placement is what one of them takes.
func BenchmarkPlan(b *testing.B) {
	for _, c := range []struct{ instances, tasks int }{{1000, 1000}, {1000, 10_000}, {1000, 100_000}, {10_000, 100}, {10_000, 2000}, {10_000, 100_000}} {
		for name, strategy := range map[string][]placement.Strategy{
			"default": nil, "spread-hosts": {{Type: placement.Spread, Field: "instanceId"}}, "binpack-cpu": {{Type: placement.Binpack, Field: "cpu"}},
		} {
			b.Run(fmt.Sprintf("instances=%d/tasks=%d/%s", c.instances, c.tasks, name), func(b *testing.B) {
				in := crowd(c.instances, c.tasks, strategy...)
				b.ReportAllocs()
				before := computed(b)
				for b.Loop() {
					if out := placement.Plan(in); len(out.Assign) != c.tasks {
						b.Fatalf("%d of %d were placed", len(out.Assign), c.tasks)
					}
				}
				b.ReportMetric(float64(computed(b)-before)/float64(b.N*c.tasks), "cpu-ns/placement")
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*c.tasks), "ns/placement")
			})
		}
	}
}
