package agent

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	// hostEvery is how often the host is asked: of a Spot instance's two minutes
	// nothing is to be lost.
	hostEvery = 5 * time.Second
	hostMost  = 5 * time.Second // for one question
)

// Host says whether the machine is about to be taken away.
type Host interface {
	// Notice is what is to come, nil for nothing. After an error nothing new is known.
	Notice(ctx context.Context) (*wire.Notice, error)
}

// heed is the loop that asks the host. What changes is in a heartbeat at once.
func (a *Agent) heed(ctx context.Context) {
	failing := false
	for first := true; ; first = false {
		if a.Host != nil {
			failing = a.askHost(ctx, failing)
		}
		if first {
			close(a.asked)
		}
		if a.Host == nil || !sleep(ctx, hostEvery, nil) {
			return
		}
	}
}

// askHost asks once, and says whether that failed, as it did before or not.
func (a *Agent) askHost(ctx context.Context, before bool) (failing bool) {
	asking, cancel := context.WithTimeout(ctx, hostMost)
	defer cancel()
	n, err := a.Host.Notice(asking)
	if err != nil {
		if !before && ctx.Err() == nil {
			a.Log.Warn("the host does not say whether it is about to go; what it said last stands", logkey.Error, err)
		}
		return true
	}
	a.mu.Lock()
	was := a.notice
	a.notice = n
	a.mu.Unlock()
	switch {
	case alike(n, was):
		return false
	case n == nil:
		a.Log.Info("the host is not about to go any more")
	default:
		a.Log.Warn("the host is about to go: the control plane is told", logkey.Reason, n.Kind, "action", n.Action, "at", n.At)
	}
	a.beats.ring()
	return false
}

func alike(a, b *wire.Notice) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.Action == b.Action && a.At.Equal(b.At)
}
