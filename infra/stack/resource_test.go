package stack_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/construct/function"
	"github.com/longshore-run/longshore/infra/option"
	"github.com/longshore-run/longshore/infra/stack"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/schema"
)

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func TestTables_AreWhatTheSchemaSays(t *testing.T) {
	for _, want := range schema.Tables() {
		t.Run(want.Role, func(t *testing.T) {
			_, r := real.one(t, "AWS::DynamoDB::Table", upper(want.Role)+"Table")
			if got := keyOf(r.Properties["KeySchema"]); got != want.Key {
				t.Errorf("key %v, want %v", got, want.Key)
			}
			var indexes []schema.Index
			for _, i := range list(r.Properties["GlobalSecondaryIndexes"]) {
				i := i.(map[string]any)
				indexes = append(indexes, schema.Index{Name: i["IndexName"].(string), Key: keyOf(i["KeySchema"])})
				if p := text(i["Projection"]); p != `{"ProjectionType":"KEYS_ONLY"}` {
					t.Errorf("index %v projects %s", i["IndexName"], p)
				}
			}
			if !slices.Equal(indexes, want.Indexes) {
				t.Errorf("indexes %v, want %v", indexes, want.Indexes)
			}
			for property, value := range map[string]string{
				"BillingMode":                      "PAY_PER_REQUEST",
				"PointInTimeRecoverySpecification": `{"PointInTimeRecoveryEnabled":true}`,
				"SSESpecification":                 `{"SSEEnabled":true}`,
				"TimeToLiveSpecification":          `{"AttributeName":"expiresAt","Enabled":true}`,
				"DeletionProtectionEnabled":        "true",
			} {
				if got := text(r.Properties[property]); got != value {
					t.Errorf("%s is %s, want %s", property, got, value)
				}
			}
			if r.Properties["TableName"] != nil {
				t.Error("has a name of its own: a kept table would be in the way of the next deployment")
			}
		})
	}
	if got := len(real.all("AWS::DynamoDB::Table")); got != len(schema.Tables()) {
		t.Errorf("%d tables", got)
	}
}

func keyOf(v any) schema.Key {
	var k schema.Key
	for _, part := range list(v) {
		switch p := part.(map[string]any); p["KeyType"] {
		case "HASH":
			k.Partition = p["AttributeName"].(string)
		case "RANGE":
			k.Sort = p["AttributeName"].(string)
		}
	}
	return k
}

func TestRemoval_DataOutlivesTheStackOnlyOutsideAnEmulator(t *testing.T) {
	for name, c := range map[string]struct {
		of     template
		policy string
	}{"real": {real, "Retain"}, "local": {local, "Delete"}} {
		for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::Logs::LogGroup"} {
			for _, id := range c.of.all(kind) {
				if r := c.of.Resources[id]; r.DeletionPolicy != c.policy || r.UpdateReplacePolicy != c.policy {
					t.Errorf("%s: %s is %s on deletion, %s on replacement; want %s",
						name, id, r.DeletionPolicy, r.UpdateReplacePolicy, c.policy)
				}
			}
		}
	}
	for _, id := range local.all("AWS::DynamoDB::Table") {
		if local.Resources[id].Properties["DeletionProtectionEnabled"] == true {
			t.Errorf("local %s cannot be deleted", id)
		}
	}
}

// A changed logical id replaces the thing: a table would be a new, empty one.
func TestStateful_ThingsKeepTheirLogicalIDs(t *testing.T) {
	var lines []string
	for _, kind := range []string{"AWS::DynamoDB::Table", "AWS::IAM::InstanceProfile", "AWS::IAM::Role",
		"AWS::Lambda::Url", "AWS::SNS::Topic", "AWS::SQS::Queue"} {
		for _, id := range real.all(kind) {
			lines = append(lines, kind+" "+id)
		}
	}
	golden(t, "stateful.txt", lines)
}

