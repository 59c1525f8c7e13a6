package control_test

import (
	"errors"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// FuzzFrom: a page begins where a token of its own list says, and at nobody else's.
func FuzzFrom(f *testing.F) {
	f.Add(control.PageToken(control.ClusterList, "a"), "a")
	f.Add(control.PageToken(control.InstanceList("default"), "b"), "b")
	f.Add("e30", "")
	f.Add("====", "\x00")
	f.Fuzz(func(t *testing.T, token, last string) {
		from, err := control.Page{After: token}.From(control.ClusterList)
		if err == nil && token != "" && control.PageToken(control.ClusterList, from) != token {
			t.Fatalf("%q is no token of the list, and begins at %q", token, from)
		}
		if e, ok := errors.AsType[*fault.Error](err); err != nil && (!ok || e.Field != "nextToken") {
			t.Fatalf("%T %v", err, err)
		}
		if last == "" {
			return
		}
		own := control.PageToken(control.ClusterList, last)
		if from, err := (control.Page{After: own}).From(control.ClusterList); err != nil || from != last {
			t.Fatalf("%q comes back as %q, %v", last, from, err)
		}
		if from, err := (control.Page{After: own}).From(control.LedgerList); err == nil {
			t.Fatalf("another list begins at %q", from)
		}
	})
}
