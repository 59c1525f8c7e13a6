package dynamostore

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// TaskIDs implements control.Store over the tasks table's indexes.
func (s *Store) TaskIDs(ctx context.Context, q control.TaskQuery, page control.Page) ([]string, string, error) {
	list := q.ListName()
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	queries := taskQueries(q)
	for i := range queries {
		queries[i].after, queries[i].limit = after, page.Size()
	}
	items, more, err := s.merge(ctx, queries, page.Size())
	if err != nil {
		return nil, "", wrap(err, "list tasks of %s", queries[0].partition)
	}
	ids := make([]string, 0, len(items))
	for _, item := range items {
		ids = append(ids, textOf(item[schema.ID]))
	}
	return ids, nextPage(list, items, queries[0].key.Sort, more), nil
}

func taskQueries(q control.TaskQuery) []query {
	of := func(index, partition string) query {
		return query{role: schema.Tasks, index: index, key: indexKey(schema.Tasks, index), partition: partition}
	}
	switch {
	case q.OnInstance != "":
		return []query{of(schema.TasksByInstance, q.OnInstance)}
	case q.Group != "":
		return []query{of(schema.TasksByGroup, groupKey(q.Cluster, q.Group, q.Stopped))}
	case q.Waiting != "":
		return []query{of(schema.TasksWaiting, waitingKey(q.Cluster, q.Waiting))}
	}
	var shards []query
	for shard := range schema.ClusterShards {
		shards = append(shards, of(schema.TasksByCluster, clusterShard(q.Cluster, shard)))
	}
	return shards
}

// nextPage is the token of what follows the items, if anything does.
func nextPage(list string, items []attributes, sort string, more bool) string {
	if !more || len(items) == 0 {
		return ""
	}
	return control.PageToken(list, textOf(items[len(items)-1][sort]))
}
