//go:build emulator

package sqsqueue_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/sqsqueue"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

func TestQueue_OnTheEmulatorPassesTheSuite(t *testing.T) {
	controltest.QueueSuite(t, func(t *testing.T) (control.Queue, controltest.Receiver) {
		r := newRig(t)
		return r.queue, r
	})
}

// rig is an installation's queues and their other ends.
type rig struct {
	t       *testing.T
	client  *sqs.Client
	setting setting.Control
	queue   *sqsqueue.Queue
}

func newRig(t *testing.T) *rig {
	t.Helper()
	config := emulator.Shared(t).AWSConfig()
	r := &rig{t: t, client: sqs.NewFromConfig(config)}
	mark := rand.Text()[:8]
	r.setting = setting.Control{
		AdmissionQueueURL:     r.make("admission-"+mark+".fifo", map[string]string{"FifoQueue": "true"}),
		ReportsQueueURL:       r.make("reports-"+mark, nil),
		ReportsDeadQueueURL:   r.make("reports-dead-"+mark, nil),
		HeartbeatsQueueURL:    r.make("heartbeats-"+mark, nil),
		ServicesQueueURL:      r.make("services-"+mark, nil),
		CommandQueueNameStart: "cmd-" + mark + "-",
	}
	r.queue = sqsqueue.New(config, r.setting)
	return r
}

func (r *rig) make(name string, attributes map[string]string) string {
	r.t.Helper()
	out, err := r.client.CreateQueue(r.t.Context(), &sqs.CreateQueueInput{QueueName: &name, Attributes: attributes})
	if err != nil {
		r.t.Fatalf("create queue %s: %v", name, err)
	}
	r.t.Cleanup(func() {
		if _, err := r.client.DeleteQueue(context.Background(), &sqs.DeleteQueueInput{QueueUrl: out.QueueUrl}); err != nil {
			r.t.Errorf("delete queue %s: %v", name, err)
		}
	})
	return *out.QueueUrl
}

func (r *rig) inboxURL(instance string) string {
	dir := r.setting.ReportsQueueURL[:strings.LastIndex(r.setting.ReportsQueueURL, "/")+1]
	return dir + r.setting.CommandQueueNameStart + instance
}

// take empties a queue of what is there now.
func (r *rig) take(url string) []types.Message {
	r.t.Helper()
	out, err := r.client.ReceiveMessage(r.t.Context(), &sqs.ReceiveMessageInput{
		QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 0,
		MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll},
	})
	if err != nil {
		r.t.Fatalf("receive: %v", err)
	}
	for _, m := range out.Messages {
		if _, err := r.client.DeleteMessage(r.t.Context(), &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
			r.t.Fatalf("delete message: %v", err)
		}
	}
	return out.Messages
}

func (r *rig) TakeCommands(instance string) (all []wire.Message) {
	for _, m := range r.take(r.inboxURL(instance)) {
		decoded, err := wire.Decode([]byte(*m.Body))
		if err != nil {
			r.t.Fatalf("decode command: %v", err)
		}
		all = append(all, decoded)
	}
	return all
}

func (r *rig) kicks(url string) (all []control.Kick) {
	for _, m := range r.take(url) {
		var k control.Kick
		if err := json.Unmarshal([]byte(*m.Body), &k); err != nil {
			r.t.Fatalf("decode kick: %v", err)
		}
		all = append(all, k)
	}
	return all
}

func (r *rig) TakeKicks() []control.Kick        { return r.kicks(r.setting.AdmissionQueueURL) }
func (r *rig) TakeServiceKicks() []control.Kick { return r.kicks(r.setting.ServicesQueueURL) }

func (r *rig) TakeProbes() (all []wire.Probe) {
	for _, m := range r.take(r.setting.HeartbeatsQueueURL) {
		decoded, err := wire.Decode([]byte(*m.Body))
		if err != nil {
			r.t.Fatalf("decode probe: %v", err)
		}
		all = append(all, *decoded.(*wire.Probe))
	}
	return all
}

func (r *rig) Inboxes() (all []string) {
	pages := sqs.NewListQueuesPaginator(r.client, &sqs.ListQueuesInput{QueueNamePrefix: &r.setting.CommandQueueNameStart})
	for pages.HasMorePages() {
		out, err := pages.NextPage(r.t.Context())
		if err != nil {
			r.t.Fatalf("list queues: %v", err)
		}
		for _, url := range out.QueueUrls {
			all = append(all, url[strings.LastIndex(url, "/")+1+len(r.setting.CommandQueueNameStart):])
		}
	}
	return all
}

