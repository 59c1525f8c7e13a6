package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/eviction"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/setting"
)

// roomEvery is how often the disks are looked at.
const roomEvery = time.Minute

// firstLook is how long the first heartbeat waits for the first of those looks.
const firstLook = 5 * time.Second

// room is what the agent knows of its images and of the disk that they are on.
type room struct {
	rule  eviction.Rule
	turn  chan struct{} // held by the one who cleans up
	mu    sync.Mutex
	pins  map[ContainerID]string   // images of containers that are about to be made
	calls map[string]time.Duration // when images were last called for, by canonical name
	seen  map[string]time.Duration // when images were last needed as far as was seen, by id
	fresh []Pulled                 // what pulls have brought and the journal does not have yet

	leaving map[string]bool // what is being removed, by canonical name and id
	left    chan struct{}   // closed, and another, when such a removal is over

	urgent int     // clean-ups that were begun because there was no room
	going  bool    // a clean-up for room has not come below its floor
	used   float64 // of the disk, in percent; 0: not known
	full   string  // why there is no room for images, "" if there is
	look   ImagesLook

	presumed bool          // full is what the first look has shown, before anything was cleaned up
	known    chan struct{} // closed once the disk was looked at
}

func newRoom(s setting.Agent) *room {
	return &room{
		rule: eviction.Rule{
			When: eviction.When(s.Cleanup), Ceiling: float64(s.CleanupCeiling), Floor: float64(s.CleanupFloor), Limit: float64(s.NoRoom),
			Age: s.CleanupAge, OtherAge: s.UntrackedAge, Others: s.CleanupUntracked, Most: s.CleanupMost, Exclude: s.CleanupExclude,
		},
		turn: make(chan struct{}, 1), pins: map[ContainerID]string{}, calls: map[string]time.Duration{}, seen: map[string]time.Duration{},
		leaving: map[string]bool{}, left: make(chan struct{}), look: ImagesLook{Cleanup: s.Cleanup}, known: make(chan struct{}),
	}
}

// tend is the loop that watches the disks: it has images cleaned up, notes whether
// there is room for more, and fills the journal's reserve again.
func (a *Agent) tend(ctx context.Context) {
	if a.Images == nil && a.Reserve == nil {
		return
	}
	var next time.Time
	first := sync.OnceFunc(a.presume)
	for was := ""; ; {
		a.turn("room")
		if a.Images != nil {
			a.measure(ctx)
			first()
			urgent := a.room.rule.Full(a.usedDisk(), false, false)
			if now := a.Now(); urgent || !now.Before(next) {
				if a.cleanImages(ctx, urgent) == nil {
					next = now.Add(a.Setting.CleanupEvery)
				}
			}
			a.judgeRoom(nil)
		}
		if a.Reserve != nil && a.Reserve.Spent() != "" {
			if err := a.Reserve.Refill(); err == nil {
				a.Log.Info("the journal's disk has room again, and its reserve is set aside")
			}
		}
		if why := a.roomless(); why != was {
			a.tellRoom(was, why)
			was = why
		}
		if !sleep(ctx, roomEvery, a.rooms) {
			return
		}
	}
}

// presume takes the first look for what it shows: a clean-up may take long, and an
// agent that begins must not say meanwhile that there is room again.
func (a *Agent) presume() {
	r := a.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.presumed = r.rule.Full(r.used, false, false); r.presumed {
		r.full = fmt.Sprintf("no room for images: their disk is %.0f %% full, and nothing was cleaned up yet", r.used)
	}
	close(r.known)
}

