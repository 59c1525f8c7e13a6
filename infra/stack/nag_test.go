package stack_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// finding is one complaint of cdk-nag: a rule, with what of it where there are
// several, about a construct.
type finding struct{ rule, about string }

// exception is a finding that we live with.
type exception struct{ rule, about, reason string }

// commands is a right on all command queues, which have no names at deployment.
const commands = "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:sqs:<AWS::Region>:<AWS::AccountId>:longshore-cmd-*]"

// accepted are the findings we live with, each with its reason. A finding that
// is not here fails the test, and so does one here that is not found any more.
var accepted = []exception{
	{commands, "Agent", "made narrow by its condition: of these queues, only the one tagged with the session's own aws:userid"},
	{"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:iam::<AWS::AccountId>:role/longshore/*]", "Agent", "takes the roles of tasks, which are made later, by others; each must trust it too"},
	{commands, "ApiRole", "sends to any instance: StopTask and StartTask, to whichever has the task"},
	{commands, "AdmissionRole", "sends to any instance: the one it gave a task to"},
	{commands, "StatechangeRole", "makes the queue of an instance that registers, and answers every instance"},
	{commands, "ReaperRole", "repeats commands to any instance, and deletes the queue of one deregistered a day ago"},
	{"AwsSolutions-SQS3", "EventsQueueDead", "is itself where the changes go that could not be told; no queue stands before it"},
	{"AwsSolutions-SQS3", "ScheduleQueueDead", "is itself where the runs go that could not be decided on; no queue stands before it"},
	{commands, "ScheduleRole", "sends to any instance: stops of what a run replaces"},
	{commands, "ServicesRole", "sends to any instance: stops of surplus copies"},
}

var told = regexp.MustCompile(`^(AwsSolutions-[A-Z0-9]+)(\[[^\]]*\])?`)

// readFindings collects what cdk-nag wrote beside a stack's template.
func readFindings(out, stack string) (findings []finding, err error) {
	var metadata map[string][]struct {
		Type string
		Data any
	}
	if err := readJSON(filepath.Join(out, stack+".metadata.json"), &metadata); err != nil {
		return nil, err
	}
	for path, entries := range metadata {
		for _, e := range entries {
			said, _ := e.Data.(string)
			m := told.FindStringSubmatch(said)
			if m == nil || e.Type != "aws:cdk:error" && e.Type != "aws:cdk:warning" {
				continue
			}
			findings = append(findings, finding{m[1] + m[2], strings.TrimSuffix(strings.TrimPrefix(path, "/"+stack+"/"), "/Resource")})
		}
	}
	return findings, nil
}

func TestNag_FindsOnlyWhatIsAcceptedForAReason(t *testing.T) {
	judge(t, findings, accepted)
}

// judge holds what was found against what is accepted.
func judge(t *testing.T, findings []finding, accepted []exception) {
	t.Helper()
	open := slices.Clone(findings)
	for _, a := range accepted {
		if len(a.reason) < 20 {
			t.Errorf("%s about %s has no reason", a.rule, a.about)
		}
		before := len(open)
		open = slices.DeleteFunc(open, func(f finding) bool { return f == finding{a.rule, a.about} })
		if len(open) == before {
			t.Errorf("%s about %s is accepted, but not found any more", a.rule, a.about)
		}
	}
	for _, f := range open {
		t.Errorf("%s about %s", f.rule, f.about)
	}
}
