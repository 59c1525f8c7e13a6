package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
)

// auditRounds is how often an audit looks again at books that were written while
// it read the tasks.
const auditRounds = 3

// Audit is what an audit found of the books: each instance's ledger, and each
// service's count of live tasks.
type Audit struct {
	Ledgers     int          `json:"ledgers"`  // compared
	Services    int          `json:"services"` // compared
	Busy        int          `json:"busy"`     // written each time while the tasks were read: not compared
	Differences []Difference `json:"differences"`
}

// Difference is one book that its tasks do not add up to.
type Difference struct {
	Cluster  string  `json:"cluster"`
	Instance string  `json:"instance,omitempty"` // whose ledger it is, or
	Service  string  `json:"service,omitempty"`  // whose live count
	Book     Account `json:"book"`               // what it says
	Tasks    Account `json:"tasks"`              // what its tasks add up to
	Repaired bool    `json:"repaired"`
}

// Account is what a book keeps of its tasks: Held, Open and Stale of an
// instance's, Live of a service's.
type Account struct {
	Held  Held `json:"held,omitzero"`
	Open  int  `json:"open,omitempty"`
	Stale int  `json:"stale,omitempty"`
	Live  int  `json:"live,omitempty"`
}

// book is one record that keeps account of tasks.
type book interface {
	Record
	// account is what it says, normal.
	account() Account
	// correct makes it say something else.
	correct(Account)
	// about names it in a difference.
	about() Difference
}

func (r *Ledger) account() Account {
	return Account{Held: r.Held, Open: r.Open, Stale: r.Stale}.normal()
}
func (r *Ledger) correct(a Account) { r.Held, r.Open, r.Stale = a.Held, a.Open, a.Stale }
func (r *Ledger) about() Difference { return Difference{Cluster: r.Cluster, Instance: r.ID} }

func (r *Live) account() Account  { return Account{Live: r.Live} }
func (r *Live) correct(a Account) { r.Live = a.Live }
func (r *Live) about() Difference { return Difference{Cluster: r.Cluster, Service: r.Service} }

// bookID is a book by kind and key.
type bookID struct {
	kind Kind
	key  string
}

func (a bookID) compare(b bookID) int {
	return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.key, b.key))
}

func bookOf(r Record) bookID { return bookID{r.Kind(), r.Key()} }

// AuditLedgers recomputes what every instance has given away, and how many tasks
// every service has, from a strong scan of the tasks; it tells each difference,
// and with the setting repairs it. Whatever changes what a task counts for writes
// the book in the same transaction, so a book that has the same version before
// and after the scan must be what its tasks add up to; one that was written
// meanwhile is compared in another round.
func (c *Control) AuditLedgers(ctx context.Context) (*Audit, error) {
	books, err := c.books(ctx)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	a := &Audit{Differences: []Difference{}}
	var errs []error
	for round := 0; len(books) > 0 && round < auditRounds; round++ {
		if round > 0 {
			c.pause(ctx, round)
			if err := load(ctx, c.Store, slices.Collect(maps.Values(books))); err != nil {
				return nil, fmt.Errorf("audit: %w", err)
			}
		}
		sums, err := c.sumTasks(ctx, books)
		if err != nil {
			return nil, fmt.Errorf("audit: %w", err)
		}
		for _, at := range slices.SortedFunc(maps.Keys(books), bookID.compare) {
			done, err := c.auditBook(ctx, a, books[at], sums[at].normal())
			if errs = append(errs, err); done || err != nil {
				delete(books, at)
			}
		}
	}
	a.Busy = len(books)
	c.Metrics.Count("LedgerDifferences", float64(len(a.Differences)))
	c.Metrics.Count("LedgersAudited", float64(a.Ledgers+a.Services))
	c.Metrics.Count("LedgersNotAudited", float64(a.Busy))
	return a, errors.Join(errs...)
}

