package placement_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/taskdef"
)

var now = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

func host(id string, cpu, memory int, change ...func(*placement.Instance)) placement.Instance {
	in := placement.Instance{ID: id, Attributes: map[string]string{placement.ZoneAttribute: "a"},
		Registered: placement.Size{CPU: cpu, MemoryMiB: memory}, Free: placement.Size{CPU: cpu, MemoryMiB: memory}}
	for _, f := range change {
		f(&in)
	}
	return in
}

func job(id string, cpu, memory int, change ...func(*placement.Task)) placement.Task {
	t := placement.Task{ID: id, Group: "family:app", Needs: taskdef.Resources{CPU: cpu, MemoryMiB: memory}, Priority: 50, Since: now}
	for _, f := range change {
		f(&t)
	}
	return t
}

func plan(tasks []placement.Task, hosts []placement.Instance, change ...func(*placement.Input)) placement.Output {
	in := placement.Input{Now: now, Tasks: tasks, Instances: hosts, StarvationAge: 2 * time.Minute, EarmarkFor: 10 * time.Minute}
	for _, f := range change {
		f(&in)
	}
	return placement.Plan(in)
}

func placed(out placement.Output) map[string]string {
	got := map[string]string{}
	for _, a := range out.Assign {
		got[a.Task] = a.Instance
	}
	return got
}

func want(t *testing.T, out placement.Output, assign map[string]string, reasons map[string]string) {
	t.Helper()
	if got := placed(out); !maps.Equal(got, assign) {
		t.Errorf("assigned %v, want %v", got, assign)
	}
	if !maps.Equal(out.Reasons, reasons) {
		t.Errorf("reasons %v, want %v", out.Reasons, reasons)
	}
	if len(out.Faults) > 0 {
		t.Errorf("faults: %v", out.Faults)
	}
}

func TestPlan_ReasonsAreInECSWords(t *testing.T) {
	tcp := func(p int) func(*placement.Task) { return func(t *placement.Task) { t.Needs.TCP = []int{p} } }
	for name, c := range map[string]struct {
		task   placement.Task
		hosts  []placement.Instance
		reason string
	}{
		"no instance":   {job("t", 1, 1), nil, "EMPTY CAPACITY"},
		"cpu":           {job("t", 2000, 1), []placement.Instance{host("i", 1024, 64)}, "RESOURCE:CPU"},
		"memory":        {job("t", 1, 65), []placement.Instance{host("i", 1024, 64)}, "RESOURCE:MEMORY"},
		"gpu":           {job("t", 1, 1, func(t *placement.Task) { t.Needs.GPUs = 1 }), []placement.Instance{host("i", 1024, 64)}, "RESOURCE:GPU"},
		"port held":     {job("t", 1, 1, tcp(80)), []placement.Instance{host("i", 1024, 64, func(i *placement.Instance) { i.TakenTCP = map[int]bool{80: true} })}, "RESOURCE:PORTS"},
		"not connected": {job("t", 1, 1), []placement.Instance{host("i", 1024, 64, func(i *placement.Instance) { i.Unfit = "AGENT" })}, "AGENT"},
		"attribute":     {job("t", 1, 1, func(t *placement.Task) { t.Expressions = []string{"attribute:disk == ssd"} }), []placement.Instance{host("i", 1024, 64)}, "ATTRIBUTE"},
		"refused port":  {job("t", 1, 1, tcp(80)), []placement.Instance{host("i", 1024, 64, func(i *placement.Instance) { i.RefusedTCP = map[int]bool{80: true} })}, "RESOURCE:PORTS"},
		"refused shape": {job("t", 1, 1), []placement.Instance{host("i", 1024, 64, func(i *placement.Instance) {
			i.RefusedShapes = map[string]bool{placement.ShapeOf(job("t", 1, 1)): true}
		})}, "REFUSED"},
		"pinned elsewhere":    {job("t", 1, 1, func(t *placement.Task) { t.Pinned = "gone" }), []placement.Instance{host("i", 1024, 64)}, "AGENT"},
		"distinct, held":      {job("t", 1, 1, func(t *placement.Task) { t.Distinct = true }), []placement.Instance{host("i", 1024, 64, func(i *placement.Instance) { i.Groups = map[string]bool{"family:app": true} })}, "distinctInstance"},
		"nearest reason wins": {job("t", 1, 65), []placement.Instance{host("i", 1024, 64), host("j", 1024, 128, func(i *placement.Instance) { i.Unfit = "AGENT" })}, "RESOURCE:MEMORY"},
	} {
		t.Run(name, func(t *testing.T) {
			want(t, plan([]placement.Task{c.task}, c.hosts), map[string]string{}, map[string]string{"t": c.reason})
		})
	}
}

