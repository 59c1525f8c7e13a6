//go:build emulator

package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
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
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/test/emulator"
)

func TestMain(m *testing.M) { emulator.Main(m) }

// rig is the function as it is deployed, behind the streams of tables of its own,
// and a queue behind a rule on its bus.
type rig struct {
	t        *testing.T
	setting  setting.Control
	store    *dynamostore.Store
	tables   *dynamodb.Client
	queues   *sqs.Client
	toldURL  string
	received []told
}

// told is what a subscriber gets.
type told struct {
	Type      string   `json:"detail-type"`
	Source    string   `json:"source"`
	Resources []string `json:"resources"`
	Detail    struct {
		LastStatus, DesiredStatus, StoppedReason, StopCode, Status string
		AgentConnected                                             bool
		Version                                                    int64
		Containers                                                 []struct{ ExitCode *int }
	} `json:"detail"`
}

func newRig(t *testing.T) *rig {
	t.Helper()
	config := emulator.Shared(t).AWSConfig()
	r := &rig{t: t, tables: dynamodb.NewFromConfig(config), queues: sqs.NewFromConfig(config)}
	mark := strings.ToLower(rand.Text()[:8])
	s := &r.setting
	env := map[string]string{"LONGSHORE_REGION": emulator.Region, "LONGSHORE_ACCOUNT": emulator.Account, "LONGSHORE_EVENT_BUS_NAME": "bus-" + mark}
	for _, name := range setting.Names(setting.Control{}) {
		if strings.HasSuffix(name, "_TABLE") {
			env[name] = strings.ToLower(name) + "-" + mark
		} else if strings.HasSuffix(name, "_URL") {
			env[name] = "https://sqs/" + emulator.Account + "/none"
		}
	}
	env["LONGSHORE_EVENTS_DEAD_QUEUE_URL"] = r.queue("dead-" + mark)
	if err := setting.FromEnv(s, func(n string) (string, bool) { v, ok := env[n]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	r.store = dynamostore.New(config, boot.Tables(*s), time.Now)
	r.toldURL = r.queue("told-" + mark)
	r.subscribe(eventbridge.NewFromConfig(config), mark)
	functions := lambda.NewFromConfig(config)
	name := "events-" + mark
	if _, err := functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"), Timeout: aws.Int32(60),
		Role: aws.String("arn:aws:iam::" + emulator.Account + ":role/any"), Code: &lambdatypes.FunctionCode{ZipFile: program(t)},
		Environment: &lambdatypes.Environment{Variables: setting.Env(*s)},
	}); err != nil {
		t.Fatal(err)
	}
	for _, table := range schema.Tables() {
		r.stream(functions, name, table)
	}
	return r
}

// program is the function's zip, which is not to be large: it starts cold.
func program(t *testing.T) []byte {
	t.Helper()
	code := emulator.Program(t)
	if most := 5_500_000; len(code) > most {
		t.Errorf("zipped it has %d bytes, at most %d are wanted", len(code), most)
	}
	return code
}

func (r *rig) queue(name string) string {
	r.t.Helper()
	out, err := r.queues.CreateQueue(r.t.Context(), &sqs.CreateQueueInput{QueueName: &name})
	if err != nil {
		r.t.Fatal(err)
	}
	return *out.QueueUrl
}

func arn(service, rest string) *string {
	return aws.String("arn:aws:" + service + ":" + emulator.Region + ":" + emulator.Account + ":" + rest)
}

