// Package bus reads an EventBridge bus live: through a queue and a rule that it
// makes for the time of one reading, and removes at its end. Events from before
// are not there. The command events imports it.
package bus

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// Prefix begins the names of what a reading makes: what is left of one that was
// killed can be known by it.
const Prefix = "longshore-follow-"

const (
	longPoll    = 10 // seconds
	removeFor   = 20 * time.Second
	targetID    = "queue"
	keepSeconds = "300" // what nobody reads any more is not kept
)

// Event is one event, as EventBridge hands it on.
type Event struct {
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Time       time.Time       `json:"time"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

// Reading is what is read, and where.
type Reading struct {
	Bus     string
	Pattern map[string]any
	// Ready is told once events come.
	Ready func()
	// Each gets every event once, and its text as it came.
	Each func(e Event, raw []byte) error
}

// Follow reads until ctx ends. What it made is removed before it returns,
// whatever happened.
func Follow(ctx context.Context, cfg aws.Config, r Reading) (err error) {
	f := &follower{events: eventbridge.NewFromConfig(cfg), queues: sqs.NewFromConfig(cfg), bus: r.Bus, name: Prefix + random()}
	defer func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeFor)
		defer cancel()
		err = errors.Join(err, f.remove(last))
	}()
	if err := f.make(ctx, r.Pattern); err != nil {
		return err
	}
	if r.Ready != nil {
		r.Ready()
	}
	seen := &recent{}
	for {
		if err := f.read(ctx, seen, r.Each); err != nil {
			return err
		}
	}
}

func random() string {
	var b [6]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

type follower struct {
	events    *eventbridge.Client
	queues    *sqs.Client
	bus, name string
	url       string
	rule      bool
}

// make makes the queue, then the rule that fills it.
func (f *follower) make(ctx context.Context, pattern map[string]any) error {
	made, err := f.queues.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &f.name, Tags: map[string]string{"longshore": "follow"}, Attributes: map[string]string{
		"MessageRetentionPeriod": keepSeconds, "SqsManagedSseEnabled": "true",
	}})
	if err != nil {
		return fmt.Errorf("make the queue %s: %w", f.name, err)
	}
	f.url = aws.ToString(made.QueueUrl)
	got, err := f.queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &f.url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameQueueArn}})
	if err != nil {
		return fmt.Errorf("look at the queue %s: %w", f.name, err)
	}
	queue := got.Attributes[string(sqstypes.QueueAttributeNameQueueArn)]
	text, err := json.Marshal(pattern)
	if err != nil {
		return fmt.Errorf("write the rule's pattern: %w", err)
	}
	f.rule = true // from here on there may be one
	rule, err := f.events.PutRule(ctx, &eventbridge.PutRuleInput{Name: &f.name, EventBusName: &f.bus, EventPattern: aws.String(string(text)), State: ebtypes.RuleStateEnabled,
		Description: aws.String("Made by longshore events --follow, which removes it at its end")})
	if err != nil {
		return fmt.Errorf("make a rule on the bus %s: %w", f.bus, err)
	}
	policy := fmt.Sprintf(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"events.amazonaws.com"},"Action":"sqs:SendMessage","Resource":%q,"Condition":{"ArnEquals":{"aws:SourceArn":%q}}}]}`, queue, aws.ToString(rule.RuleArn))
	if _, err := f.queues.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &f.url, Attributes: map[string]string{"Policy": policy}}); err != nil {
		return fmt.Errorf("open the queue to the bus: %w", err)
	}
	put, err := f.events.PutTargets(ctx, &eventbridge.PutTargetsInput{Rule: &f.name, EventBusName: &f.bus, Targets: []ebtypes.Target{{Id: aws.String(targetID), Arn: &queue}}})
	if err != nil {
		return fmt.Errorf("point the rule at the queue: %w", err)
	}
	for _, e := range put.FailedEntries {
		return fmt.Errorf("point the rule at the queue: %s", aws.ToString(e.ErrorMessage))
	}
	return nil
}

func (f *follower) read(ctx context.Context, seen *recent, each func(Event, []byte) error) error {
	out, err := f.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &f.url, MaxNumberOfMessages: 10, WaitTimeSeconds: longPoll})
	if err != nil {
		return fmt.Errorf("read the queue %s: %w", f.name, err)
	}
	for _, m := range out.Messages {
		var e Event
		if err := json.Unmarshal([]byte(aws.ToString(m.Body)), &e); err != nil {
			return fmt.Errorf("read an event: %w", err)
		}
		if id := cmp.Or(e.ID, aws.ToString(m.MessageId)); seen.first(id) {
			if err := each(e, []byte(aws.ToString(m.Body))); err != nil {
				return err
			}
		}
		if _, err := f.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &f.url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			return fmt.Errorf("take an event from the queue: %w", err)
		}
	}
	return nil
}

// remove removes what there may be, the rule first: it would fill a queue that
// is gone. What is not there is removed.
func (f *follower) remove(ctx context.Context) error {
	var errs []error
	if f.rule {
		_, err := f.events.RemoveTargets(ctx, &eventbridge.RemoveTargetsInput{Rule: &f.name, EventBusName: &f.bus, Ids: []string{targetID}})
		errs = append(errs, unlessGone(err))
		_, err = f.events.DeleteRule(ctx, &eventbridge.DeleteRuleInput{Name: &f.name, EventBusName: &f.bus})
		errs = append(errs, unlessGone(err))
	}
	if f.url != "" {
		_, err := f.queues.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &f.url})
		errs = append(errs, unlessGone(err))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("the rule and the queue %s are left over; remove them: %w", f.name, err)
	}
	return nil
}

func unlessGone(err error) error {
	if _, gone := errors.AsType[*ebtypes.ResourceNotFoundException](err); gone {
		return nil
	}
	if _, gone := errors.AsType[*sqstypes.QueueDoesNotExist](err); gone {
		return nil
	}
	return err
}

// Line is an event for people: when, what about, and how it stands now.
func Line(e Event) string {
	var d map[string]any
	_ = json.Unmarshal(e.Detail, &d) // what is no object is shown without a detail
	text := func(name string) string { s, _ := d[name].(string); return s }
	id := func(s string) string {
		s = s[strings.LastIndexByte(s, '/')+1:]
		return s[:min(len(s), 12)]
	}
	parts := []string{e.Time.UTC().Format(time.RFC3339), strings.TrimPrefix(e.DetailType, "ECS ")}
	subject := cmp.Or(text("taskArn"), text("containerInstanceArn"))
	if subject == "" && len(e.Resources) > 0 {
		subject = e.Resources[0]
	}
	if subject != "" {
		if text("taskArn") != "" || text("containerInstanceArn") != "" {
			subject = id(subject)
		} else {
			subject = subject[strings.LastIndexByte(subject, '/')+1:]
		}
		parts = append(parts, subject)
	}
	for _, name := range []string{"lastStatus", "status", "eventName", "group"} {
		if v := text(name); v != "" {
			parts = append(parts, v)
		}
	}
	for _, name := range []string{"stoppedReason", "reason", "statusReason"} {
		if v := text(name); v != "" {
			parts = append(parts, "("+v+")")
			break
		}
	}
	return output.Visible(strings.Join(parts, "  "))
}
