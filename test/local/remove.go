package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
	"github.com/docker/docker/client"
)

// instanceLabel is the engine adapter's label of whose container it is.
const instanceLabel = "run.longshore.instance"

func agentDirs(dir string) []string {
	dirs, _ := filepath.Glob(filepath.Join(dir, "agents", "*"))
	return dirs
}

// agentInstances are the instance ids of the agents in a stack's folder.
func agentInstances(dir string) []string {
	var out []string
	for _, d := range agentDirs(dir) {
		if id, err := os.ReadFile(filepath.Join(d, "instance")); err == nil && len(id) > 0 {
			out = append(out, string(id))
		}
	}
	return out
}

func stopAgents(ctx context.Context, dir string) error {
	var errs []error
	for _, d := range agentDirs(dir) {
		a := &Agent{Dir: d}
		if err := a.Signal(ctx, syscall.SIGTERM); err != nil {
			errs = append(errs, a.Signal(ctx, syscall.SIGKILL))
		}
	}
	return errors.Join(errs...)
}

// Containers lists an instance's containers, running or not.
func Containers(ctx context.Context, instance string) ([]container.Summary, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return nil, err
	}
	defer api.Close()
	return containers(ctx, api, instance)
}

func containers(ctx context.Context, api *client.Client, instance string) ([]container.Summary, error) {
	return api.ContainerList(ctx, container.ListOptions{All: true, Filters: labelled(instance)})
}

// labelled finds what the engine adapter made for an instance.
func labelled(instance string) filters.Args {
	return filters.NewArgs(filters.Arg("label", instanceLabel+"="+instance))
}

// Vanish ends an agent and all it runs at once, as the loss of its host would. Its
// journal stays: started again, it is the same host that comes back.
func (a *Agent) Vanish(ctx context.Context) error {
	if err := a.Signal(ctx, syscall.SIGKILL); err != nil {
		return err
	}
	return removeContainers(ctx, []string{a.Instance})
}

// removeContainers removes what the agents of a stack have left on the engine.
func removeContainers(ctx context.Context, instances []string) error {
	if len(instances) == 0 {
		return nil
	}
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return err
	}
	defer api.Close()
	var errs []error
	for _, id := range instances {
		all, err := containers(ctx, api, id)
		if err != nil {
			return fmt.Errorf("list containers: %w", err)
		}
		for _, c := range all {
			if err := api.ContainerRemove(ctx, c.ID, container.RemoveOptions{Force: true}); err != nil && !strings.Contains(err.Error(), "No such container") {
				errs = append(errs, err)
			}
		}
		volumes, err := api.VolumeList(ctx, volume.ListOptions{Filters: labelled(id)})
		if err != nil {
			return fmt.Errorf("list volumes: %w", err)
		}
		for _, v := range volumes.Volumes {
			errs = append(errs, api.VolumeRemove(ctx, v.Name, true))
		}
		errs = append(errs, removeGroups(id))
	}
	return errors.Join(errs...)
}
