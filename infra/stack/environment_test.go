package stack_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/longshore-run/longshore/infra/stack"
	"github.com/longshore-run/longshore/shared/setting"
)

// environment is a function's, with its references written as {name}.
func environment(t *testing.T, of template, function string) func(string) (string, bool) {
	t.Helper()
	_, f := of.one(t, "AWS::Lambda::Function", upper(function))
	e, _ := f.Properties["Environment"].(map[string]any)
	variables, _ := e["Variables"].(map[string]any)
	return func(name string) (string, bool) {
		v, ok := variables[name]
		return text(v), ok
	}
}

func defaults() setting.Control {
	return setting.Control{
		Region: "{AWS::Region}", Account: "{AWS::AccountId}", Partition: "{AWS::Partition}", StackName: "Longshore",
		TasksTable: "{TasksTable}", InstancesTable: "{InstancesTable}", LeasesTable: "{LeasesTable}", CatalogTable: "{CatalogTable}",
		AdmissionQueueURL: "{AdmissionQueue}", AdmissionDeadQueueURL: "{AdmissionQueueDead}", ReportsQueueURL: "{ReportsQueue}", ReportsDeadQueueURL: "{ReportsQueueDead}",
		HeartbeatsQueueURL: "{HeartbeatsQueue}", HeartbeatsDeadQueue: "{HeartbeatsQueueDead}", ServicesQueueURL: "{ServicesQueue}", ServicesDeadQueueURL: "{ServicesQueueDead}",
		EventsDeadQueueURL: "{EventsQueueDead}", EventBusName: "{EventBus}",
		CommandQueueNameStart: "longshore-cmd-",
		HeartbeatEvery:        time.Minute, SuspectAfter: 3 * time.Minute, ReapAfter: 10 * time.Minute, BlackoutMax: time.Hour,
		StarvationAge: 2 * time.Minute, EarmarkFor: 10 * time.Minute, RefusalMemory: 5 * time.Minute,
		StoppedTasksFor: 24 * time.Hour, KeepFor: 24 * time.Hour, DrainDeadline: 24 * time.Hour,
		LifecycleHook: "longshore", RegisterRoles: []string{"{Agent.RoleId}"}, TaskRoles: []string{"longshore/*"}, LogLevel: "info",
	}
}

func TestEnvironment_IsReadBackByTheFunctionsOwnSettings(t *testing.T) {
	onEmulator := defaults()
	onEmulator.StackName, onEmulator.CommandQueueNameStart = "Local", "local-cmd-"
	onEmulator.HeartbeatEvery, onEmulator.SuspectAfter, onEmulator.ReapAfter = 5*time.Second, 20*time.Second, 90*time.Second
	onEmulator.SenderFromBody, onEmulator.RegisterRoles, onEmulator.LogLevel = true, []string{"*"}, "debug"
	for _, c := range []struct {
		name string
		of   template
		want setting.Control
	}{{"real", real, defaults()}, {"local", local, onEmulator}} {
		for _, f := range stack.Functions() {
			var got setting.Control
			if err := setting.FromEnv(&got, environment(t, c.of, f)); err != nil {
				t.Fatalf("%s %s: %v", c.name, f, err)
			}
			c.want.ReadOnly = f == "readapi"
			if !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s %s:\n%+v\nwant\n%+v", c.name, f, got, c.want)
			}
		}
	}
}

// Only an emulator, whose senders all look the same, lets anybody register and
// believes what a message says about its sender.
func TestEnvironment_TrustsTheAgentsRoleAloneOutsideAnEmulator(t *testing.T) {
	look := environment(t, real, "statechange")
	if v, ok := look("LONGSHORE_SENDER_FROM_BODY"); ok {
		t.Errorf("LONGSHORE_SENDER_FROM_BODY=%s", v)
	}
	if v, _ := look("LONGSHORE_REGISTER_ROLES"); v != "{Agent.RoleId}" {
		t.Errorf("LONGSHORE_REGISTER_ROLES=%s", v)
	}
	if v, _ := environment(t, second, "statechange")("LONGSHORE_REGISTER_ROLES"); v != "{Agent.RoleId},AROAEXAMPLE,edge={Agent.RoleId}" {
		t.Errorf("with another role allowed: LONGSHORE_REGISTER_ROLES=%s", v)
	}
}

func TestEnvironment_ToldIsWhichRolesTasksMayHave(t *testing.T) {
	if v, ok := environment(t, second, "services")("LONGSHORE_TASK_ROLES"); !ok || v != taskRoles {
		t.Errorf("LONGSHORE_TASK_ROLES=%s", v)
	}
}

func TestEnvironment_HasOnlyOurSettings(t *testing.T) {
	known := map[string]bool{}
	for _, n := range setting.Names(setting.Control{}) {
		known[n] = true
	}
	_, f := real.one(t, "AWS::Lambda::Function", "Api")
	for name := range f.Properties["Environment"].(map[string]any)["Variables"].(map[string]any) {
		if !known[name] {
			t.Errorf("nothing reads %s", name)
		}
	}
}