// awaitRoom waits until the disk was looked at, and not for long: an engine that is
// silent says nothing of it, and keeps no lease from being renewed.
func (a *Agent) awaitRoom(ctx context.Context) {
	if a.Images == nil {
		return
	}
	timer := time.NewTimer(firstLook)
	defer timer.Stop()
	select {
	case <-a.room.known:
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (a *Agent) tellRoom(was, why string) {
	switch {
	case why == "":
		a.Log.Info("there is room again")
	case was == "":
		a.Log.Error("there is no room: the control plane is told, and gives this machine no more tasks", logkey.Reason, why)
	}
	a.beats.ring()
}

// roomless is why this machine has no room for a task more, "" if it has.
func (a *Agent) roomless() string {
	a.room.mu.Lock()
	all := []string{a.room.full}
	a.room.mu.Unlock()
	if why := a.spent(); why != "" {
		all = append(all, "no room for the journal: "+why)
	}
	return strings.TrimPrefix(strings.Join(all, "; "), "; ")
}

// spent is why the journal lives on its reserve, "" if it does not.
func (a *Agent) spent() string {
	if a.Reserve == nil {
		return ""
	}
	return a.Reserve.Spent()
}

func (a *Agent) usedDisk() float64 {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	return a.room.used
}

// measure looks at the disk that images are on, and answers what is free there in bytes.
func (a *Agent) measure(ctx context.Context) (free int64) {
	d, err := a.Images.Disk(ctx)
	r := a.room
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.used, r.look.DiskUsed, r.look.DiskFreeMiB, r.look.DiskWhy = d.Used(), d.Used(), d.Free>>20, ""
	case fault.Is(err, fault.Unsupported):
		if r.look.DiskWhy == "" {
			a.Log.Warn("the disk of the images is not known: they are cleaned up only where a pull finds no room", logkey.Error, err)
		}
		r.used, r.look.DiskUsed, r.look.DiskFreeMiB, r.look.DiskWhy = 0, 0, 0, err.Error()
	}
	return d.Free
}

// judgeRoom notes whether there is room for images; failed is a call that has just
// found none.
func (a *Agent) judgeRoom(failed error) {
	r := a.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.presumed {
		r.presumed, r.full = false, ""
	}
	switch full := r.rule.Full(r.used, r.full != "", failed != nil); {
	case !full:
		r.full = ""
	case r.full == "" && r.rule.When == eviction.Never:
		r.full = fmt.Sprintf("no room for images: their disk is %.0f %% full, and they are not cleaned up", r.used)
	case r.full == "":
		r.full = fmt.Sprintf("no room for images: their disk is %.0f %% full, and clean-up could not change that", r.used)
	}
}

// withRoom does something for which the engine may have no room; then images are
// cleaned up, and it is done once more.
func (a *Agent) withRoom(ctx context.Context, do func() error) error {
	begun := a.urgentCleanups()
	err := do()
	if _, full := errors.AsType[*NoRoom](err); !full || a.Images == nil {
		return err
	}
	a.Log.Warn("the engine has no room: images are cleaned up, and it is tried once more", logkey.Error, err)
	a.makeRoom(ctx, begun)
	if err = do(); err == nil {
		return nil
	}
	if _, full := errors.AsType[*NoRoom](err); full {
		a.measure(ctx)
		a.judgeRoom(err)
		a.rooms.ring()
	}
	return err
}

func (a *Agent) urgentCleanups() int {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	return a.room.urgent
}

// makeRoom cleans up now, unless somebody has begun to since.
func (a *Agent) makeRoom(ctx context.Context, begun int) {
	select {
	case a.room.turn <- struct{}{}:
		defer func() { <-a.room.turn }()
	case <-ctx.Done():
		return
	}
	if a.urgentCleanups() > begun {
		return
	}
	a.measure(ctx)
	if err := a.cycle(ctx, true); err != nil {
		a.Log.Warn("clean up images", logkey.Error, err)
	}
}

// cleanImages is one cycle of the clean-up.
func (a *Agent) cleanImages(ctx context.Context, urgent bool) error {
	select {
	case a.room.turn <- struct{}{}:
		defer func() { <-a.room.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	err := a.cycle(ctx, urgent)
	if err != nil && ctx.Err() == nil && !fault.Is(err, fault.Unavailable) { // a silent engine is said elsewhere
		a.Log.Warn("clean up images", logkey.Error, err)
	}
	return err
}
