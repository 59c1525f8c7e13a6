package endpoint

import (
	"context"
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
	// mostDetails is how many are kept before old ones are dropped.
	mostDetails = 512
)

// details remember for a moment what the engine says of containers.
type details struct {
	engine Engine
	now    func() time.Time

	mu  sync.Mutex
	all map[agent.ContainerID]known
}

type known struct {
	detail agent.Detail
	at     time.Time
}

func newDetails(engine Engine, now func() time.Time) *details {
	return &details{engine: engine, now: now, all: map[agent.ContainerID]known{}}
}

// of is a container as it is. While the engine is silent it is what was known last:
// no container changes then.
func (d *details) of(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	d.mu.Lock()
	last, had := d.all[id]
	d.mu.Unlock()
	if had && d.now().Sub(last.at) < detailFor {
		return last.detail, nil
	}
	return d.fresh(ctx, id)
}

// again is a container as it is, asked anew if that was not done just now: a stranger
// must not make calls to the engine.
func (d *details) again(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	d.mu.Lock()
	last, had := d.all[id]
	d.mu.Unlock()
	if had && d.now().Sub(last.at) < againAfter {
		return last.detail, nil
	}
	return d.fresh(ctx, id)
}

// fresh asks the engine.
func (d *details) fresh(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	ctx, cancel := context.WithTimeout(ctx, detailWait)
	defer cancel()
	got, err := d.engine.Detail(ctx, id)
	d.mu.Lock()
	defer d.mu.Unlock()
	last, had := d.all[id]
	switch {
	case fault.Is(err, fault.Unavailable) && had:
		return last.detail, nil
	case err != nil:
		delete(d.all, id)
		return agent.Detail{}, err
	}
	now := d.now()
	if len(d.all) >= mostDetails {
		for other, k := range d.all {
			if now.Sub(k.at) > time.Hour {
				delete(d.all, other)
			}
		}
	}
	d.all[id] = known{got, now}
	return got, nil
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
