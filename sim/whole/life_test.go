package whole

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A goroutine that takes long on the machine, and dies, has died when it was let go on.
func TestStruck_IsBuriedAtTheTimeOfItsDeath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t.Context(), Option{Seed: 1, Hosts: 1, Trace: true})
		w.choose()
		h := w.newHost(0, clusterDefault)
		l := &life{h: h, process: process{stage: &w.stage, name: h.name}}
		h.life = l
		go func() {
			_ = l.wait(context.Background(), "call", func(g *gate) { w.push(time.Second, 0, "call", func() { g.answer(nil) }) })
			x := uint64(1)
			for range 100_000_000 {
				x = x*0x94d049bb133111eb + 1
			}
			if x != 0 {
				w.struck(l)
			}
		}()
		w.push(2*time.Second, 0, "later", func() {})
		w.until(w.begun.Add(3 * time.Second))
		if all := strings.Join(w.log.lines, "\n"); !strings.Contains(all, "0:00:01.000 "+h.name+": agent is killed") {
			t.Errorf("it died a second after the beginning:\n%s", all)
		}
	})
}
