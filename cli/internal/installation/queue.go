package installation

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cwtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Queue is one of the stack's queues with its dead letters.
type Queue struct {
	Name        string `json:"name"`
	Waiting     int    `json:"waiting"`
	InFlight    int    `json:"inFlight"`
	Oldest      *int   `json:"oldestSeconds,omitempty"` // as CloudWatch last knew; none on an emulator
	DeadLetters int    `json:"deadLetters"`
	DeadOldest  *int   `json:"deadLettersOldestSeconds,omitempty"`
	// Redrive says how dead letters are sent again, or why they are not.
	Redrive string `json:"redrive"`
	url     string // "" where the letters come from no queue
	dead    string
}

// way is how the dead letters of one queue may be sent again.
type way struct {
	allowed bool
	why     string
}

// ways are by the queue's name. What SQS moves it counts as a new message, sent
// now and by whoever moved it; so what a message's sender and time decide on is
// never moved.
var ways = map[string]way{
	"admission": {true, "sent again: a kick only says to look again"},
	"services":  {true, "sent again: a kick only says to look again"},
	"schedule":  {true, "the function is called again: a run is made once, however often it is asked for"},
	"reports": {false, "never: a moved message counts as sent now, and by whoever moved it, so it would be dropped as a stranger's; " +
		"agents repeat what is not acknowledged, and inventories ask for the rest"},
	"heartbeats": {false, "never: an old one would be a sign of life of a machine that may be dead; the next real one says everything again"},
	"events":     {false, "never: it would be told after what has been told since; subscribers read anew what they keep"},
}

// Queues are the stack's queues, by name.
func (in *Installation) Queues(ctx context.Context) ([]Queue, error) {
	var all []Queue
	c, m := sqs.NewFromConfig(in.AWS), cloudwatch.NewFromConfig(in.AWS)
	names := in.ending("DeadQueueUrl")
	if len(names) == 0 {
		_, err := in.output("ReportsDeadQueueUrl")
		return nil, err
	}
	for _, name := range names {
		q := Queue{Name: strings.ToLower(name), url: in.Outputs[name+"QueueUrl"], dead: in.Outputs[name+"DeadQueueUrl"]}
		q.Redrive = ways[q.Name].why
		var err error
		if q.url != "" {
			if q.Waiting, q.InFlight, err = depth(ctx, c, q.url); err != nil {
				return nil, err
			}
			q.Oldest = Oldest(ctx, m, q.url, in.Now())
		}
		if q.DeadLetters, _, err = depth(ctx, c, q.dead); err != nil {
			return nil, err
		}
		if q.DeadLetters > 0 {
			q.DeadOldest = Oldest(ctx, m, q.dead, in.Now())
		}
		all = append(all, q)
	}
	return all, nil
}

func depth(ctx context.Context, c *sqs.Client, url string) (waiting, inFlight int, err error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{
		types.QueueAttributeNameApproximateNumberOfMessages, types.QueueAttributeNameApproximateNumberOfMessagesNotVisible,
	}})
	if err != nil {
		return 0, 0, fmt.Errorf("look at queue %s: %w", nameOf(url), err)
	}
	count := func(name types.QueueAttributeName) int {
		n, _ := strconv.Atoi(out.Attributes[string(name)])
		return n
	}
	return count(types.QueueAttributeNameApproximateNumberOfMessages), count(types.QueueAttributeNameApproximateNumberOfMessagesNotVisible), nil
}

func nameOf(url string) string { return url[strings.LastIndexByte(url, '/')+1:] }

// Oldest is the age in seconds of a queue's oldest message, as far as CloudWatch
// knows; nil if it does not, which the alarms on the same tell too.
func Oldest(ctx context.Context, c *cloudwatch.Client, url string, now time.Time) *int {
	out, err := c.GetMetricStatistics(ctx, &cloudwatch.GetMetricStatisticsInput{
		Namespace: aws.String("AWS/SQS"), MetricName: aws.String("ApproximateAgeOfOldestMessage"),
		Dimensions: []cwtypes.Dimension{{Name: aws.String("QueueName"), Value: aws.String(nameOf(url))}},
		StartTime:  aws.Time(now.Add(-5 * time.Minute)), EndTime: &now, Period: aws.Int32(60), Statistics: []cwtypes.Statistic{cwtypes.StatisticMaximum},
	})
	if err != nil {
		return nil
	}
	known := slices.DeleteFunc(out.Datapoints, func(d cwtypes.Datapoint) bool { return d.Timestamp == nil || d.Maximum == nil })
	if len(known) == 0 {
		return nil
	}
	last := slices.MaxFunc(known, func(a, b cwtypes.Datapoint) int { return a.Timestamp.Compare(*b.Timestamp) })
	return aws.Int(int(*last.Maximum))
}
