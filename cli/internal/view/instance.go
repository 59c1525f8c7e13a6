package view

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/output"
)

// Host is an instance as people call it: its EC2 id where it has one.
func Host(i *types.ContainerInstance) string {
	return cmp.Or(aws.ToString(i.Ec2InstanceId), Short(aws.ToString(i.ContainerInstanceArn)))
}

// State is how an instance stands: its status, or the stage of its liveness
// where that is what keeps it from work.
func State(i *types.ContainerInstance) string {
	of := aws.ToString(i.Status)
	if of == "ACTIVE" && !i.AgentConnected {
		stage, _, _ := strings.Cut(aws.ToString(i.StatusReason), " ")
		return cmp.Or(strings.TrimSuffix(stage, ":"), "DISCONNECTED")
	}
	return of
}

// Drained says whether nothing is left on a draining instance.
func Drained(i *types.ContainerInstance) bool {
	return aws.ToString(i.Status) == "DRAINING" && i.RunningTasksCount+i.PendingTasksCount == 0 && free(i)
}

// free says whether an instance's ledger is empty: what is stopping holds too,
// and is counted as neither running nor pending.
func free(i *types.ContainerInstance) bool {
	for _, name := range []string{"CPU", "MEMORY"} {
		if resource(i.RemainingResources, name).IntegerValue != resource(i.RegisteredResources, name).IntegerValue {
			return lost(i)
		}
	}
	return true
}

// lost instances show nothing as remaining, though nothing of them may be held.
func lost(i *types.ContainerInstance) bool {
	return strings.HasPrefix(aws.ToString(i.StatusReason), "LOST")
}

func resource(all []types.Resource, name string) types.Resource {
	for _, r := range all {
		if aws.ToString(r.Name) == name {
			return r
		}
	}
	return types.Resource{}
}

func used(i *types.ContainerInstance, name string) string {
	all, left := resource(i.RegisteredResources, name).IntegerValue, resource(i.RemainingResources, name).IntegerValue
	if lost(i) {
		return fmt.Sprintf("-/%d", all)
	}
	return fmt.Sprintf("%d/%d", all-left, all)
}

// Instances is the table of instances.
func Instances(now time.Time, all []types.ContainerInstance) *output.Table {
	t := &output.Table{
		Head:  []string{"INSTANCE", "EC2", "ZONE", "STATUS", "RUNNING", "PENDING", "CPU USED", "MEMORY USED", "AGENT", "AGE", "DETAIL"},
		Empty: "no instance is registered",
	}
	for n := range all {
		i := &all[n]
		state := State(i)
		note := aws.ToString(i.StatusReason)
		if Drained(i) {
			note = "drained"
		}
		version := "-"
		if i.VersionInfo != nil {
			version = cmp.Or(aws.ToString(i.VersionInfo.AgentVersion), "-")
		}
		t.Add(Short(aws.ToString(i.ContainerInstanceArn)), cmp.Or(aws.ToString(i.Ec2InstanceId), "-"), cmp.Or(attribute(i.Attributes, "ecs.availability-zone"), "-"),
			status(state), i.RunningTasksCount, i.PendingTasksCount, used(i, "CPU"), used(i, "MEMORY"), version, age(now, i.RegisteredAt), note)
	}
	return t
}
