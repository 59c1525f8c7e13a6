package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/eviction"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// mostImages bounds what the journal remembers of images; of more, those that were
// needed longest ago are nobody's.
const mostImages = 500

// cycle looks at all images, notes which are needed, and removes what may go. Who
// calls it has the turn.
func (a *Agent) cycle(ctx context.Context, urgent bool) error {
	r := a.room
	r.mu.Lock()
	if urgent {
		r.urgent++
	}
	r.mu.Unlock()
	a.keepPulled()
	images, err := a.Images.Images(ctx)
	if err != nil {
		return err
	}
	known, now := a.judgeImages(images)
	r.mu.Lock()
	begins := r.rule.Begins(r.used, r.going, urgent)
	r.mu.Unlock()
	if !begins {
		return nil
	}
	removed, freed := 0, int64(0)
	before := a.measure(ctx)
	for _, one := range eviction.Plan(known, r.rule, now, urgent) {
		if ctx.Err() != nil || r.rule.Enough(a.usedDisk(), removed, urgent) {
			break
		}
		gone, err := a.removeImage(ctx, one)
		if err != nil {
			a.Log.Warn("remove image", logkey.Image, one.ID, logkey.Error, err)
			if fault.Is(err, fault.Unavailable) && a.Engine.Ping(ctx) != nil {
				break // it is not this image's fault
			}
		}
		if after := a.measure(ctx); gone {
			removed++
			freed += max(0, after-before)
			before = after
			a.Log.Info("image removed: nothing has needed it for longest", logkey.Image, one.ID, "names", one.Names, "unneeded", (now - one.Last).Round(time.Second).String())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.going = r.rule.When == eviction.WhenFull && r.used > r.rule.Floor
	r.look.CleanedAt = a.Now()
	r.look.Removed += removed
	r.look.FreedBytes += freed
	r.look.Known -= removed
	return nil
}

// removeImage removes an image unless a task came to call for it meanwhile; who calls
// for it now waits until it is gone, and pulls it anew.
func (a *Agent) removeImage(ctx context.Context, i eviction.Image) (gone bool, err error) {
	r := a.room
	r.mu.Lock()
	if r.calledFor(i.Names) {
		r.mu.Unlock()
		return false, nil
	}
	for _, n := range i.Names {
		r.leaving[eviction.Canonical(n)] = true
	}
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.leaving)
		close(r.left)
		r.left = make(chan struct{})
	}()
	err = a.Images.RemoveImage(ctx, Image{ID: i.ID, Names: i.Names})
	if fault.Is(err, fault.Conflict) {
		return false, nil // a container of somebody came to need it
	}
	return err == nil, err
}

// calledFor says whether a task is about to make a container of what has these names.
func (r *room) calledFor(names []string) bool {
	for _, ref := range r.pins {
		if slices.ContainsFunc(names, func(n string) bool { return eviction.Same(n, ref) }) {
			return true
		}
	}
	return false
}

// pin keeps an image from being cleaned up until a container is made of it.
func (a *Agent) pin(ctx context.Context, id ContainerID, ref string) error {
	if a.Images == nil {
		return nil
	}
	r, name := a.room, eviction.Canonical(ref)
	now := a.clock()
	for {
		r.mu.Lock()
		if !r.leaving[name] {
			r.pins[id], r.calls[name] = ref, now
			r.mu.Unlock()
			return nil
		}
		left := r.left
		r.mu.Unlock()
		select {
		case <-left:
		case <-ctx.Done():
			return fault.Wrap(fault.Unavailable, ctx.Err(), "wait for the removal of image %s", ref)
		}
	}
}

// unpin is when a container is made, which from then on keeps its image itself.
func (a *Agent) unpin(id ContainerID) {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	delete(a.room.pins, id)
}

// unpinTask is when nothing is done for a task any more.
func (a *Agent) unpinTask(task string) {
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	for id := range a.room.pins {
		if id.Task == task {
			delete(a.room.pins, id)
		}
	}
}

