package dockerengine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Create makes a container and the volumes it mounts. The name is taken by the
// attempt of the task, so a second call finds what the first one made.
func (e *Engine) Create(ctx context.Context, spec agent.Spec) (string, error) {
	if spec.Cluster == "" {
		spec.Cluster = e.cluster
	}
	r, err := request(e.instance, spec)
	if err != nil {
		return "", err
	}
	var made string
	err = e.do(ctx, "create container "+r.Name, e.limits.Create, func(ctx context.Context, api *client.Client) error {
		for _, v := range r.Volumes {
			if err := e.provide(ctx, api, spec, v); err != nil {
				return err
			}
		}
		if err := e.placeRows(&r); err != nil {
			return err
		}
		if err := e.enroll(ctx, api, &r, spec); err != nil {
			return err
		}
		c, err := api.ContainerCreate(ctx, r.Config, r.Host, r.Network, nil, r.Name)
		switch {
		case err == nil:
			made = c.ID
			return nil
		case cerrdefs.IsConflict(err):
			made, err = e.again(ctx, api, r.Name, spec.ContainerID)
			return err
		}
		return refuse(ctx, "create", cannotCreate, err)
	})
	if err != nil {
		return "", err
	}
	e.remember(spec.ContainerID, made)
	return made, nil
}

// again is who has the name already: this very container, or a stranger.
func (e *Engine) again(ctx context.Context, api *client.Client, name string, id agent.ContainerID) (string, error) {
	c, err := api.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		return "", fault.New(fault.Unavailable, "%s: name %s has just been given back", cannotCreate, name)
	}
	if err != nil {
		return "", err
	}
	if c.Config.Labels[labelInstance] != e.instance {
		return "", fault.New(fault.Conflict, "%s: name %s is taken by container %s, which is not this instance's", cannotCreate, name, c.ID)
	}
	if owner, _ := identity(c.Config.Labels); owner != id {
		return "", fault.New(fault.Conflict, "%s: name %s is taken by container %s of task %s", cannotCreate, name, c.ID, owner.Task)
	}
	if going(c.State) {
		return "", fault.New(fault.Unavailable, "%s: container %s is being removed", cannotCreate, name)
	}
	return c.ID, nil
}

// going says whether Docker is deleting the container, or failed to.
func going(s *container.State) bool {
	return s != nil && (s.Status == container.StateRemoving || s.Status == container.StateDead)
}

// portTries bounds how often a start is tried again when a port that Docker
// itself picked was taken in the meantime.
const portTries = 3

// Start runs a container that was made. One that has ever run is left as it is:
// Docker would run it a second time, and a task never restarts.
func (e *Engine) Start(ctx context.Context, id agent.ContainerID) error {
	return e.do(ctx, fmt.Sprintf("start container %s of task %s", id.Container, id.Task), e.limits.Start,
		func(ctx context.Context, api *client.Client) error {
			c, err := e.inspect(ctx, api, id)
			if err != nil {
				return err
			}
			if !instant(c.State.StartedAt).IsZero() {
				return nil
			}
			err = e.run(ctx, api, c)
			if p, ok := errors.AsType[*agent.PortsTaken](err); !ok || !lostRow(c, portsOf(p)) {
				return err
			}
			// It never ran and has ports that cannot be moved: it is made anew, with others.
			if gone := api.ContainerRemove(ctx, c.ID, container.RemoveOptions{RemoveVolumes: true}); gone != nil && !cerrdefs.IsNotFound(gone) {
				return err
			}
			e.forget(id)
			return fault.Wrap(fault.NotFound, err, "container %s was removed: its row of ports was taken meanwhile", id.Container)
		})
}

// Restart runs a container again whose run that began then has ended. Docker
// tells by the start it shows whether that was done already.
func (e *Engine) Restart(ctx context.Context, id agent.ContainerID, began time.Time) error {
	return e.do(ctx, fmt.Sprintf("restart container %s of task %s", id.Container, id.Task), e.limits.Start,
		func(ctx context.Context, api *client.Client) error {
			c, err := e.inspect(ctx, api, id)
			if err != nil {
				return err
			}
			if c.State.Running || !instant(c.State.StartedAt).Equal(began) {
				return nil
			}
			return e.run(ctx, api, c)
		})
}

func (e *Engine) run(ctx context.Context, api *client.Client, c container.InspectResponse) error {
	static := staticPorts(c)
	err := e.stays(ctx, "start")
	if err != nil {
		return err
	}
	if err = e.reenroll(ctx, api, c); err != nil {
		return err
	}
	for range portTries {
		err = api.ContainerStart(ctx, c.ID, container.StartOptions{})
		ports := portTaken(err, static)
		if ports == nil {
			return refuse(ctx, "start", cannotStart, err)
		}
		err = conflict(ports, err)
		if slices.ContainsFunc(ports, func(p hostPort) bool { return slices.Contains(static, p) }) {
			return err
		}
	}
	return err
}

// staticPorts are the ports of the host that a container insists on.
func staticPorts(c container.InspectResponse) []hostPort {
	var list []hostPort
	for port, bindings := range c.HostConfig.PortBindings {
		for _, b := range bindings {
			if n, _ := strconv.Atoi(b.HostPort); n > 0 {
				list = append(list, hostPort{n, port.Proto()})
			}
		}
	}
	slices.SortFunc(list, func(a, b hostPort) int { return a.Port - b.Port })
	return list
}

// Stop sends SIGTERM and, after timeout, SIGKILL; Docker counts whole seconds,
// so a part of one is rounded up. What is not there or not running has stopped.
func (e *Engine) Stop(ctx context.Context, id agent.ContainerID, timeout time.Duration) error {
	seconds := int(math.Ceil(max(timeout, 0).Seconds()))
	err := e.do(ctx, fmt.Sprintf("stop container %s of task %s", id.Container, id.Task), max(timeout, 0)+e.limits.Stop,
		func(ctx context.Context, api *client.Client) error {
			return e.with(ctx, api, id, func(runtimeID string) error {
				return api.ContainerStop(ctx, runtimeID, container.StopOptions{Timeout: &seconds})
			})
		})
	return unless(err, fault.NotFound)
}

// Remove deletes a container that does not run, with the nameless volumes its
// image asked for (nobody could ever use them again); volumes with a name stay.
func (e *Engine) Remove(ctx context.Context, id agent.ContainerID) error {
	err := e.do(ctx, fmt.Sprintf("remove container %s of task %s", id.Container, id.Task), e.limits.Remove,
		func(ctx context.Context, api *client.Client) error {
			return e.with(ctx, api, id, func(runtimeID string) error {
				err := api.ContainerRemove(ctx, runtimeID, container.RemoveOptions{RemoveVolumes: true})
				if cerrdefs.IsConflict(err) && inProgress.MatchString(err.Error()) {
					_ = e.awaitRemoval(ctx, api, runtimeID) // or not: the engine goes on with it
					return nil
				}
				return err
			})
		})
	if err = unless(err, fault.NotFound); err == nil {
		e.forget(id)
	}
	return err
}

// awaitRemoval gives a removal that is under way the time of a look to end, as
// the volumes of the task can only be removed after it.
func (e *Engine) awaitRemoval(ctx context.Context, api *client.Client, runtimeID string) error {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Inspect)
	defer cancel()
	done, failed := api.ContainerWait(ctx, runtimeID, container.WaitConditionRemoved)
	select {
	case <-done:
		return nil
	case err := <-failed:
		return err
	}
}

// unless is err, but for an error of a kind that is success.
func unless(err error, kind fault.Kind) error {
	if fault.Is(err, kind) {
		return nil
	}
	return err
}
