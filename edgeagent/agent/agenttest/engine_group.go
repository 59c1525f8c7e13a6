package agenttest

import (
	"context"
	"errors"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// group is a second container of a task, which finds the first by the link's
// name and reads, but cannot write, what is mounted there.
func group(b *bench) {
	db := b.spec(script("echo data >/data/f", "test -e /data/f", "sleep 600"), bridge, volumeAt("/data"))
	db.Definition.ContainerDefinitions = append(db.Definition.ContainerDefinitions, taskdef.ContainerDefinition{
		Name: "web", Image: b.image, Memory: new(64), Links: []string{"main:store"},
		VolumesFrom: []taskdef.VolumeFrom{{SourceContainer: "main", ReadOnly: new(true)}},
		Command: script(`{ while read -r at names; do case " $names " in *" store "*) exit 0; esac; done; false; } </etc/hosts`,
			`until test "$(cat /data/f)" = data; do sleep 0.1; done`, "! echo more >/data/g"), // the first may not have written yet
	})
	b.start(db)
	b.until(func() bool { return b.observe(db.ContainerID).Running }, "the first container")
	web := db
	web.Container = "web"
	_, err := b.Create(b.ctx, web)
	b.must(err)
	b.Cleanup(func() { // before the first, and without the task's volume, which that has
		ctx := context.WithoutCancel(b.ctx)
		b.must(errors.Join(b.Stop(ctx, web.ContainerID, 0), b.Remove(ctx, web.ContainerID)))
	})
	b.must(b.Start(b.ctx, web.ContainerID))
	b.exits(b.ended(web.ContainerID), 0)
}

func volumeAt(path string) change {
	return func(d *taskdef.TaskDefinition) {
		d.Volumes = append(d.Volumes, taskdef.Volume{Name: "data"})
		c := &d.ContainerDefinitions[0]
		c.MountPoints = append(c.MountPoints, taskdef.MountPoint{SourceVolume: "data", ContainerPath: path})
	}
}

// namespaces tells the host's processes by the first one's not being the
// container's own, and no IPC by /dev/shm not being mounted.
func namespaces(b *bench) {
	own := script("test $$ = 1", "test -w /dev/shm")
	b.exits(b.run(b.spec(own)), 0)
	b.exits(b.run(b.spec(script("test $$ != 1"), func(d *taskdef.TaskDefinition) { d.PidMode = taskdef.NamespaceHost })), 0)
	b.exits(b.run(b.spec(script("test ! -e /dev/shm"), func(d *taskdef.TaskDefinition) { d.IpcMode = taskdef.NamespaceNone })), 0)
	b.exits(b.run(b.spec(script("test -d /dev/shm"), func(d *taskdef.TaskDefinition) { d.IpcMode = taskdef.NamespaceHost })), 0)
}

func offline(b *bench) {
	b.exits(b.run(b.spec(script("test -e /sys/class/net/eth0"), bridge)), 0)
	off := first(func(c *taskdef.ContainerDefinition) { c.DisableNetworking = new(true) })
	b.exits(b.run(b.spec(script("test ! -e /sys/class/net/eth0"), bridge, off)), 0)
}
