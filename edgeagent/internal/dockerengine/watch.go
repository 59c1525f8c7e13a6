package dockerengine

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// watched are the events after which a container is not what it was.
var watched = []events.Action{
	events.ActionCreate, events.ActionStart, events.ActionDie, events.ActionOOM, events.ActionStop, events.ActionKill,
	events.ActionPause, events.ActionUnPause, events.ActionRestart, events.ActionDestroy,
	events.ActionHealthStatus, // Docker takes it for the head of "health_status: healthy" and the others
}

// reachBack is how far before its opening a stream begins. Docker sends the
// head of its answer before it subscribes; what happens in between is lost, but
// for what it keeps of the last minutes. An event heard twice does no harm:
// each is answered by looking at the container.
const reachBack = 10 * time.Second

// Watch sends how each container of the instance is after something happened to
// it, until ctx ends or the stream breaks. Several events may become one Seen,
// and none is lost while nobody receives.
func (e *Engine) Watch(ctx context.Context) (<-chan agent.Seen, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	opening := time.AfterFunc(e.limits.Watch, func() { cancel(fmt.Errorf("no answer to watch within %s", e.limits.Watch)) })
	api, err := e.connect(ctx)
	if err != nil {
		defer cancel(nil)
		return nil, classify(ctx, "watch", err)
	}
	filter := e.only()
	filter.Add("type", string(events.ContainerEventType))
	for _, a := range watched {
		filter.Add("event", string(a))
	}
	since := e.now().Add(-reachBack)
	messages, errs := api.Events(ctx, events.ListOptions{
		Since: fmt.Sprintf("%d.%09d", since.Unix(), since.Nanosecond()), Filters: filter,
	})
	opening.Stop()
	select {
	case err := <-errs: // it never opened
		defer cancel(nil)
		if isVersionError(err) {
			e.renew(api)
		}
		return nil, classify(ctx, "watch", err)
	default:
	}
	if err := context.Cause(ctx); err != nil {
		defer cancel(nil)
		return nil, fault.Wrap(fault.Unavailable, err, "watch")
	}
	news := newBacklog()
	go func() {
		defer news.close()
		for {
			select {
			case m := <-messages:
				news.add(m)
			case err := <-errs:
				// The client may tell only now that it never opened: it lets go before it says so.
				if err != nil && isVersionError(err) {
					e.renew(api)
				}
				cancel(err) // what is being looked at will be listed
				return
			}
		}
	}()
	out := make(chan agent.Seen)
	go func() {
		defer close(out)
		defer cancel(nil)
		e.tell(ctx, api, news, out)
	}()
	return out, nil
}

// tell looks at every container there is news of and sends what it sees. It
// ends with the stream, and also when the engine no longer answers: the caller
// opens anew and lists.
func (e *Engine) tell(ctx context.Context, api *client.Client, news *backlog, out chan<- agent.Seen) {
	for {
		n, ok := news.next(ctx)
		if !ok {
			return
		}
		s := n.seen()
		if !n.gone {
			fresh, err := e.look(ctx, api, n.runtimeID)
			switch {
			case err == nil:
				s = fresh
			case !missing(err):
				return
			case n.exitCode == nil: // made and removed within one look: its destroy follows
				continue
			}
		} else if now, known := e.recall(s.ContainerID); known && now != s.RuntimeID {
			continue // the name is another container's by now
		} else {
			e.forget(s.ContainerID)
		}
		select {
		case out <- s:
		case <-ctx.Done():
			return
		}
	}
}

// item is what events have said of one container since it was last looked at.
type item struct {
	runtimeID string
	labels    map[string]string
	image     string
	exitCode  *int
	oom       bool
	died      time.Time
	gone      bool
}

// seen is a container that cannot be looked at any more, from its events.
func (n *item) seen() agent.Seen {
	s := agent.Seen{
		RuntimeID: n.runtimeID, Image: n.image, ExitCode: n.exitCode, OOMKilled: n.oom, FinishedAt: n.died, Gone: n.gone,
		TaskARN: n.labels[labelTaskARN], Cluster: n.labels[labelCluster], Labels: n.labels,
	}
	s.ContainerID, s.Epoch = identity(n.labels)
	s.Family, s.Revision = definition(n.labels)
	return s
}

// take adds one event to what is known.
func (n *item) take(m events.Message) {
	switch m.Action {
	case events.ActionDie:
		if code, err := strconv.Atoi(m.Actor.Attributes["exitCode"]); err == nil {
			n.exitCode = &code
		}
		n.died = time.Unix(0, m.TimeNano).UTC()
	case events.ActionOOM:
		n.oom = true
	case events.ActionDestroy:
		n.gone = true
	}
}

// backlog holds news until they are told, a container at most once, so that a
// slow receiver neither loses any nor lets them pile up. Docker itself drops
// events for readers that do not keep up.
type backlog struct {
	arrive chan events.Message
	give   chan *item
	end    chan struct{}
}

func newBacklog() *backlog {
	b := &backlog{arrive: make(chan events.Message), give: make(chan *item), end: make(chan struct{})}
	go b.run()
	return b
}

func (b *backlog) add(m events.Message) { b.arrive <- m }

// close ends the backlog; what is still in it is told by the caller's next list.
func (b *backlog) close() { close(b.end) }

func (b *backlog) next(ctx context.Context) (*item, bool) {
	select {
	case n := <-b.give:
		return n, true
	case <-b.end:
		return nil, false
	case <-ctx.Done():
		return nil, false
	}
}

func (b *backlog) run() {
	var order []string
	held := map[string]*item{}
	for {
		var give chan *item
		var first *item
		if len(order) > 0 {
			give, first = b.give, held[order[0]]
		}
		select {
		case m := <-b.arrive:
			id := m.Actor.ID
			n := held[id]
			if n == nil {
				n = &item{runtimeID: id, labels: m.Actor.Attributes, image: m.Actor.Attributes["image"]}
				held[id] = n
				order = append(order, id)
			}
			n.take(m)
		case give <- first:
			delete(held, order[0])
			order = order[1:]
		case <-b.end:
			return
		}
	}
}
