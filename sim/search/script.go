package search

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/control/controltest/machine"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// birth is when every script begins.
var birth = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newSearch is an empty installation with one cluster and one definition.
func newSearch() (*search, *state) {
	b := newBook()
	x := &search{book: b, program: newProgram(b), checked: map[uint64]string{}, memory: newMemory()}
	s := &state{clock: birth.Unix()}
	x.put(s, &control.Cluster{Name: cluster, Status: "ACTIVE", CreatedAt: birth},
		&control.Definition{Family: "app", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(controltest.MinimalDefinition("app")), RegisteredAt: birth})
	return x, s
}

// put stores records as they are.
func (x *search) put(s *state, records ...control.Record) {
	for _, r := range records {
		*r.Revision()++
		s.items = x.book.with(s.items, x.book.item(r))
	}
}

// play runs a script, line by line, from an empty installation. Each line is one
// thing that happens, alone and unharmed:
//
//	host NAME ROOM     a machine with room for so many tasks joins
//	submit [SERVICE]   a task is run, of a service if one is named
//	tag WHAT NAME VALUE  a task, or the service of that name, is tagged longshore:NAME
//	service NAME       a service of one copy is created
//	serve NAME         a run for it
//	admit              an admission pass
//	take NAME [TYPE]   a machine takes its commands, all or those of one type
//	work NAME          a machine's engine does what there is to do
//	exit NAME TASK     a container ends by itself
//	beat NAME          a heartbeat is sent
//	register NAME      a register is sent
//	deliver [KIND]     all that waits for the control plane is delivered
//	stop TASK          StopTask
//	minutes N [NAME…]  so many minutes pass, in which only the machines named beat
//	                   and have anything delivered
//	late NAME [NAME…]  the first falls silent, until the next reaper run would reap it; the others beat
//	reap               the reaper runs
//	reap unfinished    the reaper runs, and dies once it has reaped
//	sleep N            so many seconds pass and nothing happens
//	stalled N          so many minutes pass; nothing comes through the heartbeat queue
//	restart, die, return, disk, journal NAME
//	skew NAME DURATION a machine's clock is off
//	backup             what a restore will bring back
func (x *search) play(s *state, script string) error {
	lines := bufio.NewScanner(strings.NewReader(script))
	for n := 1; lines.Scan(); n++ {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if err := x.do(s, words[0], words[1:]); err != nil {
			return fmt.Errorf("line %d, %s: %w", n, line, err)
		}
	}
	return nil
}

func (x *search) do(s *state, verb string, args []string) error {
	f := &fair{x: x, s: s}
	arg := func(i int) string {
		if i < len(args) {
			return args[i]
		}
		return ""
	}
	i := x.named(s, arg(0))
	bad := ""
	switch verb {
	case "host":
		room, _ := strconv.Atoi(arg(1))
		s.machines = append(slices.Clone(s.machines), x.book.machine(machine.New(arg(0), room*taskMemory)))
		i = len(s.machines) - 1
		for range 2 { // register and be welcomed, then beat and be clean
			if bad = f.tend(i); bad != "" {
				break
			}
		}
	case "submit":
		bad = x.newTask(s, f, arg(0))
	case "admit":
		s.kicked = false
		bad = f.run(x.admission(s), 0)
	case "service":
		desired, least, most := 1, 0, 100
		c := x.call(s, serve, "create "+arg(0), func(ctx context.Context, c *control.Control) error {
			_, err := c.CreateService(ctx, control.ServiceRequest{Cluster: cluster, Name: arg(0), Definition: "app:1", Desired: &desired, Deployment: control.DeploymentRules{MinimumPercent: &least, MaximumPercent: &most}})
			return err
		})
		c.ids = fmt.Sprintf("d%08x", s.clock)
		bad = f.run(c, 0)
	case "tag":
		of := control.Resource{Kind: control.ServiceResource, Cluster: cluster, Name: arg(0)}
		if id := taskID(arg(0)); recordOf(x.book, s, &control.Task{ID: id}) != nil {
			of.Kind, of.Name = control.TaskResource, id
		}
		bad = f.run(x.call(s, submit, "tag "+strings.Join(args, " "), func(ctx context.Context, c *control.Control) error {
			return c.TagResource(ctx, of, map[string]string{"longshore:" + arg(1): arg(2)})
		}), 0)
	case "serve":
		c := x.service(s, arg(0))
		s.made++
		bad = f.run(c, 0)
	case "reap":
		f.dies = arg(0) == "unfinished"
		bad = x.alone(s, f, verb)
	case "stop":
		bad = x.alone(s, f, verb+" "+arg(0))
	case "sleep":
		seconds, _ := strconv.ParseInt(arg(0), 10, 64)
		s.clock += seconds
	case "stalled":
		minutes, _ := strconv.Atoi(arg(0))
		for range minutes {
			for i := range s.machines {
				if err := x.doTo(s, i, "beat", args); err != nil {
					return err
				}
			}
			s.clock += 60 - int64(len(s.machines))
			bad = bad + x.alone(s, f, "reap")
		}
	case "take":
		for at := 0; at < len(s.letters) && bad == ""; {
			took := false
			l := &x.book.letters[s.letters[at]]
			if l.to == i && (arg(1) == "" || string(wire.TypeOf(l.message)) == arg(1)) {
				bad, took = f.take(i, s.letters[at])
			}
			if at++; took {
				at = 0
			}
		}
	case "work":
		for bad == "" {
			done := x.worked(s, i)
			if !done.did {
				break
			}
			bad = x.become(s, i, done)
		}
	case "minutes", "late":
		return x.pass(s, f, verb, args)
	case "deliver":
		bad = x.deliverAll(s, f, arg(0))
	case "backup":
		x.backup = s.items
	default:
		return x.doTo(s, i, verb, args)
	}
	if bad != "" {
		return fmt.Errorf("%s", bad)
	}
	return nil
}

