package task_test

import (
	"reflect"
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

func TestRenew_HealthGoesUpAndDownAndIsKeptWhereNothingIsSaid(t *testing.T) {
	port := func(host int) []task.Binding {
		return []task.Binding{{ContainerPort: 80, HostPort: host, Protocol: "tcp"}}
	}
	known := []task.Container{{Name: "a", Health: task.Healthy, Bindings: port(1)}, {Name: "b"}, {Name: "c", Health: task.Unhealthy, Bindings: port(2)}}
	got := task.Renew(known, []task.Container{{Name: "a", Health: task.Unhealthy, Bindings: port(3)}, {Name: "c"}, {Name: "d", Health: task.Healthy}})
	want := []task.Container{{Name: "a", Health: task.Unhealthy, Bindings: port(3)}, {Name: "b"}, {Name: "c", Health: task.Unhealthy, Bindings: port(2)}}
	if !reflect.DeepEqual(got, want) || known[0].Health != task.Healthy {
		t.Errorf("%+v, of %+v; want %+v", got, known, want)
	}
}
