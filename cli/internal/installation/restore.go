package installation

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// roles are the stack's tables, as its outputs name them.
var roles = []string{"Tasks", "Instances", "Leases", "Catalog"}

// Copied is what became of one table.
type Copied struct {
	Table   string `json:"table"`
	From    string `json:"from"`
	Written int    `json:"written"`
	Removed int    `json:"removed"`
}

// item is one of DynamoDB's.
type item = map[string]types.AttributeValue

// CopyTables makes each of the stack's tables what another of the same shape is:
// TABLE of TABLE+suffix, which a restore from a backup has made. The stack's own
// tables stay, and with them their streams, indexes, expiry and backups. It may be
// run again, and goes on until they are alike.
func (in *Installation) CopyTables(ctx context.Context, suffix string) ([]Copied, error) {
	if err := in.halted(ctx); err != nil {
		if errors.Is(err, errRuns) {
			return nil, &exit.Error{Code: exit.Failed, Text: "nothing was copied", Cause: err, Next: "stop them first: longshore restore halt"}
		}
		return nil, err
	}
	c := dynamodb.NewFromConfig(in.AWS)
	for _, role := range roles { // all are there, before any is touched
		name, err := in.output(role + "TableName")
		if err != nil {
			return nil, err
		}
		from, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: aws.String(name + suffix)})
		if err != nil {
			return nil, &exit.Error{Code: exit.NotFound, Text: "look at table " + name + suffix, Cause: err, Next: "restore it: docs/runbooks/restore.md"}
		}
		if from.Table.TableStatus != types.TableStatusActive {
			return nil, exit.New(exit.Failed, "wait until it is ACTIVE", "table %s is %s", name+suffix, from.Table.TableStatus)
		}
	}
	var all []Copied
	for _, role := range roles {
		done, err := copyTable(ctx, c, in.Outputs[role+"TableName"], suffix)
		all = append(all, done)
		if err != nil {
			return all, err
		}
	}
	return all, nil
}

func copyTable(ctx context.Context, c *dynamodb.Client, name, suffix string) (Copied, error) {
	done := Copied{Table: name, From: name + suffix}
	table, err := c.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	if err != nil {
		return done, fmt.Errorf("look at table %s: %w", name, err)
	}
	var keys []string
	for _, k := range table.Table.KeySchema {
		keys = append(keys, aws.ToString(k.AttributeName))
	}
	wanted := map[string]bool{}
	err = scan(ctx, c, name+suffix, nil, func(page []item) error {
		var puts []types.WriteRequest
		for _, i := range page {
			wanted[keyOf(i, keys)] = true
			puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: i}})
		}
		done.Written += len(puts)
		return write(ctx, c, name, puts)
	})
	if err != nil {
		return done, err
	}
	err = scan(ctx, c, name, keys, func(page []item) error {
		var gone []types.WriteRequest
		for _, i := range page {
			if !wanted[keyOf(i, keys)] {
				gone = append(gone, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: only(i, keys)}})
			}
		}
		done.Removed += len(gone)
		return write(ctx, c, name, gone)
	})
	return done, err
}

// scan reads a table, strongly, page by page; of only some attributes if any are named.
func scan(ctx context.Context, c *dynamodb.Client, table string, attributes []string, each func([]item) error) error {
	q := &dynamodb.ScanInput{TableName: &table, ConsistentRead: aws.Bool(true)}
	if len(attributes) > 0 {
		q.ExpressionAttributeNames = map[string]string{}
		var names []string
		for i, a := range attributes {
			short := fmt.Sprintf("#k%d", i)
			q.ExpressionAttributeNames[short] = a
			names = append(names, short)
		}
		q.ProjectionExpression = aws.String(strings.Join(names, ", "))
	}
	pages := dynamodb.NewScanPaginator(c, q)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read table %s: %w", table, err)
		}
		if err := each(page.Items); err != nil {
			return err
		}
	}
	return nil
}

// write writes any number of items, and again what DynamoDB had no time for.
func write(ctx context.Context, c *dynamodb.Client, table string, all []types.WriteRequest) error {
	for chunk := range slices.Chunk(all, 25) {
		for wait := 50 * time.Millisecond; len(chunk) > 0; wait = min(2*wait, 5*time.Second) {
			out, err := c.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{table: chunk}})
			if err != nil {
				return fmt.Errorf("write table %s: %w", table, err)
			}
			if chunk = out.UnprocessedItems[table]; len(chunk) == 0 {
				break
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(wait):
			}
		}
	}
	return nil
}

// only is an item's key.
func only(i item, keys []string) item {
	out := maps.Clone(i)
	maps.DeleteFunc(out, func(name string, _ types.AttributeValue) bool { return !slices.Contains(keys, name) })
	return out
}

// keyOf is an item's key as one text; all keys of ours are texts.
func keyOf(i item, keys []string) string {
	var parts []string
	for _, k := range keys {
		text, _ := i[k].(*types.AttributeValueMemberS)
		if text == nil {
			return ""
		}
		parts = append(parts, fmt.Sprintf("%q", text.Value))
	}
	return strings.Join(parts, " ")
}

// Raised is what raising the epochs came to.
type Raised struct {
	Since   time.Time `json:"since"`
	Raised  int       `json:"raised"`
	Skipped int       `json:"skipped"`
	Left    int       `json:"left"`
}

// RaiseEpochs makes restored tables safe to work with: until each instance has shown
// what it runs nothing is stopped, closed or given away. Run again with the same
// time it goes on; it does so by itself until none is left.
func (in *Installation) RaiseEpochs(ctx context.Context, since time.Time) (*Raised, error) {
	total := &Raised{Since: since}
	for {
		var got Raised
		err := in.invoke(ctx, "Reaper", map[string]any{"source": "longshore.restore", "time": since.UTC().Format(time.RFC3339)}, &got)
		if err != nil {
			return total, err
		}
		total.Raised, total.Skipped, total.Left = total.Raised+got.Raised, got.Skipped, got.Left
		if got.Left == 0 || got.Raised == 0 {
			return total, nil
		}
	}
}
