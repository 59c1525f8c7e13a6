package whole

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

const clusterDefault, clusterEdge = "default", "edge"

// families are the definitions there are, and how their programs behave.
var families = []struct {
	name       string
	memory     int
	port       int
	containers []string
	policy     bool
}{
	{name: "job", memory: 16, containers: []string{"main"}},
	{name: "wide", memory: 64, containers: []string{"main"}},
	{name: "steady", memory: 32, containers: []string{"main"}},
	{name: "deaf", memory: 16, containers: []string{"main"}},
	{name: "port", memory: 16, port: 8080, containers: []string{"main"}},
	{name: "pair", memory: 16, containers: []string{"main", "side"}},
	{name: "again", memory: 16, containers: []string{"main"}, policy: true},
	{name: "wrong", memory: 16, containers: []string{"main"}},
	{name: "web", memory: 24, containers: []string{"main"}},
}

// program is what a container of a task does, by the task's id alone.
func (w *World) program(id, container, family string) program {
	h := uint64(14695981039346656037)
	for _, c := range []byte(id + container) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	h ^= h >> 29
	some := func(least, most time.Duration) time.Duration { return least + time.Duration(h%uint64(most-least)) }
	p := program{slow: some(10*time.Millisecond, 3*time.Second)}
	switch family {
	case "job", "wide":
		p.ends, p.code = some(time.Second, 8*time.Minute), int(h%3)
	case "deaf":
		p.deaf = true
		if h%2 == 0 {
			p.ends = some(time.Minute, 30*time.Minute)
		}
	case "port":
		p.ends = some(10*time.Second, 20*time.Minute)
	case "pair":
		if container == "side" {
			p.ends = some(time.Second, 3*time.Minute)
		} else if h%2 == 0 {
			p.ends = some(time.Minute, 10*time.Minute)
		}
	case "again":
		p.ends, p.code = some(61*time.Second, 5*time.Minute), 1
	case "wrong":
		p.fails = h%2 == 0
		p.ends, p.code = time.Millisecond, 1
	}
	return p
}

// direct is the use cases without faults, for setting things up and looking.
func (w *World) direct() *control.Control {
	n := 0
	return &control.Control{
		Store: w.store, Queue: sender{}, Metrics: nothing{}, Log: w.logger("setup"), Now: time.Now, Setting: w.control,
		NewID: func() string { n++; return w.newID("setup", n) }, Pause: func(context.Context, int) {},
	}
}

// define registers the definitions and makes the clusters.
func (w *World) define() {
	c := w.direct()
	for _, name := range []string{clusterDefault, clusterEdge} {
		_, err := c.CreateCluster(w.ctx, control.ClusterRequest{Name: name})
		must(err)
	}
	for _, f := range families {
		for range 2 { // two revisions
			spec := taskdef.Spec{Family: f.name}
			for i, name := range f.containers {
				k := taskdef.ContainerDefinition{Name: name, Image: fmt.Sprint(f.name, "-", name), Memory: new(f.memory / len(f.containers)), Essential: new(i == 0)}
				if i > 0 {
					k.DependsOn = []taskdef.Dependency{{ContainerName: f.containers[0], Condition: "START"}}
				}
				if f.port != 0 {
					k.PortMappings = []taskdef.PortMapping{{ContainerPort: new(80), HostPort: new(f.port)}}
				}
				if f.policy {
					k.RestartPolicy = &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
				}
				spec.ContainerDefinitions = append(spec.ContainerDefinitions, k)
			}
			_, err := c.RegisterTaskDefinition(w.ctx, taskdef.Input{Spec: spec}, "")
			must(err)
		}
	}
	w.committed(nil)
}

// ask is a client that asks until it is answered.
func (w *World) ask(what string, tries int, ask func(ctx context.Context, c *control.Control) error) {
	var err error
	w.invoke("api", 25*time.Second, func(ctx context.Context, c *control.Control) { err = ask(ctx, c) }, func(died bool) {
		w.say("%s: %v (died %v)", what, err, died)
		if tries > 1 && (died || fault.Is(err, fault.Unavailable) || fault.Is(err, fault.Conflict)) {
			w.count("client asked again")
			w.push(w.between(100*time.Millisecond, 5*time.Second), 0, what, func() { w.ask(what, tries-1, ask) })
		}
	})
}

