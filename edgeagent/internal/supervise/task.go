// Package supervise runs the containers of one task: what to do next is decided
// by pure functions (Plan, Observe, Did: the task, what was seen, now → the
// task, actions), and one goroutine per task (Run) acts, and is the only writer
// of the task's statuses. It knows neither Docker nor the journal, only a Shell
// for one task; it takes no decision about resources and forgets nothing. Only
// edgeagent/agent imports it.
package supervise

import (
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// Phase is how far a container has come. It only rises (T3), but for a
// container that was made and disappeared before it ever ran (that is made
// again) and for one that its restart policy runs once more: there runs and
// phase together rise.
type Phase string

const (
	Waiting    Phase = "waiting"    // nothing done
	Pulled     Phase = "pulled"     // its image is there
	Created    Phase = "created"    // made, not started
	Starting   Phase = "starting"   // told to start: from here on it may have run
	Restarting Phase = "restarting" // it ended, and is to run once more
	Running    Phase = "running"
	Stopped    Phase = "stopped"
)

var phaseRanks = map[Phase]int{Waiting: 10, Pulled: 20, Created: 30, Starting: 40, Restarting: 45, Running: 50, Stopped: 60}

func (p Phase) before(o Phase) bool { return phaseRanks[p] < phaseRanks[o] }

// Verb is what is done with a container; "" is nothing.
type Verb string

const (
	Check   Verb = "check"  // of the task: are its static ports free
	Pull    Verb = "pull"   // its image
	Create  Verb = "create" // the container
	Start   Verb = "start"
	Restart Verb = "restart" // one that has ended, by its restart policy
	Stop    Verb = "stop"
	Look    Verb = "look" // at what has become of it
)

// Container is one container of a task.
type Container struct {
	Name         string         `json:"name"`
	Essential    bool           `json:"essential,omitempty"`
	After        []Dependency   `json:"dependsOn,omitempty"`
	StartTimeout time.Duration  `json:"startTimeout,omitempty"` // from its start, for what others wait for
	StopTimeout  time.Duration  `json:"stopTimeout"`
	Policy       *Policy        `json:"restartPolicy,omitempty"`
	Ports        []Port         `json:"ports,omitempty"` // of the host, named in the definition
	Phase        Phase          `json:"phase"`
	Ran          bool           `json:"ran,omitempty"`         // it was seen running, or ended
	Restarts     int            `json:"restarts,omitempty"`    // that its policy asked for
	Began        time.Time      `json:"began,omitzero"`        // its latest run, by the engine's clock
	Up           time.Time      `json:"up,omitzero"`           // and by ours, when it was first seen to run
	Last         *Ending        `json:"last,omitempty"`        // how the run ended that a restart follows
	Resurrected  bool           `json:"resurrected,omitempty"` // it was stopped again once after its end (T4)
	Alive        bool           `json:"alive,omitempty"`       // and runs all the same
	Shown        task.Container `json:"shown"`                 // as reports show it

	// What follows is known only to the goroutine that runs the task.
	busy   Verb      // what is being done with it
	again  bool      // it is to be stopped again (T4)
	look   bool      // what is known of it is in doubt
	tries  int       // that an engine which answers has failed
	silent int       // that no engine answered
	made   int       // that it, or its image, had to be made again
	retry  time.Time // nothing is tried before
	felt   time.Time // when the health that is known was found, by the engine's clock
	knew   time.Time // felt, when what is being done was begun
	since  time.Time // when its latest run was first seen, by ours
}

// Policy is a container's restart policy, one that is enabled.
type Policy struct {
	Ignored []int         `json:"ignored,omitempty"` // codes after which it stays down
	Period  time.Duration `json:"period"`            // for which a run must have gone on
}

// Ending is how one run of a container ended.
type Ending struct {
	Code   *int      `json:"code,omitempty"`
	Reason string    `json:"reason,omitempty"`
	At     time.Time `json:"at,omitzero"`
}

// Port is a port of the host.
type Port struct {
	Number   int    `json:"number"`
	Protocol string `json:"protocol"` // tcp or udp
}

// Refusal is why a task could not run here although nothing of it was started.
type Refusal struct {
	Code   wire.RefusalCode `json:"code"`
	Reason string           `json:"reason"`
	Ports  []Port           `json:"ports,omitempty"`
}

// Task is all that is known of one attempt of a task. It is kept in the journal.
type Task struct {
	ID         string       `json:"id"`
	Attempt    int          `json:"attempt"`
	Status     task.Status  `json:"status"`
	Desired    task.Desired `json:"desired"`
	Cause      task.Cause   `json:"cause,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	Refusal    *Refusal     `json:"refusal,omitempty"`
	Adopted    bool         `json:"adopted,omitempty"` // found running: watched and stopped, never made
	Containers []Container  `json:"containers"`

	PullStartedAt time.Time `json:"pullStartedAt,omitzero"`
	PullStoppedAt time.Time `json:"pullStoppedAt,omitzero"`
	StartedAt     time.Time `json:"startedAt,omitzero"`
	StoppingAt    time.Time `json:"stoppingAt,omitzero"`
	StoppedAt     time.Time `json:"stoppedAt,omitzero"`

	checking bool // Check is under way
	checked  bool // static ports were found free
	tries    int  // that they were not
	retry    time.Time
}

// Order asks for a task's end.
type Order struct {
	Cause  task.Cause `json:"cause,omitempty"`
	Reason string     `json:"reason,omitempty"`
}

// New is a task that was just assigned.
func New(id string, attempt int, def *taskdef.TaskDefinition, stopTimeout time.Duration) Task {
	t := Task{ID: id, Attempt: attempt, Status: task.Pending, Desired: task.DesiredRunning}
	var first []Dependency
	if Pauses(def) {
		first = []Dependency{{PauseName, OnNamespace}}
		t.Containers = append(t.Containers, pause())
	}
	for _, d := range def.ContainerDefinitions {
		c := Container{
			Name: d.Name, Essential: d.IsEssential(), StopTimeout: stopTimeout, Phase: Waiting,
			After: append(slices.Clone(first), dependencies(d)...), Policy: policy(d.RestartPolicy),
			Shown: task.Container{Name: d.Name, Status: task.ContainerPending, Image: d.Image},
		}
		if d.StopTimeout != nil && *d.StopTimeout > 0 { // 0 says nothing, as in ECS
			c.StopTimeout = seconds(*d.StopTimeout)
		}
		if d.StartTimeout != nil {
			c.StartTimeout = seconds(*d.StartTimeout)
		}
		if d.HealthCheck.Checks() {
			c.Shown.Health = task.HealthUnknown
		}
		t.Containers = append(t.Containers, c)
	}
	for _, p := range taskdef.Ports(*def) {
		if c := t.container(p.Container); c != nil && p.HostPort != 0 {
			c.Ports = append(c.Ports, Port{p.HostPort, p.Protocol})
		}
	}
	return t
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// restartPeriod is ECS's where the definition names none.
const restartPeriod = 300 * time.Second

func policy(r *taskdef.RestartPolicy) *Policy {
	if r == nil || r.Enabled == nil || !*r.Enabled {
		return nil
	}
	p := &Policy{Ignored: r.IgnoredExitCodes, Period: restartPeriod}
	if r.RestartAttemptPeriod != nil {
		p.Period = seconds(*r.RestartAttemptPeriod)
	}
	return p
}

// Adopt is a task rebuilt from its containers and their labels alone. A container
// that has ended by then is taken for one that was meant to (essential tells of
// the others), so no policy restarts it, and one that was never started is never
// started.
func Adopt(id string, attempt int, seen []Seen, essential func(Seen) bool, stopTimeout time.Duration, now time.Time) Task {
	t := Task{ID: id, Attempt: attempt, Status: task.Pending, Desired: task.DesiredRunning, Adopted: true}
	running := slices.ContainsFunc(seen, func(s Seen) bool { return s.Running })
	for _, s := range seen {
		c := Container{
			Name: s.Container, Essential: essential(s), StopTimeout: stopTimeout, Phase: Created,
			Shown: task.Container{Name: s.Container, Status: task.ContainerPending, RuntimeID: s.RuntimeID, Image: s.Image, ImageDigest: s.Digest},
		}
		c.restore(s.Labels[KeptLabel])
		if !s.Running {
			c.Policy = nil // it may have been told to end
			c.Essential = c.Essential && !running
		}
		if s.Created {
			c.end("was never started", now)
		}
		t.Containers = append(t.Containers, c)
	}
	for _, s := range seen {
		if !s.Created {
			t = Observe(t, s, now)
		}
	}
	return t
}

// Ended says whether the attempt is over: STOPPED, or refused.
func (t *Task) Ended() bool { return t.Status == task.Stopped || t.Refusal != nil }

// Started says whether a container of it has run, or may have: one of its
// definition, as nothing is lost with a pause container.
func (t *Task) Started() bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return !c.Pause() && (c.Ran || c.Phase == Starting) })
}

// Health is the task's: that of its essential containers together.
func (t *Task) Health() task.Health {
	var all []task.Health
	for _, c := range t.Containers {
		if c.Essential && !c.Pause() {
			all = append(all, c.Shown.Health)
		}
	}
	return task.RollUp(all...)
}

// Alive says whether a container runs although it was known to have ended.
func (t *Task) Alive() bool {
	return slices.ContainsFunc(t.Containers, func(c Container) bool { return c.Alive })
}

// Clone shares nothing that changes with t.
func (t Task) Clone() Task {
	t.Containers = slices.Clone(t.Containers)
	return t
}

func (t *Task) container(name string) *Container {
	for i := range t.Containers {
		if t.Containers[i].Name == name {
			return &t.Containers[i]
		}
	}
	return nil
}

func (t *Task) busy() bool {
	return t.checking || slices.ContainsFunc(t.Containers, func(c Container) bool { return c.busy != "" })
}

// want makes the end of the task wanted, for the first reason given (T2).
func (t *Task) want(o Order, now time.Time) {
	if t.Desired == task.DesiredStopped {
		return
	}
	t.Desired, t.Cause, t.Reason, t.StoppingAt = task.DesiredStopped, o.Cause, o.Reason, now
}

// end makes a container stopped.
func (c *Container) end(reason string, now time.Time) {
	c.Phase, c.Shown.Status = Stopped, task.ContainerStopped
	c.retry, c.tries, c.silent, c.look = time.Time{}, 0, 0, false
	if c.Shown.Reason == "" {
		c.Shown.Reason = reason
	}
	if c.Shown.StoppedAt.IsZero() {
		c.Shown.StoppedAt = now
	}
}
