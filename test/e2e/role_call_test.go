//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamo "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	eventtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/test/local"
)

// attempt is one call of AWS that somebody tries: what IAM calls it, on what, as
// infra/testdata/rights.txt names it. If it is let through it changes nothing.
type attempt struct {
	action, resource string
	do               func(ctx context.Context, cfg aws.Config) error
}

// refused says whether IAM refused it: any other error is of a call that was let
// through.
func refused(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && (strings.HasPrefix(e.ErrorCode(), "AccessDenied") || strings.HasSuffix(e.ErrorCode(), "AccessDenied") || e.ErrorCode() == "AuthorizationError")
}

var (
	nowhere = "attempt" // a key that no item has
	never   = aws.String("attribute_exists(neverThere)")
)

func keyOf(t schema.Table) map[string]dynamo.AttributeValue {
	key := map[string]dynamo.AttributeValue{t.Key.Partition: &dynamo.AttributeValueMemberS{Value: nowhere}}
	if t.Key.Sort != "" {
		key[t.Key.Sort] = &dynamo.AttributeValueMemberS{Value: nowhere}
	}
	return key
}

func oneKey(attribute string) (*string, map[string]string, map[string]dynamo.AttributeValue) {
	return aws.String("#k = :v"), map[string]string{"#k": attribute}, map[string]dynamo.AttributeValue{":v": &dynamo.AttributeValueMemberS{Value: nowhere}}
}

// onTables are all kinds of access to each table and index.
func onTables(o local.Outputs) []attempt {
	var all []attempt
	for _, t := range schema.Tables() {
		role := strings.ToUpper(t.Role[:1]) + t.Role[1:]
		name, key := aws.String(o[role+"TableName"]), keyOf(t)
		on := func(action string, do func(context.Context, *dynamodb.Client) error) {
			all = append(all, attempt{"dynamodb:" + action, "{" + role + "Table.Arn}", func(ctx context.Context, cfg aws.Config) error {
				return do(ctx, dynamodb.NewFromConfig(cfg))
			}})
		}
		on("GetItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.GetItem(ctx, &dynamodb.GetItemInput{TableName: name, Key: key})
			return err
		})
		on("BatchGetItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]dynamo.KeysAndAttributes{*name: {Keys: []map[string]dynamo.AttributeValue{key}}}})
			return err
		})
		on("Query", func(ctx context.Context, c *dynamodb.Client) error {
			expr, names, values := oneKey(t.Key.Partition)
			_, err := c.Query(ctx, &dynamodb.QueryInput{TableName: name, KeyConditionExpression: expr, ExpressionAttributeNames: names, ExpressionAttributeValues: values})
			return err
		})
		for _, i := range t.Indexes {
			all = append(all, attempt{"dynamodb:Query", "{" + role + "Table.Arn}/index/" + i.Name, func(ctx context.Context, cfg aws.Config) error {
				expr, names, values := oneKey(i.Key.Partition)
				_, err := dynamodb.NewFromConfig(cfg).Query(ctx, &dynamodb.QueryInput{TableName: name, IndexName: &i.Name, KeyConditionExpression: expr, ExpressionAttributeNames: names, ExpressionAttributeValues: values})
				return err
			}})
		}
		on("Scan", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.Scan(ctx, &dynamodb.ScanInput{TableName: name, Limit: aws.Int32(1)})
			return err
		})
		on("PutItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.PutItem(ctx, &dynamodb.PutItemInput{TableName: name, Item: key, ConditionExpression: never})
			return err
		})
		on("UpdateItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.UpdateItem(ctx, &dynamodb.UpdateItemInput{TableName: name, Key: key, ConditionExpression: never, UpdateExpression: aws.String("SET a = :a"),
				ExpressionAttributeValues: map[string]dynamo.AttributeValue{":a": &dynamo.AttributeValueMemberBOOL{Value: true}}})
			return err
		})
		on("DeleteItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.DeleteItem(ctx, &dynamodb.DeleteItemInput{TableName: name, Key: key})
			return err
		})
		on("ConditionCheckItem", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: []dynamo.TransactWriteItem{
				{ConditionCheck: &dynamo.ConditionCheck{TableName: name, Key: key, ConditionExpression: never}}}})
			return err
		})
		on("DeleteTable", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: name})
			return err
		})
		on("UpdateTimeToLive", func(ctx context.Context, c *dynamodb.Client) error {
			_, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{TableName: name, TimeToLiveSpecification: &dynamo.TimeToLiveSpecification{AttributeName: aws.String(schema.TTL), Enabled: aws.Bool(true)}})
			return err
		})
	}
	return all
}

