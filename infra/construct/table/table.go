// Package table makes a DynamoDB table of a description in shared/schema:
// on-demand, encrypted, recoverable to any second of the last 35 days, with an
// expiry attribute and indexes that project keys only. What its items mean is
// not its affair. infra/stack imports it.
package table

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/shared/schema"
)

// Table is a table with the ARNs its users' roles name.
type Table struct {
	awsdynamodb.Table
	// Indexes are the ARNs of its indexes, each written out.
	Indexes []*string
}

// New adds a table to scope. It uses the plain Table, not TableV2: the latter
// becomes a global table, which emulators do not know.
func New(scope constructs.Construct, id string, t schema.Table, retain bool) Table {
	props := &awsdynamodb.TableProps{
		PartitionKey: attribute(t.Key.Partition),
		SortKey:      attribute(t.Key.Sort),
		BillingMode:  awsdynamodb.BillingMode_PAY_PER_REQUEST,
		Encryption:   awsdynamodb.TableEncryption_AWS_MANAGED,
		PointInTimeRecoverySpecification: &awsdynamodb.PointInTimeRecoverySpecification{
			PointInTimeRecoveryEnabled: jsii.Bool(true),
		},
		TimeToLiveAttribute: jsii.String(schema.TTL),
		DeletionProtection:  &retain,
		RemovalPolicy:       removal(retain),
	}
	if t.Streamed {
		props.Stream = awsdynamodb.StreamViewType_NEW_AND_OLD_IMAGES
	}
	made := awsdynamodb.NewTable(scope, &id, props)
	out := Table{Table: made}
	for _, index := range t.Indexes {
		made.AddGlobalSecondaryIndex(&awsdynamodb.GlobalSecondaryIndexProps{
			IndexName:      jsii.String(index.Name),
			PartitionKey:   attribute(index.Key.Partition),
			SortKey:        attribute(index.Key.Sort),
			ProjectionType: awsdynamodb.ProjectionType_KEYS_ONLY,
		})
		out.Indexes = append(out.Indexes, jsii.String(*made.TableArn()+"/index/"+index.Name))
	}
	return out
}

func attribute(name string) *awsdynamodb.Attribute {
	if name == "" {
		return nil
	}
	return &awsdynamodb.Attribute{Name: &name, Type: awsdynamodb.AttributeType_STRING}
}

func removal(retain bool) awscdk.RemovalPolicy {
	if retain {
		return awscdk.RemovalPolicy_RETAIN
	}
	return awscdk.RemovalPolicy_DESTROY
}
