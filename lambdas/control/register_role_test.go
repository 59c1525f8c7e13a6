package control_test

import (
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
)

func TestRegister_WhichRolesMayIsAListForEachCluster(t *testing.T) {
	const edgeOnly = "edge=AROATEST"
	for _, c := range []struct {
		roles   []string
		cluster string
		let     bool
	}{
		{[]string{"AROAOTHER", edgeOnly}, "edge", true},
		{[]string{"AROAOTHER", edgeOnly}, "default", false}, // the general list has another role
		{[]string{"AROATEST", "edge=AROAOTHER"}, "edge", false},
		{[]string{"AROATEST", "edge=AROAOTHER"}, "default", true},
		{[]string{"*", "edge=AROAOTHER"}, "edge", false}, // a list of its own takes the place of *
		{[]string{"*", "edge=AROAOTHER", "edge=AROATEST:i"}, "edge", true},
		{[]string{edgeOnly}, "default", false},
		{[]string{"default=*"}, "default", true},
		{nil, "default", false}, // a function that is not told lets nobody in
	} {
		w := controltest.NewWorld(t)
		w.Put(&control.Cluster{Name: "edge", Status: "ACTIVE"})
		w.Setting.RegisterRoles = c.roles
		e := newEdge(t, w, "i")
		e.cluster = c.cluster
		e.registers()
		n, _ := w.Counts.Last("RefusedSenders")
		if let := w.Ledger(e.id).Version > 0; let != c.let || let == (n == 1) {
			t.Errorf("%v, cluster %s: let in %v, refused senders %v", c.roles, c.cluster, let, n)
		}
	}
}
