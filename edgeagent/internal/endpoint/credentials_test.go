package endpoint

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

func TestCredentials_AContainerGetsItsTasksRoleInTheShapeOfECS(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	status, body := r.get(addressA, r.credentialsPath(idA))
	want := `{"RoleArn":"` + roleA + `","AccessKeyId":"ASIAKEY","SecretAccessKey":"very-secret","Token":"token of ` + roleA + `/` + taskA + `","Expiration":"2026-03-04T06:06:07Z"}`
	if status != http.StatusOK || body != want {
		t.Errorf("%d %s\nwant %s", status, body, want)
	}
	if status, body := r.get(addressH, r.credentialsPath(idH)); status != http.StatusOK || !strings.Contains(body, taskH) {
		t.Errorf("on the host's network: %d %s", status, body)
	}
}

func TestCredentials_AStockSDKReadsThemAndTheErrors(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	provider := func(path string) *endpointcreds.Provider {
		return endpointcreds.New("http://"+r.Address+path, func(o *endpointcreds.Options) { o.HTTPClient = clientAt(addressA) })
	}
	got, err := provider(r.credentialsPath(idA)).Retrieve(t.Context())
	if err != nil || got.AccessKeyID != "ASIAKEY" || got.SecretAccessKey != "very-secret" || !got.CanExpire || !got.Expires.Equal(began.Add(time.Hour)) {
		t.Errorf("%+v %v", got, err)
	}
	_, err = provider(r.credentialsPath(idB)).Retrieve(t.Context())
	if e, ok := errors.AsType[smithy.APIError](err); !ok || e.ErrorCode() != "AccessDenied" || !strings.Contains(e.ErrorMessage(), "not that of the container") {
		t.Errorf("of another task: %v", err)
	}
}

// Whoever knows all of another's URL gets nothing by it from where he is.
func TestCredentials_AnothersURLIsWorthNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, from := range []string{addressB, addressH, "127.0.0.1", "127.0.0.77"} {
		for _, path := range []string{r.credentialsPath(idA), r.metadataPath(idA), r.metadataPath(idA) + "/task", r.metadataPath(idA) + "/stats", r.metadataPath(idA) + "/task/stats"} {
			status, body := r.get(from, path, "X-Forwarded-For", addressA, "Forwarded", "for="+addressA, "X-Real-IP", addressA)
			if status != http.StatusForbidden || strings.Contains(body, taskA) || strings.Contains(body, "secret") {
				t.Errorf("from %s: %d %s", from, status, body)
			}
		}
	}
	if status, body := r.get(addressB, r.credentialsPath(idH)); status != http.StatusForbidden {
		t.Errorf("of one on the host's network, from a bridge: %d %s", status, body)
	}
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK {
		t.Errorf("its own, after all that: %d %s", status, body)
	}
}

