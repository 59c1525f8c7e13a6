package stack_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const runbooks = "../../docs/runbooks"

// alarms are the alarms' names without the stack's.
func alarms(of template, stackName string) []string {
	var out []string
	for _, id := range of.all("AWS::CloudWatch::Alarm") {
		out = append(out, strings.TrimPrefix(of.Resources[id].Properties["AlarmName"].(string), stackName+"-"))
	}
	slices.Sort(out)
	return out
}

func TestAlarms_AreThoseOfTheGoldenList(t *testing.T) {
	golden(t, "alarms.txt", alarms(real, "Longshore"))
	if got := alarms(second, "Harbor"); !slices.Equal(got, alarms(real, "Longshore")) {
		t.Errorf("another stack has other alarms: %v", got)
	}
}

// procedures are runbooks that no alarm calls for.
var procedures = []string{"restore", "uninstall", "upgrade"}

func TestAlarms_HaveARunbookPageEach(t *testing.T) {
	names := alarms(real, "Longshore")
	for _, name := range names {
		page, err := os.ReadFile(filepath.Join(runbooks, name+".md"))
		if err != nil {
			t.Error(err)
			continue
		}
		if first, _, _ := strings.Cut(string(page), "\n"); first != "# "+name {
			t.Errorf("%s.md begins with %q", name, first)
		}
		for _, part := range []string{"## What it means", "## Look", "## Do"} {
			if !strings.Contains(string(page), "\n"+part+"\n") {
				t.Errorf("%s.md has no part %q", name, part)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(runbooks, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".md")
		if name != "README" && !slices.Contains(procedures, name) && !slices.Contains(names, name) {
			t.Errorf("%s is about an alarm that does not exist", f)
		}
	}
}

// Where a fleet's people keep the pages, an alarm leads there.
func TestAlarms_LeadToTheRunbooksOfTheirPeople(t *testing.T) {
	for _, id := range second.all("AWS::CloudWatch::Alarm") {
		p := second.Resources[id].Properties
		name := strings.TrimPrefix(p["AlarmName"].(string), "Harbor-")
		if d := p["AlarmDescription"].(string); !strings.HasSuffix(d, " What to do: https://wiki.example/longshore/"+name+".md") {
			t.Errorf("%s: %s", name, d)
		}
	}
}

func TestAlarms_SayWhatHappenedAndWhereToReadOn(t *testing.T) {
	for _, id := range real.all("AWS::CloudWatch::Alarm") {
		p := real.Resources[id].Properties
		name := strings.TrimPrefix(p["AlarmName"].(string), "Longshore-")
		if d := p["AlarmDescription"].(string); !strings.HasSuffix(d, ". What to do: docs/runbooks/"+name+".md") {
			t.Errorf("%s: description %q", name, d)
		}
		for _, action := range []string{"AlarmActions", "OKActions"} {
			if got := list(p[action]); len(got) != 1 || text(got[0]) != "{AlarmTopic}" {
				t.Errorf("%s: %s %v", name, action, got)
			}
		}
		missing := "notBreaching"
		if name == "reaper-silent" {
			missing = "breaching"
		}
		if p["TreatMissingData"] != missing {
			t.Errorf("%s: missing data is %v", name, p["TreatMissingData"])
		}
	}
}

// An alarm on a metric nobody writes never rings: ours are of this stack's own
// queues and functions, or in our namespace under the stack's name.
func TestAlarms_WatchWhatExists(t *testing.T) {
	watched := map[string][]string{}
	for _, id := range real.all("AWS::CloudWatch::Alarm") {
		p := real.Resources[id].Properties
		dimensions := list(p["Dimensions"])
		if len(dimensions) != 1 {
			t.Errorf("%s has dimensions %v", id, dimensions)
			continue
		}
		d := dimensions[0].(map[string]any)
		key := p["Namespace"].(string) + " " + d["Name"].(string) + " " + text(d["Value"])
		watched[key] = append(watched[key], p["MetricName"].(string))
	}
	want := map[string][]string{
		"Longshore Stack Longshore": {"AutoScalingFaults", "BrakeEngaged", "DuplicateIdentities", "FencedInstances", "FullInstances", "GuardBlackout",
			"LedgerDifferences", "LostProbes", "MissedScheduledRuns", "OldestWaitingSeconds", "RefusedRegistrations", "RefusedSenders", "SuspectInstances", "UndecodableMessages", "UnknownContainers"},
	}
	for _, q := range []string{"AdmissionQueue", "ReportsQueue", "HeartbeatsQueue", "ServicesQueue"} {
		want["AWS/SQS QueueName {"+q+".QueueName}"] = []string{"ApproximateAgeOfOldestMessage"}
		want["AWS/SQS QueueName {"+q+"Dead.QueueName}"] = []string{"ApproximateNumberOfMessagesVisible"}
	}
	want["AWS/SQS QueueName {ScheduleQueueDead.QueueName}"] = []string{"ApproximateNumberOfMessagesVisible"}
	want["AWS/SQS QueueName {EventsQueueDead.QueueName}"] = []string{"ApproximateNumberOfMessagesVisible"}
	for f, more := range map[string][]string{"Api": {"Url5xxCount"}, "Readapi": {"Url5xxCount"}, "Admission": nil,
		"Statechange": nil, "Reaper": {"Invocations"}, "Services": nil, "Events": {"IteratorAge"}, "Schedule": nil, "Audit": nil} {
		want["AWS/Lambda FunctionName {"+f+"}"] = append([]string{"Errors", "Throttles"}, more...)
	}
	for key, metrics := range want {
		got := watched[key]
		slices.Sort(got)
		slices.Sort(metrics)
		if !slices.Equal(got, metrics) {
			t.Errorf("%s: %v, want %v", key, got, metrics)
		}
		delete(watched, key)
	}
	for key, metrics := range watched {
		t.Errorf("unexpected: %s %v", key, metrics)
	}
}

func TestAlarms_WaitingAgeIsASetting(t *testing.T) {
	for want, of := range map[float64]template{900: real, 3600: second} {
		_, r := of.one(t, "AWS::CloudWatch::Alarm", "taskswaiting")
		if r.Properties["Threshold"] != want {
			t.Errorf("threshold %v, want %v", r.Properties["Threshold"], want)
		}
	}
}
