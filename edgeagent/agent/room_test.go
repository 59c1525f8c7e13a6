package agent_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

const gib = 1 << 30

// of is a container of an image.
func of(image string) taskdef.ContainerDefinition {
	return taskdef.ContainerDefinition{Name: "app", Image: image}
}

// has wants exactly these images to be there, by the references they were pulled by.
func (r *rig) has(refs ...string) {
	r.t.Helper()
	var want []string
	for _, ref := range refs {
		want = append(want, "sha256:"+ref)
	}
	slices.Sort(want)
	if got := r.engine.Stocked(); !slices.Equal(got, want) {
		r.t.Errorf("images %v are there, want %v", got, want)
	}
}

// ran has tasks run and end, and be cleaned up, one image each.
func (r *rig) ran(from int, images ...string) {
	r.t.Helper()
	for n, image := range images {
		r.put(r.assign(from+n, 1, of(image)))
		r.engine.Exit(app(from+n, 1), 0)
		r.pass(r.setting.CleanupWait + time.Minute)
	}
}

func diskRig(r *rig) {
	r.setting.CleanupWait = time.Minute
	for _, image := range []string{"a", "b", "c", "d"} {
		r.engine.Weigh(image, 10*gib)
	}
}

func TestImages_GoWhenTheDiskIsFullUntilItIsNotWhatWasNeededLongestAgoFirst(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 50*gib)
		r.up()
		r.ran(1, "a", "b", "c") // 80 % are used: no more than the ceiling
		r.pass(5 * time.Hour)
		r.has("a", "b", "c")
		r.ran(4, "a") // needed once more
		r.ran(5, "d") // 90 %
		r.pass(5 * time.Hour)
		r.has("a", "d") // 70 %
		if l := r.agent.Look().Images; l.Removed != 2 || l.FreedBytes != 20*gib || l.Tracked != 2 || l.Known != 2 || l.DiskUsed != 70 {
			t.Errorf("shown is %+v", l)
		}
		r.down()
	})
}

func TestImages_WhatWasNeededLastIsRememberedOverARestart(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.setting.CleanupMost = 1
		r.engine.SetDisk(100*gib, 50*gib)
		r.up()
		r.ran(1, "a", "b", "c")
		r.pass(time.Hour)
		r.ran(4, "a")
		r.pass(time.Hour)
		r.kill()
		r.engine.SetDisk(100*gib, 10*gib)
		r.up()
		r.pass(time.Minute)
		r.has("a", "c")
		r.kill()
		r.engine.SetDisk(100*gib, 10*gib)
		r.up()
		r.pass(2 * time.Minute)
		r.has("a")
		r.down()
	})
}

func TestImages_OfStrangersAndThoseThatAreNeededStay(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.setting.CleanupExclude = []string{"c"}
		r.engine.SetDisk(100*gib, 40*gib)
		r.engine.Stock(agent.Image{ID: "sha256:baked", Names: []string{"baked:1"}}, false)
		r.engine.Stock(agent.Image{ID: "sha256:b", Names: []string{"b"}}, false) // another agent's, also used here
		r.up()
		r.ran(1, "a", "b", "c")
		r.engine.Tag("sha256:a", "mine:1") // somebody has use for it
		r.put(r.assign(4, 1, of("d")))     // runs
		r.engine.SetDisk(100*gib, 1*gib)   // 99 %: no age counts
		r.pass(5 * time.Hour)
		r.has("a", "b", "baked", "c", "d")
		if b := last[*wire.Heartbeat](r); b.Docker != wire.DockerOK || !strings.HasPrefix(b.NoRoom, "no room for images: their disk is 99 % full") {
			t.Errorf("the beat is %+v", b)
		}
		r.engine.SetDisk(100*gib, 20*gib)
		r.pass(2 * time.Minute)
		if b := last[*wire.Heartbeat](r); b.NoRoom != "" {
			t.Errorf("with room again the beat is %+v", b)
		}
		r.down()
	})
}

func TestImages_ThatNobodyHerePulledGoOnlyIfThatIsWanted(t *testing.T) {
	bubble(t, func(r *rig) {
		r.setting.Cleanup, r.setting.CleanupUntracked = "always", true
		r.engine.Stock(agent.Image{ID: "sha256:old", Names: []string{"old:1"}}, false)
		r.engine.Stock(agent.Image{ID: "sha256:used", Names: []string{"used:1"}}, true)
		r.engine.Stock(agent.Image{ID: "sha256:own", Names: []string{"own:1"}, Kept: true}, false)
		r.up()
		r.pass(59 * time.Minute)
		r.has("old", "own", "used") // what was before it was seen does not count
		r.pass(time.Hour)
		r.has("own", "used")
		r.down()
	})
}

