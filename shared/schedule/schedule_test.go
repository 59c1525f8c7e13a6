package schedule_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schedule"
)

func rule(change ...func(*schedule.Rule)) schedule.Rule {
	r := schedule.Rule{Expression: "rate(5 minutes)", Run: schedule.Run{Schedule: "nightly", TaskDefinition: "report"}}
	for _, f := range change {
		f(&r)
	}
	r.Complete()
	return r
}

func TestComplete_IsOneTaskOfTheDefaultClusterThatMayOverlap(t *testing.T) {
	r := rule()
	if r.Count != 1 || r.Cluster != "default" || r.Overlap != schedule.Allow || r.Version != schedule.Version {
		t.Errorf("%+v", r)
	}
	if err := r.Check("Longshore"); err != nil {
		t.Error(err)
	}
}

func TestCheck_NamesEveryFault(t *testing.T) {
	r := schedule.Rule{Expression: "daily", Run: schedule.Run{Version: 2, Schedule: "a b", Cluster: "c d", Count: 11, StartingDeadline: -1, Overlap: "maybe", Overrides: json.RawMessage(`[]`)}}
	err := r.Check("Longshore")
	for _, want := range []string{"version: ", "schedule: ", "cluster: ", "taskDefinition: ", "count: ", "startingDeadline: ", "overlap: ", "overrides: ", "expression: "} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not named in %v", want, err)
		}
	}
}

func TestCheck_TheRulesNameAndMessageFitIntoEventBridge(t *testing.T) {
	long := rule(func(r *schedule.Rule) { r.Schedule = strings.Repeat("a", 46) })
	if err := long.Check("Longshore"); err == nil || !strings.Contains(err.Error(), "at most 45 are") {
		t.Error(err)
	}
	fits := rule(func(r *schedule.Rule) { r.Schedule = strings.Repeat("a", 45) })
	if err := fits.Check("Longshore"); err != nil || len(schedule.RuleName("Longshore", fits.Schedule)) != 64 {
		t.Error(err)
	}
	big := rule(func(r *schedule.Rule) { r.Overrides = json.RawMessage(`{"x":"` + strings.Repeat("<", 1500) + `"}`) })
	if err := big.Check("Longshore"); err == nil || !strings.Contains(err.Error(), "EventBridge takes 8192") {
		t.Error(err)
	}
}

func TestCheckExpression(t *testing.T) {
	for expression, ok := range map[string]bool{
		"rate(1 minute)": true, "rate(5 minutes)": true, "rate(1 hour)": true, "rate(2 days)": true,
		"rate(1 minutes)": false, "rate(5 minute)": false, "rate(0 minutes)": false, "rate(5  minutes)": false, "rate(5 seconds)": false,
		"cron(0 3 * * ? *)": true, "cron(0/15 8-18 ? * MON-FRI *)": true, "cron(0 0 L * ? *)": true, "cron(0 10 ? * 6#3 *)": true,
		"cron(0 3 * * * *)": false, "cron(0 3 ? * ? *)": false, "cron(0 3 * * ?)": false, "cron(0  3 * * ? *)": false, "cron(a 3 * * ? *)": false,
		"0 3 * * *": false, "": false, "cron(0 3 * * ? *": false, "rate(1 minute) ": false,
	} {
		if err := schedule.CheckExpression(expression); (err == nil) != ok || err != nil && !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %v", expression, err)
		}
	}
}

func TestTemplate_ComesBackAsTheRunWithItsTime(t *testing.T) {
	r := rule(func(r *schedule.Rule) {
		r.Overrides = json.RawMessage(`{"containerOverrides":[{"name":"main","command":["sh","-c","echo <time> > x"]}]}`)
		r.Tags, r.StartingDeadline, r.Overlap, r.Count = map[string]string{"a": "<b>"}, 600, schedule.Forbid, 3
	})
	template := r.Template()
	if n := strings.Count(template, "<"); n != 1 {
		t.Fatalf("%d beginnings of a variable in %s", n, template)
	}
	d, err := schedule.Decode([]byte(strings.Replace(template, "<time>", `"2026-11-30T03:00:00Z"`, 1)))
	if err != nil || !d.ScheduledTime.Equal(time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)) {
		t.Fatal(d, err)
	}
	var want, got any
	_ = json.Unmarshal(r.Overrides, &want)
	_ = json.Unmarshal(d.Run.Overrides, &got)
	if !reflect.DeepEqual(want, got) || d.Run.Tags["a"] != "<b>" || d.Run.Deadline() != 10*time.Minute || d.Run.Overlap != schedule.Forbid {
		t.Errorf("%+v", d.Run)
	}
	back, err := schedule.DecodeTemplate(template)
	if err != nil || back.Schedule != "nightly" || back.Count != 3 {
		t.Errorf("%+v %v", back, err)
	}
}

func TestDecode_IsStrict(t *testing.T) {
	good := `{"scheduledTime":"2026-11-30T03:00:00Z","run":{"version":1,"schedule":"n","cluster":"default","taskDefinition":"a","count":1,"overlap":"allow"}}`
	if _, err := schedule.Decode([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for name, bad := range map[string]string{
		"nothing":           "",
		"no time":           strings.Replace(good, `"scheduledTime":"2026-11-30T03:00:00Z",`, "", 1),
		"an unknown member": strings.Replace(good, `"count"`, `"counts"`, 1),
		"another version":   strings.Replace(good, `"version":1`, `"version":2`, 1),
		"more":              good + "{}",
		"too much":          good + strings.Repeat(" ", 17_000),
	} {
		if _, err := schedule.Decode([]byte(bad)); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
