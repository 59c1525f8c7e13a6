package installation

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// hiddenFor is for how long a dead letter is nobody else's while it is sent again.
const hiddenFor = 60

// Redriven is what became of a queue's dead letters.
type Redriven struct {
	Queue string `json:"queue"`
	Sent  int    `json:"sent"`
	Left  int    `json:"left"`
}

// Redrive sends the dead letters of one queue again, at most as many as there were
// when it began: what fails again comes back. A letter is deleted only after it was
// sent, so one may be sent twice, which harms nothing of what may be sent at all.
func (in *Installation) Redrive(ctx context.Context, name string) (*Redriven, error) {
	w, known := ways[name]
	if !known {
		return nil, exit.New(exit.Usage, "see which there are: longshore queues list", "there is no queue %q; known are %s", name, strings.Join(slices.Sorted(maps.Keys(ways)), ", "))
	}
	if !w.allowed {
		return nil, exit.New(exit.Usage, "see docs/runbooks/"+name+"-dead-letters.md", "dead letters of %s are not sent again; %s", name, w.why)
	}
	title := strings.ToUpper(name[:1]) + name[1:]
	dead, err := in.output(title + "DeadQueueUrl")
	if err != nil {
		return nil, err
	}
	again := in.call
	if name != "schedule" {
		url, err := in.output(title + "QueueUrl")
		if err != nil {
			return nil, err
		}
		again = func(ctx context.Context, m types.Message) error { return in.send(ctx, url, m) }
	}
	c := sqs.NewFromConfig(in.AWS)
	out := &Redriven{Queue: name}
	if out.Left, _, err = depth(ctx, c, dead); err != nil {
		return nil, err
	}
	for out.Left > 0 {
		got, err := c.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{
			QueueUrl: &dead, MaxNumberOfMessages: int32(min(out.Left, 10)), VisibilityTimeout: hiddenFor, WaitTimeSeconds: 1,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
		})
		if err != nil {
			return out, fmt.Errorf("read dead letters of %s: %w", name, err)
		}
		if len(got.Messages) == 0 { // the rest is hidden by somebody else
			break
		}
		for _, m := range got.Messages {
			if err := again(ctx, m); err != nil {
				return out, fmt.Errorf("send a dead letter of %s again: %w", name, err)
			}
			if _, err := c.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &dead, ReceiptHandle: m.ReceiptHandle}); err != nil {
				return out, fmt.Errorf("delete a dead letter of %s that was sent again: %w", name, err)
			}
			out.Sent, out.Left = out.Sent+1, out.Left-1
		}
	}
	return out, nil
}

// send puts a letter back into its queue, in its group, as news: its old
// deduplication id might swallow it.
func (in *Installation) send(ctx context.Context, url string, m types.Message) error {
	out := &sqs.SendMessageInput{QueueUrl: &url, MessageBody: m.Body, MessageAttributes: m.MessageAttributes}
	if strings.HasSuffix(url, ".fifo") {
		out.MessageGroupId = aws.String(m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)])
		out.MessageDeduplicationId = aws.String(rand.Text())
	}
	_, err := sqs.NewFromConfig(in.AWS).SendMessage(ctx, out)
	return err
}

// call gives the schedule function an event again: that of a failed call, as Lambda
// wrote it down, or the one that the function itself put aside.
func (in *Installation) call(ctx context.Context, m types.Message) error {
	name, err := in.output("ScheduleFunctionName")
	if err != nil {
		return err
	}
	payload := json.RawMessage(aws.ToString(m.Body))
	var failed struct {
		RequestPayload json.RawMessage `json:"requestPayload"`
	}
	if json.Unmarshal(payload, &failed) == nil && len(failed.RequestPayload) > 0 {
		payload = failed.RequestPayload
	}
	_, err = lambda.NewFromConfig(in.AWS).Invoke(ctx, &lambda.InvokeInput{FunctionName: &name, InvocationType: lambdatypes.InvocationTypeEvent, Payload: payload})
	return err
}