func TestPlan_ServesPriorityThenAge(t *testing.T) {
	tasks := []placement.Task{
		job("young", 1024, 1),
		job("old", 1024, 1, func(t *placement.Task) { t.Since = now.Add(-time.Second) }),
		job("urgent", 1024, 1, func(t *placement.Task) { t.Priority = 51 }),
	}
	want(t, plan(tasks, []placement.Instance{host("i", 2048, 64)}), map[string]string{"urgent": "i", "old": "i"}, map[string]string{"young": "RESOURCE:CPU"})
}

func TestPlan_PriorityRisesByOneAMinuteWaited(t *testing.T) {
	tasks := []placement.Task{
		job("urgent", 1024, 1, func(t *placement.Task) { t.Priority = 60 }),
		job("patient", 1024, 1, func(t *placement.Task) { t.Since = now.Add(-11 * time.Minute) }),
	}
	want(t, plan(tasks, []placement.Instance{host("i", 1024, 64)}), map[string]string{"patient": "i"}, map[string]string{"urgent": "RESOURCE:CPU"})
}

func TestPlan_AnImpossibleShapeHidesNothingBehindIt(t *testing.T) {
	var tasks []placement.Task
	for i := range 100 {
		tasks = append(tasks, job(fmt.Sprintf("big%03d", i), 9999, 1, func(t *placement.Task) { t.Since = now.Add(-time.Hour) }))
	}
	tasks = append(tasks, job("small", 1, 1))
	if out := plan(tasks, []placement.Instance{host("i", 1024, 64)}); placed(out)["small"] != "i" {
		t.Fatalf("small was not placed: %v", out.Reasons)
	}
}

func TestPlan_AStarvingTaskGetsAnEarmarkedInstance(t *testing.T) {
	half := func(i *placement.Instance) { i.Free.MemoryMiB = 50 }
	big := job("big", 1, 100, func(t *placement.Task) { t.Since = now.Add(-3 * time.Minute) })
	hosts := []placement.Instance{host("i", 1024, 100, half), host("j", 1024, 100, func(i *placement.Instance) { i.Free.MemoryMiB = 60 })}
	out := plan([]placement.Task{big, job("a", 1, 10), job("b", 1, 50)}, hosts)
	if out.Earmark.Task != "big" || out.Earmark.Instance != "j" || !out.Earmark.Until.Equal(now.Add(10*time.Minute)) {
		t.Fatalf("earmark %+v, want j, which has most free, for big", out.Earmark)
	}
	want(t, out, map[string]string{"a": "i"}, map[string]string{"big": "RESOURCE:MEMORY", "b": "RESERVED"})

	hosts[1].Free.MemoryMiB = 100 // room appears: the small ones still do not get it
	out = plan([]placement.Task{job("c", 1, 60, func(t *placement.Task) { t.Priority = 100 }), big}, hosts, func(in *placement.Input) { in.Earmark = out.Earmark })
	want(t, out, map[string]string{"big": "j"}, map[string]string{"c": "RESERVED"})
	if out.Earmark.Task != "" {
		t.Errorf("the earmark stays after its task was placed: %+v", out.Earmark)
	}
}

func TestPlan_NoEarmarkForWhatFitsNowhereEvenEmpty(t *testing.T) {
	big := job("big", 1, 101, func(t *placement.Task) { t.Since = now.Add(-time.Hour) })
	if out := plan([]placement.Task{big}, []placement.Instance{host("i", 1024, 100)}); out.Earmark.Task != "" {
		t.Fatalf("earmark %+v", out.Earmark)
	}
}

