package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// Tick is one run of the reaper: it probes the heartbeat queue, sweeps, judges
// every lease, marks and reaps the silent within the brake, and goes on with
// closings. Overlapping runs are harmless: each write is conditional on what it
// was decided on.
func (c *Control) Tick(ctx context.Context) error {
	errs := []error{c.sendProbe(ctx)}
	errs = append(errs, c.sweepForHalf(ctx))
	scan, err := c.Store.Leases(ctx)
	if err != nil {
		return errors.Join(append(errs, fmt.Errorf("scan leases: %w", err))...)
	}
	g, err := c.advance(ctx, scan)
	if err != nil {
		return errors.Join(append(errs, err)...)
	}
	r := &reaping{c: c, scan: scan, guard: g, now: c.Now()}
	errs = append(errs, r.judge(ctx))
	errs = append(errs, r.closings(ctx), r.drains(ctx), r.leavings(ctx), r.forgetProbes(ctx))
	r.tellGroups(ctx)
	r.measure()
	return errors.Join(errs...)
}

// sweepForHalf sweeps for half of the time that is left, so that a sweep with
// much to make up for does not keep the reaper from judging.
func (c *Control) sweepForHalf(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2+endsBefore)
		defer cancel()
	}
	return errors.Join(c.Sweep(ctx), c.sweepDefinitions(ctx))
}

func (c *Control) sendProbe(ctx context.Context) error {
	now := c.Now()
	p := &Probe{ID: c.NewID(), SentAt: now, ExpiresAt: now.Add(probeKeptFor)}
	if err := c.Store.Commit(ctx, Put(p)); err != nil {
		return fmt.Errorf("store probe: %w", err)
	}
	if err := c.Queue.Probe(ctx, wire.Probe{ID: p.ID}); err != nil {
		return fmt.Errorf("send probe: %w", err)
	}
	return nil
}

// advance moves the watermark: any run does, so that one that is killed holds up
// none of those after it (docs/adr/0016).
func (c *Control) advance(ctx context.Context, scan *LeaseScan) (*Guard, error) {
	g := &Guard{}
	err := c.decide(ctx, "move the watermark", func() ([]Write, error) {
		if err := c.Store.Load(ctx, g); err != nil {
			return nil, err
		}
		before, now := *g, c.Now()
		if moveWatermark(g, watermark(scan.Probes, now), now); *g == before {
			return nil, errGiveUp
		}
		return []Write{Put(g)}, nil
	})
	return g, err
}

// reaping is one run's view.
type reaping struct {
	c      *Control
	scan   *LeaseScan
	guard  *Guard
	now    time.Time
	wait   patience
	holds  string // why nothing is reaped
	slow   bool
	marked int
}

// late is how long an instance had been silent at the watermark, by the control
// plane's clock alone (U1).
func (r *reaping) late(l Lease) time.Duration { return r.guard.Watermark.Sub(l.Sent) }

func (r *reaping) impaired(l Lease) time.Duration {
	if l.Impaired.IsZero() {
		return 0
	}
	return r.guard.Watermark.Sub(l.Impaired)
}

// lasted is how long an instance has been silent, or without a working engine.
func (r *reaping) lasted(l Lease) time.Duration { return max(r.late(l), r.impaired(l)) }

func (r *reaping) judge(ctx context.Context) error {
	set := r.c.Setting
	var errs []error
	backlog, err := r.c.Queue.Backlog(ctx)
	why := holding(r.guard, r.scan, backlog, set.HeartbeatEvery, set.ReapAfter, r.now)
	if err != nil { // it may hide a backlog: that holds reaping back, but not for ever
		errs = append(errs, fmt.Errorf("measure the heartbeat queue: %w", err))
		why = cmp.Or(why, "the heartbeat queue can not be measured")
	}
	late := func(l Lease) bool { return r.late(l) > set.SuspectAfter || !l.Impaired.IsZero() }
	if r.wait, err = r.c.patienceWith(ctx, r.scan.Leases, late); err != nil {
		errs = append(errs, err)
	}
	counts := countZones(r.scan.Leases, late, func(l Lease) bool { return r.wait.awaited(l.Cluster, r.lasted(l)) })
	if all := counts[""]; why == "" && all.all >= brakeFleet && all.late == all.all {
		why = "every instance of every zone is late"
	}
	holds, err := r.hold(ctx, why)
	errs = append(errs, err, r.setBrakes(ctx, counts), r.forgetBrakes(ctx, counts))
	errs = append(errs, r.suspects(ctx))
	if !holds {
		errs = append(errs, r.lost(ctx))
	}
	return errors.Join(errs...)
}

