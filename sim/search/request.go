package search

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

type verb uint8

const (
	load verb = iota
	commit
	renew
	taskIDs
	instanceIDs
	leases
	clusters
	catalog
	commands
	kickAdmission
	kickServices
	probe
	other // a call that always succeeds and changes nothing here
)

// request is one call of a store or queue.
type request struct {
	verb    verb
	keys    []uint16 // load
	writes  []write
	renewal control.Renewal
	query   control.TaskQuery
	page    control.Page
	cluster string
	list    string
	row     func(control.Record) (sort string, ok bool) // catalog
	send    []wire.Message
	sent    []uint32 // the letters they are, once they were sent
	text    string   // names it, and tells it from every other
	short   string   // for traces
}

// write is one write of a commit: of put records the item as it will be.
type write struct {
	op      control.Op
	key     uint16
	version int64
	item    uint32
}

// unseen requests have no effect that another use case could see.
func (q *request) unseen() bool { return q.verb >= commands }

// named is the request with its names, which are seldom asked for.
func (b *book) named(q *request) *request {
	if q.text == "" {
		q.name(b)
	}
	return q
}

func (q *request) name(b *book) {
	var names []string
	for _, k := range q.keys {
		names = append(names, b.shortKey(k))
	}
	switch q.verb {
	case load:
		q.short = "load " + strings.Join(names, ", ")
		q.text = fmt.Sprint("load ", q.keys)
	case commit:
		for _, w := range q.writes {
			names = append(names, string(w.op)+" "+b.shortKey(w.key))
		}
		q.short = "commit " + strings.Join(names, ", ")
		q.text = fmt.Sprint("commit ", q.writes)
	case renew:
		q.short, q.text = "renew", fmt.Sprint("renew ", q.renewal)
	case taskIDs:
		what := "tasks waiting for " + string(q.query.Waiting)
		switch {
		case q.query.OnInstance != "":
			what = "tasks on instance"
		case q.query.Group != "":
			what = "tasks of group"
		}
		q.short, q.text = "list "+what, fmt.Sprint("taskIDs ", q.query, q.page)
	case instanceIDs:
		q.short, q.text = "list instances", fmt.Sprint("instanceIDs ", q.cluster, q.page)
	case leases:
		q.short, q.text = "scan leases", "leases"
	case clusters:
		q.short, q.text = "list clusters", fmt.Sprint("clusters ", q.page)
	case catalog:
		what, _, _ := strings.Cut(q.list, "\x00")
		q.short, q.text = "list "+what, fmt.Sprint("catalog ", q.list, q.page)
	case commands:
		for _, m := range q.send {
			names = append(names, nameOf(m))
		}
		q.short = "send " + strings.Join(names, ", ")
		q.text = q.short
	case kickAdmission:
		q.short, q.text = "kick admission", "kick admission"
	case kickServices:
		q.short = "kick services"
		q.text = q.short + " " + q.list
	case probe:
		q.short, q.text = "send probe", "send probe"
	case other:
		q.text = q.short
	}
}

func (b *book) shortKey(k uint16) string {
	n := b.keys[k]
	if n.kind == control.TaskKind {
		return short(n.key)
	}
	if n.kind == control.ProbeKind || n.kind == control.GuardKind {
		return string(n.kind)
	}
	for _, m := range b.machines {
		if m.ID == n.key {
			return string(n.kind) + " " + m.Name
		}
	}
	return string(n.kind) + " " + n.key
}

func (r *runner) Load(_ context.Context, records ...control.Record) error {
	// What is read together has no order, and some of it comes out of maps.
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b control.Record) int { return int(r.b.key(a)) - int(r.b.key(b)) })
	q := &request{verb: load, keys: make([]uint16, len(records))}
	for i, record := range records {
		if record.Key() == "" {
			return fault.New(fault.Invalid, "load %s without a key", record.Kind())
		}
		q.keys[i] = r.b.key(record)
	}
	a := r.ask(q)
	if err := a.failure("load"); err != nil {
		return err
	}
	for i, record := range records {
		r.b.fill(record, a.items[i])
	}
	return nil
}

