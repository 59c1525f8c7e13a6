package agenttest

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// EngineContract is the part of EngineSuite that a fake engine passes as well.
func EngineContract(t *testing.T, newEngine func(instance string) agent.Engine, image string) {
	for name, test := range map[string]func(*bench){
		"Image_OneThatIsThereHasADigest":                  imageThere,
		"Image_OneThatIsNowhereIsNotFound":                imageMissing,
		"Create_TwiceIsOneContainer":                      createTwice,
		"Create_AnotherAttemptIsAnotherContainer":         createAttempt,
		"Create_WithoutItsImageIsNotFound":                createNoImage,
		"Start_TwiceIsOneRun":                             startTwice,
		"Start_WhatHasEndedDoesNotRunAgain":               startEnded,
		"Start_WhatIsNotThereIsNotFound":                  startMissing,
		"Restart_IsOneRunMoreHoweverOftenItIsAskedFor":    restartEnded,
		"Restart_WhatRunsIsLeftAlone":                     restartRunning,
		"Restart_WhatIsNotThereIsNotFound":                restartMissing,
		"Health_OfWhatNothingChecksIsNone":                unchecked,
		"Health_IsUnknownUntilTheFirstOutcome":            checkedUnknown,
		"Stop_TwiceIsOneEnd":                              stopTwice,
		"Stop_LetsTheProgramEndItself":                    stopGently,
		"Stop_KillsWhatDoesNotListen":                     stopStubborn,
		"Stop_WhatNeverRanOrIsNotThereIsDone":             stopNothing,
		"Remove_TwiceIsDone":                              removeTwice,
		"Remove_WhatRunsIsAConflictAndStays":              removeRunning,
		"Observe_FollowsALifeWithItsExitCode":             observeLife,
		"Observe_WhatIsNotThereIsNotFound":                observeMissing,
		"Observe_ShowsFromWhatALostJournalIsRebuilt":      observeLabels,
		"List_AfterARestartShowsTheSame":                  listRestart,
		"Instances_NeitherSeeNorTouchEachOther":           strangers,
		"Watch_TellsStartEndAndRemoval":                   watchLife,
		"Watch_TellsTheExitCodeOfWhatWasRemovedMeanwhile": watchRemoved,
		"Watch_HearsNothingOfOthers":                      watchOthers,
		"Watch_ClosesWithItsContext":                      watchEnds,
		"RemoveTask_WithoutVolumesIsDone":                 removeTaskNothing,
		"Info_SaysWhatTheHostIs":                          info,
		"Calls_EndWithTheirContext":                       callsEnd,
		"Store_ShowsAnImageThatAContainerNeeds":           storeShows,
		"Store_WhatAContainerNeedsIsNotRemoved":           storeKeeps,
		"Store_RemovingWhatIsNotThereIsDone":              storeNothing,
		"Store_KnowsItsDisk":                              storeDisk,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newBench(t, newEngine, image))
		})
	}
}

func imageThere(b *bench) {
	digest, err := b.Image(b.ctx, b.image, agent.Login{})
	b.must(err)
	if !strings.HasPrefix(digest, "sha256:") {
		b.Fatalf("the digest is %q, want sha256:…", digest)
	}
	s := b.spec(Quit(0))
	b.create(s)
	if got := b.observe(s.ContainerID).Digest; got != digest {
		b.Fatalf("the container shows digest %q, the image had %q", got, digest)
	}
}

const nowhere = "registry.invalid/longshore/nowhere:1"

func imageMissing(b *bench) {
	_, err := b.Image(b.ctx, nowhere, agent.Login{})
	b.kind(err, fault.NotFound)
	if !strings.HasPrefix(err.Error(), "CannotPullContainerError: ") {
		b.Fatalf("the error is %q, want ECS's CannotPullContainerError", err)
	}
}

func createTwice(b *bench) {
	s := b.spec(Quit(0))
	first, second := b.create(s), b.create(s)
	if first == "" || first != second {
		b.Fatalf("created %q, then %q", first, second)
	}
	if got := b.observe(s.ContainerID); !got.Created || got.Running || got.ExitCode != nil || got.RuntimeID != first {
		b.Fatalf("seen as %+v, want created under the id %s", got, first)
	}
	if n := len(b.list()); n != 1 {
		b.Fatalf("%d containers, want 1", n)
	}
}

func createAttempt(b *bench) {
	s := b.spec(Quit(0))
	again := s
	again.Attempt = 2
	if first, second := b.create(s), b.create(again); first == second {
		b.Fatalf("both attempts are %s", first)
	}
	b.must(b.Remove(b.ctx, s.ContainerID))
	if got := ids(b.list()); len(got) != 1 || got[0] != again.ContainerID {
		b.Fatalf("left are %v, want the second attempt", got)
	}
}

func createNoImage(b *bench) {
	s := b.spec(Quit(0))
	s.Definition.ContainerDefinitions[0].Image = nowhere
	b.refuses(s, fault.NotFound)
}

