//go:build emulator

package dynamostore_test

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"

	"github.com/longshore-run/longshore/shared/schema"
)

// The emulator takes expressions and items that DynamoDB refuses. These checks
// stand before every call that a test makes.

type attributes = map[string]types.AttributeValue

// expressions are what one request or one part of a transaction says.
type expressions struct {
	update, condition, key, projection *string
	names                              map[string]string
	values                             attributes
}

// strict fails the test when a call holds what DynamoDB would refuse.
func strict(t *testing.T) func(*middleware.Stack) error {
	return func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("strict", func(
			ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
		) (middleware.InitializeOutput, middleware.Metadata, error) {
			for _, fault := range faults(in.Parameters) {
				t.Errorf("DynamoDB would refuse %T: %s", in.Parameters, fault)
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	}
}

func faults(input any) []string {
	switch in := input.(type) {
	case *dynamodb.PutItemInput:
		return append(itemFaults(in.Item), expressionFaults(expressions{condition: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}, nil)...)
	case *dynamodb.UpdateItemInput:
		return expressionFaults(expressions{in.UpdateExpression, in.ConditionExpression, nil, nil, in.ExpressionAttributeNames, in.ExpressionAttributeValues}, in.Key)
	case *dynamodb.DeleteItemInput:
		return expressionFaults(expressions{condition: in.ConditionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}, in.Key)
	case *dynamodb.QueryInput:
		return expressionFaults(expressions{key: in.KeyConditionExpression, projection: in.ProjectionExpression, names: in.ExpressionAttributeNames, values: in.ExpressionAttributeValues}, nil)
	case *dynamodb.TransactWriteItemsInput:
		return transactionFaults(in.TransactItems)
	case *dynamodb.BatchGetItemInput:
		return batchFaults(in.RequestItems)
	}
	return nil
}

func transactionFaults(items []types.TransactWriteItem) (out []string) {
	seen := map[string]bool{}
	for _, i := range items {
		var table *string
		var key attributes
		switch {
		case i.Put != nil:
			table, key = i.Put.TableName, keyIn(i.Put.Item)
			out = append(out, itemFaults(i.Put.Item)...)
			out = append(out, expressionFaults(expressions{condition: i.Put.ConditionExpression, names: i.Put.ExpressionAttributeNames, values: i.Put.ExpressionAttributeValues}, nil)...)
		case i.Update != nil:
			table, key = i.Update.TableName, i.Update.Key
			out = append(out, expressionFaults(expressions{i.Update.UpdateExpression, i.Update.ConditionExpression, nil, nil, i.Update.ExpressionAttributeNames, i.Update.ExpressionAttributeValues}, key)...)
		case i.Delete != nil:
			table, key = i.Delete.TableName, i.Delete.Key
			out = append(out, expressionFaults(expressions{condition: i.Delete.ConditionExpression, names: i.Delete.ExpressionAttributeNames, values: i.Delete.ExpressionAttributeValues}, key)...)
		case i.ConditionCheck != nil:
			table, key = i.ConditionCheck.TableName, i.ConditionCheck.Key
			out = append(out, expressionFaults(expressions{condition: i.ConditionCheck.ConditionExpression, names: i.ConditionCheck.ExpressionAttributeNames, values: i.ConditionCheck.ExpressionAttributeValues}, key)...)
		}
		id := aws.ToString(table) + keyText(key)
		if seen[id] {
			out = append(out, "an item twice in a transaction")
		}
		seen[id] = true
	}
	if len(items) > 100 {
		out = append(out, fmt.Sprintf("%d items in a transaction", len(items)))
	}
	return out
}

func batchFaults(request map[string]types.KeysAndAttributes) (out []string) {
	n := 0
	for table, ask := range request {
		n += len(ask.Keys)
		seen := map[string]bool{}
		for _, k := range ask.Keys {
			if seen[keyText(k)] {
				out = append(out, "a key twice in a batch of "+table)
			}
			seen[keyText(k)] = true
		}
	}
	if n == 0 || n > 100 {
		out = append(out, fmt.Sprintf("a batch of %d keys", n))
	}
	return out
}

// keyIn guesses the key of a whole item: the key attributes of the tables.
func keyIn(item attributes) attributes {
	key := attributes{}
	for _, name := range []string{schema.ID, schema.Item, schema.PK, schema.SK} {
		if a, ok := item[name]; ok {
			key[name] = a
		}
	}
	return key
}

func keyText(key attributes) string {
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(key)) {
		s, _ := key[name].(*types.AttributeValueMemberS)
		if s == nil || s.Value == "" {
			return "no key"
		}
		out.WriteString("|" + name + "=" + s.Value)
	}
	return out.String()
}

// itemFaults checks what indexes and sizes ask of an item.
func itemFaults(item attributes) (out []string) {
	for _, name := range indexKeys() {
		if a, ok := item[name]; ok {
			if s, isText := a.(*types.AttributeValueMemberS); !isText || s.Value == "" || len(s.Value) > 1024 {
				out = append(out, fmt.Sprintf("index key %s is %v", name, a))
			}
		}
	}
	if n := size(&types.AttributeValueMemberM{Value: item}); n > 400*1024 {
		out = append(out, fmt.Sprintf("an item of %d bytes", n))
	}
	return out
}

func indexKeys() (out []string) {
	for _, table := range schema.Tables() {
		for _, index := range table.Indexes {
			out = append(out, index.Key.Partition, index.Key.Sort)
		}
	}
	return out
}

// size is about what DynamoDB counts.
func size(a types.AttributeValue) int {
	n := 0
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return len(a.Value)
	case *types.AttributeValueMemberN:
		return len(a.Value)/2 + 2
	case *types.AttributeValueMemberL:
		for _, e := range a.Value {
			n += size(e) + 1
		}
		return n + 3
	case *types.AttributeValueMemberM:
		for name, e := range a.Value {
			n += len(name) + size(e) + 1
		}
		return n + 3
	}
	return 1
}