func (w *World) runTask(cluster, family string, count int, tags map[string]string) {
	w.ids++
	token := fmt.Sprintf("token-%d", w.ids)
	w.ask(fmt.Sprintf("run %d of %s in %s", count, family, cluster), 20, func(ctx context.Context, c *control.Control) error {
		_, err := c.RunTask(ctx, control.RunTaskRequest{TaskRequest: control.TaskRequest{Cluster: cluster, Definition: family, Tags: tags}, Count: count, Token: token})
		return err
	})
}

func (w *World) stopTask(cluster, id string) {
	w.ask("stop "+short(id), 3, func(ctx context.Context, c *control.Control) error {
		_, err := c.StopTask(ctx, cluster, id, "enough")
		return err
	})
}

func (w *World) createService(cluster, name, family, strategy string, desired *int, tags map[string]string) {
	w.ask("create service "+name, 20, func(ctx context.Context, c *control.Control) error {
		_, err := c.CreateService(ctx, control.ServiceRequest{Cluster: cluster, Name: name, Definition: family, Strategy: strategy, Desired: desired, Tags: tags, Token: "service-" + name})
		return err
	})
}

func (w *World) updateService(cluster, name, definition string, desired *int) {
	w.ask(fmt.Sprintf("update service %s to %s", name, definition), 20, func(ctx context.Context, c *control.Control) error {
		_, err := c.UpdateService(ctx, control.ServiceUpdate{Cluster: cluster, Name: name, Definition: definition, Desired: desired})
		return err
	})
}

func (w *World) setState(h *host, status control.InstanceStatus) {
	w.ask(fmt.Sprintf("set %s %s", h.name, status), 3, func(ctx context.Context, c *control.Control) error {
		_, _, err := c.UpdateContainerInstancesState(ctx, h.cluster, []string{h.id}, status)
		return err
	})
}

// load has clients ask for things all along.
func (w *World) load() {
	for n := 0; n < w.Tasks; {
		count := 1
		if w.chance(0.3) {
			count = 1 + w.random.IntN(5)
		}
		n += count
		f := families[w.random.IntN(len(families)-1)]
		cluster := clusterDefault
		if w.chance(0.2) {
			cluster = clusterEdge
		}
		var tags map[string]string
		if w.chance(0.1) {
			tags = map[string]string{"longshore:priority": fmt.Sprint(w.random.IntN(101))}
		}
		if w.chance(0.1) {
			tags = map[string]string{"longshore:maxWait": "10m"}
		}
		if w.chance(0.05) {
			tags = map[string]string{"longshore:onNoCapacity": "fail"}
		}
		if w.chance(0.15) {
			tags = map[string]string{"longshore:onDisconnect": "keep", "longshore:keepFor": "45m"}
		}
		w.push(w.between(time.Minute, w.Chaos), 0, "run", func() { w.runTask(cluster, f.name, count, tags) })
	}
	for range w.Tasks / 3 {
		w.push(w.between(2*time.Minute, w.Chaos), 0, "stop", func() {
			if t := w.anyTask(func(t *control.Task) bool { return t.LastStatus != task.Stopped }); t != nil {
				w.stopTask(t.Cluster, t.ID)
			}
		})
	}
	w.push(w.between(0, 3*time.Minute), 0, "service", func() { w.createService(clusterDefault, "web", "web", "", new(8+w.random.IntN(8)), nil) })
	if w.chance(0.5) {
		w.push(w.between(0, 5*time.Minute), 0, "service", func() { w.createService(clusterEdge, "watch", "web", "DAEMON", nil, nil) })
	}
	for range w.random.IntN(4) {
		w.push(w.between(5*time.Minute, w.Chaos), 0, "update", func() {
			w.updateService(clusterDefault, "web", fmt.Sprint("web:", 1+w.random.IntN(2)), new(4+w.random.IntN(12)))
		})
	}
}
