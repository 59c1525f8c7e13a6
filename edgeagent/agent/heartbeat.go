package agent

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// beatEvery is the interval until a welcome tells another.
const beatEvery = time.Minute

func (a *Agent) every(m Meta) time.Duration {
	if m.HeartbeatEvery > 0 {
		return m.HeartbeatEvery
	}
	return beatEvery
}

// beat is the loop that renews the lease: each interval, less some jitter, and
// at once after a welcome, a fence and a change of the engine's health.
func (a *Agent) beat(ctx context.Context) {
	select { // a beat without a notice would say that nothing is to come
	case <-a.asked:
	case <-ctx.Done():
		return
	}
	a.awaitRoom(ctx)
	failed := 0
	for {
		a.turn("beat")
		a.beats.hush()
		a.launchWaiting()
		pauseFor := sleep
		var meta Meta
		a.book.view(func(p *page) { meta = p.meta })
		every := a.every(meta)
		pause := every - time.Duration(a.Rand()*float64(every)/10)
		if meta.Epoch > 0 && meta.Rebuilt {
			if err := a.sendBeat(ctx); err != nil {
				if ctx.Err() != nil {
					return
				}
				pause = min(every, a.backoff(failed, time.Second, time.Minute))
				if failed == 0 {
					a.Log.Warn("heartbeat", logkey.Error, err)
				}
				failed++
				pauseFor = a.retry
			} else {
				if failed > 0 {
					a.repeatEnds()
					a.gotThrough()
				}
				failed = 0
			}
		}
		if !pauseFor(ctx, pause, a.beats) {
			return
		}
	}
}

func (a *Agent) repeatEnds() {
	a.mu.Lock()
	a.repeat = true
	a.mu.Unlock()
	a.reports.ring()
}

// sendBeat sends one heartbeat. Its n is drawn in the transaction that shows
// the inventory.
func (a *Agent) sendBeat(ctx context.Context) error {
	m := &wire.Heartbeat{Header: wire.Header{Instance: a.instance}, Session: a.Session, Docker: wire.DockerOK, Inventory: []wire.Entry{}}
	a.mu.Lock()
	if a.impaired != "" {
		m.Docker, m.DockerReason = wire.DockerImpaired, clip(a.impaired)
	}
	m.UnknownLabels, m.Notice = a.unknown, a.notice
	a.mu.Unlock()
	m.NoRoom = clip(a.roomless())
	if a.FreeDisk != nil {
		m.FreeDiskMiB = a.FreeDisk()
	}
	err := a.book.update(func(p *page) error {
		m.N, m.Epoch, m.Incarnation = p.draw(), p.meta.Epoch, p.meta.Incarnation
		for r := range p.all {
			if e, ok := r.entry(); ok {
				m.Inventory = append(m.Inventory, e)
			}
		}
		for _, r := range p.book.tombs {
			if r.State.Alive() {
				e, _ := r.entry()
				m.Inventory = append(m.Inventory, e)
			}
		}
		slices.SortFunc(m.Inventory, func(x, y wire.Entry) int { return cmp.Compare(x.Task, y.Task) })
		return nil
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	at := a.Now()
	err = a.Outbox.SendHeartbeat(ctx, m)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unsent = err; err == nil {
		a.sent = at
	}
	return err
}

// setHealth notes why the engine does not work, "" if it does.
func (a *Agent) setHealth(why string) {
	a.mu.Lock()
	was := a.impaired
	a.impaired = why
	if why == "" && was != "" {
		for _, r := range a.runners {
			r.box.Nudge()
		}
	}
	a.mu.Unlock()
	switch {
	case (was == "") == (why == ""):
		return
	case why != "":
		a.Log.Error("the engine is impaired: containers are left as they are, and nothing is reported of them", logkey.Reason, why)
	default:
		a.Log.Info("the engine works again")
	}
	a.beats.ring()
}

// silentReason is what an impaired engine is reported as.
func silentReason(err error) string {
	if fault.Is(err, fault.Unavailable) {
		return err.Error()
	}
	return "the engine answers with an error: " + err.Error()
}