func TestPlan_AnEarmarkEndsOrMovesOn(t *testing.T) {
	full := func(i *placement.Instance) { i.Free = placement.Size{} }
	big := job("big", 1, 100, func(t *placement.Task) { t.Since = now.Add(-time.Hour) })
	mark := placement.Earmark{Task: "big", Instance: "i", Until: now.Add(time.Minute)}
	two := []placement.Instance{host("i", 1024, 100, full), host("j", 1024, 100, full)}
	unfit := []placement.Instance{host("i", 1024, 100, func(i *placement.Instance) { i.Unfit = "AGENT" }), two[1]}
	refused := []placement.Instance{host("i", 1024, 100, func(i *placement.Instance) { i.RefusedShapes = map[string]bool{placement.ShapeOf(big): true} }), two[1]}
	for name, c := range map[string]struct {
		tasks []placement.Task
		hosts []placement.Instance
		now   time.Time
		want  string
	}{
		"stays while all is well":            {[]placement.Task{big}, two, now, "i"},
		"its task left the queue":            {nil, two, now, ""},
		"its instance is not eligible":       {[]placement.Task{big}, unfit, now, "j"},
		"its instance refused it":            {[]placement.Task{big}, refused, now, "j"},
		"it ran out":                         {[]placement.Task{big}, two, now.Add(time.Minute), "j"},
		"it ran out and there is no other":   {[]placement.Task{big}, two[:1], now.Add(time.Minute), ""},
		"it ran out and no instance is left": {[]placement.Task{big}, nil, now.Add(time.Minute), ""},
	} {
		t.Run(name, func(t *testing.T) {
			out := plan(c.tasks, c.hosts, func(in *placement.Input) { in.Earmark, in.Now = mark, c.now })
			if out.Earmark.Instance != c.want {
				t.Errorf("earmark %+v, want instance %q", out.Earmark, c.want)
			}
		})
	}
}

func TestPlan_AnEarmarkOfTheOnlyInstanceRestsAsLongAsItHeld(t *testing.T) {
	// Something small runs on the only instance for ever: the big task can not have
	// it, and what fits beside must not wait for that.
	half := func(i *placement.Instance) { i.Free.CPU, i.Free.MemoryMiB = 512, 50 }
	hosts := []placement.Instance{host("i", 1024, 100, half)}
	big := job("big", 1024, 100, func(t *placement.Task) { t.Since = now.Add(-time.Hour) })
	small := job("small", 1, 1, func(t *placement.Task) { t.Since = now })
	mark := placement.Earmark{}
	got := map[string]int{}
	for minute := range 60 {
		at := now.Add(time.Duration(minute) * time.Minute)
		out := plan([]placement.Task{big, small}, hosts, func(in *placement.Input) {
			in.Earmark, in.Now, in.StarvationAge, in.EarmarkFor = mark, at, 2*time.Minute, 10*time.Minute
		})
		mark = out.Earmark
		switch {
		case len(out.Assign) == 1 && out.Assign[0].Task == "small":
			got["placed"]++
		case out.Reasons["small"] == placement.ReasonEarmark:
			got["reserved"]++
		default:
			t.Fatalf("minute %d: %+v, %v", minute, out.Assign, out.Reasons)
		}
	}
	if got["placed"] < 25 || got["reserved"] < 25 {
		t.Errorf("in an hour: %v; want turns of ten minutes", got)
	}
}

func TestPlan_APinnedSlotIgnoresAnEarmark(t *testing.T) {
	big := job("big", 1, 100, func(t *placement.Task) { t.Since = now.Add(-time.Hour) })
	daemon := job("daemon", 1, 10, func(t *placement.Task) { t.Pinned = "i" })
	hosts := []placement.Instance{host("i", 1024, 100, func(i *placement.Instance) { i.Free.MemoryMiB = 20 })}
	out := plan([]placement.Task{big, daemon}, hosts)
	want(t, out, map[string]string{"daemon": "i"}, map[string]string{"big": "RESOURCE:MEMORY"})
}

