package taskdef

import (
	"fmt"
	"strings"
)

// watch judges a container's health check and restart policy.
func (j *judge) watch(path string, c ContainerDefinition) {
	if h := c.HealthCheck; h != nil {
		at := path + ".healthCheck"
		switch {
		case len(h.Command) == 0:
			j.invalid(at+".command", "is required")
		case h.Command[0] == "NONE":
		case h.Command[0] != "CMD" && h.Command[0] != "CMD-SHELL":
			j.invalid(at+".command[0]", "is %s; allowed: CMD, CMD-SHELL, NONE", show(h.Command[0]))
		case len(h.Command) == 1:
			j.invalid(at+".command", "has nothing after %s", h.Command[0])
		}
		j.between(at+".interval", h.Interval, 5, 300)
		j.between(at+".timeout", h.Timeout, 2, 60)
		j.between(at+".retries", h.Retries, 1, 10)
		j.between(at+".startPeriod", h.StartPeriod, 0, 300)
	}
	if r := c.RestartPolicy; r != nil {
		at := path + ".restartPolicy"
		if r.Enabled == nil {
			j.invalid(at+".enabled", "is required")
		}
		if len(r.IgnoredExitCodes) > 50 {
			j.invalid(at+".ignoredExitCodes", "are %d; allowed are 50", len(r.IgnoredExitCodes))
		}
		j.between(at+".restartAttemptPeriod", r.RestartAttemptPeriod, 60, 1800)
	}
}

// edge says that a container cannot start before another.
type edge struct{ path, to string }

// group judges what the containers of a task want of each other.
func (j *judge) group() {
	edges := map[string][]edge{}
	for i, c := range j.def.ContainerDefinitions {
		path := fmt.Sprintf("containerDefinitions[%d]", i)
		var out []edge
		out = append(out, j.dependencies(path, c)...)
		out = append(out, j.links(path, c)...)
		for k, v := range c.VolumesFrom {
			at := fmt.Sprintf("%s.volumesFrom[%d].sourceContainer", path, k)
			if j.required(at, v.SourceContainer) && j.other(at, c.Name, v.SourceContainer) {
				out = append(out, edge{at, v.SourceContainer})
			}
		}
		edges[c.Name] = append(edges[c.Name], out...)
	}
	j.cycles(edges)
}

// other says whether name is another container of the task, and tells if it is not.
func (j *judge) other(path, self, name string) bool {
	if name == self {
		j.invalid(path, "names its own container")
		return false
	}
	if _, ok := j.def.Container(name); !ok {
		j.invalid(path, "names no container of the task: %s", show(name))
		return false
	}
	return true
}

func (j *judge) dependencies(path string, c ContainerDefinition) []edge {
	var out []edge
	seen := map[string]bool{}
	for i, d := range c.DependsOn {
		at := fmt.Sprintf("%s.dependsOn[%d]", path, i)
		j.required(at+".condition", d.Condition)
		if !j.required(at+".containerName", d.ContainerName) || !j.other(at+".containerName", c.Name, d.ContainerName) {
			continue
		}
		if seen[d.ContainerName] {
			j.invalid(at+".containerName", "repeats %s", show(d.ContainerName))
		}
		seen[d.ContainerName] = true
		out = append(out, edge{at + ".containerName", d.ContainerName})
		awaited, _ := j.def.Container(d.ContainerName)
		switch d.Condition {
		case ConditionComplete, ConditionSuccess:
			if awaited.IsEssential() {
				j.invalid(at+".condition", "is %s, but %s is essential: its end would end the task", d.Condition, show(awaited.Name))
			}
		case ConditionHealthy:
			if !awaited.HealthCheck.Checks() {
				j.invalid(at+".condition", "is HEALTHY, but %s has no healthCheck", show(awaited.Name))
			}
		}
	}
	return out
}

func (j *judge) links(path string, c ContainerDefinition) []edge {
	var out []edge
	if len(c.Links) > 0 && j.def.Network() != NetworkBridge {
		j.invalid(path+".links", "need network mode bridge; it is %s", j.def.Network())
	}
	if len(c.Links) > 0 && value(c.DisableNetworking) {
		j.invalid(path+".links", "must be empty with disableNetworking")
	}
	for i, link := range c.Links {
		at := fmt.Sprintf("%s.links[%d]", path, i)
		name, alias, has := strings.Cut(link, ":")
		if !nameForm.MatchString(name) || has && !nameForm.MatchString(alias) {
			j.invalid(at, "is %s; allowed is NAME or NAME:ALIAS", show(link))
			continue
		}
		if j.other(at, c.Name, name) {
			out = append(out, edge{at, name})
		}
	}
	return out
}

// cycles tells each edge that closes a circle, walking containers in their order.
func (j *judge) cycles(edges map[string][]edge) {
	const walking, done = 1, 2
	state := map[string]int{}
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		state[name] = walking
		trail = append(trail, name)
		for _, e := range edges[name] {
			switch state[e.to] {
			case walking:
				j.invalid(e.path, "closes a circle: %s", strings.Join(circle(trail, e.to), " → "))
			case done:
			default:
				visit(e.to, trail)
			}
		}
		state[name] = done
	}
	for _, c := range j.def.ContainerDefinitions {
		if state[c.Name] == 0 {
			visit(c.Name, nil)
		}
	}
}

func circle(trail []string, to string) []string {
	for i, name := range trail {
		if name == to {
			return append(append([]string{}, trail[i:]...), to)
		}
	}
	return nil
}