func startTwice(b *bench) {
	s := b.spec(Sleep(0))
	b.start(s)
	first := b.observe(s.ContainerID)
	b.must(b.Start(b.ctx, s.ContainerID))
	if second := b.observe(s.ContainerID); !second.Running || !second.StartedAt.Equal(first.StartedAt) {
		b.Fatalf("started at %s, after the second start at %s", first.StartedAt, second.StartedAt)
	}
}

func startEnded(b *bench) {
	s := b.spec(Quit(7))
	first := b.run(s)
	b.must(b.Start(b.ctx, s.ContainerID))
	second := b.observe(s.ContainerID)
	b.exits(second, 7)
	if !second.StartedAt.Equal(first.StartedAt) {
		b.Fatalf("it ran again: started at %s and at %s", first.StartedAt, second.StartedAt)
	}
}

func startMissing(b *bench) { b.kind(b.Start(b.ctx, b.spec(nil).ContainerID), fault.NotFound) }

func stopTwice(b *bench) {
	s := b.spec(Sleep(4))
	b.start(s)
	b.must(b.Stop(b.ctx, s.ContainerID, 5*time.Second))
	first := b.ended(s.ContainerID)
	b.must(b.Stop(b.ctx, s.ContainerID, 5*time.Second))
	if second := b.ended(s.ContainerID); !second.FinishedAt.Equal(first.FinishedAt) || *second.ExitCode != *first.ExitCode {
		b.Fatalf("after the first stop %+v, after the second %+v", first, second)
	}
}

func stopGently(b *bench) {
	// A signal that comes before the shell has set its trap is lost on it, and nothing
	// tells when it has: one that was killed was asked too soon, or is never asked.
	for _, moment := range []time.Duration{300 * time.Millisecond, 5 * time.Second, 20 * time.Second} {
		s := b.spec(Sleep(4))
		b.start(s)
		b.until(func() bool { return time.Since(b.observe(s.ContainerID).StartedAt) > moment }, "the program to settle")
		b.must(b.Stop(b.ctx, s.ContainerID, 10*time.Second))
		if end := b.ended(s.ContainerID); *end.ExitCode != 137 {
			b.exits(end, 4)
			return
		}
		b.Logf("killed, though it had run for %s", moment)
	}
	b.Fatal("it is killed however long it had run")
}

func stopStubborn(b *bench) {
	s := b.spec(Stubborn())
	b.start(s)
	begun := time.Now()
	b.must(b.Stop(b.ctx, s.ContainerID, time.Second))
	b.exits(b.ended(s.ContainerID), 137)
	if took := time.Since(begun); took < 900*time.Millisecond {
		b.Fatalf("it was killed after %s, before its second was over", took)
	}
}

func stopNothing(b *bench) {
	s := b.spec(Quit(0))
	b.must(b.Stop(b.ctx, s.ContainerID, time.Second))
	b.create(s)
	b.must(b.Stop(b.ctx, s.ContainerID, time.Second))
	if got := b.observe(s.ContainerID); !got.Created || got.ExitCode != nil {
		b.Fatalf("a container that never ran is seen as %+v", got)
	}
}

func removeTwice(b *bench) {
	s := b.spec(Quit(0))
	b.run(s)
	b.must(b.Remove(b.ctx, s.ContainerID))
	b.must(b.Remove(b.ctx, s.ContainerID))
	_, err := b.Observe(b.ctx, s.ContainerID)
	b.kind(err, fault.NotFound)
}

func removeRunning(b *bench) {
	s := b.spec(Sleep(0))
	b.start(s)
	b.kind(b.Remove(b.ctx, s.ContainerID), fault.Conflict)
	if !b.observe(s.ContainerID).Running {
		b.Fatal("it runs no more")
	}
}

func observeLife(b *bench) {
	s := b.spec(Quit(42))
	b.create(s)
	if made := b.observe(s.ContainerID); !made.Created || !made.StartedAt.IsZero() || !made.FinishedAt.IsZero() {
		b.Fatalf("once created it is seen as %+v", made)
	}
	b.must(b.Start(b.ctx, s.ContainerID))
	end := b.ended(s.ContainerID)
	b.exits(end, 42)
	if end.Created || end.Running || end.OOMKilled || end.StartedAt.IsZero() || end.FinishedAt.Before(end.StartedAt) {
		b.Fatalf("once ended it is seen as %+v", end)
	}
}

func observeMissing(b *bench) {
	_, err := b.Observe(b.ctx, b.spec(nil).ContainerID)
	b.kind(err, fault.NotFound)
}

func observeLabels(b *bench) {
	s := b.spec(Quit(0))
	s.Definition.ContainerDefinitions[0].DockerLabels = map[string]string{"team": "checkout"}
	b.create(s)
	got := b.observe(s.ContainerID)
	if got.ContainerID != s.ContainerID || got.Epoch != s.Epoch || got.TaskARN != s.TaskARN || got.Cluster != s.Cluster ||
		got.Family != s.Family || got.Revision != s.Revision || got.Image != b.image || got.Labels["team"] != "checkout" {
		b.Fatalf("seen as %+v, made from %+v", got, s)
	}
}

