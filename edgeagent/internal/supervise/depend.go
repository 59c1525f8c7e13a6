package supervise

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// Dependency holds a container back until another has come so far.
type Dependency struct {
	Name string    `json:"name"`
	On   Condition `json:"on"`
}

// Condition is what is awaited of the other container: one of ECS's, or what a
// link or shared volumes need.
type Condition string

const (
	OnStart    Condition = taskdef.ConditionStart
	OnComplete Condition = taskdef.ConditionComplete
	OnSuccess  Condition = taskdef.ConditionSuccess
	OnHealthy  Condition = taskdef.ConditionHealthy
	OnLink     Condition = "LINK"   // it runs
	OnMade     Condition = "VOLUME" // it is there, run or not
)

// dependencies are all reasons for which one container waits for another.
func dependencies(d taskdef.ContainerDefinition) []Dependency {
	var all []Dependency
	for _, dep := range d.DependsOn {
		all = append(all, Dependency{dep.ContainerName, Condition(dep.Condition)})
	}
	for _, link := range d.Links {
		name, _, _ := strings.Cut(link, ":")
		all = append(all, Dependency{name, OnLink})
	}
	for _, v := range d.VolumesFrom {
		all = append(all, Dependency{v.SourceContainer, OnMade})
	}
	return all
}

// outlook is what can be said of a dependency: it is met, it may be yet, or it
// never will be.
type outlook int

const (
	open outlook = iota
	met
	never
)

// look says how a dependency stands; of one that will never be met also why.
func (t *Task) look(d Dependency, now time.Time) (outlook, string) {
	c := t.container(d.Name)
	if c == nil { // registration refuses it; the dead-lock breaker ends it
		return open, ""
	}
	ended := c.Phase == Stopped
	switch d.On {
	case OnStart:
		return settled(c.Ran, ended, "was never started")
	case OnMade:
		return settled(!c.Phase.before(Created) && (!ended || c.Ran || c.Shown.RuntimeID != ""), ended, "was never created")
	case OnLink, OnNamespace:
		return settled(c.Phase == Running, ended, "has stopped")
	case OnHealthy:
		if ended {
			return never, "has stopped"
		}
		if c.Phase == Running && c.Shown.Health == task.Healthy {
			return met, ""
		}
	case OnComplete:
		if ended {
			return settled(c.Ran, true, "was never started")
		}
	case OnSuccess:
		if ended {
			return settled(c.Ran && c.Shown.ExitCode != nil && *c.Shown.ExitCode == 0, true, "did not exit successfully")
		}
	}
	if at := c.patience(); !at.IsZero() && !now.Before(at) {
		return never, fmt.Sprintf("did not come so far within its startTimeout of %s", c.StartTimeout)
	}
	return open, ""
}

func settled(ok, ended bool, why string) (outlook, string) {
	switch {
	case ok:
		return met, ""
	case ended:
		return never, why
	}
	return open, ""
}

// patience is when those who wait for more than c's start give up; zero for
// never. As in ECS it is counted from that start.
func (c *Container) patience() time.Time {
	if c.StartTimeout <= 0 || c.Up.IsZero() {
		return time.Time{}
	}
	return c.Up.Add(c.StartTimeout)
}

// resolved says whether all is met that c's next step waits for; if not, and a
// time-out may decide it, wake is lowered to that. To be made, a container needs
// those it is linked to, or joins, only to be there.
func (t *Task) resolved(c *Container, now time.Time, wake *time.Time) bool {
	all := true
	for _, d := range c.After {
		if (d.On == OnLink || d.On == OnNamespace) && c.Phase.before(Created) {
			d.On = OnMade
		}
		if o, _ := t.look(d, now); o != met {
			all = false
			if o := t.container(d.Name); o != nil && d.On != OnStart && d.On != OnLink && d.On != OnMade {
				later(o.patience(), now, wake)
			}
		}
	}
	return all
}

// giveUp ends containers whose dependencies can never be met. What it ends may
// be what another waited for.
func (t *Task) giveUp(now time.Time) {
	for again := true; again; {
		again = false
		for i := range t.Containers {
			c := &t.Containers[i]
			if !c.Phase.before(Starting) || c.busy != "" && c.busy != Pull {
				continue
			}
			for _, d := range c.After {
				o, why := t.look(d, now)
				if o != never {
					continue
				}
				reason := fmt.Sprintf("CannotStartContainerError: dependency %s (%s) of container %s %s", d.Name, d.On, c.Name, why)
				c.end(reason, now)
				if c.Essential {
					t.want(Order{Cause: task.FailedCause, Reason: reason}, now)
				}
				again = true
				break
			}
		}
	}
}

// held says whether a container that depends on c is still up: order at stop is
// the reverse of that at start.
func (t *Task) held(c *Container) bool {
	return slices.ContainsFunc(t.Containers, func(d Container) bool {
		return d.Name != c.Name && d.Phase != Stopped && d.needs(c.Name)
	})
}

// needs says whether c was to start after name. Volumes are there also when the
// container that brought them has stopped.
func (c *Container) needs(name string) bool {
	return slices.ContainsFunc(c.After, func(d Dependency) bool { return d.Name == name && d.On != OnMade })
}

// awaits says whether a container that was not started yet waits for something
// that one which runs may still do.
func (t *Task) awaits(now time.Time) bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool {
		return c.Phase.before(Starting) && slices.ContainsFunc(c.After, func(d Dependency) bool {
			if o := t.container(d.Name); o == nil || o.Phase != Running {
				return false
			}
			state, _ := t.look(d, now)
			return state == open
		})
	})
}