func TestQueues_PutAsideWhatCannotBeDelivered(t *testing.T) {
	for _, c := range []struct {
		name       string
		reader     string
		window     float64
		maxReceive float64
	}{
		{"Admission", "Admission", 0, 5},
		{"Reports", "Statechange", 0, 10},
		{"Heartbeats", "Statechange", 5, 3},
		{"Services", "Services", 0, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			deadID, dead := real.one(t, "AWS::SQS::Queue", c.name+"QueueDead")
			_, main := real.one(t, "AWS::SQS::Queue", c.name+"Queue")
			_, reader := real.one(t, "AWS::Lambda::Function", c.reader)
			redrive, _ := main.Properties["RedrivePolicy"].(map[string]any)
			if got := text(redrive["deadLetterTargetArn"]); got != "{"+plain(deadID)+".Arn}" || redrive["maxReceiveCount"] != c.maxReceive {
				t.Errorf("redrive %v", redrive)
			}
			if want := reader.Properties["Timeout"].(float64) + c.window + 5; main.Properties["VisibilityTimeout"] != want {
				t.Errorf("visibility %v, want the reader's timeout, its window and 5 s: %v", main.Properties["VisibilityTimeout"], want)
			}
			if dead.Properties["MessageRetentionPeriod"] != float64(14*24*3600) {
				t.Errorf("dead letters are kept for %v s", dead.Properties["MessageRetentionPeriod"])
			}
			if main.Properties["SqsManagedSseEnabled"] != true || dead.Properties["SqsManagedSseEnabled"] != true {
				t.Error("not encrypted")
			}
			if main.Properties["FifoQueue"] != dead.Properties["FifoQueue"] {
				t.Error("a queue and its dead-letter queue must both be FIFO or neither")
			}
		})
	}
}

func TestAdmissionQueue_IsOrderedAndNeverDeduplicatesByContent(t *testing.T) {
	_, r := real.one(t, "AWS::SQS::Queue", "AdmissionQueue")
	if r.Properties["FifoQueue"] != true || r.Properties["ContentBasedDeduplication"] != false {
		t.Errorf("properties %v", r.Properties)
	}
	for _, name := range []string{"ReportsQueue", "HeartbeatsQueue", "ServicesQueue"} {
		if _, r := real.one(t, "AWS::SQS::Queue", name); r.Properties["FifoQueue"] != nil {
			t.Errorf("%s is FIFO", name)
		}
	}
}

func TestTransport_IsEncryptedOnEveryQueueAndTheTopicExceptOnAnEmulator(t *testing.T) {
	closed := func(of template) map[string]bool {
		out := map[string]bool{}
		for _, kind := range []string{"AWS::SQS::QueuePolicy", "AWS::SNS::TopicPolicy"} {
			for _, id := range of.all(kind) {
				p := of.Resources[id].Properties
				for _, s := range statements(p["PolicyDocument"]) {
					if s["Effect"] == "Deny" && text(s["Condition"]) == `{"Bool":{"aws:SecureTransport":"false"}}` {
						for _, on := range append(list(p["Queues"]), list(p["Topics"])...) {
							out[text(on)] = true
						}
					}
				}
			}
		}
		return out
	}
	want := map[string]bool{}
	for _, kind := range []string{"AWS::SQS::Queue", "AWS::SNS::Topic"} {
		for _, id := range real.all(kind) {
			want["{"+plain(id)+"}"] = true
		}
	}
	if got := closed(real); !maps.Equal(got, want) || len(got) != 11 {
		t.Errorf("closed to plain http: %v\nwant %v", got, want)
	}
	if got := closed(local); len(got) != 0 {
		t.Errorf("an emulator speaks plain http, but these refuse it: %v", got)
	}
}