func (r *rig) subscribe(bridge *eventbridge.Client, mark string) {
	r.t.Helper()
	bus, rule := &r.setting.EventBusName, aws.String("all-"+mark)
	_, err := bridge.CreateEventBus(r.t.Context(), &eventbridge.CreateEventBusInput{Name: bus})
	if err == nil {
		_, err = bridge.PutRule(r.t.Context(), &eventbridge.PutRuleInput{Name: rule, EventBusName: bus, EventPattern: aws.String(`{"source":["longshore"]}`)})
	}
	if err == nil {
		_, err = bridge.PutTargets(r.t.Context(), &eventbridge.PutTargetsInput{Rule: rule, EventBusName: bus,
			Targets: []bridgetypes.Target{{Id: aws.String("queue"), Arn: arn("sqs", "told-"+mark)}}})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

// stream makes a table and, if it is streamed, has the function read it. What the
// infrastructure says of event sources is tested there.
func (r *rig) stream(functions *lambda.Client, function string, table schema.Table) {
	r.t.Helper()
	name := boot.Tables(r.setting)[table.Role]
	in := &dynamodb.CreateTableInput{TableName: &name, BillingMode: dynamotypes.BillingModePayPerRequest,
		StreamSpecification: &dynamotypes.StreamSpecification{StreamEnabled: aws.Bool(table.Streamed)}}
	if table.Streamed {
		in.StreamSpecification.StreamViewType = dynamotypes.StreamViewTypeNewAndOldImages
	}
	for kind, key := range map[dynamotypes.KeyType]string{dynamotypes.KeyTypeHash: table.Key.Partition, dynamotypes.KeyTypeRange: table.Key.Sort} {
		if key != "" {
			in.KeySchema = append(in.KeySchema, dynamotypes.KeySchemaElement{AttributeName: aws.String(key), KeyType: kind})
			in.AttributeDefinitions = append(in.AttributeDefinitions, dynamotypes.AttributeDefinition{AttributeName: aws.String(key), AttributeType: dynamotypes.ScalarAttributeTypeS})
		}
	}
	slices.SortFunc(in.KeySchema, func(a, b dynamotypes.KeySchemaElement) int {
		return strings.Compare(string(a.KeyType), string(b.KeyType))
	})
	made, err := r.tables.CreateTable(r.t.Context(), in)
	if err != nil {
		r.t.Fatal(err)
	}
	if !table.Streamed {
		return
	}
	source, err := functions.CreateEventSourceMapping(r.t.Context(), &lambda.CreateEventSourceMappingInput{
		FunctionName: &function, EventSourceArn: made.TableDescription.LatestStreamArn, StartingPosition: lambdatypes.EventSourcePositionTrimHorizon,
		BatchSize: aws.Int32(100), MaximumRecordAgeInSeconds: aws.Int32(600), BisectBatchOnFunctionError: aws.Bool(true),
		FunctionResponseTypes: []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures},
		FilterCriteria:        &lambdatypes.FilterCriteria{Filters: []lambdatypes.Filter{{Pattern: aws.String(`{"eventName":["INSERT","MODIFY"]}`)}}},
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() {
		if _, err := functions.DeleteEventSourceMapping(context.Background(), &lambda.DeleteEventSourceMappingInput{UUID: source.UUID}); err != nil {
			r.t.Error(err)
		}
	})
}

func (r *rig) put(records ...control.Record) {
	r.t.Helper()
	var writes []control.Write
	for _, record := range records {
		writes = append(writes, control.Put(record))
	}
	if err := r.store.Commit(r.t.Context(), writes...); err != nil {
		r.t.Fatal(err)
	}
}

// await receives until done says so of all that was received.
func (r *rig) await(url string, what string, take func(body string), done func() bool) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*time.Minute)
	defer cancel()
	for !done() {
		out, err := r.queues.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &url, MaxNumberOfMessages: 10, WaitTimeSeconds: 1})
		if err != nil {
			r.t.Fatalf("not %s: %v", what, err)
		}
		for _, m := range out.Messages {
			take(*m.Body)
			if _, err := r.queues.DeleteMessage(ctx, &sqs.DeleteMessageInput{QueueUrl: &url, ReceiptHandle: m.ReceiptHandle}); err != nil {
				r.t.Fatal(err)
			}
		}
	}
}

// awaitEvents receives events until done says so.
func (r *rig) awaitEvents(what string, done func() bool) {
	r.t.Helper()
	r.await(r.toldURL, what, func(body string) {
		var e told
		if err := json.Unmarshal([]byte(body), &e); err != nil {
			r.t.Fatal(err)
		}
		r.received = append(r.received, e)
	}, done)
}

// of are the events about something, as texts, in the order they came.
func (r *rig) of(id string) []string {
	var out []string
	for _, e := range r.received {
		if strings.HasSuffix(e.Resources[0], "/"+id) {
			d := e.Detail
			out = append(out, strings.Join(strings.Fields(fmt.Sprintf("v%d %s%s %s %s", d.Version, d.LastStatus, d.Status, d.DesiredStatus, d.StopCode)), " "))
		}
	}
	return out
}

