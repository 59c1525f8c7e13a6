package ecsapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
)

// extend calls an operation of our own.
func (r *rig) extend(name, body string) (status int, answer map[string]any) {
	r.t.Helper()
	e := request(name, body, true)
	e.Headers["x-amz-target"] = "Longshore." + name
	res, err := r.handler.Function(r.ctx, e)
	if err != nil {
		r.t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(res.Body), &answer); err != nil {
		r.t.Fatalf("%s: %v", res.Body, err)
	}
	return res.StatusCode, answer
}

func TestFenceContainerInstance_IsOnlyReachedUnderOurOwnPrefix(t *testing.T) {
	r := newRig(t)
	in := r.world()
	body := `{"containerInstance":"` + in + `","confirmedOff":true}`
	if exception, _ := r.refused("FenceContainerInstance", body); exception != "UnknownOperationException" {
		t.Errorf("under ECS's prefix: %s", exception)
	}
	if status, answer := r.extend("RunTask", "{}"); status != http.StatusBadRequest || answer["__type"] != "UnknownOperationException" {
		t.Errorf("ECS's operation under ours: %v", answer)
	}
	for _, name := range ecsapi.Extensions() {
		if slices.Contains(ecsapi.Operations(), name) {
			t.Errorf("%s is an operation of ECS", name)
		}
	}
	status, answer := r.extend("FenceContainerInstance", body)
	shown, _ := answer["containerInstance"].(map[string]any)
	if status != http.StatusOK || shown["agentConnected"] != false || !strings.Contains(shown["statusReason"].(string), "confirmed off") {
		t.Errorf("%d %v", status, answer)
	}
}

func TestFenceContainerInstance_WantsTheOperatorsWord(t *testing.T) {
	r := newRig(t)
	in := r.world()
	for _, body := range []string{
		`{"containerInstance":"` + in + `"}`,
		`{"containerInstance":"` + in + `","confirmedOff":false}`,
		`{"confirmedOff":true}`,
		`{"containerInstance":"` + in + `","confirmedOff":true,"force":true}`,
	} {
		if status, answer := r.extend("FenceContainerInstance", body); status != http.StatusBadRequest || answer["__type"] != "InvalidParameterException" {
			t.Errorf("%s: %v", body, answer)
		}
	}
	l := &control.Ledger{ID: in}
	if err := r.store.Load(r.ctx, l); err != nil || !l.Connected {
		t.Errorf("ledger %+v, %v", l, err)
	}
}

func TestFenceContainerInstance_IsNotForAnEndpointThatReads(t *testing.T) {
	r := newRig(t, "LONGSHORE_READ_ONLY", "true")
	for _, name := range ecsapi.Extensions() {
		if status, answer := r.extend(name, "{}"); status != http.StatusBadRequest || answer["__type"] != "AccessDeniedException" {
			t.Errorf("%s: %v", name, answer)
		}
	}
}