func TestPlan_Strategies(t *testing.T) {
	zone := func(z string) func(*placement.Instance) {
		return func(i *placement.Instance) {
			i.Attributes = map[string]string{placement.ZoneAttribute: z, "rack": "r" + z}
		}
	}
	hosts := []placement.Instance{
		host("a1", 1000, 100, zone("a"), func(i *placement.Instance) { i.Free = placement.Size{CPU: 900, MemoryMiB: 50}; i.Open = 1 }),
		host("a2", 1000, 100, zone("a")),
		host("b1", 1000, 100, zone("b"), func(i *placement.Instance) { i.Free = placement.Size{CPU: 100, MemoryMiB: 90}; i.Open = 1 }),
		host("b2", 1000, 100, zone("b"), func(i *placement.Instance) { i.Open = 1 }),
	}
	with := func(s ...placement.Strategy) func(*placement.Task) {
		return func(t *placement.Task) { t.Strategy = s }
	}
	for name, c := range map[string]struct {
		strategy []placement.Strategy
		groups   map[string]map[string]int
		want     string
	}{
		"default: the zone with fewest, then fullest": {nil, nil, "a1"},
		"binpack cpu":                  {[]placement.Strategy{{Type: "binpack", Field: "cpu"}}, nil, "b1"},
		"binpack memory":               {[]placement.Strategy{{Type: "binpack", Field: "memory"}}, nil, "a1"},
		"spread over instances":        {[]placement.Strategy{{Type: "spread", Field: "instanceId"}}, map[string]map[string]int{"family:app": {"a1": 1, "a2": 1, "b1": 2}}, "b2"},
		"spread zones by group, chain": {[]placement.Strategy{{Type: "spread", Field: "attribute:ecs.availability-zone"}, {Type: "binpack", Field: "memory"}}, map[string]map[string]int{"family:app": {"a1": 3}}, "b1"},
		"random":                       {[]placement.Strategy{{Type: "random"}}, nil, "b2"},
	} {
		t.Run(name, func(t *testing.T) {
			out := plan([]placement.Task{job("t", 10, 10, with(c.strategy...))}, hosts, func(in *placement.Input) {
				in.GroupTasks, in.Random = c.groups, func(n int) int { return n - 1 }
			})
			if got := placed(out)["t"]; got != c.want {
				t.Errorf("placed on %q, want %q (%v)", got, c.want, out.Reasons)
			}
		})
	}
}

func TestPlan_DistinctTasksOfOnePlanShareNoInstance(t *testing.T) {
	d := func(t *placement.Task) { t.Distinct = true }
	out := plan([]placement.Task{job("t1", 1, 1, d), job("t2", 1, 1, d), job("t3", 1, 1, d)}, []placement.Instance{host("i", 1024, 64), host("j", 1024, 64)})
	if len(out.Assign) != 2 || out.Assign[0].Instance == out.Assign[1].Instance || out.Reasons["t3"] != "distinctInstance" {
		t.Fatalf("%+v %v", out.Assign, out.Reasons)
	}
}

func TestPlan_OneTaskThatCanNotBeJudgedStopsNoOther(t *testing.T) {
	bad := job("bad", 1, 1, func(t *placement.Task) { t.Expressions = []string{"attribute:("} })
	out := plan([]placement.Task{bad, job("good", 1, 1)}, []placement.Instance{host("i", 1024, 64)})
	if placed(out)["good"] != "i" || len(out.Faults) != 1 {
		t.Fatalf("%+v", out)
	}
}