func (r *runner) Commit(_ context.Context, writes ...control.Write) error {
	q := &request{verb: commit}
	for _, w := range writes {
		x := write{op: w.Op, key: r.b.key(w.Record), version: *w.Record.Revision()}
		if w.Op == control.PutOp {
			*w.Record.Revision()++
			x.item = r.b.item(w.Record)
			*w.Record.Revision()--
		}
		q.writes = append(q.writes, x)
	}
	// A transaction has no order, and some are made of maps.
	slices.SortFunc(q.writes, func(a, b write) int { return int(a.key) - int(b.key) })
	if err := r.ask(q).failure("commit"); err != nil {
		return err
	}
	for _, w := range writes {
		if w.Op == control.PutOp {
			*w.Record.Revision()++
		}
	}
	return nil
}

func (r *runner) Renew(_ context.Context, by control.Renewal) (*control.Lease, bool, error) {
	a := r.ask(&request{verb: renew, renewal: by})
	if err := a.failure("renew"); err != nil {
		return nil, false, err
	}
	lease := &control.Lease{ID: by.ID}
	r.b.fill(lease, a.items[0])
	return lease, a.renewed, nil
}

func (r *runner) TaskIDs(_ context.Context, query control.TaskQuery, page control.Page) ([]string, string, error) {
	if _, err := page.From(query.ListName()); err != nil {
		return nil, "", err
	}
	a := r.ask(&request{verb: taskIDs, query: query, page: page})
	return a.ids, a.next, a.failure("list tasks")
}

func (r *runner) InstanceIDs(_ context.Context, cluster string, page control.Page) ([]string, string, error) {
	if _, err := page.From(control.InstanceList(cluster)); err != nil {
		return nil, "", err
	}
	a := r.ask(&request{verb: instanceIDs, cluster: cluster, page: page})
	return a.ids, a.next, a.failure("list instances")
}

func (r *runner) Clusters(_ context.Context, page control.Page) ([]string, string, error) {
	if _, err := page.From(control.ClusterList); err != nil {
		return nil, "", err
	}
	a := r.ask(&request{verb: clusters, page: page})
	return a.ids, a.next, a.failure("list clusters")
}

func (r *runner) Leases(context.Context) (*control.LeaseScan, error) {
	a := r.ask(&request{verb: leases})
	if err := a.failure("scan leases"); err != nil {
		return nil, err
	}
	scan := &control.LeaseScan{}
	for _, id := range a.items {
		switch x := r.b.items[id].record.(type) {
		case *control.Lease:
			l := &control.Lease{ID: x.ID}
			r.b.fill(l, id)
			scan.Leases = append(scan.Leases, *l)
		case *control.Probe:
			scan.Probes = append(scan.Probes, *x)
		case *control.Brake:
			scan.Brakes = append(scan.Brakes, *x)
		case *control.Guard:
			scan.Guard = *x
		}
	}
	return scan, nil
}

func (r *runner) Commands(_ context.Context, messages ...wire.Message) error {
	return r.ask(&request{verb: commands, send: messages}).failure("send commands")
}

func (r *runner) KickAdmission(context.Context, control.Kick) error {
	return r.ask(&request{verb: kickAdmission}).failure("kick admission")
}

func (r *runner) KickServices(_ context.Context, k control.Kick) error {
	return r.ask(&request{verb: kickServices, list: k.Service}).failure("kick services")
}

func (r *runner) Probe(_ context.Context, p wire.Probe) error {
	return r.ask(&request{verb: probe, send: []wire.Message{&p}}).failure("send probe")
}

func (r *runner) EnsureInbox(context.Context, string, string) error {
	return r.ask(&request{verb: other, short: "ensure inbox"}).failure("ensure inbox")
}

func (r *runner) RemoveInbox(context.Context, string) error {
	return r.ask(&request{verb: other, short: "remove inbox"}).failure("remove inbox")
}

func (r *runner) Backlog(context.Context) (int, error) {
	return 0, r.ask(&request{verb: other, short: "measure backlog"}).failure("measure backlog")
}
