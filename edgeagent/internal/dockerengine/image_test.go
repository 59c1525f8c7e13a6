package dockerengine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

const (
	routePull  = "POST /images/create"
	routeImage = "GET /images/busybox/json"
	routeList  = "GET /containers/json"
)

var (
	there     = give(image.InspectResponse{ID: "sha256:1d", RepoDigests: []string{"other@" + digestB, "busybox@" + digestA}})
	absent404 = say(http.StatusNotFound, "No such image: busybox")
	pulled    = lines(`{"status":"Pulling from library/busybox"}`, `{"status":"Downloading","progressDetail":{"current":1}}`, `{"status":"Status: Image is up to date"}`)
	broken    = lines(`{"status":"Pulling"}`, `{"errorDetail":{"message":"unexpected EOF from registry"},"error":"unexpected EOF from registry"}`)
)

const (
	digestA = "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	digestB = "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
)

func TestImage_IsPulledByItsPolicy(t *testing.T) {
	for _, c := range []struct {
		policy  Policy
		present bool
		used    bool // a container of the instance has it
		pull    http.HandlerFunc
		pulls   int
		want    fault.Kind
	}{
		{PolicyDefault, true, false, pulled, 1, ""},
		{PolicyDefault, true, false, broken, 1, ""}, // T6: it is there
		{PolicyDefault, false, false, broken, 3, fault.NotFound},
		{PolicyDefault, false, false, pulled, 1, ""},
		{PolicyAlways, true, false, pulled, 1, ""},
		{PolicyAlways, true, true, broken, 3, fault.NotFound},
		{PolicyAlways, false, false, broken, 3, fault.NotFound},
		{PolicyOnce, true, true, broken, 0, ""},
		{PolicyOnce, true, false, pulled, 1, ""},
		{PolicyOnce, true, false, broken, 3, fault.NotFound},
		{PolicyOnce, false, true, pulled, 1, ""},
		{PolicyPreferCached, true, false, broken, 0, ""},
		{PolicyPreferCached, false, false, pulled, 1, ""},
		{PolicyPreferCached, false, false, broken, 3, fault.NotFound},
	} {
		t.Run(fmt.Sprintf("%s present=%t used=%t pulls=%d", c.policy, c.present, c.used, c.pulls), func(t *testing.T) {
			s := newStub(t)
			s.on(routeImage, inTurn(pick(c.present, there, absent404), pick(c.present || c.want == "", there, absent404)))
			s.on(routePull, c.pull)
			list := []container.Summary{}
			if c.used {
				list = append(list, container.Summary{ID: "c1", Image: "busybox"})
			}
			s.on(routeList, give(list))
			digest, err := s.engine(t, patient(), WithPolicy(c.policy)).Image(t.Context(), "busybox", agent.Login{})
			if fault.Of(err) != c.want || c.want == "" && digest != digestA {
				t.Errorf("digest %q, error %v; want kind %q", digest, err, c.want)
			}
			if n := s.count(routePull); n != c.pulls {
				t.Errorf("%d pulls, want %d", n, c.pulls)
			}
		})
	}
}

func pick(yes bool, a, b http.HandlerFunc) http.HandlerFunc {
	if yes {
		return a
	}
	return b
}

func TestImage_OncePulledIsNotPulledAgain(t *testing.T) {
	s := newStub(t)
	s.on(routeImage, there)
	s.on(routePull, pulled)
	s.on(routeList, give([]container.Summary{}))
	e := s.engine(t, patient(), WithPolicy(PolicyOnce))
	for range 3 {
		if _, err := e.Image(t.Context(), "busybox", agent.Login{}); err != nil {
			t.Fatal(err)
		}
	}
	if n := s.count(routePull); n != 1 {
		t.Errorf("%d pulls, want 1", n)
	}
}

func TestImage_ADigestThatIsThereIsNotPulled(t *testing.T) {
	s := newStub(t)
	s.on("GET /images/busybox@"+digestA+"/json", there)
	digest, err := s.engine(t, patient()).Image(t.Context(), "busybox@"+digestA, agent.Login{})
	if err != nil || digest != digestA || s.count(routePull) != 0 {
		t.Errorf("%q, %v after %d pulls", digest, err, s.count(routePull))
	}
}

func TestImage_WhatARegistryRefusesIsNotAskedAgain(t *testing.T) {
	for _, pull := range []http.HandlerFunc{
		say(http.StatusNotFound, "pull access denied for busybox, repository does not exist or may require 'docker login'"),
		lines(`{"errorDetail":{"message":"manifest for busybox:9 not found: manifest unknown"},"error":"x"}`),
	} {
		s := newStub(t)
		s.on(routePull, pull)
		_, err := s.engine(t, patient()).Image(t.Context(), "busybox", agent.Login{})
		if !fault.Is(err, fault.NotFound) || !strings.HasPrefix(err.Error(), "CannotPullContainerError: ") || s.count(routePull) != 1 {
			t.Errorf("%v after %d pulls", err, s.count(routePull))
		}
	}
}

func TestImage_WhatIsNoReferenceIsInvalid(t *testing.T) {
	for _, ref := range []string{"", "Upper", "a b", strings.Repeat("f", 64)} {
		if _, err := newStub(t).engine(t, patient()).Image(t.Context(), ref, agent.Login{}); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v, want invalid", ref, err)
		}
	}
}