func TestEventSources_SayWhichMessagesFailedExceptAdmission(t *testing.T) {
	for _, c := range []struct {
		of                    template
		name, queue, reader   string
		batch, window, atMost float64
		partial               bool
	}{
		{real, "Admission", "AdmissionQueue", "Admission", 10, 0, 50, false},
		{real, "Reports", "ReportsQueue", "Statechange", 10, 0, 20, true},
		{real, "Heartbeats", "HeartbeatsQueue", "Statechange", 100, 5, 5, true},
		{real, "Services", "ServicesQueue", "Services", 10, 0, 5, true},
		// A five-second heartbeat leaves no time for a window, and without one
		// SQS allows ten messages.
		{local, "Heartbeats", "HeartbeatsQueue", "Statechange", 10, 0, 5, true},
	} {
		_, r := c.of.one(t, "AWS::Lambda::EventSourceMapping", c.name+"Source")
		want := map[string]any{
			"EventSourceArn": "{" + c.queue + ".Arn}", "FunctionName": "{" + c.reader + "}",
			"BatchSize": c.batch, "ScalingConfig": map[string]any{"MaximumConcurrency": c.atMost},
		}
		if c.window > 0 {
			want["MaximumBatchingWindowInSeconds"] = c.window
		}
		if c.partial {
			want["FunctionResponseTypes"] = []any{"ReportBatchItemFailures"}
		}
		got := maps.Clone(r.Properties)
		for _, reference := range []string{"EventSourceArn", "FunctionName"} {
			got[reference] = text(got[reference])
		}
		delete(got, "Tags")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\nwant %v", c.name, got, want)
		}
	}
}

func TestStreams_AreReadInOrderAndLoseNothingInSilence(t *testing.T) {
	written := `{"eventName":["INSERT","MODIFY"]}`
	for name, filter := range map[string]string{
		"Tasks": written, "Instances": written,
		"Catalog": `{"eventName":["INSERT","MODIFY"],"dynamodb":{"Keys":{"pk":{"S":["schedule",{"prefix":"service-events#"}]}}}}`,
	} {
		_, table := real.one(t, "AWS::DynamoDB::Table", name+"Table")
		if got := text(table.Properties["StreamSpecification"]); got != `{"StreamViewType":"NEW_AND_OLD_IMAGES"}` {
			t.Errorf("%s: stream %s", name, got)
		}
		_, r := real.one(t, "AWS::Lambda::EventSourceMapping", name+"Stream")
		got := map[string]string{}
		for property, value := range r.Properties {
			if property != "Tags" {
				got[property] = text(value)
			}
		}
		criteria := r.Properties["FilterCriteria"].(map[string]any)["Filters"].([]any)
		if len(criteria) != 1 || !sameJSON(t, text(criteria[0].(map[string]any)["Pattern"]), filter) {
			t.Errorf("%s: filters %v", name, criteria)
		}
		delete(got, "FilterCriteria")
		want := map[string]string{
			"EventSourceArn": "{" + name + "Table.StreamArn}", "FunctionName": "{Events}", "BatchSize": "100", "StartingPosition": "TRIM_HORIZON",
			"MaximumRecordAgeInSeconds": "43200", "BisectBatchOnFunctionError": "true", "FunctionResponseTypes": `["ReportBatchItemFailures"]`,
			"DestinationConfig": `{"OnFailure":{"Destination":{"Fn::GetAtt":["` + id(t, "AWS::SQS::Queue", "EventsQueueDead") + `","Arn"]}}}`,
		}
		if !maps.Equal(got, want) {
			t.Errorf("%s: %v\nwant %v", name, got, want)
		}
	}
	if _, leases := real.one(t, "AWS::DynamoDB::Table", "LeasesTable"); leases.Properties["StreamSpecification"] != nil {
		t.Error("each heartbeat would be a record of a stream")
	}
}

func id(t *testing.T, kind, name string) string {
	t.Helper()
	id, _ := real.one(t, kind, name)
	return id
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	if err := errors.Join(json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)); err != nil {
		t.Fatal(err)
	}
	return reflect.DeepEqual(x, y)
}

