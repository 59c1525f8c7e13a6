package supervise

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// Shell is one task's view of the engine and the journal. Verbs go by the
// names of the task's containers.
type Shell interface {
	// Check says which of the ports something on the host has.
	Check(ctx context.Context, ports []Port) (taken []Port, err error)
	Image(ctx context.Context, container string) (digest string, err error)
	Create(ctx context.Context, container string) (runtimeID string, err error)
	Start(ctx context.Context, container string) error
	// Restart runs a container once more whose run that began then has ended.
	Restart(ctx context.Context, container string, began time.Time) error
	Stop(ctx context.Context, container string, timeout time.Duration) error
	// Observe shows a container; a fault of kind NotFound if it is not there.
	Observe(ctx context.Context, container string) (Seen, error)
	Ping(ctx context.Context) error
	// Taken reads from an error of Create or Start which ports it is about.
	Taken(err error) []Port
	// Save persists the task before it is acted on (T13). It goes on trying,
	// and fails only when ctx has ended.
	Save(ctx context.Context, t Task) error
	// Dropped is told of a container that was seen and that the task does not have.
	Dropped(s Seen)
	// Veil takes the task's secrets out of what the engine says of a container.
	Veil(s Seen) Seen
}

// Mailbox is how everything else reaches the goroutine of a task (T1).
type Mailbox struct {
	mu    sync.Mutex
	seen  []Seen
	order *Order
	nudge bool
	ready chan struct{}
}

// NewMailbox makes an empty one.
func NewMailbox() *Mailbox { return &Mailbox{ready: make(chan struct{}, 1)} }

// Show tells what the engine has of one container.
func (m *Mailbox) Show(s ...Seen) { m.put(func() { m.seen = append(m.seen, s...) }) }

// Stop asks for the end of the task.
func (m *Mailbox) Stop(o Order) { m.put(func() { m.order = &o }) }

// Nudge says that what failed may work now: nobody waits for a retry.
func (m *Mailbox) Nudge() { m.put(func() { m.nudge = true }) }

func (m *Mailbox) put(change func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change()
	select {
	case m.ready <- struct{}{}:
	default:
	}
}

// Empty says whether nothing waits in it.
func (m *Mailbox) Empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.seen) == 0 && m.order == nil && !m.nudge
}

func (m *Mailbox) take(t Task, now time.Time, shell Shell) Task {
	m.mu.Lock()
	seen, order, nudge := m.seen, m.order, m.nudge
	m.seen, m.order, m.nudge = nil, nil, false
	m.mu.Unlock()
	t = t.Clone()
	for _, s := range seen {
		if t.container(s.Container) == nil {
			shell.Dropped(s) // T5
		}
		t = Observe(t, shell.Veil(s), now)
	}
	if order != nil {
		t.want(*order, now)
	}
	if nudge {
		t.retry = time.Time{}
		for i := range t.Containers {
			t.Containers[i].retry = time.Time{}
		}
	}
	return t
}

// Run brings a task where it should be, until its attempt has ended and nothing
// is being done for it, or leave ends. Leaving is not killing: when leave ends,
// calls to the engine are given up and nothing else happens to the containers.
func Run(leave context.Context, t Task, shell Shell, box *Mailbox, now func() time.Time) {
	r := &runner{leave: leave, shell: shell, now: now, results: make(chan Result, len(t.Containers)+1), pulls: map[string]context.CancelFunc{}}
	defer r.wg.Wait()
	saved := essence(t)
	for {
		var do []Action
		var wake time.Time
		at := now()
		t, do, wake = Plan(box.take(t, at, shell), at)
		if e := essence(t); e != saved {
			if shell.Save(leave, t.Clone()) != nil {
				return
			}
			saved = e
		}
		for i := range t.Containers {
			if c := &t.Containers[i]; c.busy == Pull && c.Phase == Stopped {
				r.pulls[c.Name]() // T8: nobody waits for it any more
			}
		}
		for _, a := range do {
			r.start(a)
		}
		if t.Ended() && !t.busy() && len(do) == 0 && wake.IsZero() {
			return
		}
		var timer <-chan time.Time
		if !wake.IsZero() {
			timer = time.After(wake.Sub(now()))
		}
		select { // what was done comes before what else was heard
		case res := <-r.results:
			t = Did(t, res, now())
			continue
		default:
		}
		select {
		case <-leave.Done():
			return
		case res := <-r.results:
			t = Did(t, res, now())
		case <-box.ready:
		case <-timer:
		}
	}
}

type runner struct {
	leave   context.Context
	shell   Shell
	now     func() time.Time
	results chan Result
	pulls   map[string]context.CancelFunc
	wg      sync.WaitGroup
}

// start performs an action beside the others of its round (T8).
func (r *runner) start(a Action) {
	ctx, cancel := context.WithCancel(r.leave)
	if a.Verb == Pull {
		r.pulls[a.Container] = cancel
	}
	r.wg.Go(func() {
		defer cancel()
		r.results <- r.perform(ctx, a)
	})
}

func (r *runner) perform(ctx context.Context, a Action) (res Result) {
	res.Action = a
	defer func() {
		if p := recover(); p != nil { // one container's trouble is not the others'
			res.Err, res.Seen = fault.New(fault.Internal, "%s: panic: %v", a.Verb, p), nil
		}
	}()
	switch a.Verb {
	case Check:
		res.Taken, res.Err = r.shell.Check(ctx, a.Ports)
		return res
	case Pull:
		res.Text, res.Err = r.shell.Image(ctx, a.Container)
	case Create:
		res.Text, res.Err = r.shell.Create(ctx, a.Container)
	case Start:
		res.Err = r.shell.Start(ctx, a.Container)
	case Restart:
		res.Err = r.shell.Restart(ctx, a.Container, a.Began)
	case Stop:
		res.Err = r.shell.Stop(ctx, a.Container, a.Timeout)
	default: // a look is what follows
	}
	if a.Verb == Start || a.Verb == Restart || a.Verb == Stop || a.Verb == Look {
		seen, err := r.shell.Observe(ctx, a.Container)
		switch {
		case err == nil:
			res.Seen = &seen
		case fault.Is(err, fault.NotFound):
			res.Seen = &Seen{Container: a.Container, Gone: true}
		case res.Err == nil:
			res.Err = err
		}
	}
	if res.Err != nil {
		res.Taken = r.shell.Taken(res.Err)
		res.Silent = res.Seen == nil && fault.Is(res.Err, fault.Unavailable) && r.shell.Ping(ctx) != nil
	}
	return res
}

// essence is what must be in the journal before anything is done.
func essence(t Task) string {
	var b strings.Builder
	fmt.Fprint(&b, t.Status, t.Desired, t.Refusal != nil)
	for _, c := range t.Containers {
		phase := c.Phase
		if phase.before(Starting) {
			phase = Waiting
		}
		fmt.Fprint(&b, "|", phase, c.Ran, c.Restarts, c.Shown.Health, c.Resurrected, c.Alive, c.Shown.ExitCode != nil, len(c.Shown.Bindings))
	}
	return b.String()
}