// doTo changes one machine, or has it say something.
func (x *search) doTo(s *state, i int, verb string, args []string) error {
	if i < 0 {
		return fmt.Errorf("no such machine")
	}
	m := x.book.machines[s.machines[i]].Clone()
	var said []wire.Message
	switch verb {
	case "exit":
		if !m.Exit(taskID(args[1])) {
			return fmt.Errorf("no such container runs")
		}
	case "beat":
		s.clock++
		said = append(said, m.Beat())
	case "register":
		s.clock++
		said = append(said, m.Register())
	case "restart":
		m.Restart()
	case "die":
		m.Die()
	case "return":
		m.Return()
	case "disk":
		m.LoseDisk()
	case "journal":
		m.LoseJournal()
	case "impaired":
		m.Impaired = true
	case "skew":
		d, err := time.ParseDuration(args[1])
		if err != nil {
			return err
		}
		m.Skew = d
	default:
		return fmt.Errorf("no such verb")
	}
	if bad := x.moved(s, i, m, said); bad != "" {
		return fmt.Errorf("%s", bad)
	}
	return nil
}

func taskID(name string) string { return fmt.Sprintf("%032s", strings.TrimPrefix(name, "t")) }

func (x *search) named(s *state, name string) int {
	return slices.IndexFunc(s.machines, func(m uint32) bool { return x.book.machines[m].Name == name })
}

// alone runs the operation of that label to its end.
func (x *search) alone(s *state, f *fair, label string) string {
	for _, o := range x.begins(s) {
		if o.label == label {
			return f.run(o.call, 0)
		}
	}
	return "no such operation"
}

func (x *search) newTask(s *state, f *fair, service string) string {
	o := x.submits(s)
	s.made++
	if bad := f.run(o.call, 0); bad != "" || service == "" {
		return bad
	}
	live := &control.Live{Cluster: cluster, Service: service}
	x.book.fill(live, x.book.find(s, x.book.key(live)))
	tasks := recordsOf[*control.Task](x.book, s.items)
	t := &control.Task{ID: tasks[len(tasks)-1].ID}
	x.book.fill(t, x.book.find(s, x.book.key(t)))
	t.Service = service
	live.Live++
	x.put(s, live, t)
	return ""
}

// deliverAll delivers what waits for the control plane, of one kind or all.
func (x *search) deliverAll(s *state, f *fair, what string) string {
	for _, id := range slices.Clone(s.letters) {
		l := &x.book.letters[id]
		if l.to >= 0 || what != "" && string(kindOf(l.message)) != what {
			continue
		}
		s.withoutLetter(id)
		if bad := f.run(x.deliver(s, id), id); bad != "" {
			return bad
		}
	}
	return ""
}

// pass lets time pass, in which only some machines beat.
func (x *search) pass(s *state, f *fair, verb string, args []string) error {
	most, beat := 20, args[1:]
	if verb == "minutes" {
		most, _ = strconv.Atoi(args[0])
	}
	for range most {
		for _, name := range beat {
			i := x.named(s, name)
			f.only = []int{i}
			if bad := f.tend(i); bad != "" {
				return fmt.Errorf("%s", bad)
			}
		}
		s.clock += 60 - int64(len(beat))
		if bad := x.deliverAll(s, f, string(see)); bad != "" {
			return fmt.Errorf("%s", bad)
		}
		if verb == "late" && x.due(s, args[0]) {
			return nil
		}
		s.reaped = 0
		if bad := x.alone(s, f, "reap"); bad != "" {
			return fmt.Errorf("%s", bad)
		}
	}
	if verb == "late" {
		return fmt.Errorf("it is never due")
	}
	return nil
}

// due says whether a reaper run now would find a machine too late.
func (x *search) due(s *state, name string) bool {
	m := x.book.machines[s.machines[x.named(s, name)]]
	lease := recordOf(x.book, s, &control.Lease{ID: m.ID})
	newest := x.watermark(s)
	return newest.Sub(lease.Sent) > settings.ReapAfter || !lease.Impaired.IsZero() && newest.Sub(lease.Impaired) > settings.ReapAfter
}
