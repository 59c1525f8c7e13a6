package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// killAt has the agent killed at one of its calls, counted from its first start, and
// started again.
func (r *rig) killAt(at int) {
	n := 0
	r.onCall = func(what string, done bool) {
		r.mu.Lock()
		n++
		now := n == at
		r.mu.Unlock()
		if now {
			r.life.Kill()
			r.t.Logf("killed at call %d: %s (done %v)", at, what, done)
			go func() { r.again <- struct{}{} }()
		}
	}
}

// supervise starts the agent and starts it again when it was killed.
func (r *rig) supervise() (end func()) {
	over := make(chan struct{})
	r.up()
	go func() {
		for {
			select {
			case <-r.again:
				r.leave()
				<-r.done
				r.begin()
			case <-over:
				return
			}
		}
	}()
	return func() { close(over) }
}

// A life in which tasks read secrets and log in, images are cleaned up because there
// is no room, and the journal's reserve is used and set aside again; the agent is
// killed at each call, also those to the services. No value is ever in the journal,
// nothing is started twice, no image of a stranger goes, and each task runs or ends.
func TestKill_WhileSecretsAreReadAndRoomIsMadeNothingIsKeptTakenOrStartedTwice(t *testing.T) {
	t.Parallel()
	calls, kinds := 0, map[string]int{}
	outside(t, func(r *rig) {
		r.onCall = func(what string, _ bool) {
			r.set(func() { calls++; kinds[what]++ })
		}
	})
	for what, least := range map[string]int{"login": 10, "values": 6, "remove image": 2, "refill": 2} {
		if kinds[what] < least {
			t.Fatalf("the life has the calls %v", kinds)
		}
	}
	for at := 1; at <= calls && !t.Failed(); at++ {
		t.Run(fmt.Sprint(at), func(t *testing.T) {
			outside(t, func(r *rig) { r.killAt(at) })
		})
	}
}

// outside has the tasks 1 and 2 of secrets, 3 whose secrets are denied, 4 whose image
// has room only once that of 5, which has ended, is gone.
func outside(t *testing.T, prepare func(r *rig)) {
	t.Helper()
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = time.Minute
		p := provider()
		p.OnLogin = func(agent.Need) (agent.Login, error) {
			<-time.After(time.Second)
			return login, nil
		}
		p.OnValues = func(n agent.Need) (agent.Values, error) {
			<-time.After(time.Second)
			if n.Task == id(3) {
				return agent.Values{}, fault.New(fault.Denied, agent.NoSecrets+": denied")
			}
			return values, nil
		}
		r.provider = p
		r.journal.OnCommit = func(c agent.Change, _ bool) error {
			if text, err := json.Marshal(c); err != nil || strings.Contains(string(text), "CANARY") {
				t.Errorf("written is %s, %v", text, err)
			}
			return nil
		}
		strangers := []string{"sha256:baked", "sha256:used"}
		r.engine.Stock(agent.Image{ID: strangers[0], Names: []string{"baked:1"}, Size: 30 * gib}, false)
		r.engine.Stock(agent.Image{ID: strangers[1], Names: []string{"used:1"}, Size: 10 * gib}, true)
		r.engine.Script = func(_ context.Context, verb string, what agent.ContainerID) error {
			if verb == "removeimage" && what.Container != "old" && what.Container != "late" && what.Container != kept().Image {
				t.Errorf("%s was to be removed", what.Container)
			}
			return nil
		}
		r.engine.Weigh("old", 20*gib)
		r.engine.Weigh(kept().Image, 5*gib)
		r.engine.Weigh("late", 25*gib)
		r.engine.SetDisk(100*gib, 45*gib)
		r.engine.OnStart = func(c agent.ContainerID) agenttest.Program {
			switch c.Task {
			case id(1):
				return exits(7, 90*time.Second)(c)
			case id(5):
				return exits(0, 10*time.Second)(c)
			}
			return agenttest.Program{Deaf: true}
		}
		plane := r.planed()
		prepare(r)
		defer r.supervise()()
		plane.Assign(r.assign(5, 1, of("old")))
		r.pass(3 * time.Minute)
		for n := 1; n <= 3; n++ {
			plane.Assign(r.assign(n, 1, kept()))
		}
		r.pass(10 * time.Second)
		plane.Assign(r.assign(4, 1, of("late")))
		r.pass(3 * time.Minute)
		r.reserve.Spend("the disk of /data is full")
		r.pass(time.Minute)
		r.reserve.Regain()
		r.inbox.Put(r.stop(2, 1), r.stop(4, 1))
		r.pass(10 * time.Minute)
		r.agree(plane)
		told := plane.Tasks()
		for n, codes := range map[int][]int{1: {7}, 2: {137}, 3: nil, 5: {0}} {
			if one := told[id(n)]; !one.Over() || one.Refused || !slices.Equal(one.Codes, codes) {
				t.Errorf("task %d is %+v", n, one)
			}
			r.starts(n, 1, len(codes))
		}
		if reason := told[id(3)].Reason; !strings.HasPrefix(reason, agent.NoSecrets) {
			t.Errorf("task 3 ended for %q", reason)
		}
		t.Logf("task 4: %+v", told[id(4)])
		// An agent that is killed before it has written down what it pulled leaves that
		// image to people; the next pull then finds no room, and says so.
		switch one := told[id(4)]; {
		case slices.Equal(one.Codes, []int{137}):
			r.starts(4, 1, 1)
		case !slices.Contains(r.engine.Stocked(), "sha256:old") || !strings.Contains(one.Reason, "no space left on device"):
			t.Errorf("task 4 is %+v", one)
		}
		for _, image := range strangers {
			if !slices.Contains(r.engine.Stocked(), image) {
				t.Errorf("the image %s is gone", image)
			}
		}
		if why := r.reserve.Spent(); why != "" {
			t.Errorf("the reserve is still spent: %s", why)
		}
		if b := last[*wire.Heartbeat](r); strings.Contains(b.NoRoom, "journal") {
			t.Errorf("the last beat is %+v", b)
		}
		for what, text := range r.traces() {
			if strings.Contains(text, "CANARY") {
				t.Errorf("a secret is in: %s\n%s", what, text)
			}
		}
		if left := len(r.engine.Containers()) + r.inbox.Len(); left != 0 {
			t.Errorf("%d containers and commands are left", left)
		}
		synctest.Wait()
	})
}