func TestExampleRule_IsTheOneOfTheExamplesAndOnlyThereIfWanted(t *testing.T) {
	file, err := os.ReadFile(filepath.Join("..", "..", "examples", "events", "failed-tasks.json"))
	if err != nil {
		t.Fatal(err)
	}
	_, rule := second.one(t, "AWS::Events::Rule", "FailedTasks")
	if got := text(rule.Properties["EventPattern"]); !sameJSON(t, got, string(file)) {
		t.Errorf("pattern %s", got)
	}
	targets := list(rule.Properties["Targets"])
	if len(targets) != 1 || text(targets[0].(map[string]any)["Arn"]) != "{FailedTasksQueue.Arn}" || text(rule.Properties["EventBusName"]) != "{EventBus}" {
		t.Errorf("rule %v", rule.Properties)
	}
	if text(second.Outputs["FailedTasksQueueUrl"].Value) != "{FailedTasksQueue}" {
		t.Errorf("outputs %v", second.Outputs)
	}
	for _, id := range real.all("AWS::Events::Rule") {
		if strings.HasPrefix(id, "FailedTasks") {
			t.Error("the example is deployed though nobody asked for it")
		}
	}
}

func TestSchedules_OnlyTheStacksRulesMayRunAndThoseOfTheContextAreThere(t *testing.T) {
	may := second.Resources["SchedulesMayRun"]
	want := map[string]string{
		"Action": "lambda:InvokeFunction", "Principal": "events.amazonaws.com", "FunctionName": "{Schedule.Arn}",
		"SourceArn": "arn:{AWS::Partition}:events:{AWS::Region}:{AWS::AccountId}:rule/harbor-schedule-*",
	}
	for property, value := range want {
		if got := text(may.Properties[property]); got != value {
			t.Errorf("%s is %s", property, got)
		}
	}
	var rule resource
	for _, id := range second.all("AWS::Events::Rule") {
		if strings.HasPrefix(id, "Schedulenightlyreport") {
			rule = second.Resources[id]
		}
	}
	if text(rule.Properties["Name"]) != "harbor-schedule-nightly-report" || text(rule.Properties["ScheduleExpression"]) != "cron(0 3 * * ? *)" || text(rule.Properties["State"]) != "ENABLED" {
		t.Fatalf("rule %v", rule.Properties)
	}
	target := list(rule.Properties["Targets"])[0].(map[string]any)
	input := target["InputTransformer"].(map[string]any)
	run, err := schedule.DecodeTemplate(text(input["InputTemplate"]))
	if err != nil || run.Schedule != "nightly-report" || run.StartingDeadline != 600 || run.Overlap != schedule.Forbid || run.Count != 1 {
		t.Errorf("run %+v: %v", run, err)
	}
	if text(target["Arn"]) != "{Schedule.Arn}" || text(input["InputPathsMap"]) != `{"time":"$.time"}` {
		t.Errorf("target %v", target)
	}
	file, err := os.ReadFile(filepath.Join("..", "..", "examples", "schedules", "nightly.json"))
	if err != nil || !sameJSON(t, text(schedules), string(file)) {
		t.Errorf("examples/schedules/nightly.json is not what is deployed here (%v)", err)
	}
	_, f := real.one(t, "AWS::Lambda::EventInvokeConfig", "ScheduleEventInvokeConfig")
	if got := text(f.Properties["DestinationConfig"]); !strings.Contains(got, "ScheduleQueueDead") {
		t.Errorf("a run that can not be decided on goes to %s", got)
	}
}

func TestFunctions_RunOurBinaryOnTheChosenArchitecture(t *testing.T) {
	for _, c := range []struct {
		of   template
		arch string
		days float64
	}{{real, "arm64", 30}, {second, "x86_64", 90}} {
		if got := len(c.of.all("AWS::Lambda::Function")); got != len(stack.Functions()) {
			t.Errorf("%d functions: something the CDK adds by itself?", got)
		}
		for _, name := range stack.Functions() {
			_, f := c.of.one(t, "AWS::Lambda::Function", upper(name))
			logID, log := c.of.one(t, "AWS::Logs::LogGroup", upper(name)+"Log")
			for property, want := range map[string]string{
				"Runtime": "provided.al2023", "Handler": "bootstrap", "Architectures": `["` + c.arch + `"]`,
				"Role":          "{" + upper(name) + "Role.Arn}",
				"LoggingConfig": `{"LogGroup":{"Ref":"` + logID + `"}}`,
			} {
				if got := text(f.Properties[property]); got != want {
					t.Errorf("%s: %s is %s, want %s", name, property, got, want)
				}
			}
			if log.Properties["RetentionInDays"] != c.days {
				t.Errorf("%s: logs are kept for %v days", name, log.Properties["RetentionInDays"])
			}
		}
	}
}

