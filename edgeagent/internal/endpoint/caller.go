package endpoint

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

const (
	// detailFor is how long what the engine says of a container is taken for true:
	// long enough that a flood of requests is none of calls to the engine.
	detailFor = 5 * time.Second
	// againAfter is for how long one that does not fit is not asked for again.
	againAfter = time.Second
	// detailWait is how long the engine is waited for.
	detailWait = 5 * time.Second
	// mostDetails is how many are kept.
	mostDetails = 512
)

// details remember for a moment what the engine says of containers.
type details struct {
	engine Engine
	now    func() time.Time

	mu    sync.Mutex
	all   map[agent.ContainerID]known
	looks map[agent.ContainerID]*look
}

type known struct {
	detail agent.Detail
	at     time.Time // when the engine was asked
}

// look is a question to the engine that is under way.
type look struct {
	at     time.Time
	done   chan struct{}
	detail agent.Detail // what follows is to be read once done is closed
	err    error
}

func newDetails(engine Engine, now func() time.Time) *details {
	return &details{engine: engine, now: now, all: map[agent.ContainerID]known{}, looks: map[agent.ContainerID]*look{}}
}

// of is a container as it is, or was a moment ago. While the engine is silent it is
// what was known last: no container changes then.
func (d *details) of(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	return d.since(ctx, id, d.now().Add(-detailFor))
}

// again is a container as it is, asked anew if that was not done just now: a stranger
// must not make calls to the engine.
func (d *details) again(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	return d.since(ctx, id, d.now().Add(-againAfter))
}

// since is what the engine said to a question that was put after a time. Those who
// ask meanwhile share one.
func (d *details) since(ctx context.Context, id agent.ContainerID, after time.Time) (agent.Detail, error) {
	for {
		d.mu.Lock()
		if last, had := d.all[id]; had && !last.at.Before(after) {
			d.mu.Unlock()
			return last.detail, nil
		}
		l := d.looks[id]
		if l == nil {
			l = &look{at: d.now(), done: make(chan struct{})}
			d.looks[id] = l
			go d.ask(context.WithoutCancel(ctx), id, l)
		}
		d.mu.Unlock()
		select {
		case <-l.done:
		case <-ctx.Done():
			return agent.Detail{}, fault.Wrap(fault.Unavailable, ctx.Err(), "inspect container %s", id.Container)
		}
		if !l.at.Before(after) {
			return l.detail, l.err
		}
	}
}

// ask puts a question to the engine, whether or not anybody still waits for it.
func (d *details) ask(ctx context.Context, id agent.ContainerID, l *look) {
	defer close(l.done)
	ctx, cancel := context.WithTimeout(ctx, detailWait)
	defer cancel()
	got, err := d.engine.Detail(ctx, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.looks, id)
	last, had := d.all[id]
	switch {
	case fault.Is(err, fault.Unavailable) && had:
		l.detail = last.detail
		return
	case err != nil:
		delete(d.all, id)
		l.err = err
		return
	}
	l.detail = got
	if _, had := d.all[id]; !had && len(d.all) >= mostDetails {
		d.drop()
	}
	d.all[id] = known{got, l.at}
}

// drop makes room: the older half is asked for again.
func (d *details) drop() {
	ids := slices.SortedFunc(maps.Keys(d.all), func(a, b agent.ContainerID) int { return d.all[a].at.Compare(d.all[b].at) })
	for _, id := range ids[:len(ids)/2] {
		delete(d.all, id)
	}
}

// isCaller says whether a request from an address can be the container's: on a
// bridge it must be the container's own, on the host's network one of the host's.
func (s *Server) isCaller(ctx context.Context, id agent.ContainerID, from netip.Addr) (bool, error) {
	d, err := s.details.of(ctx, id)
	if err != nil {
		return false, err
	}
	if s.fits(d, from) {
		return true, nil
	}
	if d, err = s.details.again(ctx, id); err != nil { // it may have been started anew
		return false, err
	}
	return s.fits(d, from), nil
}

// isStill is the same of what the engine says now: an address is given on as soon as
// its container ends. Who asks this may ask only so often.
func (s *Server) isStill(ctx context.Context, id agent.ContainerID, from netip.Addr, came time.Time) (agent.Detail, bool, error) {
	d, err := s.details.since(ctx, id, came)
	return d, err == nil && s.fits(d, from), err
}

func (s *Server) fits(d agent.Detail, from netip.Addr) bool {
	from = from.Unmap()
	switch {
	case !d.Running:
		return false
	case d.HostNetwork:
		return s.Own(from)
	}
	return slices.Contains(d.Addresses, from)
}
