package control

import (
	"context"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// IngestProbe notes that the reaper's probe came through. Its id was made at
// random and stored before it was sent, so nobody else can name one.
func (c *Control) IngestProbe(ctx context.Context, s Sender, m *wire.Probe) error {
	p := &Probe{ID: m.ID}
	return c.decide(ctx, "note probe "+m.ID, func() ([]Write, error) {
		if err := c.Store.Load(ctx, p); err != nil {
			return nil, err
		}
		if p.Version == 0 {
			c.Metrics.Count(countRefusedSenders, 1)
			c.Log.WarnContext(ctx, "probe dropped: nobody here sent it", logkey.Sender, s.Identity, logkey.Message, s.MessageID)
			return nil, errGiveUp
		}
		if !p.SeenSent.IsZero() {
			return nil, errGiveUp
		}
		p.SeenSent = s.SentAt
		return []Write{Put(p)}, nil
	})
}
