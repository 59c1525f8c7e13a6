package hostnotice_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-run/longshore/edgeagent/internal/hostnotice"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// service is an instance metadata service of version 2 with some items.
type service struct {
	*httptest.Server
	mu       sync.Mutex
	items    map[string]string
	answer   int  // of each item, 0 for what there is
	noTokens bool // as one that knows version 1 alone
	asked    []string
}

func serve(t *testing.T) *service {
	t.Helper()
	s := &service{items: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		const token, data = "/latest/api/token", "/latest/meta-data/"
		switch {
		case r.URL.Path == token && s.noTokens:
			w.WriteHeader(http.StatusNotFound)
		case r.URL.Path == token && r.Method == http.MethodPut:
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			_, _ = w.Write([]byte("secret"))
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "secret":
			w.WriteHeader(http.StatusUnauthorized)
		case s.answer != 0:
			w.WriteHeader(s.answer)
		default:
			path := r.URL.Path[len(data):]
			s.asked = append(s.asked, path)
			text, there := s.items[path]
			if !there {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			_, _ = w.Write([]byte(text))
		}
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *service) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

func (s *service) host(kinds ...string) *hostnotice.Host {
	return hostnotice.New(aws.Config{ConfigSources: []any{endpoint(s.URL)}}, kinds)
}

// endpoint is a setting as the SDK's own configuration hands it on.
type endpoint string

func (e endpoint) GetEC2IMDSEndpoint() (string, bool, error) { return string(e), true, nil }

const (
	spotPath      = "spot/instance-action"
	groupPath     = "autoscaling/target-lifecycle-state"
	rebalancePath = "events/recommendations/rebalance"
)

func TestNotice_OfEachKindIsReadAsEC2WritesIt(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 6, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		path, text string
		want       *wire.Notice
	}{
		"nothing":             {"", "", nil},
		"a Spot interruption": {spotPath, `{"action": "terminate", "time": "2026-01-02T03:06:05Z"}`, &wire.Notice{Kind: wire.NoticeSpot, Action: "terminate", At: at}},
		"a hibernation":       {spotPath, `{"action": "hibernate", "time": "2026-01-02T03:06:05Z"}`, &wire.Notice{Kind: wire.NoticeSpot, Action: "hibernate", At: at}},
		"a termination":       {groupPath, "Terminated\n", &wire.Notice{Kind: wire.NoticeAutoScaling, Action: "Terminated"}},
		"a warm pool":         {groupPath, "Warmed:Stopped", &wire.Notice{Kind: wire.NoticeAutoScaling, Action: "Warmed:Stopped"}},
		"in service":          {groupPath, "InService", nil},
		"on standby":          {groupPath, "Standby", nil},
		"taken out":           {groupPath, "Detached", nil},
		"a recommendation":    {rebalancePath, `{"noticeTime": "2026-01-02T03:06:05Z"}`, &wire.Notice{Kind: wire.NoticeRebalance}},
	} {
		s := serve(t)
		if c.path != "" {
			s.items[c.path] = c.text
		}
		got, err := s.host(hostnotice.Kinds()...).Notice(t.Context())
		if err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, got, err, c.want)
		}
	}
}

func TestNotice_AsksForTheKindsThatAreHeededAndTheMostCertainCounts(t *testing.T) {
	s := serve(t)
	s.items[rebalancePath], s.items[groupPath], s.items[spotPath] = `{}`, "Terminated", `{"action":"stop","time":"2026-01-02T03:06:05Z"}`
	if n, err := s.host(hostnotice.Kinds()...).Notice(t.Context()); err != nil || n.Kind != wire.NoticeSpot {
		t.Errorf("%+v %v", n, err)
	}
	s.asked = nil
	if n, err := s.host(wire.NoticeAutoScaling).Notice(t.Context()); err != nil || n.Kind != wire.NoticeAutoScaling || len(s.asked) != 1 || s.asked[0] != groupPath {
		t.Errorf("%+v %v, asked for %v", n, err, s.asked)
	}
}

func TestNotice_WhatCanNotBeReadIsNoAnswer(t *testing.T) {
	for name, change := range map[string]func(s *service){
		"an error":                  func(s *service) { s.answer = http.StatusInternalServerError },
		"forbidden":                 func(s *service) { s.answer = http.StatusForbidden },
		"version 1 alone":           func(s *service) { s.noTokens = true },
		"no JSON":                   func(s *service) { s.items[spotPath] = "<html>" },
		"no time":                   func(s *service) { s.items[spotPath] = `{"action":"stop"}` },
		"a time beyond all":         func(s *service) { s.items[spotPath] = `{"action":"stop","time":"9999-01-02T03:06:05Z"}` },
		"a state that is an essay":  func(s *service) { s.items[groupPath] = string(make([]byte, 3000)) },
		"it is not there":           func(s *service) { s.Close() },
		"an answer that never ends": func(s *service) { s.items[spotPath] = `{"action":"` + string(make([]byte, 1<<20)) },
	} {
		s := serve(t)
		s.set(func() { change(s) })
		n, err := s.host(hostnotice.Kinds()...).Notice(t.Context())
		if err == nil || n != nil {
			t.Errorf("%s: %+v %v", name, n, err)
		}
		if len(err.Error()) > 2000 {
			t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
		}
		if !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
