// Package wait polls until something is so. It knows no API. Packages of the
// command import it.
package wait

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// faults is how often in a row the asked may fail before waiting ends: a network
// that is away for a moment is no reason to let go of a task.
const faults = 5

// Until asks until done, an error that stays, or the limit; 0 is no limit. What
// is waited for stands in the error.
func Until(ctx context.Context, every, limit time.Duration, what string, ask func(context.Context) (done bool, err error)) error {
	outer := ctx
	if limit > 0 {
		var cancel func()
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	failed := 0
	for {
		done, err := ask(ctx)
		switch {
		case outer.Err() != nil:
			return outer.Err()
		case ctx.Err() != nil:
			return late(what, limit)
		case done:
			return nil
		case err == nil:
			failed = 0
		case final(err) || failed == faults:
			return err
		default:
			failed++
		}
		select {
		case <-ctx.Done():
			if outer.Err() != nil { // without a limit both are one
				return outer.Err()
			}
			return late(what, limit)
		case <-tick.C:
		}
	}
}

func late(what string, limit time.Duration) error {
	return exit.New(exit.Timeout, "wait longer with --timeout, or look again later", "gave up waiting for %s after %s", what, limit)
}

// final says whether asking again can not help.
func final(err error) bool {
	if e, ok := errors.AsType[*exit.Error](err); ok && e.Code != exit.Failed {
		return true
	}
	code := exit.Explain(err).Code
	return code == exit.NotFound || code == exit.Denied || code == exit.Usage
}

// Age writes how long something lasts, as people say it: 42s, 3m, 2h5m, 3d4h.
func Age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	days, hours := d/(24*time.Hour), d%(24*time.Hour)/time.Hour
	minutes, seconds := d%time.Hour/time.Minute, d%time.Minute/time.Second
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes >= 10:
		return fmt.Sprintf("%dm", minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	}
	return fmt.Sprintf("%ds", seconds)
}