// firsts leaves out what was told before: a batch of a stream that is given to the
// function again is told again.
func firsts(all []string) (out []string) {
	for _, one := range all {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// inOrder says whether all of want are among got in their order.
func inOrder(got, want []string) bool {
	for _, one := range got {
		if len(want) > 0 && one == want[0] {
			want = want[1:]
		}
	}
	return len(want) == 0
}

func TestEvents_ATasksWholeLifeArrivesInOrderAndNothingBeforeItsCommit(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	host, id := strings.Repeat("a", 32), strings.Repeat("b", 32)
	l := &control.Ledger{ID: host, Cluster: "default", Status: control.Active, Connected: true, Registered: control.Held{CPU: 1024, MemoryMiB: 512}}
	k := &control.Task{ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1, Family: "app", Number: 1, CreatedAt: now}
	r.put(&control.Instance{ID: host, Cluster: "default", Zone: "a", RegisteredAt: now}, l)
	r.put(k)
	k.LastStatus, k.Instance, k.Held = task.Pending, host, &control.Held{MemoryMiB: 128}
	l.Held.MemoryMiB, l.Open = 128, 1
	r.put(k, l)
	k.Dispatched, k.Shown = 2, true // no state change
	r.put(k)
	k.LastStatus, k.StartedAt = task.Running, now
	r.put(k)
	code := 7
	k.LastStatus, k.DesiredStatus, k.Held, k.StopCause = task.Stopped, task.DesiredStopped, nil, task.LostCause
	k.StoppedReason, k.StoppedAt = task.EndOf(task.LostCause).Reason, now
	k.Containers = []task.Container{{Name: "main", Status: task.ContainerStopped, ExitCode: &code}}
	l.Held.MemoryMiB, l.Open = 0, 0
	r.put(k, l)

	want := []string{"v1 PROVISIONING RUNNING", "v2 PENDING RUNNING", "v4 RUNNING RUNNING", "v5 STOPPED STOPPED InfrastructureHealth"}
	r.awaitEvents("STOPPED", func() bool { return slices.Contains(r.of(id), want[len(want)-1]) })
	if got := firsts(r.of(id)); !slices.Equal(got, want) {
		t.Errorf("told of the task %q\nwant %q", got, want)
	}
	// The description's own event, whenever it comes, shows the ledger as it is then; and a
	// batch that is given again tells all of it again.
	states := []string{"v2 ACTIVE", "v3 ACTIVE", "v4 ACTIVE"}
	r.awaitEvents("told of the instance, each state after the one before it", func() bool {
		return len(r.of(host)) > len(states) && inOrder(r.of(host), states)
	})
	for _, got := range r.of(host) {
		if !slices.Contains(states, got) {
			t.Errorf("told of the instance %q", got)
		}
	}
	for _, e := range r.received {
		if e.Source != "longshore" {
			t.Errorf("source %s", e.Source)
		}
	}
}

func TestEvents_ARecordThatCanNotBeReadIsPutAsideAndHoldsUpNothing(t *testing.T) {
	r := newRig(t)
	poison := strings.Repeat("c", 32)
	if _, err := r.tables.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &r.setting.TasksTable, Item: map[string]dynamotypes.AttributeValue{
		schema.ID: &dynamotypes.AttributeValueMemberS{Value: poison}, "createdAt": &dynamotypes.AttributeValueMemberN{Value: "7"},
	}}); err != nil {
		t.Fatal(err)
	}
	id := strings.Repeat("d", 32)
	r.put(&control.Task{ID: id, Cluster: "default", LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1, Family: "app", Number: 1, CreatedAt: time.Now()})
	r.awaitEvents("told of the task behind it", func() bool { return len(r.of(id)) > 0 })
	var letters []string
	r.await(r.setting.EventsDeadQueueURL, "put aside", func(body string) { letters = append(letters, body) }, func() bool { return len(letters) > 0 })
	if !strings.Contains(letters[0], poison) {
		t.Errorf("put aside %s", letters[0])
	}
}
