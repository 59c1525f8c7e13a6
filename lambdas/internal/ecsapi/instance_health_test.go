package ecsapi

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

func TestHealth_IsTheEnginesAndWhetherItHasRoom(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	for want, lease := range map[string]control.Lease{
		"OK":                {Version: 1},
		"INSUFFICIENT_DATA": {},
		"IMPAIRED":          {Version: 1, NoRoom: at},
	} {
		h := healthOf(&control.InstanceView{Lease: lease})
		if h.OverallStatus != want || h.Details[0].Status != want {
			t.Errorf("%+v: %+v, want %s", lease, h, want)
		}
	}
}
