// Package queue makes an SQS queue together with its dead-letter queue, both
// encrypted by SQS and closed to plain http. Who sends and who reads is said
// by roles, not here. infra/stack imports it.
package queue

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// deadRetention is the longest SQS offers: what went wrong on a Friday is still
// there after a holiday.
const deadRetention = 14 * 24 * time.Hour

// Props describes a queue.
type Props struct {
	// FIFO orders messages inside a message group. Its deduplication is never
	// by content: a second kick for one cluster is news, not a copy.
	FIFO bool
	// Visibility is how long a received message stays hidden: longer than the
	// timeout of the function that reads it.
	Visibility time.Duration
	// Retention is how long a message nobody reads is kept.
	Retention time.Duration
	// MaxReceive is how often a message is delivered before it is put aside.
	MaxReceive int
	// EnforceSSL denies plain http; only emulators need it off.
	EnforceSSL bool
}

// Queue is a queue and where its undeliverable messages go.
type Queue struct {
	awssqs.Queue
	Dead awssqs.Queue
}

// New adds a queue to scope.
func New(scope constructs.Construct, id string, p Props) Queue {
	dead := NewDead(scope, id+"Dead", p)
	main := props(p, p.Retention)
	main.VisibilityTimeout = seconds(p.Visibility)
	main.DeadLetterQueue = &awssqs.DeadLetterQueue{Queue: dead, MaxReceiveCount: jsii.Number(p.MaxReceive)}
	return Queue{Queue: awssqs.NewQueue(scope, &id, main), Dead: dead}
}

// NewDead adds a queue for what could not be done alone: of a stream, say.
func NewDead(scope constructs.Construct, id string, p Props) awssqs.Queue {
	return awssqs.NewQueue(scope, &id, props(p, deadRetention))
}

func props(p Props, retention time.Duration) *awssqs.QueueProps {
	out := &awssqs.QueueProps{
		Encryption:      awssqs.QueueEncryption_SQS_MANAGED,
		EnforceSSL:      &p.EnforceSSL,
		RetentionPeriod: seconds(retention),
	}
	if p.FIFO {
		out.Fifo = jsii.Bool(true)
		out.ContentBasedDeduplication = jsii.Bool(false)
		// Per group, not per queue: one busy cluster does not slow the others.
		out.DeduplicationScope = awssqs.DeduplicationScope_MESSAGE_GROUP
		out.FifoThroughputLimit = awssqs.FifoThroughputLimit_PER_MESSAGE_GROUP_ID
	}
	return out
}

func seconds(d time.Duration) awscdk.Duration {
	return awscdk.Duration_Seconds(jsii.Number(d.Seconds()))
}
