// Package placement decides which waiting task goes to which instance: a pure
// function of tasks, instances and the time. It writes nothing; whoever commits
// an assignment proves its conditions again on the ledger. Only control and its
// tests import it.
package placement

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// Task is one waiting task.
type Task struct {
	ID       string
	Group    string
	Needs    taskdef.Resources
	Priority int // 0–100
	Since    time.Time
	// Pinned is the only instance it may go to; such slots ignore earmarks.
	Pinned string
	// Distinct: no other distinct task of its group on the instance.
	Distinct    bool
	Expressions []string // memberOf
	Strategy    []Strategy
}

// Strategy is one placement strategy: binpack, spread or random, with a field.
type Strategy struct{ Type, Field string }

// Strategy types.
const (
	Binpack = "binpack"
	Spread  = "spread"
	Random  = "random"
)

// Instance is one instance of the cluster, with what it has left.
type Instance struct {
	ID         string
	Attributes map[string]string
	// Unfit is why it takes no work at all, in ECS's words, or "".
	Unfit string
	// Registered is its whole size, Free what is left.
	Registered, Free Size
	// TakenTCP and TakenUDP are host ports held or reserved, ReservedTCP and
	// ReservedUDP the latter alone.
	TakenTCP, TakenUDP       map[int]bool
	ReservedTCP, ReservedUDP map[int]bool
	// Groups are the groups of the distinct tasks it holds.
	Groups map[string]bool
	// Refused are ports and shapes it is not offered for now.
	RefusedTCP, RefusedUDP map[int]bool
	RefusedShapes          map[string]bool
	// Open is how many tasks it has.
	Open int
}

// Size is amounts of the countable resources.
type Size struct{ CPU, MemoryMiB, GPUs int }

// Earmark keeps the room of one instance for one starving task. It rests, and keeps
// nothing, while it names no instance.
type Earmark struct {
	Task, Instance string
	Until          time.Time
}

func (e Earmark) rests() bool { return e.Task != "" && e.Instance == "" }

// Input is all that a plan depends on.
type Input struct {
	Now       time.Time
	Tasks     []Task
	Instances []Instance
	// GroupTasks counts a group's open tasks by instance, for spread; groups may lack.
	GroupTasks map[string]map[string]int
	Earmark    Earmark
	// Bystander plans for tasks beside the queue: the earmark's own task is not
	// among them, and its room is kept all the same.
	Bystander     bool
	StarvationAge time.Duration
	EarmarkFor    time.Duration
	// Enough, if set, says before each task whether the plan is to end there.
	Enough func() bool
	// Random gives 0 ≤ n < limit, for the strategy random.
	Random func(limit int) int
}

// Assignment gives a task to an instance.
type Assignment struct{ Task, Instance string }

// Demand is how many tasks of one shape wait, and for what.
type Demand struct {
	Shape  string
	Needs  taskdef.Resources
	Count  int
	Oldest time.Time
	Reason string
}

// Output is a plan.
type Output struct {
	Assign  []Assignment
	Reasons map[string]string // of the tasks that go on waiting
	Demand  []Demand
	Earmark Earmark
	Cut     bool    // Enough ended it: some tasks have neither place nor reason
	Faults  []error // tasks that could not be judged, each waiting with reason INTERNAL
}

// Reasons of our own beside ECS's.
const (
	ReasonNoInstance = "EMPTY CAPACITY" // ECS's word for a cluster without instances
	ReasonAgent      = "AGENT"
	ReasonAttribute  = "ATTRIBUTE"
	ReasonDistinct   = "distinctInstance"
	ReasonCPU        = "RESOURCE:CPU"
	ReasonMemory     = "RESOURCE:MEMORY"
	ReasonGPU        = "RESOURCE:GPU"
	ReasonPorts      = "RESOURCE:PORTS"
	ReasonDisk       = "RESOURCE:DISK" // its host's disk is full
	ReasonEarmark    = "RESERVED"      // its room is kept for a task that has starved
	ReasonRefused    = "REFUSED"       // the instance that has room refused it lately
	ReasonInternal   = "INTERNAL"
)

// Plan gives out what is free, in the order of priority (rising by one a minute
// waited), then age, then id. A shape that fits nowhere is looked at once.
func Plan(in Input) Output {
	p := &plan{
		in: in, out: Output{Reasons: map[string]string{}, Earmark: in.Earmark}, shapes: map[string]*shape{}, plain: map[plainShape]*shape{},
		hosts: newHosts(in.Instances), tally: map[count]map[string]int{}, fields: map[string][]count{}, ladders: map[ladderKey]*ladder{},
		alike: map[plainShape]int{},
	}
	for i := range in.Tasks {
		p.alike[plainOf(&in.Tasks[i])]++
	}
	order := Order(in.Tasks, in.Now)
	if !in.Bystander {
		p.renewEarmark(order)
	}
	for _, t := range order {
		if in.Enough != nil && in.Enough() {
			p.out.Cut = true
			break
		}
		p.placeSafely(t)
	}
	p.demand(order)
	return p.out
}

