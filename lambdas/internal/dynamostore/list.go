package dynamostore

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore-run/longshore/shared/schema"
)

// query is one partition of a table or an index, read in the order of its sort key.
type query struct {
	role, index string
	key         schema.Key
	partition   string
	after       string // sort keys beyond this one
	prefix      string // sort keys that begin so
	descending  bool
	project     []string // attributes wanted; nil: all there are
	limit       int
}

// indexKey is the key of an index, as the schema has it.
func indexKey(role, index string) schema.Key {
	for _, t := range schema.Tables() {
		for _, i := range t.Indexes {
			if t.Role == role && i.Name == index {
				return i.Key
			}
		}
	}
	panic("dynamostore: no index " + index + " of " + role)
}

// run reads up to the limit and says whether there is more. Items come from as
// many calls as it takes: one answer is at most 1 MiB.
func (s *Store) run(ctx context.Context, q query) (items []attributes, more bool, err error) {
	in := s.input(q)
	for {
		// One more than wanted, to know whether any follow.
		in.Limit = aws.Int32(int32(q.limit - len(items) + 1))
		out, err := s.client.Query(ctx, in)
		if err != nil {
			return nil, false, err
		}
		items = append(items, out.Items...)
		if len(items) > q.limit {
			return items[:q.limit], true, nil
		}
		if len(out.LastEvaluatedKey) == 0 {
			return items, false, nil
		}
		in.ExclusiveStartKey = out.LastEvaluatedKey
	}
}

func (s *Store) input(q query) *dynamodb.QueryInput {
	e := newExpression()
	condition := e.name(q.key.Partition) + " = " + e.value(text(q.partition))
	in := &dynamodb.QueryInput{TableName: s.table(q.role), ScanIndexForward: aws.Bool(!q.descending)}
	if q.index != "" {
		in.IndexName = &q.index
	} else {
		in.ConsistentRead = aws.Bool(true)
	}
	switch sort := q.key.Sort; {
	case q.after != "" && q.prefix != "":
		// A key condition is one range. Names are letters, digits, hyphens and
		// underscores, which all sort between "!" and "~".
		condition += " AND " + e.name(sort) + " BETWEEN " + e.value(text(q.after+"!")) + " AND " + e.value(text(q.prefix+"~"))
	case q.after != "" && q.descending:
		condition += " AND " + e.name(sort) + " < " + e.value(text(q.after))
	case q.after != "":
		condition += " AND " + e.name(sort) + " > " + e.value(text(q.after))
	case q.prefix != "":
		condition += " AND begins_with(" + e.name(sort) + ", " + e.value(text(q.prefix)) + ")"
	}
	var projection string
	for i, attribute := range q.project {
		if i > 0 {
			projection += ", "
		}
		projection += e.name(attribute)
	}
	if projection != "" {
		in.ProjectionExpression = &projection
	}
	in.KeyConditionExpression = &condition
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	return in
}

// merge runs queries side by side and merges what they give by sort key, up to
// the limit.
func (s *Store) merge(ctx context.Context, queries []query, limit int) (items []attributes, more bool, err error) {
	if len(queries) == 1 {
		return s.run(ctx, queries[0])
	}
	var wg sync.WaitGroup
	parts := make([][]attributes, len(queries))
	mores := make([]bool, len(queries))
	errs := make([]error, len(queries))
	for i, q := range queries {
		wg.Go(func() { parts[i], mores[i], errs[i] = s.run(ctx, q) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, false, err
		}
	}
	items = slices.Concat(parts...)
	sort := queries[0].key.Sort
	slices.SortStableFunc(items, func(a, b attributes) int { return cmp.Compare(textOf(a[sort]), textOf(b[sort])) })
	if len(items) > limit {
		return items[:limit], true, nil
	}
	return items, slices.Contains(mores, true), nil
}