var (
	placeholder = regexp.MustCompile(`[#:][A-Za-z0-9_]+`)
	bareword    = regexp.MustCompile(`(^|[^#:A-Za-z0-9_])([A-Za-z_][A-Za-z0-9_]*)`)
	known       = []string{
		"SET", "REMOVE", "AND", "OR", "BETWEEN", "attribute_exists", "attribute_not_exists", "begins_with", "if_not_exists",
	}
)

// expressionFaults checks that every placeholder is defined and used, that
// nothing but placeholders and keywords stand in the expressions, that no path
// is written twice, and that no key is written.
func expressionFaults(e expressions, key attributes) (out []string) {
	used := map[string]bool{}
	for _, text := range []*string{e.update, e.condition, e.key, e.projection} {
		if text == nil {
			continue
		}
		if *text == "" || len(*text) > 4096 {
			out = append(out, fmt.Sprintf("an expression of %d bytes", len(*text)))
		}
		for _, p := range placeholder.FindAllString(*text, -1) {
			used[p] = true
		}
		for _, w := range bareword.FindAllStringSubmatch(*text, -1) {
			if !slices.Contains(known, w[2]) {
				out = append(out, fmt.Sprintf("bare word %q in %q", w[2], *text))
			}
		}
		if strings.Contains(*text, "==") || strings.Count(*text, "(") != strings.Count(*text, ")") {
			out = append(out, fmt.Sprintf("malformed %q", *text))
		}
	}
	defined := map[string]bool{}
	for p := range e.names {
		defined[p] = true
	}
	for p := range e.values {
		defined[p] = true
	}
	if !maps.Equal(used, defined) {
		out = append(out, fmt.Sprintf("placeholders used %v, defined %v", slices.Sorted(maps.Keys(used)), slices.Sorted(maps.Keys(defined))))
	}
	if e.names != nil && len(e.names) == 0 || e.values != nil && len(e.values) == 0 {
		out = append(out, "an empty map of names or values")
	}
	return append(out, writtenTwice(e, key)...)
}

var target = regexp.MustCompile(`(?:^|SET |REMOVE |, )(#n[0-9]+)`)

func writtenTwice(e expressions, key attributes) (out []string) {
	if e.update == nil {
		return nil
	}
	// Arguments of if_not_exists are read, not written.
	text := regexp.MustCompile(`if_not_exists\([^)]*\)`).ReplaceAllString(*e.update, "")
	seen := map[string]bool{}
	for _, m := range target.FindAllStringSubmatch(text, -1) {
		name := e.names[m[1]]
		if _, isKey := key[name]; isKey || seen[name] {
			out = append(out, "writes "+name+" twice, or it is a key")
		}
		seen[name] = true
	}
	for p, a := range e.values {
		if s, ok := a.(*types.AttributeValueMemberS); ok && s.Value == "" {
			for _, index := range indexKeys() {
				if regexp.MustCompile(nameOf(e.names, index) + ` = ` + p + `\b`).MatchString(text) {
					out = append(out, "writes an empty "+index+", which is an index's key")
				}
			}
		}
	}
	return out
}

func nameOf(names map[string]string, attribute string) string {
	for p, a := range names {
		if a == attribute {
			return p
		}
	}
	return "none of them"
}

func TestStrict_SeesWhatDynamoDBRefuses(t *testing.T) {
	value := attributes{":v0": &types.AttributeValueMemberS{Value: "x"}}
	for name, bad := range map[string]expressions{
		"bare word":   {condition: aws.String("version = :v0"), values: value},
		"unused name": {condition: aws.String("#n0 = :v0"), names: map[string]string{"#n0": "a", "#n1": "b"}, values: value},
		"undefined":   {condition: aws.String("#n0 = :v0"), values: value},
		"twice":       {update: aws.String("SET #n0 = :v0, #n1 = :v0, #n0 = :v0"), names: map[string]string{"#n0": "a", "#n1": "b"}, values: value},
		"key":         {update: aws.String("SET #n0 = :v0"), names: map[string]string{"#n0": "id"}, values: value},
		"nonsense":    {condition: aws.String("#n0 == :v0"), names: map[string]string{"#n0": "a"}, values: value},
		"empty map":   {condition: aws.String("attribute_exists(#n0)"), names: map[string]string{"#n0": "a"}, values: attributes{}},
	} {
		if len(expressionFaults(bad, attributes{"id": nil})) == 0 {
			t.Errorf("%s is not seen", name)
		}
	}
	good := expressions{
		update: aws.String("SET #n0 = if_not_exists(#n0, :v1) + :v0, #n1 = :v0 REMOVE #n2"), condition: aws.String("#n0 = :v0 AND (attribute_not_exists(#n3) OR #n3 > :v1)"),
		names: map[string]string{"#n0": "a", "#n1": "b", "#n2": "c", "#n3": "d"}, values: attributes{":v0": nil, ":v1": nil},
	}
	if got := expressionFaults(good, attributes{"id": nil}); len(got) != 0 {
		t.Errorf("a good expression is refused: %v", got)
	}
}
