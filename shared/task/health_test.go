package task_test

import (
	"testing"

	"github.com/longshore-run/longshore/shared/task"
)

func TestRollUp_IsAsWellAsTheWorstEssentialContainerThatIsChecked(t *testing.T) {
	const none, unknown, well, ill = task.Health(""), task.HealthUnknown, task.Healthy, task.Unhealthy
	for _, c := range []struct {
		of   []task.Health
		want task.Health
	}{
		{nil, none},
		{[]task.Health{none, none}, none},
		{[]task.Health{none, well}, well},
		{[]task.Health{well, none, well}, well},
		{[]task.Health{well, unknown}, unknown},
		{[]task.Health{unknown, well}, unknown},
		{[]task.Health{unknown, ill, well}, ill},
		{[]task.Health{ill, unknown}, ill},
		{[]task.Health{well, ill, none}, ill},
	} {
		if got := task.RollUp(c.of...); got != c.want {
			t.Errorf("%q together are %q, want %q", c.of, got, c.want)
		}
	}
}

func TestTakeHealth_GoesUpAndDownAndIsKeptWhereNothingIsSaid(t *testing.T) {
	known := []task.Container{{Name: "a", Health: task.Healthy}, {Name: "b"}, {Name: "c", Health: task.Unhealthy}}
	got := task.TakeHealth(known, []task.Container{{Name: "a", Health: task.Unhealthy}, {Name: "c"}, {Name: "d", Health: task.Healthy}})
	want := []task.Health{task.Unhealthy, "", task.Unhealthy}
	for i, k := range got {
		if k.Health != want[i] {
			t.Errorf("%s is %q, want %q", k.Name, k.Health, want[i])
		}
	}
	if len(got) != 3 || known[0].Health != task.Healthy {
		t.Errorf("now %+v, of %+v", got, known)
	}
}
