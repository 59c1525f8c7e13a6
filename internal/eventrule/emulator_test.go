//go:build emulator

package eventrule_test

import (
	"crypto/rand"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/longshore-run/longshore/internal/eventrule"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

func newClient(t *testing.T) *eventrule.Client {
	t.Helper()
	return &eventrule.Client{Bridge: eventbridge.NewFromConfig(emulator.Shared(t).AWSConfig()), Stack: "Stack" + rand.Text()[:6],
		Function: "arn:aws:lambda:" + emulator.Region + ":" + emulator.Account + ":function:schedule"}
}

func nightly() schedule.Rule {
	r := schedule.Rule{Expression: "cron(0 3 * * ? *)", Run: schedule.Run{Schedule: "nightly", TaskDefinition: "report:3", StartingDeadline: 600,
		Overlap: schedule.Forbid, Tags: map[string]string{"team": "<a>"}, Overrides: []byte(`{"containerOverrides":[{"name":"main","command":["echo","\u003cx\u003e"]}]}`)}}
	r.Complete()
	return r
}

func TestClient_KeepsASchedule(t *testing.T) {
	c, want := newClient(t), nightly()
	if err := c.Put(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := c.Describe(t.Context(), "nightly")
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%+v (%v)\nwant %+v", got, err, want)
	}
	want.Expression, want.TaskDefinition, want.Disabled = "rate(2 hours)", "report:4", true
	if err := c.Put(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Describe(t.Context(), "nightly"); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("put again: %+v (%v)", got, err)
	}
	if err := c.Switch(t.Context(), "nightly", true); err != nil {
		t.Fatal(err)
	}
	all, err := c.List(t.Context())
	if err != nil || len(all) != 1 || all[0].Disabled || all[0].TaskDefinition != "report:4" {
		t.Fatalf("listed %+v (%v)", all, err)
	}
	for range 2 {
		if err := c.Delete(t.Context(), "nightly"); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Describe(t.Context(), "nightly"); !fault.Is(err, fault.NotFound) {
		t.Errorf("after its removal: %v", err)
	}
	if err := c.Switch(t.Context(), "nightly", false); !fault.Is(err, fault.NotFound) {
		t.Errorf("switched after its removal: %v", err)
	}
}

func TestClient_KnowsOnlyItsStacksSchedules(t *testing.T) {
	a, b := newClient(t), newClient(t)
	if err := a.Put(t.Context(), nightly()); err != nil {
		t.Fatal(err)
	}
	if all, err := b.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("listed %v (%v)", all, err)
	}
}

func TestClient_PutsNothingThatIsWrong(t *testing.T) {
	c, r := newClient(t), nightly()
	r.Expression, r.Count = "daily", 99
	if err := c.Put(t.Context(), r); err == nil || !strings.Contains(err.Error(), "expression") || !strings.Contains(err.Error(), "count") {
		t.Errorf("error %v", err)
	}
	if all, err := c.List(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("listed %v (%v)", all, err)
	}
}
