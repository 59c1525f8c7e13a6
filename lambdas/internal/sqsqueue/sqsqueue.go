// Package sqsqueue is control.Queue on SQS: commands to instances, kicks to our
// own functions, and the making of command queues. It receives nothing: Lambda
// polls for the functions, and agents read their own queue. Only internal/boot
// imports it.
package sqsqueue

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Queue sends to the queues of one installation. It is safe for concurrent use.
type Queue struct {
	client  *sqs.Client
	setting setting.Control
	// directory is the URL in which every queue of the account and region lies.
	directory string
}

var _ control.Queue = (*Queue)(nil)

const (
	kickTasks  = 10
	attempts   = 3
	maxBackoff = 500 * time.Millisecond
)

// New sends to the queues that the settings name. Command queues lie beside the
// reports queue.
func New(config aws.Config, s setting.Control) *Queue {
	client := sqs.NewFromConfig(config, func(o *sqs.Options) {
		o.Retryer = retry.NewStandard(func(r *retry.StandardOptions) {
			r.MaxAttempts, r.MaxBackoff = attempts, maxBackoff
		})
	})
	return &Queue{client: client, setting: s, directory: s.ReportsQueueURL[:strings.LastIndex(s.ReportsQueueURL, "/")+1]}
}

// KickAdmission implements control.Queue. Kicks of one cluster are taken one
// after another. The deduplication id is always a new one: two kicks with the
// same content are two pieces of news, and SQS would swallow the second.
func (q *Queue) KickAdmission(ctx context.Context, k control.Kick) error {
	body, err := kickBody(k)
	if err != nil {
		return err
	}
	_, err = q.client.SendMessage(ctx, &sqs.SendMessageInput{
		QueueUrl: &q.setting.AdmissionQueueURL, MessageBody: &body,
		MessageGroupId: &k.Cluster, MessageDeduplicationId: aws.String(rand.Text()),
	})
	return wrap(err, "kick admission for cluster %s", k.Cluster)
}

// KickServices implements control.Queue.
func (q *Queue) KickServices(ctx context.Context, k control.Kick) error {
	body, err := kickBody(k)
	if err != nil {
		return err
	}
	return wrap(q.send(ctx, q.setting.ServicesQueueURL, body), "kick services for cluster %s", k.Cluster)
}

func kickBody(k control.Kick) (string, error) {
	if k.Cluster == "" {
		return "", fault.Field("cluster", "a kick must name its cluster")
	}
	if len(k.Tasks) > kickTasks {
		return "", fault.Field("tasks", "a kick names at most %d tasks, not %d", kickTasks, len(k.Tasks))
	}
	b, err := json.Marshal(k)
	return string(b), err
}

// Probe implements control.Queue.
func (q *Queue) Probe(ctx context.Context, p wire.Probe) error {
	b, err := wire.Encode(&p)
	if err != nil {
		return err
	}
	return wrap(q.send(ctx, q.setting.HeartbeatsQueueURL, string(b)), "send probe %s", p.ID)
}

// Backlog implements control.Queue.
func (q *Queue) Backlog(ctx context.Context) (int, error) {
	const waiting = types.QueueAttributeNameApproximateNumberOfMessages
	out, err := q.client.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl: &q.setting.HeartbeatsQueueURL, AttributeNames: []types.QueueAttributeName{waiting},
	})
	if err != nil {
		return 0, wrap(err, "count waiting heartbeats")
	}
	n, err := strconv.Atoi(out.Attributes[string(waiting)])
	if err != nil {
		return 0, fault.Wrap(fault.Internal, err, "count waiting heartbeats")
	}
	return n, nil
}

func (q *Queue) send(ctx context.Context, url, body string) error {
	_, err := q.client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &url, MessageBody: &body})
	return err
}

// wrap gives an error of SQS its kind; nil and what has a kind stay as they are.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return fault.Wrap(kindOf(err), err, format, args...)
}

func kindOf(err error) fault.Kind {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Unavailable
	}
	if codeOf(err) == "" {
		return fault.Unavailable // no answer: the network, or a body cut short
	}
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return kindOfCode(codeOf(err), ok && answer.HTTPStatusCode() >= http.StatusInternalServerError)
}

// codeOf is SQS's code of an error, "" if it has none.
func codeOf(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorCode()
	}
	return ""
}

// kindOfCode knows SQS's codes in the JSON protocol's spelling and the older one.
func kindOfCode(code string, server bool) fault.Kind {
	_, throttled := retry.DefaultThrottleErrorCodes[code]
	switch {
	case strings.HasSuffix(code, "QueueDoesNotExist"), strings.HasSuffix(code, "NonExistentQueue"):
		return fault.NotFound
	case strings.HasSuffix(code, "QueueDeletedRecently"), throttled, server:
		return fault.Unavailable
	case strings.HasPrefix(code, "AccessDenied"):
		return fault.Denied
	case strings.HasPrefix(code, "Invalid"), strings.HasPrefix(code, "BatchRequestTooLong"), strings.HasPrefix(code, "UnsupportedOperation"):
		return fault.Invalid
	}
	return fault.Internal
}
