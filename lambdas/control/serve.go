package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// Bounds of one run for one service; what it leaves the sweep kicks again.
const (
	serveRounds = 40
	// serveAtOnce is how many tasks one transaction creates and stops.
	serveAtOnce = 40
	// serveLooks is how often a run looks again for tasks that an index hides.
	serveLooks = 6
)

// Serve brings a service, or every service of a cluster, nearer to what its owner
// wants (design: Services). It is safe to run twice, at the same time, and to be
// killed anywhere: each round reads, decides, and commits on the version of the
// service's live count from before its tasks were read.
func (c *Control) Serve(ctx context.Context, k Kick) error {
	if k.Service != "" {
		return c.serve(ctx, k.Cluster, k.Service, k.Tasks)
	}
	names, err := c.serviceNames(ctx, k.Cluster)
	if err != nil {
		return err
	}
	// In any order, so that a run which ends before all are served ends elsewhere each time.
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var errs []error
	for _, name := range names {
		if outOfTime(ctx) {
			break
		}
		errs = append(errs, c.serveAlone(ctx, k.Cluster, name))
	}
	return errors.Join(errs...)
}

// serveAlone serves one of many: what breaks it, whatever that is, holds up no other.
func (c *Control) serveAlone(ctx context.Context, cluster, name string) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Invalid, "serve service %s of cluster %s: panic: %v\n%s", name, cluster, p, debug.Stack())
		}
	}()
	return c.serve(ctx, cluster, name, nil)
}

// serving is one run for one service.
type serving struct {
	c             *Control
	cluster, name string
	// named are ids of tasks that an index may not show yet: those a kick named,
	// and those made in this run.
	named map[string]bool
	// What a round has written, to be sent once it is committed.
	created []string
	stops   []wire.Message
}

func (c *Control) serve(ctx context.Context, cluster, name string, named []string) error {
	s := &serving{c: c, cluster: cluster, name: name, named: map[string]bool{}}
	for _, id := range named {
		s.named[id] = true
	}
	looks, conflicts := 0, 0
	for range serveRounds {
		if outOfTime(ctx) {
			return nil // the sweep goes on
		}
		did, err := s.round(ctx)
		switch {
		case fault.Is(err, fault.Conflict) && conflicts < tries:
			conflicts++
			c.pause(ctx, conflicts)
			continue
		case err != nil:
			return fmt.Errorf("serve service %s of cluster %s: %w", name, cluster, err)
		}
		conflicts = 0
		s.send(ctx)
		switch did {
		case wrote:
			looks = 0
		case blind:
			if looks++; looks > serveLooks {
				return nil // the sweep looks again
			}
			c.pause(ctx, looks)
		case nothing:
			return nil
		}
	}
	return nil
}

// outcome is what a round came to.
type outcome int

const (
	nothing outcome = iota // there is nothing more to do
	wrote                  // and more may follow
	blind                  // an index hides tasks
)

// round reads the service, decides once, and commits.
func (s *serving) round(ctx context.Context) (outcome, error) {
	x, err := s.read(ctx)
	if err != nil || x == nil {
		return nothing, err
	}
	out := deployment.Decide(x.in)
	writes, err := s.writes(ctx, x, out)
	if err != nil {
		return nothing, err
	}
	if len(writes) == 0 {
		if out.Hidden {
			return blind, nil
		}
		return nothing, nil
	}
	if err := s.c.Store.Commit(ctx, writes...); err != nil {
		s.created, s.stops = nil, nil
		return nothing, err
	}
	s.c.log(ctx, x, out)
	return wrote, nil
}

// log says what was decided, and why.
func (c *Control) log(ctx context.Context, x *situation, out deployment.Output) {
	why := map[string]int{}
	for _, stop := range out.Stop {
		why[stop.Why]++
	}
	c.Log.InfoContext(ctx, "service served", logkey.Cluster, x.service.Cluster, logkey.Service, x.service.Name,
		"created", len(out.Create), "stopped", len(out.Stop), "why", fmt.Sprint(slices.Sorted(maps.Keys(why))), "live", x.live.Live)
	for _, e := range out.Events {
		c.Log.InfoContext(ctx, "service event", logkey.Cluster, x.service.Cluster, logkey.Service, x.service.Name, logkey.Message, e.Message)
	}
}

// send tells agents what to stop and admission what waits. What is lost the
// sweep makes up.
func (s *serving) send(ctx context.Context) {
	s.c.send(ctx, s.stops...)
	for ids := range slices.Chunk(s.created, kickTasks) {
		s.c.kick(ctx, Kick{Cluster: s.cluster, Tasks: ids})
	}
	s.created, s.stops = nil, nil
}
