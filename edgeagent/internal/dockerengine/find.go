package dockerengine

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

var inProgress = regexp.MustCompile(`removal of container \S+ is already in progress`)

// with calls the engine about a container by its runtime id: the remembered
// one, or, where there is none or it is no more, the one that the labels show.
// What is not there at all is a NotFound.
func (e *Engine) with(ctx context.Context, api *client.Client, id agent.ContainerID, call func(runtimeID string) error) error {
	if known, ok := e.recall(id); ok {
		err := call(known)
		if !cerrdefs.IsNotFound(err) {
			return err
		}
		e.forget(id)
	}
	found, err := e.find(ctx, api, id)
	if err != nil {
		return err
	}
	err = call(found)
	if cerrdefs.IsNotFound(err) {
		e.forget(id)
		return absent(id)
	}
	return err
}

// find looks a container up by its labels.
func (e *Engine) find(ctx context.Context, api *client.Client, id agent.ContainerID) (string, error) {
	list, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: e.only(
		labelTask, id.Task, labelAttempt, strconv.Itoa(id.Attempt), labelContainer, id.Container)})
	if err != nil {
		return "", err
	}
	if len(list) == 0 {
		return "", absent(id)
	}
	// Names are one to a container, so there are no two, unless somebody copied
	// our labels: then the one that was first is ours.
	first := slices.MinFunc(list, func(a, b container.Summary) int { return cmp.Compare(a.Created, b.Created) })
	e.remember(id, first.ID)
	return first.ID, nil
}

func absent(id agent.ContainerID) error {
	return fault.New(fault.NotFound, "container %s of task %s, attempt %d, is not there", id.Container, id.Task, id.Attempt)
}

func (e *Engine) inspect(ctx context.Context, api *client.Client, id agent.ContainerID) (container.InspectResponse, error) {
	var c container.InspectResponse
	err := e.with(ctx, api, id, func(runtimeID string) error {
		var err error
		c, err = api.ContainerInspect(ctx, runtimeID)
		return err
	})
	return c, err
}

func (e *Engine) remember(id agent.ContainerID, runtimeID string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ids[id] = runtimeID
}

func (e *Engine) recall(id agent.ContainerID) (string, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	runtimeID, ok := e.ids[id]
	return runtimeID, ok
}

func (e *Engine) forget(id agent.ContainerID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.ids, id)
}