// TestImage_APullThatGoesQuietEnds has a registry that stalls within a pull. If
// the engine still answers it is the registry's fault, else the engine's.
func TestImage_APullThatGoesQuietEnds(t *testing.T) {
	for ping, want := range map[string]fault.Kind{"well": fault.NotFound, "stalled": fault.Unavailable} {
		t.Run(ping, func(t *testing.T) {
			bubble(t, func(t *testing.T, s *stub) {
				limits := patient()
				limits.PullTries = 1
				e := s.engine(t, limits)
				if err := e.Ping(t.Context()); err != nil {
					t.Fatal(err)
				}
				atMost := limits.PullSilence
				if ping == "stalled" {
					s.on("GET /_ping", stall)
					atMost += limits.Ping
				}
				s.on(routePull, thenStall(lines(`{"status":"Pulling"}`)))
				begun := time.Now()
				_, err := e.Image(t.Context(), "busybox", agent.Login{})
				if took := time.Since(begun); !fault.Is(err, want) || took > atMost {
					t.Errorf("after %s: %v, want kind %q", took, err, want)
				}
			})
		})
	}
}

// Whoever waits for it would otherwise take it for a passing trouble of the engine,
// and begin again.
func TestImage_APullThatGoesOnForTooLongFailsForGood(t *testing.T) {
	bubble(t, func(t *testing.T, s *stub) {
		limits := patient()
		limits.Pull = limits.PullSilence / 2
		s.on(routePull, thenStall(lines(`{"status":"Pulling"}`)))
		_, err := s.engine(t, limits).Image(t.Context(), "busybox", agent.Login{})
		if !fault.Is(err, fault.NotFound) || !strings.HasPrefix(err.Error(), "CannotPullContainerError: ") || !strings.Contains(err.Error(), "longer than "+limits.Pull.String()) || s.count(routePull) != 1 {
			t.Errorf("%v after %d pulls", err, s.count(routePull))
		}
	})
}

// TestImage_AnEngineThatDiesWithinAPullIsUnavailable has the answer break off.
func TestImage_AnEngineThatDiesWithinAPullIsUnavailable(t *testing.T) {
	s := newStub(t)
	s.on(routePull, func(w http.ResponseWriter, r *http.Request) {
		lines(`{"status":"Pulling"}`)(w, r)
		panic(http.ErrAbortHandler)
	})
	if _, err := s.engine(t, patient()).Image(t.Context(), "busybox", agent.Login{}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("%v, want an unavailable engine", err)
	}
}

func TestImage_ManyWhoWantOneShareItsPull(t *testing.T) {
	s := newStub(t)
	release := make(chan struct{})
	gone := make(chan struct{})
	s.on(routeImage, there)
	s.on(routePull, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
			pulled(w, r)
		case <-r.Context().Done():
			close(gone)
		}
	})
	e := s.engine(t, patient(), WithPolicy(PolicyAlways))
	impatient, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := e.Image(impatient, "busybox", agent.Login{}); left <- err }()
	until(t, "the pull", func() bool { return s.count(routePull) == 1 })
	errs := make(chan error, 8)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() { _, err := e.Image(t.Context(), "busybox", agent.Login{}); errs <- err })
	}
	until(t, "all to wait", func() bool { return e.waiting("docker.io/library/busybox:latest") == 9 })
	leave()
	if err := <-left; !errors.Is(err, context.Canceled) || !fault.Is(err, fault.Unavailable) {
		t.Errorf("the one who left: %v", err)
	}
	close(release)
	wg.Wait()
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	select {
	case <-gone:
		t.Error("the pull was ended while others waited for it")
	default:
	}
	if n := s.count(routePull); n != 1 {
		t.Errorf("%d pulls, want 1", n)
	}
}

func (e *Engine) waiting(ref string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if f := e.flights[want{ref: ref}]; f != nil {
		return f.waiting
	}
	return 0
}

func TestImage_APullThatNobodyWaitsForEnds(t *testing.T) {
	s := newStub(t)
	gone := make(chan struct{})
	s.on(routePull, func(_ http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		close(gone)
	})
	e := s.engine(t, patient())
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() { _, err := e.Image(ctx, "busybox", agent.Login{}); left <- err }()
	until(t, "the pull", func() bool { return s.count(routePull) == 1 })
	leave()
	<-left
	select {
	case <-gone:
	case <-time.After(20 * time.Second):
		t.Error("the pull goes on")
	}
}

func TestProgress_HearsEveryMessageAndFindsTheError(t *testing.T) {
	heard := 0
	for text, want := range map[string]string{
		`{"status":"a"}{"status":"b"}` + "\n":                                           "",
		`{"status":"a"}{"error":"no"}`:                                                  "no",
		`{"status":"a"}{"errorDetail":{"code":1,"message":"no, because"},"error":"no"}`: "no, because",
		`{"status":"a"}{"status":`:                                                      "unexpected EOF",
		`{"status":"a"}<html>`:                                                          "invalid character '<' looking for beginning of value",
	} {
		heard = 0
		_, err := progress(strings.NewReader(text), func() { heard++ })
		if (err == nil) != (want == "") || err != nil && err.Error() != want || heard == 0 {
			t.Errorf("%s: %v after %d messages, want %q", text, err, heard, want)
		}
	}
}
