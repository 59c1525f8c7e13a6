package control_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
)

// ofCluster puts an instance into a cluster of its own waiting time.
func ofCluster(w *controltest.World, cluster, reapAfter string) func(*control.Instance, *control.Ledger, *control.Lease) {
	k := &control.Cluster{Name: cluster, Status: "ACTIVE", Tags: map[string]string{}}
	if reapAfter != "" {
		k.Tags["longshore:reapAfter"] = reapAfter
	}
	w.Put(k)
	return func(in *control.Instance, l *control.Ledger, lease *control.Lease) {
		in.Cluster, l.Cluster, lease.Cluster = cluster, cluster, cluster
	}
}

func TestTick_EachClusterWaitsForAsLongAsItsTagSays(t *testing.T) {
	for tag, want := range map[string]time.Duration{"": 10 * time.Minute, "4m": 4 * time.Minute, "1h": time.Hour, "72h": 72 * time.Hour,
		"1m": 4 * time.Minute, // from when the heartbeat came more often: never before it takes no work
	} {
		for _, impaired := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s impaired %v", tag, impaired), func(t *testing.T) {
				w := controltest.NewWorld(t)
				i := w.AddInstance("i", room, ofCluster(w, "edge", tag))
				heard := []string{w.AddInstance("j", room)}
				minutes(t, w, 3, i, heard[0])
				if impaired {
					lease := w.Lease(i)
					lease.Impaired, lease.ImpairedWhy = w.Clock.Now(), "no answer"
					w.Put(&lease)
					heard = append(heard, i)
				}
				since := w.Clock.Now()
				if want > 2*time.Hour { // nothing happens for days
					w.Clock.Move(want - time.Hour)
					w.Sent.TakeProbes() // expired
					minutes(t, w, 12, heard...)
				}
				for w.Lease(i).Stage != control.StageLost {
					minute(t, w, heard...)
					if w.Clock.Now().Sub(since) > want+10*time.Minute {
						t.Fatalf("stage %s after %s", w.Lease(i).Stage, w.Clock.Now().Sub(since))
					}
				}
				if took := w.Clock.Now().Sub(since); took <= want || took > want+2*time.Minute {
					t.Errorf("LOST after %s: %s", took, w.Lease(i).StageReason)
				}
				if w.Lease(heard[0]).Stage == control.StageLost {
					t.Error("one that was heard is LOST")
				}
			})
		}
	}
}

// blindTo is a store that does not give a cluster.
type blindTo struct {
	control.Store
	cluster string
}

func (s blindTo) Load(c context.Context, records ...control.Record) error {
	if k, ok := records[0].(*control.Cluster); ok && len(records) == 1 && k.Name == s.cluster {
		return fault.New(fault.Unavailable, "not now")
	}
	return s.Store.Load(c, records...)
}

func TestTick_AClusterThatCanNotBeReadGivesUpNoInstance(t *testing.T) {
	w := controltest.NewWorld(t)
	i := w.AddInstance("i", room, ofCluster(w, "edge", ""))
	minutes(t, w, 9)
	w.Store = blindTo{w.Memory, "edge"}
	for range 10 {
		w.Clock.Move(time.Minute)
		deliverProbes(t, w)
		if w.Tick(ctx) == nil {
			t.Fatal("nobody is told")
		}
	}
	if s := w.Lease(i).Stage; s != control.StageSuspect {
		t.Fatalf("stage %s", s)
	}
	w.Store = w.Memory
	minutes(t, w, 2)
	if s := w.Lease(i).Stage; s != control.StageLost {
		t.Errorf("stage %s", s)
	}
}

// boatsAndHosts are ten boxes of a cluster that waits for days, and four hosts of another, in
// one zone.
func boatsAndHosts(t *testing.T) (w *controltest.World, boxes, hosts []string) {
	w = controltest.NewWorld(t)
	for n := range 10 {
		boxes = append(boxes, w.AddInstance(fmt.Sprint("box", n), room, ofCluster(w, "boats", "72h")))
	}
	for n := range 4 {
		hosts = append(hosts, w.AddInstance(fmt.Sprint("host", n), room))
	}
	minutes(t, w, 2, append(boxes, hosts...)...)
	return w, boxes, hosts
}

func lostOf(w *controltest.World, ids []string) (n int) {
	for _, id := range ids {
		if w.Lease(id).Stage == control.StageLost {
			n++
		}
	}
	return n
}

func TestTick_BoxesThatAreOffForDaysDoNotSlowDownWhatIsDoneAboutOthers(t *testing.T) {
	w, boxes, hosts := boatsAndHosts(t)
	minutes(t, w, 60, hosts...)
	if v, _ := w.Counts.Last("BrakeEngaged"); v != 0 {
		t.Error("the brake is engaged for boxes that are waited for")
	}
	minutes(t, w, 13, hosts[1:]...)
	if lostOf(w, hosts) != 1 || lostOf(w, boxes) != 0 {
		t.Errorf("%d hosts and %d boxes are LOST", lostOf(w, hosts), lostOf(w, boxes))
	}
}

func TestTick_AllSilentAtOnceIsOurOwnFaultWhateverTheirClustersWaitFor(t *testing.T) {
	w, boxes, hosts := boatsAndHosts(t)
	minutes(t, w, 55)
	if n := lostOf(w, append(boxes, hosts...)); n != 0 {
		t.Errorf("%d are LOST while everything is silent", n)
	}
}

func TestTick_ManyBoxesWhosePatienceEndsAtOnceGoAtTheSlowRate(t *testing.T) {
	w, boxes, hosts := boatsAndHosts(t)
	for range 12 { // days of silence of the boxes alone
		minutes(t, w, 1, hosts...)
	}
	w.Clock.Move(72 * time.Hour)
	w.Sent.TakeProbes() // expired
	for _, id := range hosts {
		l := w.Lease(id)
		l.Sent = w.Clock.Now()
		w.Put(&l)
	}
	minutes(t, w, 35, hosts...)
	if n := lostOf(w, boxes); n < 3 || n > 6 || lostOf(w, hosts) != 0 {
		t.Errorf("%d of ten boxes and %d hosts are LOST", n, lostOf(w, hosts))
	}
}
