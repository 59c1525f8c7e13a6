package dockerengine

import (
	"context"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// Images shows all images of the engine, whoever brought them.
func (e *Engine) Images(ctx context.Context) ([]agent.Image, error) {
	var all []agent.Image
	err := e.do(ctx, "list images", e.limits.List, func(ctx context.Context, api *client.Client) error {
		images, err := api.ImageList(ctx, image.ListOptions{})
		if err != nil {
			return err
		}
		// Read after the images: what is made meanwhile is among them.
		list, err := api.ContainerList(ctx, container.ListOptions{All: true})
		if err != nil {
			return err
		}
		used := map[string]bool{}
		for _, c := range list {
			used[c.ImageID], used[fullName(c.Image)] = true, true
		}
		all = make([]agent.Image, 0, len(images))
		for _, i := range images {
			one := agent.Image{ID: i.ID, Names: namesOf(i.RepoTags, i.RepoDigests), Size: i.Size, Kept: kept(i.Labels), InUse: used[i.ID]}
			one.Kept = one.Kept || slices.ContainsFunc(one.Names, func(n string) bool { return fullName(n) == fullName(agent.PauseImage) })
			one.InUse = one.InUse || slices.ContainsFunc(one.Names, func(n string) bool { return used[fullName(n)] })
			all = append(all, one)
		}
		return nil
	})
	return all, err
}

// namesOf are the names of an image; engines of some ages show <none> where there is none.
func namesOf(lists ...[]string) []string {
	return slices.DeleteFunc(slices.Concat(lists...), func(n string) bool { return strings.Contains(n, "<none>") })
}

// kept says whether an image is an agent's own.
func kept(labels map[string]string) bool {
	for name := range labels {
		if strings.HasPrefix(name, ours) {
			return true
		}
	}
	return false
}

// RemoveImage deletes an image by taking off its names; with the last one it goes.
// It is never forced: what a container came to need meanwhile stays.
func (e *Engine) RemoveImage(ctx context.Context, i agent.Image) error {
	return e.do(ctx, "remove image "+i.ID, e.limits.Remove, func(ctx context.Context, api *client.Client) error {
		list, err := api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("ancestor", i.ID))})
		if err != nil && !cerrdefs.IsNotFound(err) {
			return err
		}
		if len(list) > 0 {
			return fault.New(fault.Conflict, "image %s is needed by container %s", i.ID, list[0].ID)
		}
		for _, name := range append(slices.Clone(i.Names), i.ID) {
			if owner, err := api.ImageInspect(ctx, name); cerrdefs.IsNotFound(err) {
				continue
			} else if err != nil {
				return err
			} else if owner.ID != i.ID {
				continue // another image has that name by now
			}
			if _, err := api.ImageRemove(ctx, name, image.RemoveOptions{PruneChildren: true}); err != nil && !cerrdefs.IsNotFound(err) {
				return err
			}
		}
		return nil
	})
}

// Disk is the fullest of the file systems that the engine keeps its images on.
func (e *Engine) Disk(ctx context.Context) (agent.Disk, error) {
	if !strings.HasPrefix(e.host, "unix://") {
		return agent.Disk{}, fault.New(fault.Unsupported, "the engine is on another host: its disk cannot be seen from here")
	}
	e.mu.Lock()
	all := e.roots
	e.mu.Unlock()
	if len(all) == 0 {
		if _, err := e.Info(ctx); err != nil {
			return agent.Disk{}, err
		}
		e.mu.Lock()
		all = e.roots
		e.mu.Unlock()
	}
	var found agent.Disk
	var missing error
	for _, root := range all {
		d, err := diskOf(root)
		if err != nil {
			missing = err
			continue
		}
		if found.Size == 0 || d.Used() > found.Used() {
			found = d
		}
	}
	if found.Size == 0 {
		return found, fault.Wrap(fault.Unsupported, missing, "the disk of the engine's images cannot be seen from here")
	}
	return found, nil
}

// containerdRoot is where containerd keeps the images of an engine that leaves them
// to it.
const containerdRoot = "/var/lib/containerd"

// roots are the folders in which an engine keeps images.
func roots(info system.Info) []string {
	all := []string{info.DockerRootDir}
	for _, pair := range info.DriverStatus {
		if pair[0] == "driver-type" && strings.HasPrefix(pair[1], "io.containerd.snapshotter") {
			all = append(all, containerdRoot)
		}
	}
	return slices.DeleteFunc(all, func(dir string) bool { return dir == "" })
}

func diskOf(dir string) (agent.Disk, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return agent.Disk{}, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	// What is kept for root is nobody's to use: as df counts.
	used := int64(s.Blocks-s.Bfree) * s.Bsize
	free := int64(s.Bavail) * s.Bsize
	return agent.Disk{Size: used + free, Free: free, Files: int64(s.Files), FreeFiles: int64(s.Ffree)}, nil
}

// idsBefore are the images that are there before a pull; nil if that is not answered.
func (e *Engine) idsBefore(ctx context.Context, api *client.Client) map[string]bool {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Inspect)
	defer cancel()
	list, err := api.ImageList(ctx, image.ListOptions{All: true})
	if err != nil {
		return nil
	}
	ids := make(map[string]bool, len(list))
	for _, i := range list {
		ids[i.ID] = true
	}
	return ids
}

// bring notes what a pull has come to. Whether an image is new is said only where it
// is known: what is not is nobody's to clean up.
func (e *Engine) bring(ctx context.Context, api *client.Client, ref, digest string, before map[string]bool) {
	ctx, cancel := context.WithTimeout(ctx, e.limits.Inspect)
	defer cancel()
	i, err := api.ImageInspect(ctx, ref)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.said) >= maxDigests {
		clear(e.said)
	}
	if e.said[ref] = digest; digest == "" {
		delete(e.said, ref)
	}
	if err == nil && len(e.brought) < maxDigests {
		e.brought = append(e.brought, agent.Pulled{ID: i.ID, Ref: ref, New: before != nil && !before[i.ID]})
	}
}

// Pulled tells what pulls have brought since it was last asked.
func (e *Engine) Pulled() []agent.Pulled {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.brought
	e.brought = nil
	return all
}