func TestCredentials_AnIDIsForOneThingAndCannotBeBent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.id(credentialsIDs, idA)
	flipped := []byte(id)
	flipped[len(id)-1] ^= 1
	foreign := New(Config{Key: []byte("another key, which is not this one's"), Log: r.Log})
	for name, bad := range map[string]string{
		"metadata's":           r.id(metadataIDs, idA),
		"one bit off":          string(flipped),
		"cut":                  id[:len(id)-2],
		"without proof":        taskA + "-2-" + nameHash("app") + "-",
		"only the task":        taskA,
		"another attempt":      r.id(credentialsIDs, agent.ContainerID{Task: taskA, Attempt: 1, Container: "app"}),
		"another container":    r.id(credentialsIDs, agent.ContainerID{Task: taskA, Attempt: 2, Container: "sidecar"}),
		"another task's proof": taskA + id[len(taskA):len(taskA)+3] + nameHash("app") + "-" + r.id(credentialsIDs, idB)[len(taskB)+3+17:],
		"attempt as 02":        strings.Replace(id, "-2-", "-02-", 1),
		"long":                 id + strings.Repeat("0", 4000),
		"another agent's":      foreign.id(credentialsIDs, idA),
	} {
		if status, body := r.get(addressA, "/v2/credentials/"+bad); status != http.StatusNotFound || !strings.Contains(body, `"code":"InvalidIdInRequest"`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	for _, path := range []string{"/", "/v2/credentials/", "/v2/credentials", "/v4/", "/v2/credentials/" + id + "/more", "/v3/" + id, "/v2/credentials?id=" + id} {
		if status, body := r.get(addressA, path); status != http.StatusNotFound && status != http.StatusMovedPermanently || strings.Contains(body, "ASIA") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}

func TestCredentials_AreGoneWithTheTaskOrItsContainer(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.set(func() { r.tasks[taskA].Containers[0].Status = task.ContainerStopped })
	if status, _ := r.get(addressA, r.credentialsPath(idA)); status != http.StatusNotFound {
		t.Errorf("of a container that has ended: %d", status)
	}
	r.set(func() { delete(r.tasks, taskA) })
	if status, _ := r.get(addressA, r.credentialsPath(idA)); status != http.StatusNotFound {
		t.Errorf("of a task that has ended: %d", status)
	}
	r.set(func() { r.tasks[taskA] = served(agent.ContainerID{Task: taskA, Attempt: 3}, roleA, "bridge") })
	if status, _ := r.get(addressA, r.credentialsPath(idA)); status != http.StatusNotFound {
		t.Errorf("of an attempt before: %d", status)
	}
}

// An address that was a container's is somebody else's later.
func TestCredentials_AnAddressThatWasGivenOnIsNotTheContainersAnyMore(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	r.set(func() {
		d := r.details[idA]
		d.Addresses = []netip.Addr{netip.MustParseAddr("127.0.0.4")}
		r.details[idA] = d
	})
	now = now.Add(time.Millisecond) // at once: nothing of what was known a moment ago counts
	if status, body := r.get(addressA, r.metadataPath(idA)); status != http.StatusForbidden {
		t.Errorf("metadata from the address before: %d %s", status, body)
	}
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusForbidden {
		t.Errorf("from the address before: %d %s", status, body)
	}
	if status, body := r.get("127.0.0.4", r.credentialsPath(idA)); status != http.StatusOK {
		t.Errorf("from its new address: %d %s", status, body)
	}
}

func TestCredentials_ATaskWithoutARoleGetsNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	if status, body := r.get(addressB, r.credentialsPath(idB)); status != http.StatusNotFound || !strings.Contains(body, "NoCredentialsAssociated") {
		t.Errorf("%d %s", status, body)
	}
	off := newRig(t, func(c *Config) { c.Assume = nil })
	if status, body := off.get(addressA, off.credentialsPath(idA)); status != http.StatusNotFound {
		t.Errorf("with roles off: %d %s", status, body)
	}
	noHost := newRig(t, func(c *Config) { c.HostNetwork = false })
	if status, body := noHost.get(addressH, noHost.credentialsPath(idH)); status != http.StatusNotFound {
		t.Errorf("on the host's network, which is off: %d %s", status, body)
	}
}

// A journal that was lost takes the definition with it; the container goes on.
func TestCredentials_OutliveTheDefinition(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.set(func() {
		s, d := r.tasks[taskA], r.details[idA]
		s.Definition, d.TaskRole = nil, roleA
		r.tasks[taskA], r.details[idA] = s, d
	})
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK || !strings.Contains(body, roleA) {
		t.Errorf("%d %s", status, body)
	}
}

func TestCredentials_WhatSTSRefusesIsSaidWithoutTheMachinesIdentity(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{fault.New(fault.Denied, "User arn:aws:sts::1:assumed-role/agents/i-0abc is not authorized"), http.StatusForbidden, "AccessDenied"},
		{fault.New(fault.Invalid, "i-0abc"), http.StatusForbidden, "AccessDenied"},
		{fault.New(fault.Unavailable, "dial i-0abc: no route"), http.StatusServiceUnavailable, "CredentialsUnavailable"},
	} {
		r.assume = func(string, string) (Credentials, error) { return Credentials{}, c.err }
		status, body := r.get(addressA, r.credentialsPath(idA))
		if status != c.status || !strings.Contains(body, `"code":"`+c.code+`"`) || !strings.Contains(body, roleA) || strings.Contains(body, "i-0abc") {
			t.Errorf("%v: %d %s", c.err, status, body)
		}
	}
	if logs := r.logs.String(); !strings.Contains(logs, "i-0abc") || !strings.Contains(logs, taskA) {
		t.Errorf("the log does not say why: %s", logs)
	}
}

// A restart of the engine keeps nobody from renewing: containers that live through it
// keep their addresses.
func TestCredentials_ASilentEngineTakesNothingFromWhoWasKnown(t *testing.T) {
	t.Parallel()
	now := time.Now()
	r := newRig(t, func(c *Config) { c.Now = func() time.Time { return now } })
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK {
		t.Fatalf("%d %s", status, body)
	}
	r.set(func() { r.silent = true })
	now = now.Add(time.Minute)
	if status, body := r.get(addressA, r.credentialsPath(idA)); status != http.StatusOK {
		t.Errorf("who was known: %d %s", status, body)
	}
	if status, body := r.get(addressH, r.credentialsPath(idA)); status != http.StatusForbidden {
		t.Errorf("another: %d %s", status, body)
	}
	if status, body := r.get(addressH, r.credentialsPath(idH)); status != http.StatusServiceUnavailable {
		t.Errorf("who was not known: %d %s", status, body)
	}
}

// Ids are as good as the credentials themselves, so neither is written down anywhere.
func TestCredentials_NoSecretReachesTheLog(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ids := []string{r.id(credentialsIDs, idA), r.id(metadataIDs, idA)}
	r.get(addressA, "/v2/credentials/"+ids[0])
	r.get(addressB, "/v2/credentials/"+ids[0])
	r.get(addressA, "/v4/"+ids[1]+"/task")
	r.assume = func(string, string) (Credentials, error) { return Credentials{}, fault.New(fault.Unavailable, "no") }
	r.get(addressA, "/v2/credentials/"+ids[0])
	r.get(addressA, "/v2/credentials/"+ids[0], "Host", "evil.example")
	for _, secret := range append(ids, "very-secret", "token of", "ASIAKEY") {
		if strings.Contains(r.logs.String(), secret) {
			t.Errorf("the log has %q", secret)
		}
	}
}
