//go:build e2e

package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/shared/wire"
)

// era says which of the two agents has sent something.
type era int

const (
	byOld era = 1 << iota
	byNew
	byBoth = byOld | byNew
)

// peek reads the reports that wait, and leaves them there: one n is one snapshot,
// however often it is sent.
func (u *upgrade) peek() {
	u.t.Helper()
	queue := u.Outputs["ReportsQueueUrl"]
	out, err := sqs.NewFromConfig(u.Config()).ReceiveMessage(u.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: &queue, MaxNumberOfMessages: 10, VisibilityTimeout: 5,
		MessageSystemAttributeNames: []sqstypes.MessageSystemAttributeName{sqstypes.MessageSystemAttributeNameSentTimestamp}})
	if err != nil {
		u.t.Fatal(err)
	}
	for _, m := range out.Messages {
		message, err := wire.Decode([]byte(*m.Body))
		if err != nil {
			u.t.Fatal(err)
		}
		r, ok := message.(*wire.Report)
		if !ok || u.seen[*m.MessageId] {
			continue
		}
		u.seen[*m.MessageId] = true
		if old, known := u.bodies[r.N]; known && old != *m.Body {
			u.t.Errorf("n %d stands for two snapshots:\n%s\n%s", r.N, old, *m.Body)
		}
		u.bodies[r.N] = *m.Body
		if u.sent[r.Task] == nil {
			u.sent[r.Task] = map[int64]era{}
		}
		sent, err := strconv.ParseInt(m.Attributes["SentTimestamp"], 10, 64)
		if err != nil {
			u.t.Fatal(err)
		}
		by := byOld
		if time.UnixMilli(sent).After(u.begun) {
			by = byNew
		}
		u.sent[r.Task][r.N] |= by
	}
}

// news wants each change of a task to have been told once, by when all have come to
// where they stay.
func (u *upgrade) news(arns ...string) {
	u.t.Helper()
	type state struct {
		version float64
		status  string
	}
	last, told := map[string]state{}, map[string]map[float64]bool{} // by version: an event may come more than once
	u.await("told is where each has come to", func() bool {
		for _, body := range u.next() {
			arn, version, status, rest := change(u.t, body)
			if version >= last[arn].version { // they come in any order
				last[arn] = state{version, status}
			}
			if told[rest] == nil {
				told[rest] = map[float64]bool{}
			}
			told[rest][version] = true
		}
		return !slices.ContainsFunc(arns, func(arn string) bool { return last[arn].status != aws.ToString(u.task(arn).LastStatus) })
	})
	for what, versions := range told {
		if n := len(versions); n > 1 {
			u.t.Errorf("told as %d changes: %s", n, what)
		}
	}
}

// change is what an event says of a task, less what counts the changes.
func change(t *testing.T, body string) (arn string, version float64, status, rest string) {
	t.Helper()
	var e struct{ Detail map[string]any }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	arn, _ = e.Detail["taskArn"].(string)
	status, _ = e.Detail["lastStatus"].(string)
	version, _ = e.Detail["version"].(float64)
	if arn == "" || status == "" || version == 0 {
		t.Fatalf("an event without task, status or version: %s", body)
	}
	delete(e.Detail, "version")
	delete(e.Detail, "updatedAt")
	text, err := json.Marshal(e.Detail)
	if err != nil {
		t.Fatal(err)
	}
	return arn, version, status, string(text)
}
