package whole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scenario is a story told in text: one command a line, what is expected among
// them. `#` begins a comment.
//
//	hosts 3 cluster=edge memory=256   three hosts more: h0, h1 …, named in order
//	set cleanup|lag VALUE             the agents' clean-up wait; writes that indexes lag
//	service web steady 3 tag=K:V      a service of so many tasks
//	run a job tag=K:V                 RunTask of a family; a is its name here
//	stop a                            StopTask
//	wait 10m
//	again a                           the task's assign is delivered once more
//	exit a 3                          its container ends with a code
//	cut|deaf h0 10m                   nothing gets out of it; no answer gets in
//	off|on h0                         its power
//	kill h0 [10m]                     SIGKILL of the agent, which is back then
//	kills 200 1h                      so many, spread over the time, at any call
//	lose h0 journal|disk
//	engine h0 silent|hangs|restarts 5m, or engine h0 never
//	clock h0 72h                      from now on off by so much
//	stall reports|heartbeats 1h       the queue delivers nothing
//	expect … [within 10m]             see expect.go
//	rest                              all comes to rest, and the books add up
type Scenario struct {
	Name  string
	Steps []Step
}

// Step is one line.
type Step struct {
	Line  int
	Word  string
	Args  []string
	Named map[string]string
	Tags  map[string]string
}

// shapes says how many arguments a command takes: at least and at most.
var shapes = map[string][2]int{
	"hosts": {1, 1}, "set": {2, 2}, "service": {3, 3}, "run": {2, 2}, "stop": {1, 1}, "wait": {1, 1}, "again": {1, 1}, "exit": {2, 2},
	"cut": {2, 2}, "deaf": {2, 2}, "off": {1, 1}, "on": {1, 1}, "kill": {1, 2}, "kills": {2, 2}, "lose": {2, 2}, "engine": {2, 3}, "clock": {2, 2},
	"stall": {2, 2}, "expect": {2, 8}, "rest": {0, 0},
}

// ParseScenario reads a scenario; a fault names its line.
func ParseScenario(name, text string) (*Scenario, error) {
	s, err := parse(&Scenario{Name: name}, text)
	if err != nil {
		return nil, fmt.Errorf("%s%w", name, err)
	}
	return s, nil
}

func parse(s *Scenario, text string) (*Scenario, error) {
	n := 0
	for line := range strings.Lines(text) {
		n++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		step := Step{Line: n, Word: words[0], Named: map[string]string{}, Tags: map[string]string{}}
		shape, ok := shapes[step.Word]
		if !ok {
			return nil, fmt.Errorf(", line %d: no such command: %q", n, step.Word)
		}
		for _, w := range words[1:] {
			key, value, named := strings.Cut(w, "=")
			switch tag, rest, _ := strings.Cut(value, "="); {
			case !named:
				step.Args = append(step.Args, w)
			case key == "tag":
				step.Tags[tag] = rest
			case key == "cluster" || key == "memory":
				step.Named[key] = value
			default:
				return nil, fmt.Errorf(", line %d: no such member: %q; cluster, memory and tag are allowed", n, key)
			}
		}
		if len(step.Args) < shape[0] || len(step.Args) > shape[1] {
			return nil, fmt.Errorf(", line %d: %s takes %d to %d arguments, not %d", n, step.Word, shape[0], shape[1], len(step.Args))
		}
		s.Steps = append(s.Steps, step)
	}
	if len(s.Steps) == 0 {
		return nil, errors.New(": nothing happens in it")
	}
	return s, nil
}

// telling is a scenario under way.
type telling struct {
	*World
	name  string
	line  int
	tasks map[string]string // ids, by their names here
}

// Tell plays a scenario with a seed, which decides what the text leaves open.
func Tell(ctx context.Context, s *Scenario, o Option) *Result {
	w := newWorld(ctx, o)
	w.define()
	w.push(0, 0, "minute", w.reaper)
	x := &telling{World: w, name: s.Name, tasks: map[string]string{}}
	for _, step := range s.Steps {
		x.line = step.Line
		w.say("LINE %d: %s %s", step.Line, step.Word, strings.Join(step.Args, " "))
		if err := x.do(step); err != nil {
			w.fail("%s, line %d: %v", s.Name, step.Line, err)
		}
		if w.broken != "" {
			break
		}
	}
	r := &Result{Figures: w.figures(), Wrong: w.broken}
	w.end()
	if w.log != nil {
		r.Trace = w.log.lines
	}
	return r
}

