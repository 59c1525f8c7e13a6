package meter_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/internal/meter"
)

// played answers requests in turn, and keeps their bodies.
type played struct {
	answers []string // "503" fails
	asked   []string
}

func (p *played) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	p.asked = append(p.asked, string(body))
	answer := p.answers[0]
	p.answers = p.answers[1:]
	out := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, Body: io.NopCloser(strings.NewReader(answer)), Request: r}
	if answer == "503" {
		out.StatusCode, out.Body = 503, io.NopCloser(strings.NewReader("{}"))
	}
	return out, nil
}

func observed(p *played) (aws.Config, *[]meter.Call) {
	var calls []meter.Call
	return aws.Config{
		Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""), HTTPClient: p,
		Retryer:    func() aws.Retryer { return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxBackoff = 1 }) },
		APIOptions: append(meter.Log(slog.New(slog.DiscardHandler)), meter.Observe(func(_ context.Context, c meter.Call) { calls = append(calls, c) })),
	}, &calls
}

func TestObserve_TellsOfEachCallWhatDynamoDBSaysItCost(t *testing.T) {
	p := &played{answers: []string{
		`{"ConsumedCapacity":{"CapacityUnits":1.5}}`,
		`{"Responses":{},"ConsumedCapacity":[{"CapacityUnits":2},{"CapacityUnits":0.5}]}`,
		`{"ConsumedCapacity":[{"CapacityUnits":4},{"CapacityUnits":3}]}`,
	}}
	config, calls := observed(p)
	c := dynamodb.NewFromConfig(config)
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}
	_, err1 := c.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: aws.String("t"), Key: key})
	_, err2 := c.BatchGetItem(t.Context(), &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{"t": {Keys: []map[string]types.AttributeValue{key}}}})
	_, err3 := c.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []types.TransactWriteItem{{Delete: &types.Delete{TableName: aws.String("t"), Key: key}}}})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	want := []meter.Call{
		{Service: "DynamoDB", Operation: "GetItem", Requests: 1, Read: 1.5},
		{Service: "DynamoDB", Operation: "BatchGetItem", Requests: 1, Read: 2.5},
		{Service: "DynamoDB", Operation: "TransactWriteItems", Requests: 1, Write: 7},
	}
	for i, c := range *calls {
		if c != want[i] {
			t.Errorf("call %d is %+v, want %+v", i, c, want[i])
		}
		if !strings.Contains(p.asked[i], `"ReturnConsumedCapacity":"TOTAL"`) {
			t.Errorf("call %d did not ask for its cost: %s", i, p.asked[i])
		}
	}
	if len(*calls) != len(want) {
		t.Errorf("%d calls", len(*calls))
	}
}

func TestObserve_CountsEveryTimeACallIsSent(t *testing.T) {
	p := &played{answers: []string{"503", "503", `{}`}}
	config, calls := observed(p)
	if _, err := sqs.NewFromConfig(config).DeleteQueue(t.Context(), &sqs.DeleteQueueInput{QueueUrl: aws.String("https://sqs.us-east-1.amazonaws.com/1/q")}); err != nil {
		t.Fatal(err)
	}
	if len(*calls) != 1 || (*calls)[0].Requests != 3 || (*calls)[0].Name() != "SQS.DeleteQueue" {
		t.Errorf("%+v", *calls)
	}
}

func TestLog_SaysALineACallAtDebugAndWatchesNothingOtherwise(t *testing.T) {
	var out bytes.Buffer
	options := meter.Log(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	config, _ := observed(&played{answers: []string{`{"ConsumedCapacity":{"CapacityUnits":2}}`}})
	config.APIOptions = options
	key := map[string]types.AttributeValue{"id": &types.AttributeValueMemberS{Value: "a"}}
	if _, err := dynamodb.NewFromConfig(config).DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: aws.String("t"), Key: key}); err != nil {
		t.Fatal(err)
	}
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatal(err)
	}
	if line["msg"] != meter.Message || line["operation"] != "DynamoDB.DeleteItem" || line["count"] != 1.0 || line["writeUnits"] != 2.0 {
		t.Errorf("%v", line)
	}
	if got := meter.Log(slog.New(slog.NewJSONHandler(&out, nil))); got != nil {
		t.Errorf("at level info it watches: %v", got)
	}
}
