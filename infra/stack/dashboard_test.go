package stack_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/stack"
	"github.com/longshore-run/longshore/shared/measure"
)

// shown is one metric on the dashboard: namespace, name, and dimensions in turn.
type shown struct {
	title, namespace, name string
	dimensions             []string
}

type widget struct {
	Type       string
	Width, X   int
	Properties struct {
		Title   string
		Query   string
		Alarms  []string
		Metrics []json.RawMessage
	}
}

func widgets(t *testing.T, of template) []widget {
	t.Helper()
	_, d := of.one(t, "AWS::CloudWatch::Dashboard", "Dashboard")
	var body struct{ Widgets []widget }
	if err := json.Unmarshal([]byte(text(d.Properties["DashboardBody"])), &body); err != nil {
		t.Fatalf("%v in %s", err, text(d.Properties["DashboardBody"]))
	}
	return body.Widgets
}

// metrics are all that the dashboard draws, and the searches among them.
func metrics(t *testing.T, of template) (all []shown, searches []string) {
	t.Helper()
	for _, w := range widgets(t, of) {
		for _, raw := range w.Properties.Metrics {
			var parts []any
			if err := json.Unmarshal(raw, &parts); err != nil {
				t.Fatal(err)
			}
			if options, only := parts[0].(map[string]any); only {
				searches = append(searches, options["expression"].(string))
				continue
			}
			s := shown{title: w.Properties.Title, namespace: parts[0].(string), name: parts[1].(string)}
			for _, p := range parts[2:] {
				if word, ok := p.(string); ok {
					s.dimensions = append(s.dimensions, word)
				}
			}
			all = append(all, s)
		}
	}
	return all, searches
}

// Whatever is drawn exists: ours is written by the functions, with these very
// dimensions; AWS's own is about a thing of this stack, and AWS writes it.
func TestDashboard_DrawsOnlyWhatIsWritten(t *testing.T) {
	amazon := map[string][]string{
		"AWS/SQS":      {"ApproximateAgeOfOldestMessage", "ApproximateNumberOfMessagesVisible"},
		"AWS/Lambda":   {"Errors", "Throttles", "Duration"},
		"AWS/DynamoDB": {"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"},
	}
	about := map[string]*regexp.Regexp{
		"AWS/SQS": regexp.MustCompile(`^QueueName \{\w+Queue(Dead)?\.QueueName\}$`), "AWS/Lambda": regexp.MustCompile(`^FunctionName \{\w+\}$`), "AWS/DynamoDB": regexp.MustCompile(`^TableName \{\w+Table\}$`),
	}
	all, searches := metrics(t, real)
	if len(all) < 60 {
		t.Fatalf("%d metrics: the dashboard is not read as it is written", len(all))
	}
	for _, m := range all {
		if m.namespace == measure.Namespace {
			if len(m.dimensions) < 2 || m.dimensions[0] != measure.Stack || m.dimensions[1] != "Longshore" || !measure.Written(m.name, m.dimensions[2:]...) {
				t.Errorf("%s: nobody writes %s with %v", m.title, m.name, m.dimensions)
			}
			continue
		}
		if !slices.Contains(amazon[m.namespace], m.name) || !about[m.namespace].MatchString(strings.Join(m.dimensions, " ")) {
			t.Errorf("%s: %s %s with %v", m.title, m.namespace, m.name, m.dimensions)
		}
	}
	search := regexp.MustCompile(`^SEARCH\('\{Longshore,Stack,(\w+)\} MetricName="(\w+)" Stack="Longshore"', 'Maximum'\)$`)
	if len(searches) == 0 {
		t.Error("no search")
	}
	for _, s := range searches {
		if m := search.FindStringSubmatch(s); m == nil || !measure.Written(m[2], m[1]) {
			t.Errorf("search %s", s)
		}
	}
}

// What the runbooks, and who watches, need: every metric of ours that is of the
// whole installation, every queue, function and table, every alarm.
func TestDashboard_LeavesOutNothing(t *testing.T) {
	all, searches := metrics(t, second)
	drawn := map[string]bool{}
	for _, m := range all {
		drawn[m.namespace+" "+m.name+" "+strings.Join(m.dimensions, " ")] = true
	}
	var want []string
	for _, m := range measure.All() {
		if m.Whole {
			want = append(want, "Longshore "+m.Name+" Stack Harbor")
		}
	}
	for _, q := range []string{"AdmissionQueue", "ReportsQueue", "HeartbeatsQueue", "ServicesQueue"} {
		want = append(want, "AWS/SQS ApproximateAgeOfOldestMessage QueueName {"+q+".QueueName}")
	}
	for _, q := range []string{"AdmissionQueue", "ReportsQueue", "HeartbeatsQueue", "ServicesQueue", "EventsQueue", "ScheduleQueue"} {
		want = append(want, "AWS/SQS ApproximateNumberOfMessagesVisible QueueName {"+q+"Dead.QueueName}")
	}
	for _, f := range stack.Functions() {
		for _, m := range []string{"Errors", "Throttles", "Duration"} {
			want = append(want, "AWS/Lambda "+m+" FunctionName {"+upper(f)+"}")
		}
	}
	for _, table := range []string{"Tasks", "Instances", "Leases", "Catalog"} {
		for _, m := range []string{"ConsumedReadCapacityUnits", "ConsumedWriteCapacityUnits", "ReadThrottleEvents", "WriteThrottleEvents"} {
			want = append(want, "AWS/DynamoDB "+m+" TableName {"+table+"Table}")
		}
	}
	for _, w := range want {
		if !drawn[w] {
			t.Errorf("not drawn: %s", w)
		}
	}
	for _, name := range []string{measure.WaitingTasks, measure.WaitingCPU, measure.WaitingMemoryMiB} {
		if !slices.ContainsFunc(searches, func(s string) bool { return strings.Contains(s, `"`+name+`"`) && strings.Contains(s, `Stack="Harbor"`) }) {
			t.Errorf("not searched for: %s", name)
		}
	}
	logged, states := false, 0
	for _, w := range widgets(t, second) {
		logged = logged || w.Type == "log" && strings.Contains(w.Properties.Query, "{AdmissionLog}") && strings.Contains(w.Properties.Query, `msg = "waiting demand"`)
		states += len(w.Properties.Alarms)
		if w.X+w.Width > 24 {
			t.Errorf("%s is beside the page", w.Properties.Title)
		}
	}
	if !logged {
		t.Error("waiting demand by shape is not shown")
	}
	if states != len(alarms(second, "Harbor")) {
		t.Errorf("%d alarms are shown", states)
	}
}

// Emulators do not know dashboards: LocalStack only says that it made one.
func TestDashboard_IsNotMadeOnAnEmulator(t *testing.T) {
	if n := len(local.all("AWS::CloudWatch::Dashboard")); n != 0 {
		t.Errorf("%d dashboards", n)
	}
	if n := len(real.all("AWS::CloudWatch::Dashboard")); n != 1 {
		t.Errorf("%d dashboards", n)
	}
}