func TestImages_AlwaysCleansUpByAgeAsECSDoesAndOffNever(t *testing.T) {
	for cleanup, left := range map[string][]string{"always": nil, "off": {"a", "b"}} {
		t.Run(cleanup, func(t *testing.T) {
			bubble(t, func(r *rig) {
				diskRig(r)
				r.setting.Cleanup = cleanup
				r.engine.SetDisk(100*gib, 99*gib)
				r.engine.Weigh("a", 1)
				r.engine.Weigh("b", 1)
				r.up()
				r.ran(1, "a", "b")
				r.pass(3 * time.Hour)
				r.has(left...)
				r.down()
			})
		})
	}
}

func TestPull_ThatFindsNoRoomCleansUpAndIsTriedOnceMore(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 25*gib)
		r.setting.CleanupCeiling = 99 // no cycle begins by itself
		r.setting.NoRoom = 100
		r.up()
		r.ran(1, "a", "b")
		r.put(r.assign(3, 1, of("c"))) // at once, though both were needed a minute ago
		r.expect(3, "RUNNING")
		r.has("c") // down to the floor
		if b := last[*wire.Heartbeat](r); b.NoRoom != "" {
			t.Errorf("the beat is %+v", b)
		}
		r.down()
	})
}

func TestPull_ThatFindsNoRoomAfterACleanUpEndsTheTaskAndTheInstanceSaysSo(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 6*gib)
		r.up()
		r.put(r.assign(1, 1, of("a")))
		r.pass(2 * time.Second)
		r.expect(1, "STOPPED")
		if end := r.reports(1)[0]; !strings.HasPrefix(end.Reason, "CannotPullContainerError: ") || !strings.Contains(end.Reason, "no space left on device") {
			t.Errorf("it ended because of %q", end.Reason)
		}
		b := last[*wire.Heartbeat](r)
		if b.NoRoom == "" || b.Docker != wire.DockerOK {
			t.Errorf("the beat is %+v", b)
		}
		if n := strings.Count(fmt.Sprint(r.engine.Calls()), "image /a"); n != 2 {
			t.Errorf("%d pulls, want one more after the clean-up", n)
		}
		r.engine.SetDisk(100*gib, 15*gib)
		r.pass(2 * time.Minute)
		if b := last[*wire.Heartbeat](r); b.NoRoom != "" {
			t.Errorf("with room again the beat is %+v", b)
		}
		r.down()
	})
}

// Between pull and create nothing but the agent knows that an image is needed.
func TestImages_OneThatATaskIsAboutToUseStays(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 30*gib)
		goOn := make(chan struct{})
		r.engine.Script = func(ctx context.Context, verb string, _ agent.ContainerID) error {
			if verb == "create" {
				select {
				case <-goOn:
				case <-ctx.Done():
				}
			}
			return nil
		}
		r.up()
		r.put(r.assign(1, 1, of("docker.io/library/a"))) // another way to write it
		r.engine.Stock(agent.Image{ID: "sha256:docker.io/library/a", Names: []string{"a:latest"}}, false)
		r.engine.SetDisk(100*gib, 1*gib)
		r.pass(5 * time.Hour)
		r.has("docker.io/library/a")
		close(goOn)
		r.pass(time.Second)
		r.expect(1, "RUNNING")
		r.starts(1, 1, 1)
		r.down()
	})
}

// Who calls for an image while it is removed gets it pulled anew.
func TestImages_OneThatIsBeingRemovedIsPulledAnewForWhoCalls(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 30*gib)
		r.up()
		r.ran(1, "a")
		goOn, began := make(chan struct{}), make(chan struct{})
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "removeimage" {
				close(began)
				<-goOn
			}
			return nil
		}
		r.engine.SetDisk(100*gib, 4*gib)
		<-began
		r.put(r.assign(2, 1, of("a")), r.assign(3, 1, of("b")))
		if n := strings.Count(fmt.Sprint(r.engine.Calls()), "image /a"); n != 2 { // and its removal
			t.Errorf("calls: %v", r.engine.Calls())
		}
		r.engine.SetDisk(100*gib, 40*gib)
		close(goOn)
		r.pass(time.Second)
		r.expect(2, "RUNNING")
		r.has("a", "b")
		r.down()
	})
}

