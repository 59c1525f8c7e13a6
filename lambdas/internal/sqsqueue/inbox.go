package sqsqueue

import (
	"context"
	"maps"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/shared/fault"
)

// SenderTag is the tag that says whose a command queue is: the agents' policy
// lets a session read only the queue tagged with its own aws:userid.
const SenderTag = "longshore-sender"

// inboxAttributes are those of every command queue: commands are of use for an
// hour, are hidden while one is being taken, and are waited for.
func inboxAttributes() map[string]string {
	return map[string]string{
		string(types.QueueAttributeNameMessageRetentionPeriod):        "3600",
		string(types.QueueAttributeNameVisibilityTimeout):             "30",
		string(types.QueueAttributeNameReceiveMessageWaitTimeSeconds): "20",
		string(types.QueueAttributeNameSqsManagedSseEnabled):          "true",
	}
}

func (q *Queue) inboxName(instance string) string {
	return q.setting.CommandQueueNameStart + instance
}

func (q *Queue) inboxURL(instance string) string { return q.directory + q.inboxName(instance) }

// EnsureInbox implements control.Queue: get, create, tag, mend. It is called
// with every register, so what is right already is left alone. Within a minute
// of its deletion SQS refuses a queue's name; that is a fault of kind
// Unavailable, and the agent registers again.
func (q *Queue) EnsureInbox(ctx context.Context, instance, identity string) error {
	if identity == "" {
		return fault.Field("identity", "a command queue must have an owner")
	}
	url, err := q.inbox(ctx, instance)
	if err != nil {
		return wrap(err, "find command queue of instance %s", instance)
	}
	if url == "" {
		made, err := q.create(ctx, instance, identity)
		if made || err != nil {
			return wrap(err, "create command queue of instance %s", instance)
		}
		url = q.inboxURL(instance)
	}
	// The tag is written every time, because it says who may read.
	_, err = q.client.TagQueue(ctx, &sqs.TagQueueInput{QueueUrl: &url, Tags: map[string]string{SenderTag: identity}})
	if err != nil {
		return wrap(err, "tag command queue of instance %s", instance)
	}
	return wrap(q.mend(ctx, url), "set attributes of command queue of instance %s", instance)
}

// inbox is the URL of an instance's queue, "" without one.
func (q *Queue) inbox(ctx context.Context, instance string) (string, error) {
	_, err := q.client.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: aws.String(q.inboxName(instance))})
	if err != nil {
		if kindOf(err) == fault.NotFound {
			return "", nil
		}
		return "", err
	}
	// The URL is made, not taken: SQS and emulators answer with hosts of their own.
	return q.inboxURL(instance), nil
}

// create makes a queue with everything it needs in one call, because SQS may not
// know a new queue for a second. It is false when somebody else just made it.
func (q *Queue) create(ctx context.Context, instance, identity string) (bool, error) {
	_, err := q.client.CreateQueue(ctx, &sqs.CreateQueueInput{
		QueueName: aws.String(q.inboxName(instance)), Attributes: inboxAttributes(),
		Tags: map[string]string{SenderTag: identity},
	})
	if code := codeOf(err); strings.HasSuffix(code, "QueueNameExists") || strings.HasSuffix(code, "QueueAlreadyExists") {
		return false, nil
	}
	return err == nil, err
}

// mend sets the attributes that are not as they should be.
func (q *Queue) mend(ctx context.Context, url string) error {
	want := inboxAttributes()
	var names []types.QueueAttributeName
	for name := range want {
		names = append(names, types.QueueAttributeName(name))
	}
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: names})
	if err != nil {
		return err
	}
	maps.DeleteFunc(want, func(name, value string) bool { return out.Attributes[name] == value })
	if len(want) == 0 {
		return nil
	}
	_, err = q.client.SetQueueAttributes(ctx, &sqs.SetQueueAttributesInput{QueueUrl: &url, Attributes: want})
	return err
}

// RemoveInbox implements control.Queue.
func (q *Queue) RemoveInbox(ctx context.Context, instance string) error {
	_, err := q.client.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: aws.String(q.inboxURL(instance))})
	if err != nil && kindOf(err) != fault.NotFound {
		return wrap(err, "delete command queue of instance %s", instance)
	}
	return nil
}
