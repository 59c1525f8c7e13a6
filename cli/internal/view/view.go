// Package view turns what the API answered into tables and lines for people.
// It is pure: no call, no clock, no terminal. Packages of the command import it.
package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
	"github.com/longshore-run/longshore/cli/internal/wait"
)

// shown is how much of an id stands in a table: what is shown can be typed.
const shown = 12

// ID is the last part of an ARN.
func ID(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }

// Short is an id as tables show it; commands take it back.
func Short(arn string) string {
	id := ID(arn)
	return id[:min(len(id), shown)]
}

// Colour is how a status stands out.
func Colour(status string) output.Colour {
	switch status {
	case "RUNNING", "ACTIVE", "CONNECTED", "COMPLETED", "ok":
		return output.Good
	case "PROVISIONING", "PENDING", "STOPPING", "DRAINING", "SUSPECT", "IN_PROGRESS", "FENCED", "IMPAIRED", "warn":
		return output.Warn
	case "LOST", "FAILED", "fail":
		return output.Bad
	case "STOPPED", "INACTIVE":
		return output.Faint
	}
	return output.Plain
}

func status(text string) output.Cell { return output.Cell{Text: text, Colour: Colour(text)} }

// Status is a task's status as people see it: one that is to end is STOPPING.
func Status(t *types.Task) string {
	last := aws.ToString(t.LastStatus)
	if aws.ToString(t.DesiredStatus) == "STOPPED" && last != "STOPPED" && last != "PROVISIONING" {
		return "STOPPING"
	}
	return last
}

// Waiting is why a task waits, in ECS's names, or "".
func Waiting(t *types.Task) string {
	if aws.ToString(t.LastStatus) != "PROVISIONING" {
		return ""
	}
	return attribute(t.Attributes, "longshore.waitingReason")
}

// Kept is for how long a task of a lost instance is kept, or "".
func Kept(t *types.Task) string {
	switch until := attribute(t.Attributes, "longshore.keptUntil"); until {
	case "":
		return ""
	case "confirmed":
		return "kept until its end is confirmed"
	default:
		return "kept until " + until
	}
}

func attribute(all []types.Attribute, name string) string {
	for _, a := range all {
		if aws.ToString(a.Name) == name {
			return aws.ToString(a.Value)
		}
	}
	return ""
}

func tag(all []types.Tag, key string) string {
	for _, t := range all {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}

func age(now time.Time, at *time.Time) string {
	if at == nil {
		return "-"
	}
	return wait.Age(now.Sub(*at))
}

// Definition is family:revision of a definition's ARN.
func Definition(arn *string) string { return ID(aws.ToString(arn)) }

// ExitCode is the exit code that speaks for a task: that of its first container
// that did not end well, else of one that did; none if no container has one.
func ExitCode(t *types.Task) (code int32, ok bool) {
	for _, c := range t.Containers {
		if c.ExitCode != nil && (!ok || code == 0) {
			code, ok = *c.ExitCode, true
		}
	}
	return code, ok
}

// Tasks is the table of ps.
func Tasks(now time.Time, tasks []types.Task, hosts map[string]string) *output.Table {
	t := &output.Table{Head: []string{"TASK", "DEFINITION", "STATUS", "AGE", "INSTANCE", "GROUP", "DETAIL"}, Empty: "no task matches"}
	for i := range tasks {
		k := &tasks[i]
		t.Add(Short(aws.ToString(k.TaskArn)), Definition(k.TaskDefinitionArn), status(Status(k)), age(now, k.CreatedAt),
			host(k.ContainerInstanceArn, hosts), aws.ToString(k.Group), detail(k))
	}
	return t
}

func host(arn *string, names map[string]string) string {
	if arn == nil {
		return "-"
	}
	return cmp.Or(names[*arn], Short(*arn))
}

// detail is the one thing about a task that its reader wants to know next.
func detail(t *types.Task) string {
	if why := Waiting(t); why != "" {
		return "waits for " + why
	}
	if aws.ToString(t.LastStatus) != "STOPPED" {
		if t.Connectivity == types.ConnectivityDisconnected {
			return strings.TrimSuffix("its instance is not connected; "+Kept(t), "; ")
		}
		if aws.ToString(t.DesiredStatus) == "STOPPED" {
			return aws.ToString(t.StoppedReason)
		}
		return ""
	}
	why := aws.ToString(t.StoppedReason)
	if code, ok := ExitCode(t); ok {
		if t.StopCode == types.TaskStopCodeEssentialContainerExited {
			return fmt.Sprintf("exit code %d", code)
		}
		return fmt.Sprintf("exit code %d: %s", code, why)
	}
	return why
}

// shape is what waiting tasks have in common.
type shape struct {
	definition, group, cpu, memory, why string
}

// Waits are the waiting ones of tasks, the longest first.
func Waits(tasks []types.Task) []types.Task {
	out := slices.DeleteFunc(slices.Clone(tasks), func(t types.Task) bool { return aws.ToString(t.LastStatus) != "PROVISIONING" })
	slices.SortStableFunc(out, func(a, b types.Task) int { return aws.ToTime(a.CreatedAt).Compare(aws.ToTime(b.CreatedAt)) })
	return out
}

// Queue is who waits, for what, how long and why.
func Queue(now time.Time, waiting []types.Task) *output.Table {
	t := &output.Table{Head: []string{"TASK", "DEFINITION", "GROUP", "CPU", "MEMORY", "PRIORITY", "WAITS", "REASON"}, Empty: "nothing waits"}
	for i := range waiting {
		k := &waiting[i]
		t.Add(Short(aws.ToString(k.TaskArn)), Definition(k.TaskDefinitionArn), aws.ToString(k.Group), aws.ToString(k.Cpu), aws.ToString(k.Memory),
			Priority(now, k), age(now, k.CreatedAt), output.Cell{Text: cmp.Or(Waiting(k), "not looked at yet"), Colour: output.Warn})
	}
	return t
}

// Priority is a waiting task's place: its tag, and what waiting has added.
func Priority(now time.Time, t *types.Task) string {
	base := cmp.Or(tag(t.Tags, "longshore:priority"), "50")
	if waited := int(now.Sub(aws.ToTime(t.CreatedAt)).Minutes()); t.CreatedAt != nil && waited > 0 {
		return fmt.Sprintf("%s+%d", base, waited)
	}
	return base
}

// Shapes is the queue by what waits, most waiting first.
func Shapes(now time.Time, waiting []types.Task) *output.Table {
	type group struct {
		shape
		n      int
		oldest *time.Time
	}
	var all []*group
	for i := range waiting {
		k := &waiting[i]
		s := shape{Definition(k.TaskDefinitionArn), aws.ToString(k.Group), aws.ToString(k.Cpu), aws.ToString(k.Memory), cmp.Or(Waiting(k), "not looked at yet")}
		at := slices.IndexFunc(all, func(g *group) bool { return g.shape == s })
		if at < 0 {
			all, at = append(all, &group{shape: s, oldest: k.CreatedAt}), len(all)
		}
		all[at].n++
	}
	slices.SortStableFunc(all, func(a, b *group) int { return cmp.Compare(b.n, a.n) })
	t := &output.Table{Head: []string{"WAITING", "DEFINITION", "GROUP", "CPU", "MEMORY", "OLDEST", "REASON"}, Empty: "nothing waits"}
	for _, g := range all {
		t.Add(g.n, g.definition, g.group, g.cpu, g.memory, age(now, g.oldest), output.Cell{Text: g.why, Colour: output.Warn})
	}
	return t
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