func TestJournal_OnItsReserveTakesNoTaskMoreAndTellsTheEndsOfThoseItHas(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.reserve.Spend("the disk of /data is full")
		r.pass(time.Minute)
		if b := last[*wire.Heartbeat](r); b.NoRoom != "no room for the journal: the disk of /data is full" || b.Docker != wire.DockerOK {
			t.Errorf("the beat is %+v", b)
		}
		r.put(r.assign(2, 1))
		r.expect(2, "REFUSED AGENT tcp[] udp[]")
		r.engine.Exit(app(1, 1), 3)
		r.pass(time.Second)
		r.ended(1, "STOPPED 3")
		r.reserve.Regain()
		r.pass(time.Minute)
		synctest.Wait()
		if b := last[*wire.Heartbeat](r); b.NoRoom != "" {
			t.Errorf("with room again the beat is %+v", b)
		}
		r.put(r.assign(3, 1))
		r.expect(3, "RUNNING")
		r.down()
	})
}

// A clean-up that an engine does not answer is tried again, and ends nothing.
func TestImages_AnEngineThatDoesNotAnswerIsAskedAgain(t *testing.T) {
	bubble(t, func(r *rig) {
		diskRig(r)
		r.engine.SetDisk(100*gib, 30*gib)
		fails := 3
		r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
			if verb == "removeimage" && fails > 0 {
				fails--
				return fault.New(fault.Unavailable, "no answer")
			}
			return nil
		}
		r.up()
		r.ran(1, "a")
		r.engine.SetDisk(100*gib, 2*gib)
		r.pass(10 * time.Minute)
		r.has()
		r.down()
	})
}

// Images that the engine cannot or does not remove keep no other from going, in no
// cycle and however many they are.
func TestImages_OnesThatCannotBeRemovedTakeNoOthersPlace(t *testing.T) {
	for name, err := range map[string]error{
		"needed by what is no container": fault.New(fault.Conflict, "image has dependent child images"),
		"each time a fault":              fault.New(fault.Unavailable, "driver failed to remove root filesystem: device or resource busy"),
	} {
		for _, cleanup := range []string{"disk", "always"} {
			t.Run(name+", "+cleanup, func(t *testing.T) {
				bubble(t, func(r *rig) {
					diskRig(r)
					r.setting.Cleanup, r.setting.CleanupMost = cleanup, 2
					r.engine.SetDisk(100*gib, 52*gib)
					r.engine.Script = func(_ context.Context, verb string, id agent.ContainerID) error {
						if verb == "removeimage" && id.Container != "c" && id.Container != "d" {
							return err
						}
						return nil
					}
					r.up()
					r.ran(1, "a", "b", "c", "d") // 88 %: above the ceiling, and there is room yet
					r.pass(5 * time.Hour)
					if got := r.engine.Stocked(); slices.Contains(got, "sha256:c") || !slices.Contains(got, "sha256:a") {
						t.Errorf("images %v are there", got)
					}
					r.down()
				})
			})
		}
	}
}

// A beat that said that there is room, for want of a look, would have tasks placed on
// a full disk at each start of an agent.
func TestNoRoom_IsSaidByTheFirstBeatAfterARestart(t *testing.T) {
	bubble(t, func(r *rig) {
		r.engine.SetDisk(100*gib, gib)
		r.up()
		r.down()
		before := len(sent[*wire.Heartbeat](r))
		r.turn = func(who string) {
			if who == "room" { // its look comes late
				<-time.After(time.Second)
			}
		}
		r.up()
		r.pass(2 * time.Minute)
		beats := sent[*wire.Heartbeat](r)[before:]
		for n, b := range beats {
			if b.NoRoom == "" {
				t.Errorf("beat %d says that there is room", n)
			}
		}
		if len(beats) == 0 || !strings.Contains(beats[len(beats)-1].NoRoom, "clean-up could not change that") {
			t.Errorf("%d beats, the last: %+v", len(beats), beats)
		}
		r.down()
	})
}

// An engine of which nothing is known keeps no lease from being renewed.
func TestNoRoom_NobodyWaitsLongForTheFirstLook(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.down()
		before := len(sent[*wire.Heartbeat](r))
		r.turn = func(who string) {
			if who == "room" {
				<-time.After(time.Hour)
			}
		}
		r.up()
		r.pass(10 * time.Second)
		if len(sent[*wire.Heartbeat](r)) == before {
			t.Error("no beat")
		}
		r.pass(time.Hour)
		r.down()
	})
}
