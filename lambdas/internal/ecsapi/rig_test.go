package ecsapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
)

// rig is the API over a control plane in memory, behind HTTP, with the stock
// SDK's client in front.
type rig struct {
	t       *testing.T
	ctx     context.Context
	control *control.Control
	handler *ecsapi.Handler
	store   *controltest.Store
	queue   *controltest.Queue
	now     time.Time
	log     *bytes.Buffer
	url     string
	ecs     *ecs.Client
}

type noMetrics struct{}

func (noMetrics) Count(string, float64, ...string) {}

func newRig(t *testing.T, given ...string) *rig {
	t.Helper()
	r := newBareRig(t, given...)
	server := httptest.NewServer(judged(t, r.handler))
	t.Cleanup(server.Close)
	r.url = server.URL
	r.ecs = ecs.New(ecs.Options{
		Region: "eu-central-1", BaseEndpoint: aws.String(server.URL), RetryMaxAttempts: 1, HTTPClient: transport.Client{HTTP: http.DefaultClient},
		Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""),
	})
	return r
}

// newBareRig is a rig without HTTP and a client.
func newBareRig(t *testing.T, given ...string) *rig {
	t.Helper()
	r := &rig{t: t, ctx: t.Context(), store: controltest.NewStore(), now: time.Unix(1_800_000_000, 123_000_000).UTC(), log: &bytes.Buffer{}}
	r.store.Lag = 0
	r.queue = controltest.NewQueue(r.store.Calls)
	var s setting.Control
	if err := setting.FromEnv(&s, func(name string) (string, bool) {
		switch {
		case name == "LONGSHORE_REGION":
			return "eu-central-1", true
		case name == "LONGSHORE_ACCOUNT":
			return "123456789012", true
		case len(given) > 0 && name == given[0]:
			return given[1], true
		}
		return "unused", strings.HasSuffix(name, "_TABLE") || strings.HasSuffix(name, "_URL")
	}); err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	r.control = &control.Control{
		Store: r.store, Queue: r.queue, Metrics: noMetrics{}, Setting: s,
		Log:   slog.New(slog.NewJSONHandler(r.log, nil)),
		Now:   func() time.Time { return r.now },
		NewID: func() string { return fmt.Sprintf("%032x", ids.Add(1)) },
		Pause: func(context.Context, int) {},
	}
	r.handler = ecsapi.New(r.control)
	t.Cleanup(func() {
		for _, v := range r.store.Violations() {
			t.Error(v)
		}
	})
	return r
}

// judge, where a lane has one, tells what is wrong with an answer.
var judge func(operation string, status int, header http.Header, body []byte) []string

// judged passes on what a handler answers, and lets it be judged.
func judged(t *testing.T, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		operation, ecss := strings.CutPrefix(r.Header.Get("X-Amz-Target"), "AmazonEC2ContainerServiceV20141113.")
		if judge != nil && ecss && r.Method == http.MethodPost {
			for _, violation := range judge(operation, answer.Code, answer.Header(), answer.Body.Bytes()) {
				t.Errorf("answer: %s\n%.500s", violation, answer.Body)
			}
		}
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes())
	})
}

