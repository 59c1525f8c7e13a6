package dockerengine

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"
	"github.com/docker/go-connections/nat"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

// Observe shows one container.
func (e *Engine) Observe(ctx context.Context, id agent.ContainerID) (agent.Seen, error) {
	var s agent.Seen
	err := e.do(ctx, fmt.Sprintf("observe container %s of task %s", id.Container, id.Task), e.limits.Inspect,
		func(ctx context.Context, api *client.Client) error {
			c, err := e.inspect(ctx, api, id)
			if err != nil {
				return err
			}
			s = seen(c, e.digest(ctx, api, c.Image, c.Config.Image))
			return nil
		})
	return s, err
}

// lookers bounds how many containers are looked at side by side.
const lookers = 4

// List shows every container of the instance, in order of task, attempt and
// name. Docker's own list lacks exit codes and times, so each is looked at.
func (e *Engine) List(ctx context.Context) ([]agent.Seen, error) {
	var list []agent.Seen
	err := e.do(ctx, "list containers", e.limits.List, func(ctx context.Context, api *client.Client) error {
		found, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: e.only()})
		if err != nil {
			return err
		}
		e.sweep(ctx, api, found)
		list, err = e.lookAt(ctx, api, found)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(list, func(a, b agent.Seen) int {
		return cmp.Or(cmp.Compare(a.Task, b.Task), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Container, b.Container))
	})
	return list, nil
}

func (e *Engine) lookAt(ctx context.Context, api *client.Client, found []container.Summary) ([]agent.Seen, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var (
		mu   sync.Mutex
		list = make([]agent.Seen, 0, len(found))
		wg   sync.WaitGroup
		slot = make(chan struct{}, lookers)
	)
	for _, one := range found {
		wg.Go(func() {
			slot <- struct{}{}
			defer func() { <-slot }()
			s, err := e.look(ctx, api, one.ID)
			switch {
			case cerrdefs.IsNotFound(err): // removed since the list was made
			case err != nil:
				cancel(err)
			default:
				mu.Lock()
				defer mu.Unlock()
				list = append(list, s)
			}
		})
	}
	wg.Wait()
	return list, context.Cause(ctx)
}

// look shows a container by its runtime id, within the time of one look.
func (e *Engine) look(ctx context.Context, api *client.Client, runtimeID string) (agent.Seen, error) {
	limit := fmt.Errorf("no answer to inspect within %s", e.limits.Inspect)
	ctx, cancel := context.WithTimeoutCause(ctx, e.limits.Inspect, limit)
	defer cancel()
	c, err := api.ContainerInspect(ctx, runtimeID)
	if cerrdefs.IsNotFound(err) {
		return agent.Seen{}, err
	}
	if err != nil {
		return agent.Seen{}, classify(ctx, "inspect container", err)
	}
	s := seen(c, e.digest(ctx, api, c.Image, c.Config.Image))
	e.remember(s.ContainerID, s.RuntimeID)
	return s, nil
}

// seen is what an inspection says, in the agent's words.
func seen(c container.InspectResponse, digest string) agent.Seen {
	labels := c.Config.Labels
	s := agent.Seen{
		RuntimeID: c.ID, Image: c.Config.Image, Digest: digest,
		TaskARN: labels[labelTaskARN], Cluster: labels[labelCluster], Labels: labels,
		StartedAt: instant(c.State.StartedAt), FinishedAt: instant(c.State.FinishedAt),
		Running: c.State.Running, OOMKilled: c.State.OOMKilled, Error: c.State.Error,
	}
	s.ContainerID, s.Epoch = identity(labels)
	s.Family, s.Revision = definition(labels)
	switch {
	case s.Running:
		s.FinishedAt = time.Time{}
		s.Bindings = bindings(c)
		s.Health, s.HealthAt = health(c)
	case s.StartedAt.IsZero():
		s.Created = true
	default:
		s.ExitCode = new(c.State.ExitCode)
		// Two clocks' worth of code write these: of a program that ends at once
		// the end can be a millisecond before the start.
		if s.FinishedAt.Before(s.StartedAt) {
			s.FinishedAt = s.StartedAt
		}
	}
	return s
}

// health is what the definition's health check has found, and when. One that the
// image brings along is Docker's own affair, as in ECS.
func health(c container.InspectResponse) (task.Health, time.Time) {
	h := c.State.Health
	if h == nil || c.Config.Labels[labelHealth] == "" {
		return "", time.Time{}
	}
	var at time.Time
	if n := len(h.Log); n > 0 && h.Status != container.Starting {
		at = h.Log[n-1].End.UTC()
	}
	switch h.Status {
	case container.Healthy:
		return task.Healthy, at
	case container.Unhealthy:
		return task.Unhealthy, at
	}
	return task.HealthUnknown, time.Time{}
}

// bindings are the ports of the host that lead into a running container. Docker
// shows a published port once for IPv4 and once for IPv6, and ages of it pick
// different ports for the two; the IPv4 one is what people are told.
func bindings(c container.InspectResponse) []task.Binding {
	list := hostBindings(c.Config.Labels[labelPorts])
	if c.NetworkSettings != nil {
		for port, all := range c.NetworkSettings.Ports {
			four := slices.DeleteFunc(slices.Clone(all), func(b nat.PortBinding) bool { return strings.Contains(b.HostIP, ":") })
			if len(four) == 0 {
				four = all
			}
			for _, b := range four {
				if n, _ := strconv.Atoi(b.HostPort); n > 0 {
					list = append(list, task.Binding{BindIP: b.HostIP, ContainerPort: port.Int(), HostPort: n, Protocol: port.Proto()})
				}
			}
		}
	}
	list = fold(list, rowsOf(c.Config.Labels[labelRows]))
	slices.SortFunc(list, func(a, b task.Binding) int {
		return cmp.Or(cmp.Compare(a.ContainerPort, b.ContainerPort), cmp.Compare(a.ContainerPortRange, b.ContainerPortRange), cmp.Compare(a.Protocol, b.Protocol),
			cmp.Compare(a.HostPort, b.HostPort), cmp.Compare(a.BindIP, b.BindIP))
	})
	return slices.Compact(list)
}

// hostBindings are the ports of a container in network mode host.
func hostBindings(label string) []task.Binding {
	var list []task.Binding
	for part := range strings.SplitSeq(label, ",") {
		text, protocol, _ := strings.Cut(part, "/")
		if n := portIn(text); n > 0 && isProtocol(protocol) {
			list = append(list, task.Binding{BindIP: "0.0.0.0", ContainerPort: n, HostPort: n, Protocol: protocol})
		}
	}
	return list
}

// instant reads Docker's times; it writes the year 1 where there is none.
func instant(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.Year() <= 1 {
		return time.Time{}
	}
	return t.UTC()
}

// missing is the error for a container that is not there, whoever says so.
func missing(err error) bool { return cerrdefs.IsNotFound(err) || fault.Is(err, fault.NotFound) }
