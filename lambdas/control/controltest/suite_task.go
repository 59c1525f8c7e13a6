package controltest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// queryOf makes a list function of a task query.
func (t *storeTest) queryOf(q control.TaskQuery) func(control.Page) ([]string, string, error) {
	return func(p control.Page) ([]string, string, error) { return t.TaskIDs(t.ctx, q, p) }
}

// shows waits until a query gives exactly these ids, in this order, in pages of
// any size.
func (t *storeTest) shows(q control.TaskQuery, want ...string) {
	t.Helper()
	for _, limit := range []int{0, 1, 2, 1000} {
		t.eventually(func() string {
			if got := pages(t, limit, t.queryOf(q)); !slices.Equal(got, want) {
				return fmt.Sprintf("%+v in pages of %d gives %v, want %v", q, limit, got, want)
			}
			return ""
		})
	}
}

// aged makes a task of a cluster, created so many seconds after a fixed time.
func aged(cluster string, seconds int) *control.Task {
	return &control.Task{
		ID: newID(), Cluster: cluster, Group: "family:f", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning,
		CreatedAt: leaseStart.Add(time.Duration(seconds) * time.Second),
	}
}

var taskListTests = []suiteTest{
	{"TaskIDs_OfAClusterAreAllOfThemOldestFirst", func(t *storeTest) {
		var want []string
		var records []control.Record
		for i := range 25 {
			one := aged("c", i)
			if i%3 == 0 {
				one.LastStatus = task.Stopped
			}
			want = append(want, one.ID)
			records = append(records, one, aged("other", i))
		}
		slices.Reverse(records)
		t.put(records...)
		t.shows(control.TaskQuery{Cluster: "c"}, want...)
		t.shows(control.TaskQuery{Cluster: "nobody"})
	}},
	{"TaskIDs_OfTasksOfOneAgeAreEachThereOnce", func(t *storeTest) {
		var want []string
		for range 9 {
			one := aged("c", 0)
			t.put(one)
			want = append(want, one.ID)
		}
		slices.Sort(want)
		t.shows(control.TaskQuery{Cluster: "c"}, want...)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f"}, want...)
		t.shows(control.TaskQuery{Cluster: "c", Waiting: control.ForRoom}, want...)
	}},
	{"TaskIDs_OfAGroupAreOfItsClusterOnly", func(t *storeTest) {
		a, b, c, d := aged("c", 2), aged("c", 1), aged("c", 3), aged("d", 1)
		c.Group = "family:f2"
		t.put(a, b, c, d)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f"}, b.ID, a.ID)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f2"}, c.ID)
		t.shows(control.TaskQuery{Cluster: "d", Group: "family:f"}, d.ID)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family"})
	}},
	{"TaskIDs_OfAGroupAreApartFromThoseThatStopped", func(t *storeTest) {
		a, b, c, d := aged("c", 1), aged("c", 2), aged("c", 3), aged("d", 4)
		b.LastStatus, c.LastStatus, d.LastStatus = task.Stopped, task.Stopping, task.Stopped
		t.put(a, b, c, d)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f"}, a.ID, c.ID)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f", Stopped: true}, b.ID)
		for _, pair := range [][2]string{{"c", "!c#family:f"}, {"c", "family:f#!"}} {
			t.shows(control.TaskQuery{Cluster: pair[0], Group: pair[1], Stopped: true})
		}
		_, next, err := t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c", Group: "family:f"}, control.Page{Limit: 1})
		if err != nil || next == "" {
			t.Fatalf("next %q, %v", next, err)
		}
		_, _, err = t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c", Group: "family:f", Stopped: true}, control.Page{After: next})
		t.refusesToken(next, err)
	}},
	{"TaskIDs_FollowATaskThroughItsLife", taskThroughItsLife},
	{"TaskIDs_OfAnInstanceAreItsOpenTasks", func(t *storeTest) {
		instance := newID()
		var want []string
		for i, status := range task.Statuses() {
			one := aged("c", i)
			one.LastStatus, one.Instance = status, instance
			elsewhere := aged("c", i)
			elsewhere.LastStatus, elsewhere.Instance = status, newID()
			t.put(one, elsewhere)
			if status.Open() {
				want = append(want, one.ID)
			}
		}
		slices.Sort(want)
		t.shows(control.TaskQuery{OnInstance: instance}, want...)
	}},
	{"TaskIDs_ForgetADeletedTask", func(t *storeTest) {
		a, b := aged("c", 1), aged("c", 2)
		t.put(a, b)
		t.shows(control.TaskQuery{Cluster: "c"}, a.ID, b.ID)
		t.commit(control.Delete(a))
		t.shows(control.TaskQuery{Cluster: "c"}, b.ID)
	}},
	{"TaskIDs_GoOnAfterARowThatIsGone", func(t *storeTest) {
		a, b, c := aged("c", 1), aged("c", 2), aged("c", 3)
		t.put(a, b, c)
		t.shows(control.TaskQuery{Cluster: "c"}, a.ID, b.ID, c.ID)
		_, next, err := t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c"}, control.Page{Limit: 2})
		if err != nil || next == "" {
			t.Fatalf("next %q, %v", next, err)
		}
		t.commit(control.Delete(b))
		t.eventually(func() string {
			got, last, err := t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c"}, control.Page{After: next})
			if err != nil || last != "" || !slices.Equal(got, []string{c.ID}) {
				return fmt.Sprintf("after a deleted row: %v, %q, %v", got, last, err)
			}
			return ""
		})
	}},
	{"TaskIDs_RefuseATokenThatIsNotTheirs", func(t *storeTest) {
		t.put(aged("c", 1), aged("c", 2))
		t.eventually(func() string {
			if _, next, _ := t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c"}, control.Page{Limit: 1}); next == "" {
				return "no second page"
			}
			return ""
		})
		_, theirs, _ := t.TaskIDs(t.ctx, control.TaskQuery{Cluster: "c"}, control.Page{Limit: 1})
		for _, q := range []control.TaskQuery{{Cluster: "c"}, {OnInstance: newID()}, {Cluster: "c", Group: "g"}, {Cluster: "c", Waiting: control.ForRoom}} {
			tokens := []string{"x", "", "AAAAAAAAAAAA", theirs + "A", theirs[1:], "\x00", "../../etc", theirs}
			for i, token := range tokens {
				if token == "" || i == len(tokens)-1 && q == (control.TaskQuery{Cluster: "c"}) {
					continue
				}
				_, _, err := t.TaskIDs(t.ctx, q, control.Page{After: token})
				t.refusesToken(token, err)
			}
		}
	}},
}

