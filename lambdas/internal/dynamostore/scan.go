package dynamostore

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/task"
)

// ScanLiveTasks implements control.Store by a scan that leaves out what is STOPPED.
func (s *Store) ScanLiveTasks(ctx context.Context, page control.Page) (tasks []control.Task, next string, err error) {
	items, next, err := s.scan(ctx, schema.Tasks, control.LiveTaskList, page, func(e *expression, in *dynamodb.ScanInput) {
		in.FilterExpression = aws.String(e.name("lastStatus") + " <> " + e.value(text(string(task.Stopped))))
	})
	for _, item := range items {
		t := control.Task{ID: textOf(item[schema.ID])}
		if err := s.fillLive(&t, item); err != nil {
			return nil, "", err
		}
		if t.Version > 0 && t.Live() {
			tasks = append(tasks, t)
		}
	}
	return tasks, next, err
}

// ScanLedgers implements control.Store by a scan of the instances table.
func (s *Store) ScanLedgers(ctx context.Context, page control.Page) (ledgers []control.Ledger, next string, err error) {
	items, next, err := s.scan(ctx, schema.Instances, control.LedgerList, page, func(e *expression, in *dynamodb.ScanInput) {
		in.FilterExpression = aws.String(e.name(schema.Item) + " = " + e.value(text(itemLedger)))
	})
	for _, item := range items {
		l := control.Ledger{ID: textOf(item[schema.ID])}
		if err := s.fillLive(&l, item); err != nil {
			return nil, "", err
		}
		if l.Version > 0 {
			ledgers = append(ledgers, l)
		}
	}
	return ledgers, next, err
}

// scan reads one page of a base table, strongly consistent item by item. A page
// is what one call reads, at most 1 MiB before the filter: it may be empty with
// more to follow.
func (s *Store) scan(ctx context.Context, role, list string, page control.Page, filter func(*expression, *dynamodb.ScanInput)) ([]attributes, string, error) {
	after, err := page.From(list)
	if err != nil {
		return nil, "", err
	}
	e := newExpression()
	in := &dynamodb.ScanInput{TableName: s.table(role), ConsistentRead: aws.Bool(true), Limit: aws.Int32(int32(page.Size()))}
	filter(e, in)
	in.ExpressionAttributeNames, in.ExpressionAttributeValues = e.names, e.values
	if after != "" {
		in.ExclusiveStartKey = splitKey(role, after)
	}
	out, err := s.client.Scan(ctx, in)
	if err != nil {
		return nil, "", wrap(err, "scan %s", role)
	}
	if len(out.LastEvaluatedKey) == 0 {
		return out.Items, "", nil
	}
	return out.Items, control.PageToken(list, joinKey(role, out.LastEvaluatedKey)), nil
}

// joinKey is a key as one text, and splitKey reads it back: no id holds a slash.
func joinKey(role string, item attributes) string {
	p := placeIn(role, item)
	return p.partition + "/" + p.sort
}

func splitKey(role, joined string) attributes {
	partition, sort, _ := strings.Cut(joined, "/")
	return place{role, partition, sort}.key()
}