func TestPlan_AnyPlanFitsAndLeavesNothingUnsaid(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		tasks := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) placement.Task {
			return job("", rapid.IntRange(0, 600).Draw(r, "cpu"), rapid.IntRange(1, 80).Draw(r, "memory"), func(t *placement.Task) {
				t.Since = now.Add(-time.Duration(rapid.IntRange(0, 300).Draw(r, "age")) * time.Second)
				t.Distinct = rapid.Bool().Draw(r, "distinct")
				t.Needs.TCP = rapid.SliceOfNDistinct(rapid.IntRange(80, 83), 0, 2, rapid.ID[int]).Draw(r, "tcp")
			})
		}), 0, 20).Draw(r, "tasks")
		for i := range tasks {
			tasks[i].ID = fmt.Sprintf("t%02d", i)
		}
		var hosts []placement.Instance
		for i := range rapid.IntRange(0, 4).Draw(r, "hosts") {
			hosts = append(hosts, host(fmt.Sprintf("i%d", i), rapid.IntRange(0, 1024).Draw(r, "hcpu"), rapid.IntRange(0, 128).Draw(r, "hmem")))
		}
		out := plan(tasks, hosts)
		free := map[string]placement.Size{}
		for _, h := range hosts {
			free[h.ID] = h.Free
		}
		ports, groups := map[string]bool{}, map[string]bool{}
		for _, a := range out.Assign {
			t := tasks[slices.IndexFunc(tasks, func(t placement.Task) bool { return t.ID == a.Task })]
			f := free[a.Instance]
			f.CPU -= t.Needs.CPU
			f.MemoryMiB -= t.Needs.MemoryMiB
			if free[a.Instance] = f; f.CPU < 0 || f.MemoryMiB < 0 {
				r.Fatalf("instance %s is over-committed", a.Instance)
			}
			for _, p := range t.Needs.TCP {
				if k := fmt.Sprint(a.Instance, p); ports[k] {
					r.Fatalf("port %s was given twice", k)
				} else {
					ports[k] = true
				}
			}
			if k := a.Instance + t.Group; t.Distinct {
				if groups[k] {
					r.Fatalf("two distinct tasks of %s", k)
				}
				groups[k] = true
			}
		}
		if len(out.Assign)+len(out.Reasons) != len(tasks) {
			r.Fatalf("%d tasks, %d assigned, %d reasons", len(tasks), len(out.Assign), len(out.Reasons))
		}
		waiting := 0
		for _, d := range out.Demand {
			waiting += d.Count
		}
		if waiting != len(out.Reasons) {
			r.Fatalf("demand counts %d of %d waiting", waiting, len(out.Reasons))
		}
	})
}

func TestPlan_EndsWhenItHasHadEnough(t *testing.T) {
	in := placement.Input{Now: time.Unix(1000, 0), Instances: []placement.Instance{{ID: "i", Registered: placement.Size{CPU: 100}, Free: placement.Size{CPU: 100}}}}
	for n := range 10 {
		in.Tasks = append(in.Tasks, placement.Task{ID: fmt.Sprint(n), Since: in.Now, Needs: taskdef.Resources{CPU: 1}})
	}
	asked := 0
	in.Enough = func() bool { asked++; return asked > 4 }
	out := placement.Plan(in)
	if len(out.Assign) != 4 || len(out.Reasons) != 0 || !out.Cut {
		t.Errorf("%d assigned, reasons %v, cut %v", len(out.Assign), out.Reasons, out.Cut)
	}
	if in.Enough = nil; len(placement.Plan(in).Assign) != 10 || placement.Plan(in).Cut {
		t.Error("cut without a reason to")
	}
}

func TestPlan_SpreadsAThousandEvenlyWhileItFills(t *testing.T) {
	in := placement.Input{Now: time.Unix(1000, 0), GroupTasks: map[string]map[string]int{"b": {"i0": 3}}}
	for n := range 12 {
		in.Instances = append(in.Instances, placement.Instance{ID: fmt.Sprintf("i%d", n), Attributes: map[string]string{"ecs.availability-zone": fmt.Sprint(n % 3)},
			Registered: placement.Size{CPU: 1000}, Free: placement.Size{CPU: 1000}, Open: n})
	}
	group := map[string]string{}
	for n := range 1000 {
		id := fmt.Sprintf("%04d", n)
		group[id] = []string{"a", "b", "c"}[n%3]
		task := placement.Task{ID: id, Group: group[id], Since: in.Now, Needs: taskdef.Resources{CPU: 1}}
		if group[id] != "c" {
			task.Strategy = []placement.Strategy{{Type: placement.Spread, Field: "instanceId"}}
		}
		in.Tasks = append(in.Tasks, task)
	}
	of := map[string]map[string]int{"a": {}, "b": {"i0": 3}, "c": {}}
	for _, a := range placement.Plan(in).Assign {
		of[group[a.Task]][a.Instance]++
	}
	low, high := 1000, 0
	for n := range 12 {
		b := of["b"][fmt.Sprintf("i%d", n)]
		low, high = min(low, b), max(high, b)
	}
	if high-low > 1 { // with the three it had
		t.Errorf("group b is spread %v", of["b"])
	}
}