func listRestart(b *bench) {
	runs, ended, made := b.spec(Sleep(0)), b.spec(Quit(9)), b.spec(Quit(0))
	b.start(runs)
	b.run(ended)
	b.create(made)
	after := b.again(b.instance)
	all, err := after.List(b.ctx)
	b.must(err)
	if len(all) != 3 {
		b.Fatalf("%d containers after the restart, want 3: %+v", len(all), all)
	}
	for _, s := range all {
		switch s.ContainerID {
		case runs.ContainerID:
			if !s.Running || s.ExitCode != nil {
				b.Errorf("the running one is seen as %+v", s)
			}
		case ended.ContainerID:
			b.exits(s, 9)
		case made.ContainerID:
			if !s.Created {
				b.Errorf("the created one is seen as %+v", s)
			}
		}
	}
	b.must(after.Stop(b.ctx, runs.ContainerID, 0))
	b.must(after.Remove(b.ctx, runs.ContainerID))
	if contains(b.list(), runs.ContainerID) {
		b.Fatal("what was removed after the restart is still listed")
	}
}

func strangers(b *bench) {
	s := b.spec(Sleep(0))
	b.start(s)
	other := b.again("stranger-" + RandomID()[:12])
	all, err := other.List(b.ctx)
	b.must(err)
	if len(all) != 0 {
		b.Fatalf("the other instance lists %v", ids(all))
	}
	_, err = other.Observe(b.ctx, s.ContainerID)
	b.kind(err, fault.NotFound)
	b.kind(other.Start(b.ctx, s.ContainerID), fault.NotFound)
	b.must(other.Stop(b.ctx, s.ContainerID, 0))
	b.must(other.Remove(b.ctx, s.ContainerID))
	b.must(other.RemoveTask(b.ctx, s.Task, s.Attempt))
	if !b.observe(s.ContainerID).Running {
		b.Fatal("the other instance stopped it")
	}
}

func watchLife(b *bench) {
	news := b.watch()
	s := b.spec(Quit(5))
	b.start(s)
	end := b.hear(news, func(n agent.Seen) bool { return n.ContainerID == s.ContainerID && n.ExitCode != nil }, "the end")
	b.exits(end, 5)
	if end.Gone || end.RuntimeID == "" || end.TaskARN != s.TaskARN {
		b.Fatalf("heard %+v", end)
	}
	b.must(b.Remove(b.ctx, s.ContainerID))
	b.hear(news, func(n agent.Seen) bool { return n.ContainerID == s.ContainerID && n.Gone }, "the removal")
}

func watchRemoved(b *bench) {
	news := b.watch()
	s := b.spec(Quit(6))
	b.run(s)
	b.must(b.Remove(b.ctx, s.ContainerID))
	// Nobody has received yet: the removal must not swallow the exit code.
	code := false
	b.hear(news, func(n agent.Seen) bool {
		code = code || n.ExitCode != nil && *n.ExitCode == 6
		return n.ContainerID == s.ContainerID && n.Gone
	}, "the removal")
	if !code {
		b.Fatal("the removal was told, the exit code never")
	}
}

func watchOthers(b *bench) {
	other := &bench{T: b.T, Engine: b.again("stranger-" + RandomID()[:12]), image: b.image, again: b.again, ctx: b.ctx}
	news := b.watch()
	other.run(other.spec(Quit(0)))
	own := b.spec(Quit(0))
	b.run(own)
	b.hear(news, func(n agent.Seen) bool {
		if n.ContainerID != own.ContainerID {
			b.Fatalf("heard of a stranger: %+v", n)
		}
		return n.ExitCode != nil
	}, "the own container's end")
}

func watchEnds(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	news, err := b.Watch(ctx)
	b.must(err)
	cancel()
	late := time.After(patience)
	for {
		select {
		case _, ok := <-news:
			if !ok {
				return
			}
		case <-late:
			b.Fatal("the channel stays open after its context has ended")
		}
	}
}

func removeTaskNothing(b *bench) { b.must(b.RemoveTask(b.ctx, RandomID(), 1)) }

func info(b *bench) {
	b.must(b.Ping(b.ctx))
	first, err := b.Info(b.ctx)
	b.must(err)
	if first.Version == "" || first.CPUs < 1 || first.MemoryMiB < 1 || first.HardwareID == "" || first.OSType != "linux" ||
		first.Arch != "x86_64" && first.Arch != "arm64" {
		b.Fatalf("the host is %+v", first)
	}
	second, err := b.again(b.instance).Info(b.ctx)
	b.must(err)
	if second.HardwareID != first.HardwareID {
		b.Fatalf("the hardware is %s, after a restart %s", first.HardwareID, second.HardwareID)
	}
}

func callsEnd(b *bench) {
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	_, err := b.List(ctx)
	b.kind(err, fault.Unavailable)
	b.kind(b.Start(ctx, b.spec(nil).ContainerID), fault.Unavailable)
	b.kind(b.Stop(ctx, b.spec(nil).ContainerID, 0), fault.Unavailable)
}
