package agenttest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

var _ agent.ImageStore = (*Engine)(nil)

// store is what an engine in memory has of images.
type store struct {
	images map[string]agent.Image
	needed map[string]bool  // by a stranger's container
	sizes  map[string]int64 // of images by the reference they are pulled by; of others 0
	disk   agent.Disk       // Size 0: it is not known, and never full
	pulled []agent.Pulled
}

func newStore() store {
	return store{images: map[string]agent.Image{}, needed: map[string]bool{}, sizes: map[string]int64{}}
}

// Weigh says how many bytes an image takes once it is pulled.
func (e *Engine) Weigh(ref string, size int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sizes[ref] = size
}

// SetDisk is the disk that images are on, in bytes.
func (e *Engine) SetDisk(size, free int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.disk = agent.Disk{Size: size, Free: free}
}

// Stock puts an image there that somebody else brought; needed: by a container of his.
func (e *Engine) Stock(i agent.Image, needed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.images[i.ID] = i
	e.needed[i.ID] = needed
}

// Tag gives an image that is there one name more.
func (e *Engine) Tag(id, name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.images[id]
	i.Names = append(slices.Clone(i.Names), name)
	e.images[id] = i
}

// Stocked are the ids of the images that are there, in order.
func (e *Engine) Stocked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Sorted(maps.Keys(e.images))
}

// pull brings an image, if there is room for it.
func (e *Engine) pull(ref string) error {
	id := "sha256:" + ref
	if _, there := e.images[id]; there {
		e.pulled = append(e.pulled, agent.Pulled{ID: id, Ref: ref})
		return nil
	}
	size := e.sizes[ref]
	if e.disk.Size > 0 && size > e.disk.Free {
		return fault.Wrap(fault.NotFound, &agent.NoRoom{Cause: errors.New("write layer: no space left on device")}, "CannotPullContainerError")
	}
	e.disk.Free -= min(size, e.disk.Free)
	e.images[id] = agent.Image{ID: id, Names: []string{ref}, Size: size}
	e.pulled = append(e.pulled, agent.Pulled{ID: id, Ref: ref, New: true})
	return nil
}

// uses says whether a container of anybody needs an image.
func (e *Engine) uses(i agent.Image) bool {
	if e.needed[i.ID] {
		return true
	}
	for _, b := range e.containers {
		if b.seen.Digest == i.ID {
			return true
		}
	}
	return false
}

// Images shows all images.
func (e *Engine) Images(ctx context.Context) ([]agent.Image, error) {
	if err := e.call(ctx, "images", agent.ContainerID{}); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var all []agent.Image
	for _, id := range slices.Sorted(maps.Keys(e.images)) {
		i := e.images[id]
		i.InUse = e.uses(i)
		all = append(all, i)
	}
	return all, nil
}

// RemoveImage deletes an image that no container needs.
func (e *Engine) RemoveImage(ctx context.Context, i agent.Image) error {
	if err := e.call(ctx, "removeimage", agent.ContainerID{Container: strings.TrimPrefix(i.ID, "sha256:")}); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	there, ok := e.images[i.ID]
	if !ok {
		return nil
	}
	if e.uses(there) {
		return fault.New(fault.Conflict, "image %s is needed", i.ID)
	}
	delete(e.images, i.ID)
	e.disk.Free += there.Size
	return nil
}

// Disk is what SetDisk said.
func (e *Engine) Disk(ctx context.Context) (agent.Disk, error) {
	if err := e.call(ctx, "disk", agent.ContainerID{}); err != nil {
		return agent.Disk{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.disk.Size == 0 {
		return agent.Disk{}, fault.New(fault.Unsupported, "nobody said how large the disk is")
	}
	return e.disk, nil
}

// Pulled tells what pulls have brought since it was last asked.
func (e *Engine) Pulled() []agent.Pulled {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.pulled
	e.pulled = nil
	return all
}

// Pulls is none: in memory a pull takes no time.
func (e *Engine) Pulls() (running, waiting int) { return 0, 0 }

// Reserve is agent.Reserve in memory.
type Reserve struct {
	mu   sync.Mutex
	why  string
	room bool
}

// NewReserve is one that is not spent.
func NewReserve() *Reserve { return &Reserve{room: true} }

// Spend has the journal live on it from now on, and Regain gives its disk room again.
func (r *Reserve) Spend(why string) { r.set(why, false) }

// Regain gives the disk room again; the reserve is set aside with the next Refill.
func (r *Reserve) Regain() { r.set(r.Spent(), true) }

func (r *Reserve) set(why string, room bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why, r.room = why, room
}

// Spent is agent.Reserve's.
func (r *Reserve) Spent() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

// Refill is agent.Reserve's.
func (r *Reserve) Refill() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.room {
		return fault.New(fault.Unavailable, "no space left on device")
	}
	r.why = ""
	return nil
}
