package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// Primary is a service's newest deployment, or nil.
func Primary(s *types.Service) *types.Deployment {
	for i := range s.Deployments {
		if aws.ToString(s.Deployments[i].Status) == "PRIMARY" {
			return &s.Deployments[i]
		}
	}
	return nil
}

// Rollout is how a service's newest deployment stands.
func Rollout(s *types.Service) string {
	d := Primary(s)
	if d == nil {
		return "-"
	}
	return cmp.Or(string(d.RolloutState), "-")
}

// Services is the table of services.
func Services(now time.Time, all []types.Service) *output.Table {
	t := &output.Table{Head: []string{"SERVICE", "STATUS", "STRATEGY", "DEFINITION", "DESIRED", "RUNNING", "PENDING", "ROLLOUT", "AGE"}, Empty: "no service is there; one is made by: aws ecs create-service"}
	for i := range all {
		s := &all[i]
		running := output.Cell{Text: fmt.Sprint(s.RunningCount), Colour: output.Good}
		if s.RunningCount < s.DesiredCount {
			running.Colour = output.Warn
		}
		t.Add(aws.ToString(s.ServiceName), status(aws.ToString(s.Status)), s.SchedulingStrategy, Definition(s.TaskDefinition),
			s.DesiredCount, running, s.PendingCount, status(Rollout(s)), age(now, s.CreatedAt))
	}
	return t
}

// Deployments is the table of a service's deployments.
func Deployments(now time.Time, s *types.Service) *output.Table {
	t := &output.Table{Head: []string{"DEPLOYMENT", "STATUS", "DEFINITION", "DESIRED", "PENDING", "RUNNING", "FAILED", "ROLLOUT", "AGE", "DETAIL"}}
	for _, d := range s.Deployments {
		failed := output.Cell{Text: fmt.Sprint(d.FailedTasks)}
		if d.FailedTasks > 0 {
			failed.Colour = output.Bad
		}
		t.Add(aws.ToString(d.Id), aws.ToString(d.Status), Definition(d.TaskDefinition), d.DesiredCount, d.PendingCount, d.RunningCount, failed,
			status(string(d.RolloutState)), age(now, d.CreatedAt), aws.ToString(d.RolloutStateReason))
	}
	return t
}

// Progress is one line that says how a rollout stands: the new deployment, then
// what is left of older ones.
func Progress(s *types.Service) string {
	d := Primary(s)
	if d == nil {
		return aws.ToString(s.ServiceName) + ": no deployment"
	}
	text := fmt.Sprintf("%s: %s  %s %d/%d running", aws.ToString(s.ServiceName), cmp.Or(string(d.RolloutState), "IN_PROGRESS"), Definition(d.TaskDefinition), d.RunningCount, d.DesiredCount)
	if d.PendingCount > 0 {
		text += fmt.Sprintf(", %d pending", d.PendingCount)
	}
	if d.FailedTasks > 0 {
		text += fmt.Sprintf(", %d failed", d.FailedTasks)
	}
	parts := []string{text}
	for _, old := range s.Deployments {
		if aws.ToString(old.Status) != "PRIMARY" && old.RunningCount+old.PendingCount > 0 {
			parts = append(parts, fmt.Sprintf("old %s %d running", Definition(old.TaskDefinition), old.RunningCount))
		}
	}
	return strings.Join(parts, " | ")
}

// Stable says whether a service is as it should be, as services-stable has it.
func Stable(s *types.Service) bool {
	return len(s.Deployments) == 1 && s.RunningCount == s.DesiredCount
}

// Events is a service's messages, oldest first, without those seen before; it
// adds them to seen.
func Events(s *types.Service, seen map[string]bool) []types.ServiceEvent {
	out := slices.DeleteFunc(slices.Clone(s.Events), func(e types.ServiceEvent) bool { return seen[aws.ToString(e.Id)] })
	for _, e := range out {
		seen[aws.ToString(e.Id)] = true
	}
	slices.Reverse(out) // the API has the newest first
	slices.SortStableFunc(out, func(a, b types.ServiceEvent) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	return out
}

// Event is a line for one message.
func Event(e types.ServiceEvent) string {
	return aws.ToTime(e.CreatedAt).UTC().Format(time.RFC3339) + "  " + output.Visible(strings.TrimSpace(aws.ToString(e.Message)))
}
