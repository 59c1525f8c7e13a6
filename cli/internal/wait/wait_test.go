package wait_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

func TestUntil_AsksUntilItIsSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, begun := 0, time.Now()
		err := wait.Until(t.Context(), time.Second, time.Minute, "it", func(context.Context) (bool, error) { asked++; return asked == 4, nil })
		if err != nil || asked != 4 || time.Since(begun) != 3*time.Second {
			t.Errorf("%v after %d in %s", err, asked, time.Since(begun))
		}
	})
}

func TestUntil_EndsAtItsLimitWithTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := wait.Until(t.Context(), time.Second, 10*time.Second, "the task to run", func(context.Context) (bool, error) { return false, nil })
		if exit.Code(err) != exit.Timeout {
			t.Errorf("%v", err)
		}
	})
}

func TestUntil_EndsAsInterruptedWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, limit := range []time.Duration{time.Minute, 0} {
			for range 20 { // which of two ways to end is seen first was a matter of chance
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(3500*time.Millisecond, cancel)
				err := wait.Until(ctx, time.Second, limit, "it", func(context.Context) (bool, error) { return false, nil })
				if exit.Code(err) != exit.Interrupted {
					t.Errorf("limit %s: %v", limit, err)
				}
			}
		}
	})
}

func TestUntil_LivesThroughAFewFaultsInARowAndNotThroughMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		flaky := func(context.Context) (bool, error) {
			if asked++; asked%5 != 0 {
				return false, errors.New("connection reset")
			}
			return asked == 20, nil
		}
		if err := wait.Until(t.Context(), time.Second, 0, "it", flaky); err != nil {
			t.Error(err)
		}
		asked = 0
		err := wait.Until(t.Context(), time.Second, 0, "it", func(context.Context) (bool, error) { asked++; return false, errors.New("gone") })
		if err == nil || asked != 6 {
			t.Errorf("%v after %d", err, asked)
		}
		asked = 0
		err = wait.Until(t.Context(), time.Second, 0, "it", func(context.Context) (bool, error) {
			asked++
			return false, exit.New(exit.NotFound, "", "no such task")
		})
		if exit.Code(err) != exit.NotFound || asked != 1 {
			t.Errorf("%v after %d", err, asked)
		}
	})
}

func TestAge_IsWhatPeopleSay(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 1500 * time.Millisecond: "1s", 61 * time.Second: "1m1s", 12*time.Minute + 5*time.Second: "12m",
		125 * time.Minute: "2h5m", 76 * time.Hour: "3d4h",
	} {
		if got := wait.Age(d); got != want {
			t.Errorf("%s is %s", d, got)
		}
	}
}