// onQueue are all kinds of access to one queue.
func onQueue(resource, url string) []attempt {
	var all []attempt
	on := func(action string, do func(context.Context, *sqs.Client) error) {
		all = append(all, attempt{"sqs:" + action, resource, func(ctx context.Context, cfg aws.Config) error { return do(ctx, sqs.NewFromConfig(cfg)) }})
	}
	on("SendMessage", func(ctx context.Context, c *sqs.Client) error {
		in := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: aws.String("an attempt of a test")}
		if strings.HasSuffix(url, ".fifo") {
			in.MessageGroupId, in.MessageDeduplicationId = &nowhere, aws.String(resource)
		}
		_, err := c.SendMessage(ctx, in)
		return err
	})
	on("ReceiveMessage", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, VisibilityTimeout: 0, WaitTimeSeconds: 1})
		return err
	})
	on("DeleteMessage", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: &nowhere})
		return err
	})
	on("ChangeMessageVisibility", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &url, ReceiptHandle: &nowhere})
		return err
	})
	on("GetQueueAttributes", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url})
		return err
	})
	on("SetQueueAttributes", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: map[string]string{"DelaySeconds": "0"}})
		return err
	})
	on("DeleteQueue", func(ctx context.Context, c *sqs.Client) error {
		_, err := c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &url})
		return err
	})
	return all
}

// onQueues are those on the stack's own queues, and on a command queue that no
// instance has.
func onQueues(o local.Outputs, endpoint string) []attempt {
	var all []attempt
	for _, name := range []string{"Admission", "Reports", "Heartbeats", "Services"} {
		all = append(all, onQueue("{"+name+"Queue.Arn}", o[name+"QueueUrl"])...)
		all = append(all, onQueue("{"+name+"QueueDead.Arn}", o[name+"DeadQueueUrl"])...)
	}
	for _, name := range []string{"Events", "Schedule"} {
		all = append(all, onQueue("{"+name+"QueueDead.Arn}", o[name+"DeadQueueUrl"])...)
	}
	command := o["CommandQueueNameStart"] + strings.Repeat("0", 32)
	all = append(all, onQueue(commandQueues, endpoint+"/000000000000/"+command)...)
	all = append(all, attempt{"sqs:CreateQueue", commandQueues, func(ctx context.Context, cfg aws.Config) error {
		_, err := sqs.NewFromConfig(cfg).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String(command + "-never"), Attributes: map[string]string{"DelaySeconds": "-1"}})
		return err
	}}, attempt{"sqs:CreateQueue", "another queue", func(ctx context.Context, cfg aws.Config) error {
		_, err := sqs.NewFromConfig(cfg).CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: aws.String("another"), Attributes: map[string]string{"DelaySeconds": "-1"}})
		return err
	}})
	return all
}

// commandQueues is how rights.txt names the instances' command queues.
const commandQueues = "arn:{AWS::Partition}:sqs:{AWS::Region}:{AWS::AccountId}:longshore-cmd-*"

// beyond are calls that no function and no agent makes, and what of the others
// some may make on their own thing alone.
func beyond(o local.Outputs, functions []string, agentRole string) []attempt {
	all := []attempt{
		{"iam:CreateUser", "*", func(ctx context.Context, cfg aws.Config) error {
			_, err := iam.NewFromConfig(cfg).CreateUser(ctx, &iam.CreateUserInput{UserName: aws.String("made-by-an-attempt")})
			return err
		}},
		{"iam:PutRolePolicy", "*", func(ctx context.Context, cfg aws.Config) error {
			_, err := iam.NewFromConfig(cfg).PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: aws.String(o["AgentRoleName"]), PolicyName: aws.String("more"), PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[]}`)})
			return err
		}},
		{"sts:AssumeRole", "*", func(ctx context.Context, cfg aws.Config) error {
			_, err := sts.NewFromConfig(cfg).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: &agentRole, RoleSessionName: aws.String("i-0123456789abcdef0")})
			return err
		}},
		{"events:PutEvents", "{EventBus.Arn}", func(ctx context.Context, cfg aws.Config) error {
			_, err := eventbridge.NewFromConfig(cfg).PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{EventBusName: aws.String(o["EventBusName"]), Source: aws.String("attempt"), DetailType: aws.String("attempt"), Detail: aws.String("{}")}}})
			return err
		}},
		{"events:PutEvents", "the default bus", func(ctx context.Context, cfg aws.Config) error {
			_, err := eventbridge.NewFromConfig(cfg).PutEvents(ctx, &eventbridge.PutEventsInput{Entries: []eventtypes.PutEventsRequestEntry{{Source: aws.String("attempt"), DetailType: aws.String("attempt"), Detail: aws.String("{}")}}})
			return err
		}},
	}
	for _, name := range functions {
		all = append(all, attempt{"lambda:InvokeFunction", "{" + name + ".Arn}", func(ctx context.Context, cfg aws.Config) error {
			_, err := lambda.NewFromConfig(cfg).Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(o[name+"FunctionName"]), Payload: []byte("{}")})
			return err
		}}, attempt{"lambda:UpdateFunctionConfiguration", "{" + name + ".Arn}", func(ctx context.Context, cfg aws.Config) error {
			_, err := lambda.NewFromConfig(cfg).UpdateFunctionConfiguration(ctx, &lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String(o[name+"FunctionName"])})
			return err
		}}, attempt{"logs:CreateLogStream", "{" + name + "Log.Arn}", func(ctx context.Context, cfg aws.Config) error {
			_, err := cloudwatchlogs.NewFromConfig(cfg).CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: aws.String(o[name+"LogGroupName"]), LogStreamName: &nowhere})
			return err
		}})
	}
	return all
}