// post sends a body to an operation as it stands.
func (r *rig) post(operation, body string) (status int, answer string, header http.Header) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.ctx, http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// refused posts a body that must be refused, and returns the exception and its message.
func (r *rig) refused(operation, body string) (exception, message string) {
	r.t.Helper()
	status, answer, header := r.post(operation, body)
	var x struct {
		Type    string `json:"__type"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(answer), &x); err != nil {
		r.t.Fatalf("%s: answer %q: %v", operation, answer, err)
	}
	if status != http.StatusBadRequest || x.Type == "" || x.Message == "" || header.Get("x-amzn-RequestId") == "" {
		r.t.Fatalf("%s: status %d, answer %s", operation, status, answer)
	}
	return x.Type, x.Message
}

// world makes a cluster default, the definition web:1 and an instance.
func (r *rig) world() (instance string) {
	r.t.Helper()
	if _, err := r.control.EnsureCluster(r.ctx, "default"); err != nil {
		r.t.Fatal(err)
	}
	if status, answer, _ := r.post("RegisterTaskDefinition", webDefinition); status != http.StatusOK {
		r.t.Fatal(answer)
	}
	return r.instance(1)
}

const webDefinition = `{"family":"web","containerDefinitions":[{"name":"main","image":"busybox","cpu":256,"memory":128,"portMappings":[{"containerPort":80,"hostPort":8080}]},{"name":"side","image":"busybox","memoryReservation":32,"essential":false}],"tags":[{"key":"team","value":"a"}]}`

func (r *rig) instance(n int) string {
	r.t.Helper()
	id := fmt.Sprintf("%032x", 0xa000+n)
	r.put(
		&control.Instance{ID: id, Cluster: "default", Incarnation: "inc", Zone: "eu-central-1a", EC2InstanceID: "i-0123456789abcdef0", WireVersions: []int{1}, AgentVersion: "1.2.3", AgentHash: "abc", DockerVersion: "28.5.2", RegisteredAt: r.now, Attributes: map[string]string{"disk": "ssd"}, Tags: map[string]string{"rack": "7"}},
		&control.Ledger{ID: id, Cluster: "default", Status: control.Active, Connected: true, Epoch: 7, SinceEpoch: 7, Registered: control.Held{CPU: 1024, MemoryMiB: 1024, TCP: []int{22}, GPUs: []string{"gpu0"}}},
		&control.Lease{ID: id, Cluster: "default", Zone: "eu-central-1a", Sent: r.now, Epoch: 7, Incarnation: "inc", Stage: control.StageConnected, StageSince: r.now},
	)
	return id
}

func (r *rig) put(records ...control.Record) {
	r.t.Helper()
	for _, record := range records {
		if err := r.store.Commit(r.ctx, control.Put(record)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rig) admit() {
	r.t.Helper()
	if err := r.control.Admit(r.ctx, control.Kick{Cluster: "default"}); err != nil {
		r.t.Fatal(err)
	}
}

// change edits a stored task.
func (r *rig) change(id string, edit func(*control.Task)) {
	r.t.Helper()
	t := &control.Task{ID: id}
	if err := r.store.Load(r.ctx, t); err != nil {
		r.t.Fatal(err)
	}
	edit(t)
	r.put(t)
}

// running makes an admitted task RUNNING, as its agent's report would.
func (r *rig) running(id string) {
	r.change(id, func(t *control.Task) {
		t.LastStatus, t.Shown, t.StartedAt = task.Running, true, r.now.Add(2*time.Second)
		t.PullStartedAt, t.PullStoppedAt = r.now.Add(time.Second), r.now.Add(1500*time.Millisecond)
		t.Containers = []task.Container{{
			Name: "main", Status: task.ContainerRunning, RuntimeID: "c0ffee", ImageDigest: "sha256:1", StartedAt: t.StartedAt,
			Bindings: []task.Binding{{BindIP: "0.0.0.0", ContainerPort: 80, HostPort: 8080, Protocol: "tcp"}},
		}}
	})
}

// stopped makes an open task STOPPED with an exit code, as its agent's report would.
func (r *rig) stopped(id string, code int) {
	r.t.Helper()
	t := &control.Task{ID: id}
	if err := r.store.Load(r.ctx, t); err != nil {
		r.t.Fatal(err)
	}
	l := &control.Ledger{ID: t.Instance}
	if err := r.store.Load(r.ctx, l); err != nil {
		r.t.Fatal(err)
	}
	l.Held, l.Open = control.Held{}, 0 // the only task of its instance
	t.LastStatus, t.DesiredStatus, t.Held = task.Stopped, task.DesiredStopped, nil
	t.StopCause, t.StoppedReason = task.ExitedCause, task.EndOf(task.ExitedCause).Reason
	t.StoppingAt, t.ExecStoppedAt, t.StoppedAt = r.now.Add(9*time.Second), r.now.Add(10*time.Second), r.now.Add(11*time.Second)
	for i := range t.Containers {
		t.Containers[i].Status, t.Containers[i].ExitCode = task.ContainerStopped, &code
	}
	if err := r.store.Commit(r.ctx, control.Put(t), control.Put(l)); err != nil {
		r.t.Fatal(err)
	}
}

// codeOf is the exception's name of an error of the SDK.
func codeOf(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		return e.ErrorCode()
	}
	return fmt.Sprint(err)
}

func idOf(arn *string) string {
	parts := strings.Split(aws.ToString(arn), "/")
	return parts[len(parts)-1]
}
