package dockerengine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// provide makes sure that a volume is there and is the one that is meant. Docker
// answers a create with whatever has the name already.
func (e *Engine) provide(ctx context.Context, api *client.Client, spec agent.Spec, v volumeRequest) error {
	if v.Shared {
		have, err := api.VolumeInspect(ctx, v.Name)
		if err == nil {
			return agrees(have, v)
		}
		if !cerrdefs.IsNotFound(err) {
			return refuse(ctx, "look at volume", cannotVolume, err)
		}
		if !v.Make {
			return fault.New(fault.Invalid, "%s: shared volume %s is not there, and autoprovision is not on", cannotVolume, v.Name)
		}
	}
	have, err := api.VolumeCreate(ctx, v.CreateOptions)
	if cerrdefs.IsNotFound(err) {
		return fault.Wrap(fault.Invalid, err, "%s", cannotVolume) // of a driver: it is no image that lacks
	}
	if err != nil {
		return refuse(ctx, "create volume", cannotVolume, err)
	}
	if v.Shared {
		return agrees(have, v)
	}
	for _, label := range []string{labelInstance, labelTask, labelAttempt, labelVolume} {
		if have.Labels[label] != v.Labels[label] {
			return fault.New(fault.Conflict, "%s: volume %s is there already and not of task %s", cannotVolume, v.Name, spec.Task)
		}
	}
	return nil
}

// agrees says whether a shared volume that is there is what a definition asks
// for, so that data does not land on the wrong disk.
func agrees(have volume.Volume, want volumeRequest) error {
	if want.Driver != "" && have.Driver != want.Driver {
		return fault.New(fault.Invalid, "%s: shared volume %s is there with driver %s, not %s", cannotVolume, want.Name, have.Driver, want.Driver)
	}
	if len(want.DriverOpts) > 0 && !maps.Equal(have.Options, want.DriverOpts) {
		return fault.New(fault.Invalid, "%s: shared volume %s is there with other driver options", cannotVolume, want.Name)
	}
	return nil
}

// RemoveTask deletes the volumes that lived for one attempt of a task, and its
// control group. Its containers must be gone: what is in use is a Conflict.
func (e *Engine) RemoveTask(ctx context.Context, taskID string, attempt int) error {
	return e.do(ctx, fmt.Sprintf("remove what is left of task %s", taskID), e.limits.Remove, func(ctx context.Context, api *client.Client) error {
		list, err := api.VolumeList(ctx, volume.ListOptions{
			Filters: e.only(labelTask, taskID, labelAttempt, strconv.Itoa(attempt), labelScope, "task"),
		})
		if err != nil {
			return err
		}
		var failures []error
		for _, v := range list.Volumes {
			if err := api.VolumeRemove(ctx, v.Name, false); err != nil && !cerrdefs.IsNotFound(err) {
				failures = append(failures, classify(ctx, "remove volume "+v.Name, err))
			}
		}
		return errors.Join(append(failures, e.ungroup(ctx, api, taskID, attempt))...)
	})
}