// usedUntilNow notes that the containers of a task, which are about to be removed,
// have needed their images until now.
func (a *Agent) usedUntilNow(r Record) {
	if a.Images == nil {
		return
	}
	now := a.clock()
	a.room.mu.Lock()
	defer a.room.mu.Unlock()
	for _, c := range r.State.Containers {
		if c.Shown.Image != "" {
			a.room.calls[eviction.Canonical(c.Shown.Image)] = now
		}
	}
}

// clock is how long agents with this journal have run.
func (a *Agent) clock() (now time.Duration) {
	a.book.view(func(p *page) { now = p.clock })
	return now
}

// keepPulled writes down which images this agent has brought. What could not be
// written is tried again at the next look.
func (a *Agent) keepPulled() {
	if a.Images == nil {
		return
	}
	r := a.room
	r.mu.Lock()
	fresh := append(r.fresh, a.Images.Pulled()...)
	r.fresh = nil
	r.mu.Unlock()
	if len(fresh) == 0 {
		return
	}
	err := a.book.update(func(p *page) error {
		all, changed := p.images(), false
		for _, one := range fresh {
			at := slices.IndexFunc(all, func(u ImageUse) bool { return u.ID == one.ID })
			switch {
			case at < 0 && one.New:
				all, changed = append(all, ImageUse{ID: one.ID, Refs: []string{one.Ref}, Needed: p.clock}), true
			case at >= 0 && !slices.Contains(all[at].Refs, one.Ref):
				all[at].Refs, changed = append(slices.Clone(all[at].Refs), one.Ref), true
			}
		}
		if changed {
			p.remember(all)
		}
		return nil
	})
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.fresh = append(fresh, r.fresh...)
		a.Log.Error("the journal cannot be written", logkey.Error, err)
	}
}

// judgeImages brings what is remembered of images up to date with what the engine
// shows, and makes of both what a clean-up decides on.
func (a *Agent) judgeImages(images []Image) (known []eviction.Image, now time.Duration) {
	r := a.room
	r.mu.Lock()
	calls, pinned := r.calls, make(map[string]bool, len(images))
	r.calls = map[string]time.Duration{}
	for _, i := range images {
		pinned[i.ID] = r.calledFor(i.Names)
	}
	seen := r.seen
	r.mu.Unlock()
	err := a.book.update(func(p *page) error {
		now = p.clock
		var mine []ImageUse
		known = known[:0]
		latest := make(map[string]time.Duration, len(images))
		for _, i := range images {
			last, before := seen[i.ID]
			if !before {
				last = now // of what it did before nothing is known
			}
			for _, n := range i.Names {
				last = max(last, calls[eviction.Canonical(n)])
			}
			at := slices.IndexFunc(p.book.used, func(u ImageUse) bool { return u.ID == i.ID })
			one := eviction.Image{ID: i.ID, Names: i.Names, Needed: i.InUse || i.Kept || pinned[i.ID]}
			if at >= 0 {
				use := p.book.used[at]
				one.Ours = eviction.Covers(use.Refs, i.Names)
				if !before {
					last = use.Needed
				}
				last = max(last, use.Needed)
			}
			if one.Needed {
				last = now
			}
			one.Last, latest[i.ID] = last, last
			if at >= 0 {
				mine = append(mine, ImageUse{ID: i.ID, Refs: p.book.used[at].Refs, Needed: last})
			}
			known = append(known, one)
		}
		seen = latest
		if !slices.EqualFunc(mine, p.book.used, func(x, y ImageUse) bool { return x.ID == y.ID && x.Needed == y.Needed }) {
			p.remember(mine)
		}
		return nil
	})
	if err != nil {
		a.Log.Error("the journal cannot be written", logkey.Error, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = seen
	r.look.Known, r.look.Tracked = len(images), 0
	for _, i := range known {
		if i.Ours {
			r.look.Tracked++
		}
	}
	return known, now
}

// images are copies of what is remembered of them.
func (p *page) images() []ImageUse { return slices.Clone(p.book.used) }

// remember replaces what is remembered of images.
func (p *page) remember(all []ImageUse) {
	if len(all) > mostImages {
		slices.SortStableFunc(all, func(x, y ImageUse) int { return cmp.Compare(y.Needed, x.Needed) })
		all = all[:mostImages]
	}
	if p.used = all; all == nil {
		p.used = []ImageUse{}
	}
}
