package control

import (
	"context"
	"encoding/json"
)

// UpdateCluster gives a cluster other settings; none leaves those it has.
func (c *Control) UpdateCluster(ctx context.Context, name string, settings json.RawMessage) (*Cluster, error) {
	k := &Cluster{Name: name}
	err := c.decide(ctx, "update cluster "+name, func() ([]Write, error) {
		if err := c.Store.Load(ctx, k); err != nil {
			return nil, err
		}
		if err := k.mustBeActive(); err != nil {
			return nil, err
		}
		if len(settings) == 0 || string(settings) == string(k.Settings) {
			return nil, errGiveUp
		}
		k.Settings = settings
		return []Write{Put(k)}, nil
	})
	if err != nil {
		return nil, err
	}
	return k, nil
}
