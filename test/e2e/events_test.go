//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bridgetypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/internal/eventrule"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/test/emulator"
	"github.com/longshore-run/longshore/test/local"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	s := up(t, local.Options{Agents: 1})
	bridge := eventbridge.NewFromConfig(s.Config())
	rules := &eventrule.Client{Bridge: bridge, Stack: local.StackName, Function: s.Outputs["ScheduleFunctionArn"]}
	definition := s.register("told", nil)
	// Its own clock ticks each minute; until then there is something else to see.
	if err := rules.Put(t.Context(), schedule.Rule{Expression: "rate(1 minute)", Run: schedule.Run{Schedule: "often", TaskDefinition: definition, StartingDeadline: 60, Overlap: schedule.Forbid}}); err != nil {
		t.Fatal(err)
	}
	aTasksLife(s, bridge, definition)
	s.eventually("a scheduled task running", func() bool {
		list, err := s.ecs.ListTasks(t.Context(), &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), StartedBy: aws.String("events-rule/often")})
		return err == nil && len(list.TaskArns) > 0 && aws.ToString(s.task(list.TaskArns[0]).LastStatus) == "RUNNING"
	})
	if err := rules.Delete(t.Context(), "often"); err != nil {
		t.Fatal(err)
	}
}

// told subscribes a queue to what is told of tasks, and returns what takes the next
// of it out of there.
func (s *stack) told(bridge *eventbridge.Client) (next func() []string) {
	s.t.Helper()
	queues := sqs.NewFromConfig(s.Config())
	q, err := queues.CreateQueue(s.t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("told")})
	if err != nil {
		s.t.Fatal(err)
	}
	bus := aws.String(s.Outputs["EventBusName"])
	if _, err := bridge.PutRule(s.t.Context(), &eventbridge.PutRuleInput{Name: aws.String("told"), EventBusName: bus, EventPattern: aws.String(`{"source":["longshore"],"detail-type":["ECS Task State Change"]}`)}); err != nil {
		s.t.Fatal(err)
	}
	if _, err := bridge.PutTargets(s.t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("told"), EventBusName: bus,
		Targets: []bridgetypes.Target{{Id: aws.String("queue"), Arn: aws.String("arn:aws:sqs:" + emulator.Region + ":" + emulator.Account + ":told")}}}); err != nil {
		s.t.Fatal(err)
	}
	return func() (bodies []string) {
		s.t.Helper()
		out, err := queues.ReceiveMessage(s.t.Context(), &sqs.ReceiveMessageInput{QueueUrl: q.QueueUrl, MaxNumberOfMessages: 10})
		if err != nil {
			s.t.Fatal(err)
		}
		for _, m := range out.Messages {
			bodies = append(bodies, *m.Body)
			if _, err := queues.DeleteMessage(s.t.Context(), &sqs.DeleteMessageInput{QueueUrl: q.QueueUrl, ReceiptHandle: m.ReceiptHandle}); err != nil {
				s.t.Fatal(err)
			}
		}
		return bodies
	}
}

// aTasksLife runs a task that fails, and hears of it.
func aTasksLife(s *stack, bridge *eventbridge.Client, definition string) {
	s.t.Helper()
	next := s.told(bridge)
	arn := s.run(definition, "sh", "-c", "exit 7")
	life := map[float64]string{} // by version: events come in any order, and more than once
	s.eventually("told of the whole life", func() bool {
		for _, body := range next() {
			if version, status := lifeOf(s.t, arn, body); status != "" {
				life[version] = status
			}
		}
		all := slices.Collect(maps.Values(life))
		return slices.Contains(all, "PROVISIONING") && slices.Contains(all, "PENDING") && slices.Contains(all, "STOPPED 7")
	})
	var told []string
	for _, version := range slices.Sorted(maps.Keys(life)) {
		told = append(told, life[version])
	}
	s.t.Logf("told of %v", told)
	if told[0] != "PROVISIONING" || told[1] != "PENDING" || told[len(told)-1] != "STOPPED 7" {
		s.t.Errorf("told of %v", told)
	}
}

// lifeOf is what an event says of a task, if it is about it.
func lifeOf(t *testing.T, arn, body string) (version float64, text string) {
	t.Helper()
	var e struct {
		Resources []string
		Detail    struct {
			LastStatus string
			Version    float64
			Containers []struct{ ExitCode *int }
		}
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatal(err)
	}
	if e.Resources[0] != arn {
		return 0, ""
	}
	text = e.Detail.LastStatus
	for _, c := range e.Detail.Containers {
		if c.ExitCode != nil {
			text += fmt.Sprintf(" %d", *c.ExitCode)
		}
	}
	return e.Detail.Version, text
}