func (t *storeTest) refusesToken(token string, err error) {
	t.Helper()
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind != fault.Invalid || f.Field != "nextToken" {
		t.Errorf("token %q gave %v, want an Invalid fault of nextToken", token, err)
	}
}

// taskThroughItsLife moves one task from the queue to its end, and back once.
func taskThroughItsLife(t *storeTest) {
	instance := newID()
	one := aged("c", 1)
	stage := func(waiting control.Waiting, open bool) {
		t.Helper()
		t.put(one)
		for _, w := range []control.Waiting{control.ForRoom, control.ForSign, control.ForEnd} {
			if w == waiting {
				t.shows(control.TaskQuery{Cluster: "c", Waiting: w}, one.ID)
			} else {
				t.shows(control.TaskQuery{Cluster: "c", Waiting: w})
			}
		}
		if open {
			t.shows(control.TaskQuery{OnInstance: instance}, one.ID)
		} else {
			t.shows(control.TaskQuery{OnInstance: instance})
		}
		t.shows(control.TaskQuery{Cluster: "c"}, one.ID)
		stopped := one.LastStatus == task.Stopped
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f", Stopped: stopped}, one.ID)
		t.shows(control.TaskQuery{Cluster: "c", Group: "family:f", Stopped: !stopped})
	}
	stage(control.ForRoom, false)
	one.LastStatus, one.Instance = task.Pending, instance
	stage(control.ForSign, true)
	one.LastStatus, one.Instance = task.Provisioning, "" // refused
	stage(control.ForRoom, false)
	one.LastStatus, one.Instance = task.Pending, instance
	stage(control.ForSign, true)
	one.Shown = true
	stage(control.NotWaiting, true)
	one.LastStatus = task.Running
	stage(control.NotWaiting, true)
	one.DesiredStatus = task.DesiredStopped
	stage(control.ForEnd, true)
	one.LastStatus = task.Stopping
	stage(control.ForEnd, true)
	one.LastStatus = task.Stopped // keeps its instance, for late reports
	stage(control.NotWaiting, false)
}