func TestEnsureInbox_TagsTheOwnerAndSetsWhatAgentsNeed(t *testing.T) {
	r := newRig(t)
	instance := strings.Repeat("a", 32)
	url := r.inboxURL(instance)
	// A queue made by somebody else, with other attributes and another owner.
	r.make(r.setting.CommandQueueNameStart+instance, map[string]string{"VisibilityTimeout": "5"})
	want := map[string]string{
		"MessageRetentionPeriod": "3600", "VisibilityTimeout": "30", "ReceiveMessageWaitTimeSeconds": "20", "SqsManagedSseEnabled": "true",
	}
	for _, owner := range []string{"AROA:i-1", "AROA:i-2"} {
		if err := r.queue.EnsureInbox(t.Context(), instance, owner); err != nil {
			t.Fatal(err)
		}
		tags, err := r.client.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: &url})
		if err != nil || !maps.Equal(tags.Tags, map[string]string{sqsqueue.SenderTag: owner}) {
			t.Fatalf("tags are %v, %v", tags, err)
		}
		out, err := r.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range want {
			if out.Attributes[name] != value {
				t.Errorf("%s is %q, want %q", name, out.Attributes[name], value)
			}
		}
	}
}

func TestEnsureInbox_MakesAQueueComplete(t *testing.T) {
	r := newRig(t)
	instance := strings.Repeat("b", 32)
	url := r.inboxURL(instance)
	if err := r.queue.EnsureInbox(t.Context(), instance, "AROA:i-1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.queue.RemoveInbox(context.Background(), instance); err != nil {
			t.Error(err)
		}
	})
	tags, err := r.client.ListQueueTags(t.Context(), &sqs.ListQueueTagsInput{QueueUrl: &url})
	if err != nil || tags.Tags[sqsqueue.SenderTag] != "AROA:i-1" {
		t.Fatalf("tags are %v, %v", tags, err)
	}
	out, err := r.client.GetQueueAttributes(t.Context(), &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []types.QueueAttributeName{"All"}})
	if err != nil || out.Attributes["MessageRetentionPeriod"] != "3600" || out.Attributes["VisibilityTimeout"] != "30" {
		t.Fatalf("attributes are %v, %v", out, err)
	}
}

func TestBacklog_CountsWaitingHeartbeats(t *testing.T) {
	r := newRig(t)
	for n := range 4 {
		waitFor(t, func() bool {
			got, err := r.queue.Backlog(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return got == n
		})
		if err := r.queue.Probe(t.Context(), wire.Probe{ID: "p"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestKickAdmission_IsGroupedByClusterAndNeverDeduplicated(t *testing.T) {
	r := newRig(t)
	for _, cluster := range []string{"a", "a", "b"} {
		if err := r.queue.KickAdmission(t.Context(), control.Kick{Cluster: cluster}); err != nil {
			t.Fatal(err)
		}
	}
	groups, ids := map[string]int{}, map[string]bool{}
	waitFor(t, func() bool {
		for _, m := range r.take(r.setting.AdmissionQueueURL) {
			groups[m.Attributes["MessageGroupId"]]++
			ids[m.Attributes["MessageDeduplicationId"]] = true
		}
		return len(ids) == 3
	})
	if groups["a"] != 2 || groups["b"] != 1 {
		t.Fatalf("groups are %v", groups)
	}
	if err := r.queue.KickAdmission(t.Context(), control.Kick{Cluster: "a", Tasks: make([]string, 11)}); err == nil {
		t.Fatal("a kick of 11 tasks was sent")
	}
}

func TestDeadLetter_KeepsTheBodyAndSaysWhy(t *testing.T) {
	r := newRig(t)
	for _, body := range []string{"{not json", "ünïcödé\n\t🚢", strings.Repeat("x", 200_000), ""} {
		about := map[string]string{"reason": "v: version 9 \x00 is \uFFFE not " + strings.Repeat("é", 2000), "sender": "AROA:i-1", "empty": ""}
		if err := r.queue.DeadLetter(t.Context(), r.setting.ReportsDeadQueueURL, body, about); err != nil {
			t.Fatal(err)
		}
		var got []types.Message
		waitFor(t, func() bool {
			got = append(got, r.take(r.setting.ReportsDeadQueueURL)...)
			return len(got) > 0
		})
		m := got[0]
		if body != "" && aws.ToString(m.Body) != body {
			t.Fatalf("body of %d bytes came as one of %d", len(body), len(aws.ToString(m.Body)))
		}
		reason := aws.ToString(m.MessageAttributes["reason"].StringValue)
		if !strings.HasPrefix(reason, "v: version 9 ? is ? not é") || len(reason) > 1024 || aws.ToString(m.MessageAttributes["sender"].StringValue) != "AROA:i-1" {
			t.Fatalf("attributes are %v", m.MessageAttributes)
		}
		if _, ok := m.MessageAttributes["empty"]; ok {
			t.Fatal("an empty attribute was sent, which SQS refuses")
		}
	}
}

// waitFor polls until done, for a minute.
func waitFor(t *testing.T, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("it did not happen in a minute"))
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(context.Cause(ctx))
		}
	}
}