// Order is tasks in the order in which they are served.
func Order(tasks []Task, now time.Time) []*Task {
	type ranked struct {
		t        *Task
		priority int
	}
	all := make([]ranked, len(tasks))
	for i := range tasks {
		all[i] = ranked{&tasks[i], Priority(tasks[i], now)}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		if n := cmp.Compare(b.priority, a.priority); n != 0 {
			return n
		}
		if n := a.t.Since.Compare(b.t.Since); n != 0 {
			return n
		}
		return cmp.Compare(a.t.ID, b.t.ID)
	})
	out := make([]*Task, len(tasks))
	for i := range all {
		out[i] = all[i].t
	}
	return out
}

// Priority is a task's priority with what waiting has added.
func Priority(t Task, now time.Time) int {
	return t.Priority + int(max(now.Sub(t.Since), 0)/time.Minute)
}

type plan struct {
	in     Input
	out    Output
	hosts  []*host
	shapes map[string]*shape
	plain  map[plainShape]*shape    // the same, of tasks of which no text is needed to tell
	tally  map[count]map[string]int // tasks by value of a field, as the plan goes
	fields map[string][]count       // tallies by group, "" for those of all
	// ladders are the ways by which the best host is found; changes are the hosts
	// that took a task, in order.
	ladders map[ladderKey]*ladder
	changes []*host
	alike   map[plainShape]int // how many tasks are about alike
}

func (p *plan) placeSafely(t *Task) {
	defer func() {
		if r := recover(); r != nil {
			p.out.Reasons[t.ID] = ReasonInternal
			p.out.Faults = append(p.out.Faults, fmt.Errorf("place task %s: %v", t.ID, r))
		}
	}()
	p.place(t)
}

func (p *plan) place(t *Task) {
	s := p.shapeOf(t)
	if s.err != nil {
		p.out.Reasons[t.ID] = ReasonAttribute
		p.out.Faults = append(p.out.Faults, fmt.Errorf("place task %s: %w", t.ID, s.err))
		return
	}
	// Room only shrinks within a plan, so a shape that found none finds none.
	if s.full != "" && t.ID != p.out.Earmark.Task {
		p.out.Reasons[t.ID] = s.full
		return
	}
	best, reason := p.choose(t, s)
	if best == nil {
		p.out.Reasons[t.ID] = reason
		if t.ID != p.out.Earmark.Task {
			s.full = reason
		}
		p.starve(t, s)
		return
	}
	best.take(t)
	p.tallied(t, best)
	p.changes = append(p.changes, best)
	p.out.Assign = append(p.out.Assign, Assignment{t.ID, best.in.ID})
	if p.out.Earmark.Task == t.ID {
		p.out.Earmark = Earmark{}
	}
}

// choose is the best host with room, or the reason why there is none.
func (p *plan) choose(t *Task, s *shape) (*host, string) {
	if len(p.hosts) == 0 {
		return nil, ReasonNoInstance
	}
	if l := p.ladderFor(t, s); l != nil {
		if best := p.bestOn(l, t); best != nil {
			return best, ""
		}
	}
	var fit []*host
	reason := ReasonAgent
	for _, h := range s.eligible {
		lack := h.lacks(t, s.key)
		if lack == "" && p.kept(h, t) {
			lack = ReasonEarmark
		}
		if lack == "" {
			fit = append(fit, h)
			continue
		}
		reason = nearer(reason, lack)
	}
	if len(fit) == 0 {
		if len(s.eligible) == 0 {
			reason = s.unfit
		}
		return nil, reason
	}
	return p.best(t, fit), ""
}

// kept says whether h's room is earmarked for another task.
func (p *plan) kept(h *host, t *Task) bool {
	e := p.out.Earmark
	return e.Instance == h.in.ID && e.Task != t.ID && t.Pinned == ""
}

// nearness ranks reasons: the one that says most about what would help wins.
var nearness = map[string]int{
	ReasonAgent: 0, ReasonAttribute: 1, ReasonDisk: 2, ReasonGPU: 3, ReasonDistinct: 4, ReasonMemory: 5, ReasonCPU: 6, ReasonPorts: 7, ReasonEarmark: 8, ReasonRefused: 9,
}

func nearer(a, b string) string {
	if nearness[b] > nearness[a] {
		return b
	}
	return a
}
