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
	config := emulator.Shared(t).AWSConfig()
	controltest.StoreSuite(t, func(t *testing.T) control.Store {
		return dynamostore.New(config, makeTables(t, dynamodb.NewFromConfig(config)), time.Now)
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