// books are every ledger and every service's live count, as they are before the
// tasks are read.
func (c *Control) books(ctx context.Context) (map[bookID]book, error) {
	books := map[bookID]book{}
	if err := pages(ctx, c.Store.ScanLedgers, func(l *Ledger) { books[bookOf(l)] = l }); err != nil {
		return nil, fmt.Errorf("scan ledgers: %w", err)
	}
	clusters, err := everything(ctx, c.Store.Clusters)
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var counted []*Live
	for _, cluster := range clusters {
		names, err := c.serviceNames(ctx, cluster)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			counted = append(counted, &Live{Cluster: cluster, Service: name})
		}
	}
	if err := load(ctx, c.Store, counted); err != nil {
		return nil, err
	}
	for _, l := range counted {
		books[bookOf(l)] = l
	}
	return books, nil
}

// sumTasks adds up what the tasks count for in each book.
func (c *Control) sumTasks(ctx context.Context, books map[bookID]book) (map[bookID]Account, error) {
	sums := map[bookID]Account{}
	err := pages(ctx, c.Store.ScanLiveTasks, func(t *Task) {
		if at := bookOf(&Ledger{ID: t.Instance}); t.Held != nil {
			if l, ok := books[at].(*Ledger); ok {
				sum := sums[at]
				sum.count(t, l.Epoch)
				sums[at] = sum
			}
		}
		if t.Service != "" {
			at := bookOf(&Live{Cluster: t.Cluster, Service: t.Service})
			sum := sums[at]
			sum.Live++
			sums[at] = sum
		}
	})
	if err != nil {
		return nil, fmt.Errorf("scan tasks: %w", err)
	}
	return sums, nil
}

func (a *Account) count(t *Task, epoch int64) {
	a.Held.add(*t.Held)
	a.Open++
	if t.Epoch < epoch {
		a.Stale++
	}
}

// auditBook compares one book with what its tasks add up to. It is not done with
// one that was written since it was read.
func (c *Control) auditBook(ctx context.Context, a *Audit, b book, sum Account) (done bool, err error) {
	if has := b.account(); !reflect.DeepEqual(has, sum) {
		read := *b.Revision()
		if err := c.Store.Load(ctx, b); err != nil {
			return false, fmt.Errorf("audit: load %s %s: %w", b.Kind(), b.Key(), err)
		}
		if *b.Revision() != read {
			return false, nil
		}
		err = c.differs(ctx, a, b, sum)
	}
	// An equal one may have been written meanwhile: then it was right at some moment.
	if b.Kind() == LedgerKind {
		a.Ledgers++
	} else {
		a.Services++
	}
	return true, err
}

// differs tells a difference, and repairs it where that is allowed and nobody
// has written the book since.
func (c *Control) differs(ctx context.Context, a *Audit, b book, sum Account) (err error) {
	d := b.about()
	d.Book, d.Tasks = b.account(), sum
	if c.Setting.AuditRepairs {
		b.correct(sum)
		switch err = c.Store.Commit(ctx, Put(b)); {
		case fault.Is(err, fault.Conflict): // the next audit compares it again
			err = nil
		case err != nil:
			err = fmt.Errorf("audit: repair %s %s: %w", b.Kind(), b.Key(), err)
		default:
			d.Repaired = true
			c.wake(ctx, d)
		}
	}
	c.Log.ErrorContext(ctx, "a book differs from its tasks", logkey.Cluster, d.Cluster, logkey.Instance, d.Instance, logkey.Service, d.Service,
		"book", fmt.Sprintf("%+v", d.Book), "tasks", fmt.Sprintf("%+v", d.Tasks), "repaired", d.Repaired)
	a.Differences = append(a.Differences, d)
	return err
}

// wake tells those who decide on a book that it says something else now.
func (c *Control) wake(ctx context.Context, d Difference) {
	if d.Service != "" {
		c.kickServices(ctx, Kick{Cluster: d.Cluster, Service: d.Service})
		return
	}
	c.kick(ctx, Kick{Cluster: d.Cluster, Instance: d.Instance})
}

// normal is an account that compares by what it says: lists sorted, none empty.
func (a Account) normal() Account {
	a.Held.TCP, a.Held.UDP = sorted(slices.Clone(a.Held.TCP)), sorted(slices.Clone(a.Held.UDP))
	a.Held.GPUs, a.Held.Distinct = sorted(slices.Clone(a.Held.GPUs)), sorted(slices.Clone(a.Held.Distinct))
	return a
}

// Live says whether a task is not STOPPED: what an audit adds up.
func (r *Task) Live() bool { return r.LastStatus != task.Stopped }
