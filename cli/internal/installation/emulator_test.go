//go:build emulator

package installation_test

import (
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/cli/internal/installation"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// yard is an installation of queues alone.
type yard struct {
	*installation.Installation
	t *testing.T
	c *sqs.Client
}

func newYard(t *testing.T) *yard {
	cfg := emulator.Shared(t).AWSConfig()
	y := &yard{&installation.Installation{AWS: cfg, Stack: "Test", Outputs: map[string]string{}, Now: time.Now}, t, sqs.NewFromConfig(cfg)}
	for _, name := range []string{"Admission", "Reports", "Heartbeats", "Services"} {
		y.make(name+"QueueUrl", name == "Admission")
		y.make(name+"DeadQueueUrl", name == "Admission")
	}
	y.make("EventsDeadQueueUrl", false)
	y.make("ScheduleDeadQueueUrl", false)
	return y
}

func (y *yard) make(output string, fifo bool) {
	y.t.Helper()
	in := &sqs.CreateQueueInput{QueueName: aws.String(output + "-" + rand.Text())}
	if fifo {
		in.QueueName, in.Attributes = aws.String(*in.QueueName+".fifo"), map[string]string{"FifoQueue": "true"}
	}
	out, err := y.c.CreateQueue(y.t.Context(), in)
	if err != nil {
		y.t.Fatal(err)
	}
	y.Outputs[output] = *out.QueueUrl
}

func (y *yard) put(output, body, group string) {
	y.t.Helper()
	in := &sqs.SendMessageInput{QueueUrl: aws.String(y.Outputs[output]), MessageBody: &body,
		MessageAttributes: map[string]types.MessageAttributeValue{"reason": {DataType: aws.String("String"), StringValue: aws.String("why")}}}
	if group != "" {
		in.MessageGroupId, in.MessageDeduplicationId = &group, aws.String(rand.Text())
	}
	if _, err := y.c.SendMessage(y.t.Context(), in); err != nil {
		y.t.Fatal(err)
	}
}

// all takes what lies in a queue.
func (y *yard) all(output string) (out []types.Message) {
	y.t.Helper()
	for {
		got, err := y.c.ReceiveMessage(y.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: aws.String(y.Outputs[output]), MaxNumberOfMessages: 10,
			MessageAttributeNames: []string{"All"}, MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameAll}})
		if err != nil {
			y.t.Fatal(err)
		}
		if len(got.Messages) == 0 {
			return out
		}
		for _, m := range got.Messages {
			out = append(out, m)
			if _, err := y.c.DeleteMessage(y.t.Context(), &sqs.DeleteMessageInput{QueueUrl: aws.String(y.Outputs[output]), ReceiptHandle: m.ReceiptHandle}); err != nil {
				y.t.Fatal(err)
			}
		}
	}
}

func TestRedrive_SendsKicksAgainInTheirGroupAndWithTheirAttributes(t *testing.T) {
	y := newYard(t)
	for _, cluster := range []string{"a", "b", "a"} {
		y.put("AdmissionDeadQueueUrl", `{"cluster":"`+cluster+`"}`, cluster)
	}
	done, err := y.Redrive(t.Context(), "admission")
	if err != nil || *done != (installation.Redriven{Queue: "admission", Sent: 3}) {
		t.Fatalf("%+v, %v", done, err)
	}
	var groups []string
	for _, m := range y.all("AdmissionQueueUrl") {
		groups = append(groups, m.Attributes["MessageGroupId"]+" "+*m.Body)
		if reason := m.MessageAttributes["reason"]; reason.StringValue == nil || *reason.StringValue != "why" {
			t.Errorf("attributes %v", m.MessageAttributes)
		}
	}
	slices.Sort(groups)
	if want := []string{`a {"cluster":"a"}`, `a {"cluster":"a"}`, `b {"cluster":"b"}`}; !slices.Equal(groups, want) {
		t.Errorf("sent again %v", groups)
	}
	if left := y.all("AdmissionDeadQueueUrl"); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestRedrive_OfAStandardQueueToo(t *testing.T) {
	y := newYard(t)
	for range 23 { // more than one answer holds
		y.put("ServicesDeadQueueUrl", "{}", "")
	}
	if done, err := y.Redrive(t.Context(), "services"); err != nil || done.Sent != 23 || done.Left != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	if n := len(y.all("ServicesQueueUrl")); n != 23 {
		t.Errorf("%d arrived", n)
	}
}

// What a message's sender and time decide on is never moved.
func TestRedrive_RefusesWhatWouldLieAndSaysWhy(t *testing.T) {
	y := newYard(t)
	for name, says := range map[string]string{"heartbeats": "a sign of life of a machine that may be dead", "reports": "dropped as a stranger's", "events": "told after what has been told since", "mail": "known are admission, events,"} {
		output := strings.ToUpper(name[:1]) + name[1:] + "DeadQueueUrl"
		if y.Outputs[output] != "" {
			y.put(output, "{}", "")
		}
		if done, err := y.Redrive(t.Context(), name); err == nil || done != nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %+v, %v", name, done, err)
		}
		if y.Outputs[output] != "" && len(y.all(output)) != 1 {
			t.Errorf("%s: the letter is gone", name)
		}
	}
}

func TestQueues_ShowWhatWaitsAndWhatIsDead(t *testing.T) {
	y := newYard(t)
	y.put("ReportsQueueUrl", "{}", "")
	y.put("HeartbeatsDeadQueueUrl", "{}", "")
	y.put("HeartbeatsDeadQueueUrl", "{}", "")
	all, err := y.Queues(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]installation.Queue{}
	for _, q := range all {
		names[q.Name] = q
	}
	if len(all) != 6 || names["reports"].Waiting != 1 || names["heartbeats"].DeadLetters != 2 || names["admission"].DeadLetters != 0 ||
		!strings.HasPrefix(names["heartbeats"].Redrive, "never") || strings.HasPrefix(names["schedule"].Redrive, "never") {
		t.Errorf("%+v", all)
	}
}

func TestCommandQueues_AreRemovedByTheStartOfTheirNames(t *testing.T) {
	y := newYard(t)
	start := "harbor" + strings.ToLower(rand.Text()[:6]) + "-cmd-"
	for _, name := range []string{start + "a", start + "b", "other-" + start} {
		if _, err := y.c.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: &name}); err != nil {
			t.Fatal(err)
		}
	}
	urls, err := installation.CommandQueues(t.Context(), y.AWS, start)
	if err != nil || len(urls) != 2 {
		t.Fatalf("%v, %v", urls, err)
	}
	for range 2 { // twice is once
		if n, err := installation.RemoveQueues(t.Context(), y.AWS, urls); err != nil || n != 2 {
			t.Errorf("%d removed, %v", n, err)
		}
	}
	if left, err := installation.CommandQueues(t.Context(), y.AWS, start); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
