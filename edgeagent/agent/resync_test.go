package agent_test

import (
	"testing"
	"testing/synctest"

	"github.com/longshore-run/longshore/shared/wire"
)

func TestResync_OfNoTaskMeansRegisterAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.up()
		before := len(sent[*wire.Register](r))
		r.inbox.Put(&wire.Resync{Header: wire.Header{Instance: instance}, Tasks: []string{}})
		synctest.Wait()
		if n := len(sent[*wire.Register](r)); n != before+1 {
			t.Fatalf("%d registers were sent, %d before", n, before)
		}
		r.down()
	})
}
