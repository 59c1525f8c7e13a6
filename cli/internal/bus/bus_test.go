package bus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/cli/internal/bus"
	"github.com/longshore-run/longshore/internal/transport"
)

// amazon plays EventBridge and SQS, as far as one reading needs them.
type amazon struct {
	mu       sync.Mutex
	calls    []string
	bodies   map[string]string
	failAt   int // the nth call; 0: none
	messages []string
	queue    bool
	rule     bool
	target   bool
}

func (a *amazon) config(t *testing.T) aws.Config {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("A", "S", ""),
		Retryer: func() aws.Retryer { return aws.NopRetryer{} }, HTTPClient: transport.Client{HTTP: http.DefaultClient}}
}

func (a *amazon) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	a.calls = append(a.calls, operation)
	if a.bodies == nil {
		a.bodies = map[string]string{}
	}
	a.bodies[operation] = string(body)
	if len(a.calls) == a.failAt {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"AccessDeniedException","message":"you may not"}`)
		return
	}
	_, _ = io.WriteString(w, a.do(operation))
}

func (a *amazon) do(operation string) string {
	switch operation {
	case "CreateQueue":
		a.queue = true
		return `{"QueueUrl":"https://sqs.example/1/q"}`
	case "GetQueueAttributes":
		return `{"Attributes":{"QueueArn":"arn:aws:sqs:eu-west-1:1:q"}}`
	case "PutRule":
		a.rule = true
		return `{"RuleArn":"arn:aws:events:eu-west-1:1:rule/Longshore/r"}`
	case "PutTargets":
		a.target = true
	case "RemoveTargets":
		a.target = false
	case "DeleteRule":
		a.rule = a.target // EventBridge keeps a rule that has targets
	case "DeleteQueue":
		a.queue = false
	case "ReceiveMessage":
		var out []map[string]string
		for i, m := range a.messages {
			out = append(out, map[string]string{"MessageId": fmt.Sprint(i), "ReceiptHandle": "h", "Body": m})
		}
		a.messages = nil
		text, _ := json.Marshal(map[string]any{"Messages": out})
		return string(text)
	}
	return "{}"
}

func (a *amazon) left() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.queue || a.rule || a.target }

const stopped = `{"id":"e1","detail-type":"ECS Task State Change","source":"longshore","time":"2026-01-02T03:04:05Z","resources":["arn:t"],
"detail":{"taskArn":"arn:aws:ecs:x:1:task/default/0123456789abcdef0123456789abcdef","lastStatus":"STOPPED","group":"family:app","stoppedReason":"Essential container in task exited"}}`

func TestFollow_GetsEachEventOnceAndRemovesWhatItMade(t *testing.T) {
	a := &amazon{messages: []string{stopped, stopped}}
	ctx, cancel := context.WithCancel(t.Context())
	var got []string
	ready := false
	err := bus.Follow(ctx, a.config(t), bus.Reading{Bus: "Longshore", Pattern: map[string]any{"source": []string{"longshore"}}, Ready: func() { ready = true },
		Each: func(e bus.Event, _ []byte) error { got = append(got, bus.Line(e)); cancel(); return nil }})
	if err == nil || ctx.Err() == nil || !ready {
		t.Fatalf("%v", err)
	}
	want := []string{"2026-01-02T03:04:05Z  Task State Change  0123456789ab  STOPPED  family:app  (Essential container in task exited)"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if a.left() {
		t.Errorf("left over after %v", a.calls)
	}
	if p := a.bodies["SetQueueAttributes"]; !strings.Contains(p, "aws:SourceArn") || !strings.Contains(p, "rule/Longshore/r") {
		t.Errorf("any rule may fill the queue: %s", p)
	}
	if p := a.bodies["PutRule"]; !strings.Contains(p, `"EventBusName":"Longshore"`) || !strings.Contains(p, bus.Prefix) {
		t.Errorf("rule %s", p)
	}
}

func TestFollow_WhereverItFailsNothingIsLeft(t *testing.T) {
	whole := &amazon{messages: []string{stopped}}
	follow := func(a *amazon) error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return bus.Follow(ctx, a.config(t), bus.Reading{Bus: "Longshore", Pattern: map[string]any{}, Each: func(bus.Event, []byte) error { cancel(); return nil }})
	}
	_ = follow(whole)
	made := slices.Index(whole.calls, "ReceiveMessage") + 1
	if made < 6 {
		t.Fatalf("calls %v", whole.calls)
	}
	for at := 1; at <= made; at++ {
		a := &amazon{failAt: at}
		if err := follow(a); err == nil || !strings.Contains(err.Error(), "you may not") {
			t.Errorf("call %d (%s): %v", at, a.calls[at-1], err)
		}
		if a.left() {
			t.Errorf("left over after a failure of call %d: %v", at, a.calls)
		}
	}
}

func TestFollow_SaysWhatIsLeftOver(t *testing.T) {
	a := &amazon{messages: []string{stopped}}
	ctx, cancel := context.WithCancel(t.Context())
	err := bus.Follow(ctx, a.config(t), bus.Reading{Bus: "Longshore", Pattern: map[string]any{}, Each: func(bus.Event, []byte) error {
		cancel()
		a.mu.Lock()
		a.failAt = len(a.calls) + 1 // RemoveTargets
		a.mu.Unlock()
		return nil
	}})
	if err == nil || !strings.Contains(err.Error(), "are left over; remove them") || !strings.Contains(err.Error(), bus.Prefix) {
		t.Errorf("%v", err)
	}
}
