package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Line is how one task stands, in a line.
func Line(now time.Time, t *types.Task) string {
	text := fmt.Sprintf("%-12s %s %s", Status(t), Short(aws.ToString(t.TaskArn)), Definition(t.TaskDefinitionArn))
	switch aws.ToString(t.LastStatus) {
	case "PROVISIONING":
		return fmt.Sprintf("%s: waits for %s since %s", text, cmp.Or(Waiting(t), "its turn"), age(now, t.CreatedAt))
	case "STOPPED":
		if d := detail(t); d != "" {
			text += ": " + d
		}
		return text
	}
	text += " on " + Short(aws.ToString(t.ContainerInstanceArn))
	if t.StartedAt != nil && Status(t) == "RUNNING" {
		text += " for " + age(now, t.StartedAt)
	}
	if d := detail(t); d != "" {
		text += ": " + d
	}
	return text
}

// order is how a task goes.
var order = []string{"PROVISIONING", "PENDING", "RUNNING", "STOPPING", "STOPPED"}

// Counts is how several tasks stand, in a line.
func Counts(now time.Time, tasks []types.Task) string {
	text := CountsKey(tasks)
	var oldest *time.Time
	for i := range tasks {
		if aws.ToString(tasks[i].LastStatus) == "PROVISIONING" && (oldest == nil || tasks[i].CreatedAt.Before(*oldest)) {
			oldest = tasks[i].CreatedAt
		}
	}
	if oldest != nil {
		text += ", waiting since " + age(now, oldest)
	}
	return text
}

// CountsKey is the same without the age, which always changes.
func CountsKey(tasks []types.Task) string {
	count, why := map[string]int{}, map[string]bool{}
	for i := range tasks {
		count[Status(&tasks[i])]++
		if w := Waiting(&tasks[i]); w != "" {
			why[w] = true
		}
	}
	var parts []string
	for _, status := range order {
		if n := count[status]; n > 0 {
			part := fmt.Sprintf("%d %s", n, status)
			if status == "PROVISIONING" && len(why) > 0 {
				part += " (" + strings.Join(sortedKeys(why), ", ") + ")"
			}
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
