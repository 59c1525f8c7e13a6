package dynamostore

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
)

// Clusters implements control.Store.
func (s *Store) Clusters(ctx context.Context, page control.Page) ([]string, string, error) {
	names, next, err := s.sortKeys(ctx, control.ClusterList, page, query{partition: clusterPartition})
	return names, next, wrap(err, "list clusters")
}

// Services implements control.Store.
func (s *Store) Services(ctx context.Context, cluster string, page control.Page) ([]string, string, error) {
	names, next, err := s.sortKeys(ctx, control.ServiceList(cluster), page, query{partition: prefixed(serviceStart, cluster)})
	return names, next, wrap(err, "list services of cluster %s", cluster)
}

// ServiceDeployments implements control.Store.
func (s *Store) ServiceDeployments(ctx context.Context, cluster, service string, page control.Page) ([]string, string, error) {
	list := control.ServiceDeploymentList(cluster, service)
	ids, next, err := s.sortKeys(ctx, list, page, query{partition: ofService(deploymentStart, cluster, service)})
	return ids, next, wrap(err, "list deployments of service %s", service)
}

// sortKeys lists a partition's sort keys alone.
func (s *Store) sortKeys(ctx context.Context, list string, page control.Page, q query) ([]string, string, error) {
	key := keyOf(schema.Catalog)
	q.project = []string{key.Partition, key.Sort}
	items, next, err := s.catalog(ctx, list, page, q)
	if err != nil {
		return nil, "", err
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		names = append(names, textOf(item[key.Sort]))
	}
	return names, next, nil
}

// Families implements control.Store.
func (s *Store) Families(ctx context.Context, prefix string, page control.Page) ([]control.Family, string, error) {
	items, next, err := s.catalog(ctx, control.FamilyList(prefix), page, query{partition: familyPartition, prefix: prefix})
	if err != nil {
		return nil, "", wrap(err, "list families")
	}
	families := make([]control.Family, len(items))
	for i, item := range items {
		families[i].Name = placeIn(schema.Catalog, item).sort
		if err := fill(&families[i], item); err != nil {
			return nil, "", err
		}
	}
	return families, next, nil
}

// definitionBody is the member that lists leave out.
const definitionBody = "definition"

// Revisions implements control.Store.
func (s *Store) Revisions(ctx context.Context, family string, descending bool, page control.Page) ([]control.Definition, string, error) {
	key := keyOf(schema.Catalog)
	wanted := slices.DeleteFunc(stored(&control.Definition{}), func(name string) bool { return name == definitionBody })
	items, next, err := s.catalog(ctx, control.RevisionList(family, descending), page, query{
		partition: prefixed(definitionStart, family), descending: descending,
		project: append(wanted, key.Partition, key.Sort),
	})
	if err != nil {
		return nil, "", wrap(err, "list revisions of %s", family)
	}
	all := make([]control.Definition, len(items))
	for i, item := range items {
		if err := decode(item, &all[i]); err != nil {
			return nil, "", err
		}
	}
	return all, next, nil
}

// catalog reads a page of one partition of the catalog.
func (s *Store) catalog(ctx context.Context, list string, page control.Page, q query) ([]attributes, string, error) {
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	if q.partition == "" {
		return nil, "", nil
	}
	q.role, q.key, q.after, q.limit = schema.Catalog, keyOf(schema.Catalog), after, page.Size()
	items, more, err := s.run(ctx, q)
	return items, nextPage(list, items, q.key.Sort, more), err
}
