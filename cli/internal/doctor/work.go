package doctor

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
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/longshore-run/longshore/cli/internal/installation"
	"github.com/longshore-run/longshore/cli/internal/view"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

const (
	deadSuffix = "DeadQueueUrl"
	// tooOld is how long a message may wait in a queue that works.
	tooOld = 5 * time.Minute
	// tooLong is how long a task may wait before somebody should know.
	tooLong = 15 * time.Minute
)

// DeadLettersPage is the runbook about the dead letters of one queue.
func DeadLettersPage(queue string) string {
	return "docs/runbooks/" + strings.ToLower(queue) + "-dead-letters.md"
}

func depth(ctx context.Context, c *sqs.Client, url string) (int, error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: &url, AttributeNames: []sqstypes.QueueAttributeName{sqstypes.QueueAttributeNameApproximateNumberOfMessages}})
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(out.Attributes[string(sqstypes.QueueAttributeNameApproximateNumberOfMessages)])
}

func deadLetters(ctx context.Context, in *Installation) ([]Finding, error) {
	names, by := in.outputsEnding(deadSuffix)
	if len(names) == 0 {
		return nil, errNoStack
	}
	c := sqs.NewFromConfig(in.AWS)
	var faults []Finding
	for _, n := range names {
		count, err := depth(ctx, c, by[n])
		if err != nil {
			return faults, err
		}
		if count > 0 {
			faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("%d messages of %s could not be processed", count, n), Next: DeadLettersPage(n)})
		}
	}
	return orGood(faults, "none in %d queues", len(names)), nil
}

func queues(ctx context.Context, in *Installation) ([]Finding, error) {
	names, by := in.outputsEnding("QueueUrl")
	// Only those that a function of ours reads; the example rule's, say, is its user's.
	names = slices.DeleteFunc(names, func(n string) bool { return in.outputs[n+"SourceId"] == "" })
	if len(names) == 0 {
		return nil, errNoStack
	}
	c, m := sqs.NewFromConfig(in.AWS), cloudwatch.NewFromConfig(in.AWS)
	var faults []Finding
	for _, n := range names {
		count, err := depth(ctx, c, by[n])
		if err != nil {
			return faults, err
		}
		if age := time.Duration(aws.ToInt(installation.Oldest(ctx, m, by[n], in.Now))) * time.Second; age >= tooOld {
			faults = append(faults, Finding{State: Fail, Text: fmt.Sprintf("the oldest of %d messages of %s waits for %s", count, n, wait.Age(age)), Next: "docs/runbooks/" + strings.ToLower(n) + "-queue-age.md"})
		}
	}
	return orGood(faults, "nothing waits long in %d queues", len(names)), nil
}

func alarms(ctx context.Context, in *Installation) ([]Finding, error) {
	prefix := in.Stack + "-"
	var faults []Finding
	n := 0
	pages := cloudwatch.NewDescribeAlarmsPaginator(cloudwatch.NewFromConfig(in.AWS), &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: &prefix})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return faults, err
		}
		for _, a := range page.MetricAlarms {
			name, ours := strings.CutPrefix(aws.ToString(a.AlarmName), prefix)
			if !ours {
				continue
			}
			n++
			if a.StateValue == cwtypes.StateValueAlarm {
				faults = append(faults, Finding{State: Fail, Text: name + " rings: " + aws.ToString(a.AlarmDescription), Next: "docs/runbooks/" + name + ".md"})
			}
		}
	}
	if n == 0 {
		return []Finding{{State: Warn, Text: "there are none that begin with " + prefix, Next: "deploy again: make deploy"}}, nil
	}
	return orGood(faults, "none of %d rings", n), nil
}

func instances(ctx context.Context, in *Installation) ([]Finding, error) {
	if in.ECS == nil {
		return nil, errNoStack
	}
	var all []types.ContainerInstance
	pages := ecs.NewListContainerInstancesPaginator(in.ECS, &ecs.ListContainerInstancesInput{Cluster: &in.Cluster})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(page.ContainerInstanceArns) == 0 {
			continue
		}
		out, err := in.ECS.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{Cluster: &in.Cluster, ContainerInstances: page.ContainerInstanceArns})
		if err != nil {
			return nil, err
		}
		all = append(all, out.ContainerInstances...)
	}
	return judgeInstances(in.Cluster, all), nil
}

// advice is what to do about an instance that takes no work, by its state.
var advice = map[string]string{
	"SUSPECT":  "it may come back by itself; look at the agent: journalctl -u longshore-agent",
	"LOST":     "its tasks were replaced; if the host is off for good: longshore instances fence %s --confirmed-off",
	"FENCED":   "it has to stop what was closed first; if that lasts see docs/runbooks/instances-fenced.md",
	"IMPAIRED": "its container engine does not work: journalctl -u docker",
}

func judgeInstances(cluster string, all []types.ContainerInstance) []Finding {
	if len(all) == 0 {
		return []Finding{{State: Warn, Text: "cluster " + cluster + " has none: every task waits", Next: "start longshore-agent on a machine; longshore-agent check-config says what it lacks"}}
	}
	var faults []Finding
	for i := range all {
		k := &all[i]
		if k.AgentConnected || aws.ToString(k.Status) == "INACTIVE" {
			continue
		}
		state, _, _ := strings.Cut(aws.ToString(k.StatusReason), " ")
		next := advice[strings.TrimSuffix(state, ":")]
		if strings.Contains(next, "%s") {
			next = fmt.Sprintf(next, view.Host(k))
		}
		faults = append(faults, Finding{State: Warn, Text: fmt.Sprintf("%s is not connected: %s", view.Host(k), aws.ToString(k.StatusReason)), Next: next})
	}
	if len(faults) == len(all) {
		faults = append(faults, Finding{State: Fail, Text: "no instance of cluster " + cluster + " is connected", Next: "look at the functions statechange and reaper, and at the agents' network"})
	}
	return orGood(faults, "all %d of cluster %s are connected", len(all), cluster)
}

func waiting(ctx context.Context, in *Installation) ([]Finding, error) {
	if in.ECS == nil {
		return nil, errNoStack
	}
	var tasks []types.Task
	pages := ecs.NewListTasksPaginator(in.ECS, &ecs.ListTasksInput{Cluster: &in.Cluster, DesiredStatus: types.DesiredStatusRunning})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		if len(page.TaskArns) == 0 {
			continue
		}
		out, err := in.ECS.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: &in.Cluster, Tasks: page.TaskArns})
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, view.Waits(out.Tasks)...)
	}
	return judgeWaiting(tasks, in.Now), nil
}

func judgeWaiting(tasks []types.Task, now time.Time) []Finding {
	long := slices.DeleteFunc(slices.Clone(tasks), func(t types.Task) bool { return now.Sub(aws.ToTime(t.CreatedAt)) < tooLong })
	if len(long) == 0 {
		return good("%d wait, none for longer than %s", len(tasks), wait.Age(tooLong))
	}
	oldest := view.Waits(long)[0]
	return []Finding{{State: Warn, Text: fmt.Sprintf("%d of %d that wait do so for longer than %s; the first, %s, for %s, for %s", len(long), len(tasks), wait.Age(tooLong),
		view.Short(aws.ToString(oldest.TaskArn)), wait.Age(now.Sub(aws.ToTime(oldest.CreatedAt))), view.Waiting(&oldest)), Next: "see what they lack: longshore queue --by-shape"}}
}
