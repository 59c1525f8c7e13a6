//go:build emulator

package main

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	bridgetypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// settings name tables of this test's own, which they make.
func settings(t *testing.T, mark string) setting.Control {
	t.Helper()
	env := map[string]string{"LONGSHORE_REGION": emulator.Region, "LONGSHORE_ACCOUNT": emulator.Account, "LONGSHORE_STACK_NAME": "Stack" + mark}
	for _, name := range setting.Names(setting.Control{}) {
		if strings.HasSuffix(name, "_TABLE") {
			env[name] = strings.ToLower(name) + "-" + mark
		} else if strings.HasSuffix(name, "_URL") {
			env[name] = emulator.Shared(t).Endpoint() + "/" + emulator.Account + "/none"
		}
	}
	var s setting.Control
	if err := setting.FromEnv(&s, func(n string) (string, bool) { v, ok := env[n]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	client := dynamodb.NewFromConfig(emulator.Shared(t).AWSConfig())
	for _, table := range schema.Tables() {
		in := &dynamodb.CreateTableInput{TableName: aws.String(boot.Tables(s)[table.Role]), BillingMode: dynamotypes.BillingModePayPerRequest}
		for _, key := range []struct {
			name string
			kind dynamotypes.KeyType
		}{{table.Key.Partition, dynamotypes.KeyTypeHash}, {table.Key.Sort, dynamotypes.KeyTypeRange}} {
			if key.name != "" {
				in.KeySchema = append(in.KeySchema, dynamotypes.KeySchemaElement{AttributeName: aws.String(key.name), KeyType: key.kind})
				in.AttributeDefinitions = append(in.AttributeDefinitions, dynamotypes.AttributeDefinition{AttributeName: aws.String(key.name), AttributeType: dynamotypes.ScalarAttributeTypeS})
			}
		}
		if _, err := client.CreateTable(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// A rule's own clock takes a minute; one that an event wakes has the same target
// and the same template, and is here at once.
func TestSchedule_ARulesTemplateBecomesATaskOnceForEachTime(t *testing.T) {
	mark := strings.ToLower(rand.Text()[:8])
	s := settings(t, mark)
	config := emulator.Shared(t).AWSConfig()
	store := dynamostore.New(config, boot.Tables(s), time.Now)
	memory := 16
	def := taskdef.Echo(taskdef.Input{Spec: taskdef.Spec{Family: "report", ContainerDefinitions: []taskdef.ContainerDefinition{{Name: "main", Image: "busybox", Memory: &memory}}}}, taskdef.Registration{Revision: 1})
	if err := store.Commit(t.Context(), control.Put(&control.Cluster{Name: "default", Status: "ACTIVE"}),
		control.Put(&control.Definition{Family: "report", Number: 1, Status: "ACTIVE", Definition: taskdef.Canonical(def)})); err != nil {
		t.Fatal(err)
	}
	name := "schedule-" + mark
	functions := lambda.NewFromConfig(config)
	if _, err := functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Timeout: aws.Int32(30),
		Role: aws.String("arn:aws:iam::" + emulator.Account + ":role/any"), Code: &lambdatypes.FunctionCode{ZipFile: emulator.Program(t)},
		Environment: &lambdatypes.Environment{Variables: setting.Env(s)},
	}); err != nil {
		t.Fatal(err)
	}
	run := schedule.Run{Schedule: "nightly", TaskDefinition: "report:1", StartingDeadline: 600, Overlap: schedule.Allow,
		Overrides: []byte(`{"containerOverrides":[{"name":"main","command":["sh","-c","echo \"<time>\" > /dev/null"]}]}`)}
	run.Complete()
	bridge := eventbridge.NewFromConfig(config)
	rule := schedule.RuleName(s.StackName, run.Schedule)
	if _, err := bridge.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: &rule, EventPattern: aws.String(`{"source":["test.` + mark + `"]}`)}); err != nil {
		t.Fatal(err)
	}
	if _, err := bridge.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: &rule, Targets: []bridgetypes.Target{{
		Id: aws.String("run"), Arn: aws.String("arn:aws:lambda:" + emulator.Region + ":" + emulator.Account + ":function:" + name),
		InputTransformer: &bridgetypes.InputTransformer{InputPathsMap: schedule.TimePath(), InputTemplate: aws.String(run.Template())},
	}}}); err != nil {
		t.Fatal(err)
	}
	before := time.Now()
	if _, err := bridge.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []bridgetypes.PutEventsRequestEntry{{
		Source: aws.String("test." + mark), DetailType: aws.String("due"), Detail: aws.String("{}"),
	}}}); err != nil {
		t.Fatal(err)
	}
	record := &control.Schedule{Name: "nightly"}
	poll(t, "the run is decided on", func(ctx context.Context) bool {
		return store.Load(ctx, record) == nil && len(record.Runs) == 1
	})
	first := record.Runs[0]
	if first.Outcome != control.OutcomeStarted || len(first.Tasks) != 1 || first.At.Before(before.Truncate(time.Second)) || first.At.After(time.Now()) {
		t.Errorf("run %+v", first)
	}
	// The emulator gives an event no time of ours; so what follows asks directly.
	late := first.At.Add(-time.Hour)
	for _, at := range []time.Time{first.At, late} {
		message := strings.Replace(run.Template(), "<time>", `"`+at.Format(time.RFC3339)+`"`, 1)
		out, err := functions.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, Payload: []byte(message)})
		if err != nil || out.FunctionError != nil {
			t.Fatalf("invoke: %v %s", err, out.Payload)
		}
	}
	if err := store.Load(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	if len(record.Runs) != 2 || record.Runs[0].Tasks[0] != first.Tasks[0] || !record.Runs[1].At.Equal(late) || record.Runs[1].Reason != control.MissedLate {
		t.Errorf("runs %+v", record.Runs)
	}
	k := &control.Task{ID: record.Runs[0].Tasks[0]}
	if err := store.Load(t.Context(), k); err != nil {
		t.Fatal(err)
	}
	if k.LastStatus != task.Provisioning || k.StartedBy != "events-rule/nightly" || k.MaxWait <= 0 || k.MaxWait > 10*time.Minute || !strings.Contains(string(k.Overrides), "time") {
		t.Errorf("task %+v", k)
	}
}

func poll(t *testing.T, what string, done func(ctx context.Context) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !done(ctx) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not so: %s", what)
		}
	}
}
