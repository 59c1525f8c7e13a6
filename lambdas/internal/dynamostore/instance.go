package dynamostore

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// InstanceIDs implements control.Store over the instances table's index, which
// holds descriptions only.
func (s *Store) InstanceIDs(ctx context.Context, cluster string, page control.Page) ([]string, string, error) {
	list := control.InstanceList(cluster)
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	q := query{
		role: schema.Instances, index: schema.InstancesByCluster,
		key:       indexKey(schema.Instances, schema.InstancesByCluster),
		partition: cluster, after: after, limit: page.Size(),
	}
	items, more, err := s.run(ctx, q)
	if err != nil {
		return nil, "", wrap(err, "list instances of cluster %s", cluster)
	}
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, textOf(item[schema.ID]))
	}
	return ids, nextPage(list, items, q.key.Sort, more), nil
}
