package agenttest

import (
	"slices"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// stored is the engine's store of images.
func (b *bench) stored() agent.ImageStore {
	b.Helper()
	s, ok := b.Engine.(agent.ImageStore)
	if !ok {
		b.Fatalf("%T is no store of images", b.Engine)
	}
	return s
}

// imageOf is the image that the suite's containers are made of.
func (b *bench) imageOf() agent.Image {
	b.Helper()
	all, err := b.stored().Images(b.ctx)
	b.must(err)
	for _, i := range all {
		if slices.Contains(i.Names, b.image) {
			return i
		}
	}
	b.Fatalf("%s is not among %+v", b.image, all)
	return agent.Image{}
}

func storeShows(b *bench) {
	_, err := b.Image(b.ctx, b.image, agent.Login{})
	b.must(err)
	b.create(b.spec(Quit(0)))
	if i := b.imageOf(); i.ID == "" || !i.InUse || i.Kept {
		b.Fatalf("shown is %+v, want it to be in use", i)
	}
}

func storeKeeps(b *bench) {
	_, err := b.Image(b.ctx, b.image, agent.Login{})
	b.must(err)
	b.run(b.spec(Quit(0))) // one that has ended needs it, too
	b.kind(b.stored().RemoveImage(b.ctx, b.imageOf()), fault.Conflict)
	b.imageOf()
}

func storeNothing(b *bench) {
	b.must(b.stored().RemoveImage(b.ctx, agent.Image{ID: "sha256:" + strings.Repeat("0", 64), Names: []string{"longshore-suite/nothing:1"}}))
}

func storeDisk(b *bench) {
	d, err := b.stored().Disk(b.ctx)
	if fault.Is(err, fault.Unsupported) { // an engine whose disk is elsewhere
		return
	}
	b.must(err)
	if d.Size <= 0 || d.Free < 0 || d.Free > d.Size {
		b.Fatalf("the disk is %+v", d)
	}
}
