package agent

import (
	"context"
	"time"
)

// ImageStore is where an engine keeps its images; it is shared by all agents and
// people that use the engine. Errors carry the kinds that those of Engine do.
type ImageStore interface {
	// Images shows all that the engine has, and which of them a container of anybody
	// needs.
	Images(ctx context.Context) ([]Image, error)
	// RemoveImage deletes an image with the names it is shown by. One that is not
	// there is gone already; one that a container needs is a Conflict and stays.
	RemoveImage(ctx context.Context, i Image) error
	// Disk is the file system that images are on; Unsupported where that cannot be
	// seen from here.
	Disk(ctx context.Context) (Disk, error)
	// Pulled tells what pulls have brought since it was last asked.
	Pulled() []Pulled
	// Pulls is how many pulls go on, and how many wait for their turn.
	Pulls() (running, waiting int)
}

// Image is one image of an engine.
type Image struct {
	ID    string
	Names []string // tags and digests, as the engine shows them
	Size  int64    // bytes; what it shares with others counts in each
	InUse bool     // a container has it, running or not
	Kept  bool     // by its labels it belongs to an agent, not to a task
}

// Disk is how large a file system is, and what of it is free, in bytes and in
// files; all zero if that is not known.
type Disk struct{ Size, Free, Files, FreeFiles int64 }

// Used is how full it is, in percent: by bytes or by files, whichever is more.
func (d Disk) Used() float64 {
	share := func(all, free int64) float64 {
		if all <= 0 {
			return 0
		}
		return 100 * float64(all-free) / float64(all)
	}
	return max(share(d.Size, d.Free), share(d.Files, d.FreeFiles))
}

// Pulled is an image that a pull has brought, or found to be up to date.
type Pulled struct {
	ID, Ref string
	New     bool // it was not there before, under whatever name
}

// NoRoom is the cause inside an error of Image or Create that the engine's disk is
// full.
type NoRoom struct{ Cause error }

func (e *NoRoom) Error() string { return e.Cause.Error() }
func (e *NoRoom) Unwrap() error { return e.Cause }

// Reserve is room on the journal's disk that is kept for when it is full.
type Reserve interface {
	// Spent is why the journal lives on its reserve, "" if it does not.
	Spent() string
	// Refill sets it aside again, where there is room.
	Refill() error
}

// ImageUse is what is remembered of an image that this agent pulled.
type ImageUse struct {
	ID   string   `json:"id"`
	Refs []string `json:"refs"` // by which it was pulled
	// Needed is when it was last, a time of Meta.Clock.
	Needed time.Duration `json:"needed"`
}
