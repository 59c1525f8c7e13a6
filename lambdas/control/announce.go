package control

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// Notice is one state change that subscribers are told of: one member besides At
// is set. The record that changed is as it was at that commit; what it is shown
// with, and is kept elsewhere, as it was read just now.
type Notice struct {
	At       time.Time
	Task     *TaskView
	Instance *InstanceView
	Service  *ServiceNotice
	Missed   *MissedNotice
}

// MissedNotice is a run of a schedule that was missed.
type MissedNotice struct {
	Schedule string
	Version  int64 // rises with each that the schedule missed
	Run      ScheduledRun
}

// ServiceNotice is something that a service, or a deployment of it, told.
type ServiceNotice struct {
	Cluster, Service string
	Version          int64 // rises with each thing that the service told
	Event            ServiceEvent
}

// Event is a notice in the form that subscribers get.
type Event struct {
	Type string
	// Resources are the ARNs it is about; events are ordered by the first.
	Resources []string
	At        time.Time
	Detail    json.RawMessage
}

// Bus takes events.
type Bus interface {
	// Publish delivers events and returns an error for each, nil for those that
	// are delivered. Events of one first resource are delivered in order; after
	// one of them that is to be tried again none is. One whose error is of kind
	// Invalid can never be delivered, and holds up no other.
	Publish(ctx context.Context, events []Event) []error
}

// Announce publishes what of changes is a state change, in their order, and
// returns an error for each change, nil for those that are done with. Called again
// with the same it publishes again: subscribers tell by the version.
func (c *Control) Announce(ctx context.Context, changes []Change) []error {
	errs := make([]error, len(changes))
	notices, err := c.notices(ctx, changes)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	var events []Event
	var of []int // the change that an event is about
	for _, n := range notices {
		if e, err := c.shaped(n.Notice); err != nil {
			errs[n.of] = err
		} else {
			events, of = append(events, e), append(of, n.of)
		}
	}
	if len(events) == 0 {
		return errs
	}
	for k, err := range c.Bus.Publish(ctx, events) {
		// What is to be tried again weighs more than what never can be.
		if have := errs[of[k]]; err != nil && (have == nil || fault.Is(have, fault.Invalid)) {
			errs[of[k]] = err
		}
	}
	return errs
}

// shaped gives a notice its form. One that has none, for whatever reason, never
// will have.
func (c *Control) shaped(n Notice) (e Event, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Invalid, "shape an event: panic: %v\n%s", p, debug.Stack())
		}
	}()
	if e, err = c.Shape(n); err != nil {
		return e, fault.Wrap(fault.Invalid, err, "shape an event")
	}
	return e, nil
}

// notice is a notice and the place of its change.
type notice struct {
	Notice
	of int
}

// notices are what the state changes among changes are told as, in their order.
func (c *Control) notices(ctx context.Context, changes []Change) ([]notice, error) {
	var out []notice
	var tasks []*Task
	var ofTask []int
	var records []Record
	for i, change := range changes {
		if !noteworthy(change) {
			continue
		}
		n := notice{Notice{At: change.At}, i}
		switch r := change.New.(type) {
		case *Task:
			tasks, ofTask = append(tasks, r), append(ofTask, len(out))
		case *Instance:
			n.Instance = &InstanceView{Instance: *r, Ledger: Ledger{ID: r.ID}, Lease: Lease{ID: r.ID}}
			records = append(records, &n.Instance.Ledger, &n.Instance.Lease)
		case *Ledger:
			n.Instance = &InstanceView{Instance: Instance{ID: r.ID}, Ledger: *r, Lease: Lease{ID: r.ID}}
			records = append(records, &n.Instance.Instance, &n.Instance.Lease)
		case *ServiceEvents:
			old, _ := change.Old.(*ServiceEvents)
			for k, e := range newEvents(old, r) { // one commit may tell several things: each is news
				out = append(out, notice{Notice{At: e.At, Service: &ServiceNotice{r.Cluster, r.Service, r.Version*maxEvents + int64(k), e}}, i})
			}
			continue
		case *Schedule:
			old, _ := change.Old.(*Schedule)
			for k, run := range newlyMissed(old, r) {
				out = append(out, notice{Notice{At: run.Decided, Missed: &MissedNotice{r.Name, r.Version*maxRuns + int64(k), run}}, i})
			}
			continue
		}
		out = append(out, n)
	}
	views, err := c.views(ctx, tasks)
	if err == nil && len(records) > 0 {
		err = c.Store.Load(ctx, records...)
	}
	if err != nil {
		return nil, fmt.Errorf("read what events are shown with: %w", err)
	}
	for k := range views {
		out[ofTask[k]].Task = &views[k]
	}
	for _, n := range out {
		if n.Instance != nil {
			n.Instance.complete()
		}
	}
	return out, nil
}

// complete makes up what a half of an instance that is forgotten by now said.
func (v *InstanceView) complete() {
	if v.Instance.Version == 0 {
		v.Cluster = v.Ledger.Cluster
	}
	if v.Ledger.Version == 0 {
		v.Ledger.Cluster, v.Ledger.Status = v.Cluster, Inactive
	}
}

// Revision is a number that rises with each change of either half of the instance.
func (v *InstanceView) Revision() int64 { return v.Instance.Version + v.Ledger.Version }
