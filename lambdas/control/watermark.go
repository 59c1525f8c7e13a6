package control

import (
	"context"
	"time"
)

// Bounds of the probes that show whether the heartbeat queue delivers.
const (
	probeCountsFor = 15 * time.Minute
	probeKeptFor   = 2 * time.Hour
	standstill     = 3 * time.Minute
)

// watermark is up to when the heartbeat queue is known to deliver: when the
// newest probe that came through was sent. Zero if none came through lately.
func watermark(probes []Probe, now time.Time) time.Time {
	var mark time.Time
	for _, p := range probes {
		if !p.SeenSent.IsZero() && p.SeenSent.After(mark) && now.Sub(p.SentAt) <= probeCountsFor {
			mark = p.SeenSent
		}
	}
	return mark
}

// oldestUnseen is when the oldest probe that still counts and has not come
// through was sent, later ones having done so or not; zero if all have.
func oldestUnseen(probes []Probe, now time.Time) time.Time {
	var oldest time.Time
	for _, p := range probes {
		if p.SeenSent.IsZero() && now.Sub(p.SentAt) <= probeCountsFor && (oldest.IsZero() || p.SentAt.Before(oldest)) {
			oldest = p.SentAt
		}
	}
	return oldest
}

// moveWatermark takes a newly seen watermark into the guard. A watermark that
// has stood still for long leaves a trace: after it moves again, reaping waits
// until every instance has had the time to be heard.
func moveWatermark(g *Guard, mark, now time.Time) {
	if g.MovedAt.IsZero() {
		g.MovedAt = now
	}
	stood := now.Sub(g.MovedAt) > standstill && !g.Watermark.IsZero()
	if stood {
		g.StoodUntil = now
	}
	if mark.After(g.Watermark) {
		g.Watermark, g.MovedAt = mark, now
	}
}

// holding says why nothing may be reaped now, or "". It judges our own pipeline
// before it judges anybody's host (U9).
func holding(g *Guard, scan *LeaseScan, backlog int, interval, reapAfter time.Duration, now time.Time) string {
	live := 0
	for _, l := range scan.Leases {
		if l.Stage != StageLost {
			live++
		}
	}
	unseen := oldestUnseen(scan.Probes, now)
	switch {
	case g.Watermark.IsZero():
		return "no probe has come through the heartbeat queue yet"
	case backlog > live && !unseen.IsZero() && now.Sub(unseen) > interval:
		return "the heartbeat queue has a backlog and a probe is stuck in it"
	case !g.StoodUntil.IsZero() && now.Sub(g.StoodUntil) < reapAfter:
		return "the heartbeat queue stood still and has not been well for long enough"
	}
	return ""
}

// hold keeps when the guard began to hold, and says whether it still may: past
// most it gives way to the slow rate.
func hold(g *Guard, why string, most time.Duration, now time.Time) (holds, slow bool) {
	if why == "" {
		g.HoldingSince = time.Time{}
		return false, false
	}
	if g.HoldingSince.IsZero() {
		g.HoldingSince = now
	}
	if now.Sub(g.HoldingSince) >= most {
		return false, true
	}
	return true, true
}

// hold says whether nothing may be reaped, and keeps since when that is so before
// anything else is done: the time of a hold ends also if no run comes to its own end.
func (r *reaping) hold(ctx context.Context, why string) (holds bool, err error) {
	g := *r.guard
	holds, r.slow = hold(&g, why, r.c.Setting.BlackoutMax, r.now)
	if holds {
		r.holds = why
	}
	if g.HoldingSince.Equal(r.guard.HoldingSince) {
		return holds, nil
	}
	return holds, r.c.decide(ctx, "keep since when reaping is held back", func() ([]Write, error) {
		kept := &Guard{}
		if err := r.c.Store.Load(ctx, kept); err != nil {
			return nil, err
		}
		before := kept.HoldingSince
		if hold(kept, why, r.c.Setting.BlackoutMax, r.now); kept.HoldingSince.Equal(before) {
			return nil, errGiveUp
		}
		return []Write{Put(kept)}, nil
	})
}
