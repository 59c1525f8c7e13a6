package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/image"
)

// contender starts containers in its way, and removes them.
type contender interface {
	// start has n containers run, and says when it was told to and which they are.
	start(ctx context.Context, mode string, n int) (from time.Time, ids []string, err error)
	// clear removes what start made, in its way.
	clear(ctx context.Context) error
	// close leaves nothing, whatever was going on.
	close() error
}

const (
	byAgent = "agent"
	byBare  = "bare loop"
	bySwarm = "Swarm"
)

// bench has all of them on one engine.
type bench struct {
	api        *client.Client
	contenders map[string]contender
	order      []string
	agent      *agentSide
	bare       *bareLoop
}

func newBench(ctx context.Context, o options) (_ *bench, err error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	b := &bench{api: api, contenders: map[string]contender{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	if _, err := image.Ensure(ctx); err != nil {
		return nil, err
	}
	b.bare = &bareLoop{api: api, like: map[string]container.InspectResponse{}}
	b.add(byBare, b.bare)
	if b.agent, err = startAgent(ctx, o.agent, api); err != nil {
		return nil, err
	}
	b.add(byAgent, b.agent)
	if o.swarm {
		s, err := joinSwarm(ctx, api)
		if err != nil {
			return nil, err
		}
		b.add(bySwarm, s)
	}
	return b, nil
}

func (b *bench) add(name string, c contender) {
	b.contenders[name] = c
	b.order = append(b.order, name)
}

func (b *bench) close() error {
	var errs []error
	for _, name := range b.order {
		errs = append(errs, b.contenders[name].close())
	}
	return errors.Join(append(errs, b.api.Close())...)
}

// warm has each start one container, and gives the bare loop what the agent's
// looks like: its requests are the same.
func (b *bench) warm(ctx context.Context, mode string) error {
	_, ids, err := b.agent.start(ctx, mode, 1)
	if err != nil {
		return err
	}
	if b.bare.like[mode], err = b.api.ContainerInspect(ctx, ids[0]); err != nil {
		return err
	}
	if err := b.agent.clear(ctx); err != nil {
		return err
	}
	_, err = b.round(ctx, mode, 1, 0)
	return err
}

// round measures each once, every time another one first.
func (b *bench) round(ctx context.Context, mode string, size, turn int) (map[string]time.Duration, error) {
	took := map[string]time.Duration{}
	for i := range b.order {
		name := b.order[(i+turn)%len(b.order)]
		c := b.contenders[name]
		ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, fmt.Errorf("the %s did not start %d containers in time", name, size))
		from, ids, err := c.start(ctx, mode, size)
		if err == nil {
			took[name], err = b.last(ctx, ids, from)
		}
		if err == nil {
			err = c.clear(ctx)
		}
		if err != nil && context.Cause(ctx) != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		cancel()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return took, nil
}

// last is how long the last of some containers took to run, by the engine's word.
func (b *bench) last(ctx context.Context, ids []string, from time.Time) (time.Duration, error) {
	var last time.Time
	for _, id := range ids {
		c, err := b.api.ContainerInspect(ctx, id)
		if err != nil {
			return 0, err
		}
		at, err := time.Parse(time.RFC3339Nano, c.State.StartedAt)
		if err != nil || !c.State.Running {
			return 0, fmt.Errorf("container %s does not run: %s", id, c.State.Status)
		}
		if at.After(last) {
			last = at
		}
	}
	return last.Sub(from), nil
}

// labelled lists containers by a label, ended ones included.
func labelled(ctx context.Context, api *client.Client, label string) ([]string, error) {
	all, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", label))})
	ids := make([]string, len(all))
	for i, c := range all {
		ids[i] = c.ID
	}
	return ids, err
}

// removeAll removes containers by a label, also when the bench was told to end.
func removeAll(api *client.Client, label string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	ids, err := labelled(ctx, api, label)
	errs := make([]error, len(ids))
	var all sync.WaitGroup
	for i, id := range ids {
		all.Go(func() {
			errs[i] = api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
		})
	}
	all.Wait()
	return errors.Join(append(errs, err)...)
}

// gone waits until a label has no container any more.
func gone(ctx context.Context, api *client.Client, label string) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ids, err := labelled(ctx, api, label)
		if err != nil || len(ids) == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d containers with the label %s are left: %w", len(ids), label, context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// rest is how long tasks run before what the agent holds is looked at: longer than
// it keeps what only a start needs.
const rest = 75 * time.Second

// weigh measures what the agent holds with n tasks that run and nothing to do, and
// what it held at most.
func (b *bench) weigh(ctx context.Context, mode string, n int) ([]figure, error) {
	if _, _, err := b.agent.start(ctx, mode, n); err != nil {
		return nil, err
	}
	select {
	case <-time.After(rest):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.agent.pid()))
	if err != nil {
		return nil, err
	}
	program, err := os.Stat(b.agent.process.Path)
	if err != nil {
		return nil, err
	}
	const mb = 1e6 / 1024
	return []figure{
		{fmt.Sprintf("resident with %d tasks that run for %s", n, rest), float64(kilobytes(string(status), "VmRSS")) / mb, 25, "MB"},
		{"of that not the program's file", float64(kilobytes(string(status), "RssAnon")) / mb, 0, "MB"},
		{"at the most, while they started", float64(kilobytes(string(status), "VmHWM")) / mb, 0, "MB"},
		{"the agent's program", float64(program.Size()) / 1e6, 20, "MB"},
	}, b.agent.clear(ctx)
}
