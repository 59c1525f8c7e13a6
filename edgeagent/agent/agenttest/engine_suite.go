package agenttest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// EngineSuite is what every agent.Engine must do. newEngine makes an engine for
// one instance; two calls for the same instance are the agent before and after
// a restart, and all share one host. image has sh, sleep, test, cat and id.
//
// EngineContract is the part for which an engine need not run real programs:
// of commands it knows those of Quit, Sleep and Stubborn. EngineEffect is the
// rest, seen from inside a container.
func EngineSuite(t *testing.T, newEngine func(instance string) agent.Engine, image string) {
	t.Run("Contract", func(t *testing.T) { EngineContract(t, newEngine, image) })
	t.Run("Effect", func(t *testing.T) { EngineEffect(t, newEngine, image) })
}

// Quit is a program that ends at once with a code.
func Quit(code int) []string { return []string{"sh", "-c", fmt.Sprintf("exit %d", code)} }

// Sleep is a program that goes on until SIGTERM, on which it ends with a code.
func Sleep(code int) []string {
	return []string{"sh", "-c", fmt.Sprintf("trap 'exit %d' TERM; sleep 600 & wait", code)}
}

// Stubborn is a program that does not listen to SIGTERM.
func Stubborn() []string { return []string{"sh", "-c", "trap '' TERM; sleep 600"} }

// patience is how long an engine may take for anything in the suite: it ends a wait
// in vain, and says nothing of how fast an engine on a busy machine is.
const patience = 2 * time.Minute

// bench is an engine with what a test made on it.
type bench struct {
	*testing.T
	agent.Engine
	instance string
	image    string
	again    func(instance string) agent.Engine
	ctx      context.Context
}

func newBench(t *testing.T, newEngine func(string) agent.Engine, image string) *bench {
	instance := "suite-" + RandomID()[:12]
	return &bench{T: t, Engine: newEngine(instance), instance: instance, image: image, again: newEngine, ctx: t.Context()}
}

// RandomID is 32 lower-case hex digits, as tasks' ids are.
func RandomID() string {
	var b [16]byte
	_, _ = rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// spec is a task of one container that runs command.
func (b *bench) spec(command []string, change ...func(*taskdef.TaskDefinition)) agent.Spec {
	id := RandomID()
	def := &taskdef.TaskDefinition{Revision: 3, Spec: taskdef.Spec{
		Family: "suite", NetworkMode: taskdef.NetworkNone,
		ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main", Image: b.image, Command: command, Memory: new(64)}},
	}}
	for _, c := range change {
		c(def)
	}
	return agent.Spec{
		ContainerID: agent.ContainerID{Task: id, Attempt: 1, Container: "main"},
		Epoch:       1700000000, TaskARN: "arn:aws:ecs:eu-west-1:000000000000:task/default/" + id, Cluster: "default",
		Family: def.Family, Revision: def.Revision, Definition: def,
	}
}

// create makes the container and, at the test's end, leaves nothing of it.
func (b *bench) create(s agent.Spec) string {
	b.Helper()
	b.Cleanup(func() { b.clear(s.ContainerID) })
	id, err := b.Create(b.ctx, s)
	if err != nil {
		b.Fatalf("create: %v", err)
	}
	return id
}

// refuses is a create that must fail with a kind; should it not, nothing is left
// of it either.
func (b *bench) refuses(s agent.Spec, kind fault.Kind) {
	b.Helper()
	b.Cleanup(func() { b.clear(s.ContainerID) })
	_, err := b.Create(b.ctx, s)
	b.kind(err, kind)
}

func (b *bench) clear(id agent.ContainerID) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := errors.Join(b.Stop(ctx, id, 0), b.Remove(ctx, id), b.RemoveTask(ctx, id.Task, id.Attempt)); err != nil {
		b.Errorf("clear %v: %v", id, err)
	}
}

func (b *bench) start(s agent.Spec) {
	b.Helper()
	b.create(s)
	b.must(b.Start(b.ctx, s.ContainerID))
}

// run starts the container and waits for its end.
func (b *bench) run(s agent.Spec) agent.Seen {
	b.Helper()
	b.start(s)
	return b.ended(s.ContainerID)
}

func (b *bench) must(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) kind(err error, want fault.Kind) {
	b.Helper()
	if got := fault.Of(err); got != want {
		b.Fatalf("the error is %v, of kind %q; want kind %q", err, got, want)
	}
}

func (b *bench) observe(id agent.ContainerID) agent.Seen {
	b.Helper()
	s, err := b.Observe(b.ctx, id)
	b.must(err)
	return s
}

// ended waits until the container has an exit code.
func (b *bench) ended(id agent.ContainerID) agent.Seen {
	b.Helper()
	var s agent.Seen
	b.until(func() bool { s = b.observe(id); return s.ExitCode != nil }, "the end of container "+id.Container)
	return s
}

func (b *bench) until(done func() bool, what string) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for !done() {
		select {
		case <-tick.C:
		case <-late:
			b.Fatalf("waited %s in vain for %s", patience, what)
		}
	}
}

func (b *bench) exits(s agent.Seen, code int) {
	b.Helper()
	if s.ExitCode == nil || *s.ExitCode != code {
		b.Fatalf("exit code %s, want %d (seen: %+v)", show(s.ExitCode), code, s)
	}
}

func show(code *int) string {
	if code == nil {
		return "none"
	}
	return fmt.Sprint(*code)
}

func (b *bench) list() []agent.Seen {
	b.Helper()
	all, err := b.List(b.ctx)
	b.must(err)
	return all
}

func ids(all []agent.Seen) []agent.ContainerID {
	var list []agent.ContainerID
	for _, s := range all {
		list = append(list, s.ContainerID)
	}
	return list
}

func (b *bench) watch() <-chan agent.Seen {
	b.Helper()
	ctx, cancel := context.WithCancel(b.ctx)
	b.Cleanup(cancel)
	news, err := b.Watch(ctx)
	b.must(err)
	return news
}

// hear receives until something wanted comes.
func (b *bench) hear(news <-chan agent.Seen, wanted func(agent.Seen) bool, what string) agent.Seen {
	b.Helper()
	late := time.After(patience)
	var heard []agent.Seen
	for {
		select {
		case s, ok := <-news:
			if !ok {
				b.Fatalf("the stream closed before %s; heard: %+v", what, heard)
			}
			if wanted(s) {
				return s
			}
			heard = append(heard, s)
		case <-late:
			b.Fatalf("waited %s in vain to hear %s; heard: %+v", patience, what, heard)
		}
	}
}

func contains(all []agent.Seen, id agent.ContainerID) bool { return slices.Contains(ids(all), id) }
