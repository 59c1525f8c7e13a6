package stack_test

import (
	"strings"
	"testing"
)

// What a role may tell Auto Scaling is for the groups of the context, and only the
// reaper's; without any nobody may tell it anything.
func TestRights_OnlyTheReaperTellsTheGroupsOfTheContext(t *testing.T) {
	told := func(of template) (out []string) {
		for name, all := range rights(of) {
			for _, s := range all {
				for _, a := range list(s["Action"]) {
					for _, r := range list(s["Resource"]) {
						if strings.HasPrefix(text(a), "autoscaling:") {
							out = append(out, name+" "+text(a)+" "+text(r))
						}
					}
				}
			}
		}
		return out
	}
	if got := told(real); len(got) > 0 {
		t.Errorf("rights that nobody asked for: %v", got)
	}
	const group = " arn:{AWS::Partition}:autoscaling:{AWS::Region}:{AWS::AccountId}:autoScalingGroup:*:autoScalingGroupName/"
	var want []string
	for _, action := range []string{"CompleteLifecycleAction", "RecordLifecycleActionHeartbeat", "SetInstanceHealth"} {
		want = append(want, "ReaperRole autoscaling:"+action+group+"batch", "ReaperRole autoscaling:"+action+group+"web-*")
	}
	if got := told(second); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("rights\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