func TestReadapi_IsTheAPIsCodeWithAnotherRole(t *testing.T) {
	_, write := real.one(t, "AWS::Lambda::Function", "Api")
	_, read := real.one(t, "AWS::Lambda::Function", "Readapi")
	_, other := real.one(t, "AWS::Lambda::Function", "Admission")
	if text(write.Properties["Code"]) != text(read.Properties["Code"]) {
		t.Error("readapi runs other code than api")
	}
	if text(write.Properties["Code"]) == text(other.Properties["Code"]) {
		t.Error("admission runs api's code")
	}
	if text(write.Properties["Role"]) == text(read.Properties["Role"]) {
		t.Error("readapi has api's role")
	}
}

func TestEndpoints_OpenForIAMOnly(t *testing.T) {
	urls := real.all("AWS::Lambda::Url")
	if len(urls) != 2 {
		t.Fatalf("function URLs %v", urls)
	}
	for _, id := range urls {
		if got := real.Resources[id].Properties["AuthType"]; got != "AWS_IAM" {
			t.Errorf("%s: auth %v", id, got)
		}
	}
	for _, id := range real.all("AWS::Lambda::Permission") {
		if p := text(real.Resources[id].Properties["Principal"]); p != "events.amazonaws.com" {
			t.Errorf("%s lets %s in", id, p)
		}
	}
}

func TestRules_WakeTheReaper(t *testing.T) {
	_, minute := real.one(t, "AWS::Events::Rule", "EveryMinute")
	_, host := real.one(t, "AWS::Events::Rule", "HostStopped")
	if minute.Properties["ScheduleExpression"] != "rate(1 minute)" {
		t.Errorf("schedule %v", minute.Properties["ScheduleExpression"])
	}
	want := `{"detail":{"state":["stopping","shutting-down","stopped","terminated"]},` +
		`"detail-type":["EC2 Instance State-change Notification"],"source":["aws.ec2"]}`
	if got := text(host.Properties["EventPattern"]); got != want {
		t.Errorf("pattern %s", got)
	}
	_, warning := real.one(t, "AWS::Events::Rule", "SpotWarning")
	if got := text(warning.Properties["EventPattern"]); got != `{"detail-type":["EC2 Spot Instance Interruption Warning"],"source":["aws.ec2"]}` {
		t.Errorf("pattern %s", got)
	}
	_, hook := second.one(t, "AWS::Events::Rule", "HostTerminates")
	if got := text(hook.Properties["EventPattern"]); got != `{"detail":{"AutoScalingGroupName":["batch",{"prefix":"web-"}],"LifecycleHookName":["longshore"]},`+
		`"detail-type":["EC2 Instance-terminate Lifecycle Action"],"source":["aws.autoscaling"]}` {
		t.Errorf("pattern %s", got)
	}
	for _, id := range real.all("AWS::Events::Rule") {
		if strings.HasPrefix(id, "HostTerminates") {
			t.Error("terminations are told though no group is ours")
		}
	}
	for _, r := range []resource{minute, host, warning, hook} {
		targets := list(r.Properties["Targets"])
		if len(targets) != 1 || text(targets[0].(map[string]any)["Arn"]) != "{Reaper.Arn}" || r.Properties["State"] != "ENABLED" {
			t.Errorf("rule %v", r.Properties)
		}
	}
}

func TestOutputs_KeepTheirNames(t *testing.T) {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(real.Outputs)) {
		lines = append(lines, name+" "+text(real.Outputs[name].Value))
	}
	golden(t, "outputs.txt", lines)
}

func TestLogs_EveryRetentionOnOfferIsOneOfCloudWatchs(t *testing.T) {
	offered := slices.Sorted(maps.Keys(function.Retentions))
	if !slices.Equal(offered, option.Retentions()) {
		t.Errorf("options offer %v, functions know %v", option.Retentions(), offered)
	}
}
