package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// The brake's rates (I9).
const (
	brakeSetEvery   = 50 * time.Second // a run each minute, with some jitter
	brakeMost       = 5                // instances a minute and zone
	brakeSlowEvery  = 5 * time.Minute
	brakeFleet      = 4   // below it a zone is never slowed down
	brakeLateShare  = 55  // per cent
	brakeMinuteRate = 0.1 // of a zone's instances
)

// zoneCount is how many instances of a zone there are that are not LOST, nor only
// awaited, and how many of them are late or impaired.
type zoneCount struct{ all, late int }

// countZones counts every zone, and under "" all of them together.
func countZones(leases []Lease, late, awaited func(Lease) bool) map[string]zoneCount {
	counts := map[string]zoneCount{}
	for _, l := range leases {
		if l.Stage == StageLost {
			continue
		}
		for _, zone := range []string{zoneOf(l), ""} {
			c := counts[zone]
			switch { // also a zone in which all are awaited has a budget
			case awaited(l):
			case late(l):
				c.all, c.late = c.all+1, c.late+1
			default:
				c.all++
			}
			counts[zone] = c
		}
	}
	return counts
}

func zoneOf(l Lease) string {
	if l.Zone == "" {
		return "edge"
	}
	return l.Zone
}

// pace is how fast a zone may be reaped.
type pace int

const (
	paceNormal pace = iota
	paceSlow        // one in five minutes
	paceNone
)

// paceOf judges a zone: many silent at once is more likely our fault than theirs.
func paceOf(zone, all zoneCount, blackoutOver bool) pace {
	switch {
	case all.all >= brakeFleet && all.late == all.all && !blackoutOver:
		return paceNone
	case all.all >= brakeFleet && all.late == all.all:
		return paceSlow
	case zone.all >= brakeFleet && zone.late*100 >= zone.all*brakeLateShare:
		return paceSlow
	}
	return paceNormal
}

// fresh says whether what a brake holds is this minute's budget: what a run left
// of an earlier one is gone, also for a run that comes before the next is set.
func (r *Brake) fresh(now time.Time) bool { return now.Sub(r.SetAt) < brakeSetEvery }

// setBrake gives a zone its budget for the next minute. It sets, never adds:
// what a zone did not use is gone. It says whether anything changed.
func setBrake(b *Brake, zone zoneCount, p pace, now time.Time) bool {
	if b.fresh(now) {
		return false
	}
	b.SetAt, b.Engaged, b.Tokens = now, p != paceNormal, 0
	switch p {
	case paceNormal:
		b.Tokens = max(1, min(int(float64(zone.all)*brakeMinuteRate), brakeMost))
	case paceSlow:
		if now.Sub(b.SlowAt) >= brakeSlowEvery {
			b.Tokens, b.SlowAt = 1, now
		}
	case paceNone:
	}
	return true
}

// setBrakes gives each zone its budget, unless this minute's is there already.
func (r *reaping) setBrakes(ctx context.Context, counts map[string]zoneCount) error {
	var errs []error
	over := r.holds == "" && r.slow
	for _, zone := range slices.Sorted(maps.Keys(counts)) {
		n := counts[zone]
		if zone == "" {
			continue
		}
		p := paceOf(n, counts[""], over)
		if over && p == paceNormal {
			p = paceSlow
		}
		b := &Brake{Zone: zone}
		errs = append(errs, r.c.decide(ctx, "set the brake of zone "+zone, func() ([]Write, error) {
			if err := r.c.Store.Load(ctx, b); err != nil {
				return nil, err
			}
			if !setBrake(b, n, p, r.now) {
				return nil, errGiveUp
			}
			return []Write{Put(b)}, nil
		}))
	}
	return errors.Join(errs...)
}

// forgetBrakes removes the brakes of zones that have no instance left: nobody
// would release them.
func (r *reaping) forgetBrakes(ctx context.Context, counts map[string]zoneCount) error {
	var errs []error
	r.scan.Brakes = slices.DeleteFunc(r.scan.Brakes, func(b Brake) bool {
		if _, alive := counts[b.Zone]; alive {
			return false
		}
		if err := r.c.Store.Commit(ctx, Delete(&b)); err != nil && !fault.Is(err, fault.Conflict) {
			errs = append(errs, fmt.Errorf("forget the brake of zone %s: %w", b.Zone, err))
		}
		return true
	})
	return errors.Join(errs...)
}