// suspects marks CONNECTED instances that are late: no new work (U2). A FENCED
// one that is late stays FENCED until it is LOST.
func (r *reaping) suspects(ctx context.Context) error {
	var errs []error
	for _, l := range r.scan.Leases {
		if l.Stage != StageConnected || r.late(l) <= r.c.Setting.SuspectAfter {
			continue
		}
		if outOfTime(ctx) { // the next run goes on
			break
		}
		reason := fmt.Sprintf("no heartbeat for %s", r.late(l).Round(time.Second))
		errs = append(errs, r.c.mark(ctx, l, func(lease *Lease, ledger *Ledger) bool {
			if lease.Stage != StageConnected {
				return false
			}
			setStage(lease, StageSuspect, reason, r.now)
			ledger.Connected = false
			return true
		}))
	}
	return errors.Join(errs...)
}

// lost reaps what has been silent, or without a working engine, for too long.
func (r *reaping) lost(ctx context.Context) error {
	due := slices.DeleteFunc(slices.Clone(r.scan.Leases), func(l Lease) bool {
		return l.Stage == StageLost || !r.wait.over(l.Cluster, r.lasted(l))
	})
	slices.SortFunc(due, func(a, b Lease) int { return a.Sent.Compare(b.Sent) })
	var errs []error
	spent := map[string]bool{} // zones whose tokens are used up
	for _, l := range due {
		if spent[zoneOf(l)] {
			continue
		}
		if outOfTime(ctx) {
			break
		}
		braked, err := r.reap(ctx, l)
		spent[zoneOf(l)] = braked
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// reap is I8: one transaction that raises the epoch, conditional on the very
// lease that was judged, and takes a token of the zone's brake. It says whether
// there was none.
func (r *reaping) reap(ctx context.Context, judged Lease) (braked bool, err error) {
	reason := fmt.Sprintf("LOST: no heartbeat for %s", r.late(judged).Round(time.Second))
	if !r.wait.over(judged.Cluster, r.late(judged)) {
		reason = fmt.Sprintf("LOST: container engine impaired for %s: %s", r.impaired(judged).Round(time.Second), judged.ImpairedWhy)
	}
	lease, ledger, brake := &Lease{ID: judged.ID}, &Ledger{ID: judged.ID}, &Brake{Zone: zoneOf(judged)}
	err = r.c.decide(ctx, "reap instance "+judged.ID, func() ([]Write, error) {
		if err := r.c.Store.Load(ctx, lease, ledger, brake); err != nil {
			return nil, err
		}
		braked = brake.Tokens < 1 || !brake.fresh(r.now)
		if !sameLease(lease, judged) || ledger.Version == 0 || braked {
			return nil, errGiveUp
		}
		brake.Tokens--
		raise(ledger, lease, ReapedCause, StageLost, reason, r.now)
		lease.countLoss(r.now)
		return []Write{Put(lease), Put(ledger), Put(brake)}, nil
	})
	if err == nil && lease.Stage == StageLost && lease.StageReason == reason {
		r.marked++
		r.scan.Leases[slices.IndexFunc(r.scan.Leases, func(l Lease) bool { return l.ID == judged.ID })] = *lease
		r.c.Log.WarnContext(ctx, "instance reaped", logkey.Instance, judged.ID, logkey.Cluster, judged.Cluster, logkey.Zone, judged.Zone, logkey.Epoch, ledger.Epoch, logkey.Reason, reason)
	}
	return braked, err
}

// sameLease says whether a lease is still the one that was judged.
func sameLease(lease *Lease, judged Lease) bool {
	return lease.Version > 0 && lease.Stage != StageLost && lease.Sent.Equal(judged.Sent) &&
		lease.Impaired.Equal(judged.Impaired) && lease.Incarnation == judged.Incarnation
}

// mark changes lease and ledger together if the lease is still the one judged.
func (c *Control) mark(ctx context.Context, judged Lease, change func(*Lease, *Ledger) bool) error {
	lease, ledger := &Lease{ID: judged.ID}, &Ledger{ID: judged.ID}
	return c.decide(ctx, "mark instance "+judged.ID, func() ([]Write, error) {
		if err := c.Store.Load(ctx, lease, ledger); err != nil {
			return nil, err
		}
		if !sameLease(lease, judged) || ledger.Version == 0 || !change(lease, ledger) {
			return nil, errGiveUp
		}
		return []Write{Put(lease), Put(ledger)}, nil
	})
}

// closings goes on with what reaping left open or kept, and retires what is long gone.
// The ledgers, read together, say where there is anything to do.
func (r *reaping) closings(ctx context.Context) error {
	var gone []Lease
	var ledgers []*Ledger
	for _, l := range r.scan.Leases {
		if l.Stage == StageLost || l.Stage == StageFenced {
			gone, ledgers = append(gone, l), append(ledgers, &Ledger{ID: l.ID})
		}
	}
	if err := load(ctx, r.c.Store, ledgers); err != nil {
		return fmt.Errorf("load the ledgers of silent instances: %w", err)
	}
	var errs []error
	for i, l := range gone {
		if outOfTime(ctx) { // the next run goes on
			break
		}
		if closable(ledgers[i]) {
			errs = append(errs, r.c.CloseOlder(ctx, l.ID))
		}
		if keptDue(l, ledgers[i], r.now) {
			errs = append(errs, r.c.EndKept(ctx, l.ID))
		}
		if l.Stage == StageLost && retirable(l, ledgers[i], r.now) {
			errs = append(errs, r.c.retire(ctx, l))
		}
	}
	return errors.Join(errs...)
}

// drains ends what is left on instances that are drained past their deadline.
func (r *reaping) drains(ctx context.Context) error {
	var errs []error
	for _, l := range r.scan.Leases {
		if outOfTime(ctx) { // the next run goes on
			break
		}
		if l.Draining {
			errs = append(errs, r.c.EndDrain(ctx, l.ID))
		}
	}
	return errors.Join(errs...)
}

func (r *reaping) forgetProbes(ctx context.Context) error {
	var errs []error
	for _, p := range r.scan.Probes {
		if r.now.Sub(p.SentAt) > probeKeptFor {
			if err := r.c.Store.Commit(ctx, Delete(&p)); err != nil && !fault.Is(err, fault.Conflict) {
				errs = append(errs, fmt.Errorf("forget probe %s: %w", p.ID, err))
			}
		}
	}
	return errors.Join(errs...)
}

func (r *reaping) measure() {
	stages := map[Stage]int{StageConnected: 0, StageSuspect: 0, StageLost: 0, StageFenced: 0}
	for _, l := range r.scan.Leases {
		stages[l.Stage]++
	}
	count := func(name string, v float64) { r.c.Metrics.Count(name, v) }
	count("ConnectedInstances", float64(stages[StageConnected]))
	count("SuspectInstances", float64(stages[StageSuspect]))
	count("LostInstances", float64(stages[StageLost]))
	count("FencedInstances", float64(stages[StageFenced]))
	count("ReapedInstances", float64(r.marked))
	flapping, full := 0.0, 0.0
	for _, l := range r.scan.Leases {
		if l.flaps(r.now) {
			flapping++
		}
		if !l.NoRoom.IsZero() && l.Stage != StageLost {
			full++
		}
	}
	count("FullInstances", full)
	count("FlappingInstances", flapping)
	engaged := 0.0
	for _, b := range r.scan.Brakes {
		if b.Engaged {
			engaged++
		}
	}
	count("BrakeEngaged", engaged)
	blackout := 0.0
	if r.holds != "" {
		blackout = 1
		r.c.Log.Warn("nothing is reaped", logkey.Reason, r.holds)
	}
	count("GuardBlackout", blackout)
	overdue := 0.0
	for _, p := range r.scan.Probes {
		if p.SeenSent.IsZero() && r.now.Sub(p.SentAt) > probeCountsFor {
			overdue++
		}
	}
	count("LostProbes", overdue)
}