func (x *telling) do(s Step) error {
	w := x.World
	switch s.Word {
	case "hosts":
		return x.addHosts(s)
	case "set":
		return x.set(s.Args[0], s.Args[1])
	case "wait":
		return with(s.Args[0], func(d time.Duration) { w.until(time.Now().Add(d)) })
	case "service":
		n, err := strconv.Atoi(s.Args[2])
		if err != nil {
			return err
		}
		w.createService(cluster(s), s.Args[0], s.Args[1], "", &n, s.Tags)
	case "run":
		x.run(s)
	case "stop":
		return x.task(s.Args[0], func(id string) { w.stopTask(w.check.tasks[id].Cluster, id) })
	case "again":
		return x.task(s.Args[0], func(id string) { x.again(id) })
	case "exit":
		code, err := strconv.Atoi(s.Args[1])
		if err != nil {
			return err
		}
		return x.task(s.Args[0], func(id string) { x.exit(id, code) })
	case "stall":
		q := map[string]*queue{"reports": w.reports, "heartbeats": w.heartbeats}[s.Args[0]]
		if q == nil {
			return fmt.Errorf("no such queue: %q; reports and heartbeats are allowed", s.Args[0])
		}
		return with(s.Args[1], func(d time.Duration) { q.stalled = time.Now().Add(d) })
	case "kills":
		n, err := strconv.Atoi(s.Args[0])
		if err != nil {
			return err
		}
		return with(s.Args[1], func(d time.Duration) { x.kills(n, d) })
	case "expect":
		return x.expect(s.Args)
	case "rest":
		w.settle()
		if w.broken == "" {
			w.audit()
		}
	default:
		return x.toHost(s)
	}
	return nil
}

func with(text string, do func(time.Duration)) error {
	d, err := time.ParseDuration(text)
	if err == nil {
		do(d)
	}
	return err
}

func cluster(s Step) string {
	if c := s.Named["cluster"]; c != "" {
		return c
	}
	return clusterDefault
}

func (x *telling) addHosts(s Step) error {
	n, err := strconv.Atoi(s.Args[0])
	if err != nil {
		return err
	}
	for range n {
		h := x.newHost(len(x.hosts), cluster(s))
		h.memory = 256
		if m := s.Named["memory"]; m != "" {
			if h.memory, err = strconv.Atoi(m); err != nil {
				return err
			}
		}
		x.add(h)
	}
	return nil
}

func (x *telling) set(name, value string) (err error) {
	switch name {
	case "cleanup":
		x.agents.CleanupWait, err = time.ParseDuration(value)
	case "lag":
		x.store.Lag, err = strconv.Atoi(value)
	default:
		err = fmt.Errorf("no such setting: %q; cleanup and lag are allowed", name)
	}
	return err
}

// run asks for a task and waits for the answer: its id is its name's from then on.
func (x *telling) run(s Step) {
	known := len(x.check.order)
	x.runTask(cluster(s), s.Args[1], 1, s.Tags)
	for n := 0; len(x.check.order) == known && n < 100 && x.broken == ""; n++ {
		x.until(time.Now().Add(10 * time.Millisecond))
	}
	if len(x.check.order) > known {
		x.tasks[s.Args[0]] = x.check.order[known]
	}
}

func (x *telling) task(name string, do func(id string)) error {
	id, ok := x.tasks[name]
	if !ok {
		return fmt.Errorf("no such task: %q", name)
	}
	do(id)
	return nil
}

// again delivers a task's assign once more, as a queue may for as long as it keeps
// it.
func (x *telling) again(id string) {
	t := x.check.tasks[id]
	h := x.byID[t.Instance]
	if body := h.inbox.assigns[id]; body != nil {
		h.inbox.put(body, "assign "+short(id)+" again")
	}
}

func (x *telling) exit(id string, code int) {
	for _, h := range x.hosts {
		for _, b := range h.engine.running() {
			if b.seen.Task == id {
				h.engine.exit(b, code)
			}
		}
	}
}

func (x *telling) kills(n int, over time.Duration) {
	for range n {
		x.push(x.between(0, over), 0, "kill", func() {
			if h := x.hosts[x.random.IntN(len(x.hosts))]; h.life != nil {
				h.life.doom = doom{calls: 1 + x.random.IntN(10), after: x.chance(0.5)}
			}
		})
	}
	x.until(time.Now().Add(over))
}

// toHost does something to one host, or to all of them.
func (x *telling) toHost(s Step) error {
	var to []*host
	for _, h := range x.hosts {
		if s.Args[0] == "all" || s.Args[0] == fmt.Sprint("h", slices.Index(x.hosts, h)) {
			to = append(to, h)
		}
	}
	if len(to) == 0 {
		return fmt.Errorf("no such host: %q", s.Args[0])
	}
	for _, h := range to {
		if err := h.suffer(s); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) suffer(s Step) error {
	what := ""
	var d time.Duration
	for _, a := range s.Args[1:] {
		if parsed, err := time.ParseDuration(a); err == nil {
			d = parsed
		} else {
			what = a
		}
	}
	until := time.Now().Add(d)
	switch s.Word + " " + what {
	case "cut ":
		h.cut = until
	case "deaf ":
		h.deaf = until
	case "off ":
		h.off()
	case "on ":
		h.back()
	case "kill ":
		h.kill(max(d, time.Second))
	case "clock ":
		h.skew = d
	case "lose journal", "lose disk":
		h.lose(what == "disk")
	case "engine silent", "engine hangs", "engine restarts":
		h.engine.fall(d, what == "hangs", what == "restarts")
	case "engine never":
		h.engine.fall(1000*time.Hour, false, false)
		h.broken = true
	default:
		return fmt.Errorf("%s: not understood: %q", s.Word, what)
	}
	return nil
}
