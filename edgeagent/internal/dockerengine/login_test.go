package dockerengine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/docker/docker/api/types/registry"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// gate is a registry, as an engine shows it, that gives its image to some alone.
type gate struct {
	allowed map[string]bool // by user; "" is who has no login
	mu      sync.Mutex
	seen    []string
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	login, err := registry.DecodeAuthConfig(r.Header.Get(registry.AuthHeader))
	if err != nil {
		say(http.StatusBadRequest, err.Error())(w, r)
		return
	}
	g.mu.Lock()
	g.seen = append(g.seen, login.Username+":"+login.Password)
	g.mu.Unlock()
	if !g.allowed[login.Username] {
		say(http.StatusNotFound, "pull access denied for busybox, repository does not exist or may require 'docker login': denied")(w, r)
		return
	}
	pulled(w, r)
}

func TestImage_IsPulledWithTheLogin(t *testing.T) {
	s, g := newStub(t), &gate{allowed: map[string]bool{"ann": true, "": true}}
	s.on(routeImage, there)
	s.on(routePull, g.ServeHTTP)
	e := s.engine(t, patient())
	for _, login := range []agent.Login{{Username: "ann", Password: "s3cret"}, {}} {
		if _, err := e.Image(t.Context(), "busybox", login); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(g.seen, " "); got != "ann:s3cret :" {
		t.Errorf("the engine was asked as %q", got)
	}
}

// TestImage_WhoMayNotReadItDoesNotGetItByAnothersPull has an image that ann has
// pulled, and asks for it as others.
func TestImage_WhoMayNotReadItDoesNotGetItByAnothersPull(t *testing.T) {
	ann, bob := agent.Login{Username: "ann", Password: "a"}, agent.Login{Username: "bob", Password: "b"}
	for _, ref := range []string{"busybox", "busybox@" + digestA} {
		for _, other := range []agent.Login{bob, {}} {
			t.Run(fmt.Sprintf("%s for %q", ref, other.Username), func(t *testing.T) {
				s, g := newStub(t), &gate{allowed: map[string]bool{"ann": true}}
				s.on("GET /images/"+ref+"/json", there)
				s.on(routePull, g.ServeHTTP)
				e := s.engine(t, patient())
				if _, err := e.Image(t.Context(), ref, ann); err != nil {
					t.Fatalf("ann: %v", err)
				}
				if digest, err := e.Image(t.Context(), ref, other); !fault.Is(err, fault.NotFound) || digest != "" {
					t.Errorf("another has %q, %v; want not found", digest, err)
				}
				before := s.count(routePull)
				if _, err := e.Image(t.Context(), ref, ann); err != nil {
					t.Errorf("ann again: %v", err)
				}
				if pinned := strings.Contains(ref, "@"); pinned != (s.count(routePull) == before) {
					t.Errorf("ann again: pulled %d times; a digest that she was given is not asked for again", s.count(routePull)-before)
				}
			})
		}
	}
}

// TestImage_OneThatWasLoadedHereIsTakenThoughARegistryKnowsNothingOfIt: Docker's own
// registry says denied of what it does not have.
func TestImage_OneThatWasLoadedHereIsTakenThoughARegistryKnowsNothingOfIt(t *testing.T) {
	s, g := newStub(t), &gate{}
	s.on(routeImage, there)
	s.on(routePull, g.ServeHTTP)
	if digest, err := s.engine(t, patient()).Image(t.Context(), "busybox", agent.Login{}); err != nil || digest != digestA {
		t.Errorf("%q, %v", digest, err)
	}
}

func TestImage_PullsOfDifferentLoginsAreNotShared(t *testing.T) {
	s, g := newStub(t), &gate{allowed: map[string]bool{"ann": true}}
	release := make(chan struct{})
	s.on(routeImage, absent404)
	s.on(routePull, func(w http.ResponseWriter, r *http.Request) {
		<-release
		g.ServeHTTP(w, r)
	})
	e := s.engine(t, patient(), WithPolicy(PolicyAlways))
	type answer struct {
		user string
		err  error
	}
	answers := make(chan answer, 2)
	for _, login := range []agent.Login{{Username: "ann", Password: "a"}, {Username: "bob", Password: "b"}} {
		go func() { _, err := e.Image(t.Context(), "busybox", login); answers <- answer{login.Username, err} }()
	}
	until(t, "both pulls", func() bool { return s.count(routePull) == 2 })
	s.on(routeImage, there)
	close(release)
	for range 2 {
		if a := <-answers; (a.err == nil) != (a.user == "ann") {
			t.Errorf("%s: %v", a.user, a.err)
		}
	}
}

func TestLogin_IsNeverPrinted(t *testing.T) {
	login := agent.Login{Username: "canary-user", Password: "canary-password"}
	w := want{"busybox", login}
	body, err := json.Marshal(map[string]any{"login": login})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(login), fmt.Sprintf("%+v %#v %s %q %x", login, login, login, login, login), fmt.Sprint(&login), string(body), fmt.Sprint(w.reader())} {
		if strings.Contains(text, "canary") {
			t.Errorf("printed as %s", text)
		}
	}
}
