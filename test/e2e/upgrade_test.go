//go:build e2e

package e2e

import (
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/link"
)

// A new agent's binary takes the place of the old one, as a package does it, while
// tasks are in every state that an agent knows. No container of theirs is touched,
// each goes on to its own end, and what was told before is not told as news again.
func TestUpgrade_ANewBinaryOverTheOldTouchesNoContainerAndTellsNothingTwice(t *testing.T) {
	t.Parallel()
	u := enterUpgrade(t)
	s, agent := u.stack, u.Agent(1)
	volume := s.register("upgraded", func(in *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		u.share(in, c)
		c.StopTimeout = aws.Int32(120)
	})
	gated := u.gated()
	const term = "trap 'echo >>/out/term' TERM; echo >>/out/up; while [ ! -e /out/end ]; do sleep 0.1; done; exit 9"

	clean := s.run(volume, "sh", "-c", "exit 4") // its end is known, and it waits to be cleaned up
	s.awaitStatus(clean, "STOPPED")
	runs, stops := s.run(volume, "sleep", "600"), s.run(volume, "sh", "-c", term)
	s.awaitStatus(runs, "RUNNING")
	s.awaitStatus(stops, "RUNNING")
	u.await("up is the one to stop", func() bool { return u.has("up") })
	s.stop(stops)
	u.await("asked to stop is the one to stop", func() bool { return u.has("term") })
	s.awaitStatus(stops, "STOPPING")
	waits := s.run(gated)
	u.await("up is the gate", func() bool { return len(u.containers()[waits]) == 1 })
	s.reports(false)
	unheard := s.run(volume, "sh", "-c", "exit 3") // its end is not known
	u.await("ended is the one whose end is not known", func() bool { return u.looks(unheard).Status == "STOPPED" })
	u.await("acknowledged is the one to clean up", func() bool { return u.looks(clean).Acknowledged })
	u.docker.Set(link.Fault{Kind: link.Stall})
	made := s.run(volume, "sleep", "600") // it is being made
	u.await("taken is the one to make", func() bool { return u.looks(made).ID != "" })

	before, old := u.containers(), u.look()
	if s.instance(agent.Instance).VersionInfo.AgentVersion == nil || *s.instance(agent.Instance).VersionInfo.AgentVersion != old.Version || old.Version == newVersion {
		t.Errorf("the instance shows %+v, its agent is %s", s.instance(agent.Instance).VersionInfo, old.Version)
	}
	u.upgrade()
	u.await("told again, as it was, is what was not acknowledged", func() bool {
		u.peek()
		return slices.Contains(slices.Collect(maps.Values(u.sent[id(unheard)])), byBoth)
	})
	for _, arn := range []string{clean, runs} {
		if all := u.sent[id(arn)]; len(all) > 1 {
			t.Errorf("nothing has changed of %s, and it is told by %d numbers", arn, len(all))
		}
	}
	u.same(before, "after the upgrade")
	s.reports(true)
	u.await("registered is the new agent", func() bool {
		return aws.ToString(s.instance(agent.Instance).VersionInfo.AgentVersion) == newVersion && s.instance(agent.Instance).AgentConnected
	})
	if now := u.look(); now.Version != newVersion || now.Incarnation != old.Incarnation || now.Session == old.Session {
		t.Errorf("the agent was %+v and is %+v", old, now)
	}
	for _, name := range []string{"gate", "end"} {
		u.make(name)
	}
	for arn, want := range map[string]int32{clean: 4, stops: 9, unheard: 3} {
		got := s.awaitStatus(arn, "STOPPED")
		if c := got.Containers[0]; c.ExitCode == nil || *c.ExitCode != want {
			t.Errorf("%s ended with %+v, want %d", arn, c, want)
		}
	}
	for _, arn := range []string{runs, waits, made} {
		s.awaitStatus(arn, "RUNNING")
	}
	u.same(before, "in the end")
	for task, n := range map[string]int{clean: 1, runs: 1, stops: 1, waits: 2, unheard: 1, made: 1} {
		if all := u.containers()[task]; len(all) != n {
			t.Errorf("task %s had %d containers, want %d: %v", task, len(all), n, all)
		}
	}
	u.news(clean, runs, stops, waits, unheard, made)
}
