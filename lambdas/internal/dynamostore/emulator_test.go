//go:build emulator

package dynamostore_test

import (
	"context"
	"crypto/rand"
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

func TestStore_OnTheEmulatorPassesTheSuite(t *testing.T) {
	plain := emulator.Shared(t).AWSConfig()
	controltest.StoreSuite(t, func(t *testing.T) control.Store {
		config := plain.Copy()
		config.APIOptions = append(config.APIOptions, strict(t))
		return dynamostore.New(config, makeTables(t, dynamodb.NewFromConfig(plain)), time.Now)
	})
}

// makeTables makes the four tables under names of their own, and removes them
// at the end of the test.
func makeTables(t *testing.T, client *dynamodb.Client) map[string]string {
	t.Helper()
	names := map[string]string{}
	for _, table := range schema.Tables() {
		name := table.Role + "-" + rand.Text()
		names[table.Role] = name
		in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: types.BillingModePayPerRequest, KeySchema: keySchema(table.Key)}
		attributes := map[string]bool{}
		declare := func(k schema.Key) {
			for _, a := range []string{k.Partition, k.Sort} {
				if a != "" && !attributes[a] {
					attributes[a] = true
					in.AttributeDefinitions = append(in.AttributeDefinitions, types.AttributeDefinition{AttributeName: aws.String(a), AttributeType: types.ScalarAttributeTypeS})
				}
			}
		}
		declare(table.Key)
		for _, index := range table.Indexes {
			declare(index.Key)
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes, types.GlobalSecondaryIndex{
				IndexName: aws.String(index.Name), KeySchema: keySchema(index.Key),
				Projection: &types.Projection{ProjectionType: types.ProjectionTypeKeysOnly},
			})
		}
		if _, err := client.CreateTable(t.Context(), in); err != nil {
			t.Fatalf("create table %s: %v", table.Role, err)
		}
		// At once on an emulator; AWS takes some seconds.
		if err := dynamodb.NewTableExistsWaiter(client).Wait(t.Context(), &dynamodb.DescribeTableInput{TableName: &name}, 2*time.Minute); err != nil {
			t.Fatalf("wait for table %s: %v", table.Role, err)
		}
		t.Cleanup(func() {
			// A call sent again after a lost answer finds it gone.
			_, err := client.DeleteTable(context.Background(), &dynamodb.DeleteTableInput{TableName: &name})
			if _, gone := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !gone {
				t.Errorf("delete table %s: %v", table.Role, err)
			}
		})
	}
	return names
}

func keySchema(k schema.Key) []types.KeySchemaElement {
	out := []types.KeySchemaElement{{AttributeName: aws.String(k.Partition), KeyType: types.KeyTypeHash}}
	if k.Sort != "" {
		out = append(out, types.KeySchemaElement{AttributeName: aws.String(k.Sort), KeyType: types.KeyTypeRange})
	}
	return out
}

// A newer version writes attributes that this one does not know, while both run.
func TestStore_LeavesAttributesAloneThatItDoesNotKnow(t *testing.T) {
	config := emulator.Shared(t).AWSConfig()
	client := dynamodb.NewFromConfig(config)
	names := makeTables(t, client)
	s := dynamostore.New(config, names, time.Now)
	one := &control.Task{ID: "a", Cluster: "c", Tags: map[string]string{"a": "b"}, Priority: 1}
	lease := &control.Lease{ID: "i", Incarnation: "inc", Session: "s"}
	if err := s.Commit(t.Context(), control.Put(one), control.Put(lease)); err != nil {
		t.Fatal(err)
	}
	newer := func(role, id string) {
		t.Helper()
		_, err := client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
			TableName: aws.String(names[role]), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}},
			UpdateExpression: aws.String("SET #f = :v"), ExpressionAttributeNames: map[string]string{"#f": "future"},
			ExpressionAttributeValues: map[string]types.AttributeValue{":v": &types.AttributeValueMemberS{Value: "kept"}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	newer(schema.Tasks, "a")
	newer(schema.Leases, "i")
	one.Tags, one.Priority = nil, 2
	if err := s.Commit(t.Context(), control.Put(one)); err != nil {
		t.Fatal(err)
	}
	one.Priority = 3
	if err := s.Commit(t.Context(), control.Put(one), control.Put(lease)); err != nil {
		t.Fatal(err)
	}
	if _, renewed, err := s.Renew(t.Context(), control.Renewal{ID: "i", Incarnation: "inc", Session: "s", Sent: time.Now()}); err != nil || !renewed {
		t.Fatalf("renewed %v, %v", renewed, err)
	}
	for role, id := range map[string]string{schema.Tasks: "a", schema.Leases: "i"} {
		out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(names[role]), Key: map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: id}}})
		if err != nil {
			t.Fatal(err)
		}
		if future, ok := out.Item["future"].(*types.AttributeValueMemberS); !ok || future.Value != "kept" {
			t.Errorf("%s: the unknown attribute is %v", role, out.Item["future"])
		}
		if _, there := out.Item["tags"]; there {
			t.Error("a member that was cleared is still stored")
		}
	}
}

// What is written where something expired still lies starts from nothing: not
// even what a newer version had added to the old item stays.
func TestStore_WritesOverAnExpiredItemWhole(t *testing.T) {
	config := emulator.Shared(t).AWSConfig()
	client := dynamodb.NewFromConfig(config)
	names := makeTables(t, client)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}
	_, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String(names[schema.Tasks]), Item: map[string]types.AttributeValue{
		"id": key["id"], "version": &types.AttributeValueMemberN{Value: "9"}, "expiresAt": &types.AttributeValueMemberN{Value: "1000"},
		"future": &types.AttributeValueMemberS{Value: "old"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := dynamostore.New(config, names, time.Now)
	if err := s.Commit(t.Context(), control.Put(&control.Task{ID: "a", Cluster: "c"})); err != nil {
		t.Fatal(err)
	}
	out, err := client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String(names[schema.Tasks]), Key: key})
	if err != nil || out.Item["future"] != nil || out.Item["expiresAt"] != nil || out.Item["cluster"] == nil {
		t.Fatalf("the item is %v, %v", out.Item, err)
	}
}
