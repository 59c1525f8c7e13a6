package ecsapi_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/shared/task"
)

// sdkOperations are the operations that the SDK's client has.
func sdkOperations() (names []string) {
	for m := range reflect.TypeFor[*ecs.Client]().Methods() {
		if m.Name != "Options" {
			names = append(names, m.Name)
		}
	}
	return names
}

func TestOperations_AreThoseOfTheSDK(t *testing.T) {
	want, got := sdkOperations(), ecsapi.Operations()
	sort.Strings(want)
	if len(want) != 88 || !slices.Equal(got, want) {
		t.Errorf("the SDK has %d operations, the table %d; they differ:\n%v\n%v", len(want), len(got), want, got)
	}
}

func TestOperations_EachIsDoneOrRefusedByName(t *testing.T) {
	r := newRig(t)
	r.world()
	for _, name := range sdkOperations() {
		status, answer, _ := r.post(name, "{}")
		if status >= 500 || status == 404 {
			t.Errorf("%s: status %d: a client would send it again", name, status)
		}
		refused := strings.Contains(answer, name+" is not supported by Longshore")
		if refused == ecsapi.Done(name) {
			t.Errorf("%s: done %v, and answered %s", name, ecsapi.Done(name), answer)
		}
		if !refused {
			continue
		}
		if exception, _ := r.refused(name, "{}"); exception != "UnsupportedFeatureException" && exception != "UnknownOperationException" {
			t.Errorf("%s: %s", name, answer)
		}
	}
}

func TestClient_RefusedOperationsAreTypedWhereTheModelHasAnException(t *testing.T) {
	r := newRig(t)
	_, err := r.ecs.CreateTaskSet(r.ctx, &ecs.CreateTaskSetInput{Cluster: aws.String("default"), Service: aws.String("web"), TaskDefinition: aws.String("web")})
	if code := codeOf(err); code != "UnsupportedFeatureException" {
		t.Errorf("CreateTaskSet: %s", code)
	}
	_, err = r.ecs.ListServicesByNamespace(r.ctx, &ecs.ListServicesByNamespaceInput{Namespace: aws.String("n")})
	if code := codeOf(err); code != "UnknownOperationException" {
		t.Errorf("ListServicesByNamespace: %s", code)
	}
}

func TestClient_Clusters(t *testing.T) {
	r := newRig(t)
	probe, err := r.ecs.DescribeClusters(r.ctx, &ecs.DescribeClustersInput{})
	if err != nil || len(probe.Clusters) != 0 || len(probe.Failures) != 1 || *probe.Failures[0].Reason != "MISSING" || *probe.Failures[0].Arn != "arn:aws:ecs:eu-central-1:123456789012:cluster/default" {
		t.Fatalf("without arguments and cluster: %+v, %v", probe, err)
	}
	made, err := r.ecs.CreateCluster(r.ctx, &ecs.CreateClusterInput{
		ClusterName: aws.String("blue"), Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}},
		Settings: []types.ClusterSetting{{Name: "containerInsights", Value: aws.String("disabled")}},
	})
	if err != nil || *made.Cluster.Status != "ACTIVE" || *made.Cluster.ClusterArn != "arn:aws:ecs:eu-central-1:123456789012:cluster/blue" || len(made.Cluster.Tags) != 1 || len(made.Cluster.Settings) != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if made, err = r.ecs.CreateCluster(r.ctx, &ecs.CreateClusterInput{}); err != nil || *made.Cluster.ClusterName != "default" {
		t.Fatalf("%+v, %v", made, err)
	}
	for n := range 5 {
		if _, err := r.ecs.CreateCluster(r.ctx, &ecs.CreateClusterInput{ClusterName: aws.String(fmt.Sprint("c", n))}); err != nil {
			t.Fatal(err)
		}
	}
	var arns []string
	pages := ecs.NewListClustersPaginator(r.ecs, &ecs.ListClustersInput{MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		arns = append(arns, page.ClusterArns...)
	}
	if len(arns) != 7 {
		t.Errorf("lists %v", arns)
	}
	r.world()
	got, err := r.ecs.DescribeClusters(r.ctx, &ecs.DescribeClustersInput{Clusters: []string{arns[0], "default"}, Include: []types.ClusterField{"TAGS", "SETTINGS", "STATISTICS"}})
	if err != nil || len(got.Clusters) != 2 || len(got.Clusters[0].Tags) != 1 || got.Clusters[1].RegisteredContainerInstancesCount != 1 || len(got.Clusters[1].Statistics) != 8 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = r.ecs.DeleteCluster(r.ctx, &ecs.DeleteClusterInput{Cluster: aws.String("default")})
	if code := codeOf(err); code != "ClusterContainsContainerInstancesException" {
		t.Errorf("delete: %s", code)
	}
	gone, err := r.ecs.DeleteCluster(r.ctx, &ecs.DeleteClusterInput{Cluster: aws.String("blue")})
	if err != nil || *gone.Cluster.Status != "INACTIVE" {
		t.Errorf("%+v, %v", gone, err)
	}
}

func TestClient_TaskDefinitions(t *testing.T) {
	r := newRig(t)
	register := func(family string) *ecs.RegisterTaskDefinitionOutput {
		out, err := r.ecs.RegisterTaskDefinition(r.ctx, &ecs.RegisterTaskDefinitionInput{
			Family: aws.String(family), Tags: []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
			ContainerDefinitions: []types.ContainerDefinition{{Name: aws.String("main"), Image: aws.String("busybox"), Memory: aws.Int32(64)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	out := register("web")
	def := out.TaskDefinition
	if def.Revision != 1 || def.Status != "ACTIVE" || *def.TaskDefinitionArn != "arn:aws:ecs:eu-central-1:123456789012:task-definition/web:1" || !def.RegisteredAt.Equal(r.now) || *def.RegisteredBy != "unauthenticated" || !*def.ContainerDefinitions[0].Essential || len(out.Tags) != 1 {
		t.Errorf("registered %+v", def)
	}
	register("web")
	register("other")
	got, err := r.ecs.DescribeTaskDefinition(r.ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String("web"), Include: []types.TaskDefinitionField{"TAGS"}})
	if err != nil || got.TaskDefinition.Revision != 2 || len(got.Tags) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = r.ecs.DescribeTaskDefinition(r.ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String("none")})
	if code := codeOf(err); code != "ClientException" || !strings.Contains(err.Error(), "Unable to describe task definition.") {
		t.Errorf("unknown: %v", err)
	}
	var arns []string
	pages := ecs.NewListTaskDefinitionsPaginator(r.ecs, &ecs.ListTaskDefinitionsInput{MaxResults: aws.Int32(1), Sort: "DESC"})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		arns = append(arns, page.TaskDefinitionArns...)
	}
	if len(arns) != 3 || !strings.HasSuffix(arns[0], "/web:2") || !strings.HasSuffix(arns[2], "/other:1") {
		t.Errorf("lists %v", arns)
	}
	gone, err := r.ecs.DeregisterTaskDefinition(r.ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: aws.String("other:1")})
	if err != nil || gone.TaskDefinition.Status != "INACTIVE" || gone.TaskDefinition.DeregisteredAt == nil {
		t.Errorf("%+v, %v", gone, err)
	}
	var families []string
	more := ecs.NewListTaskDefinitionFamiliesPaginator(r.ecs, &ecs.ListTaskDefinitionFamiliesInput{MaxResults: aws.Int32(1), Status: "ACTIVE"})
	for more.HasMorePages() {
		page, err := more.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		families = append(families, page.Families...)
	}
	if !slices.Equal(families, []string{"web"}) {
		t.Errorf("families are %v", families)
	}
}

func TestClient_RunsATaskThroughItsWholeLife(t *testing.T) {
	r := newRig(t)
	in := r.world()
	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{
		TaskDefinition: aws.String("web"), Count: aws.Int32(1), StartedBy: aws.String("alice"), PropagateTags: "TASK_DEFINITION",
		Tags:                 []types.Tag{{Key: aws.String("longshore:priority"), Value: aws.String("60")}},
		PlacementConstraints: []types.PlacementConstraint{{Type: "memberOf", Expression: aws.String("attribute:disk == ssd")}},
		PlacementStrategy:    []types.PlacementStrategy{{Type: "binpack", Field: aws.String("memory")}},
		Overrides:            &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("main"), Command: []string{"sleep", "30"}}}},
	})
	if err != nil || len(run.Tasks) != 1 || len(run.Failures) != 0 {
		t.Fatalf("%+v, %v", run, err)
	}
	got := run.Tasks[0]
	arn := *got.TaskArn
	if *got.LastStatus != "PROVISIONING" || *got.DesiredStatus != "RUNNING" || *got.Group != "family:web" || got.LaunchType != "EC2" || len(got.Tags) != 2 || !got.CreatedAt.Equal(r.now) || *got.Cpu != "256" || *got.Memory != "160" {
		t.Errorf("task is %+v", got)
	}
	if len(got.Containers) != 2 || *got.Containers[0].LastStatus != "PENDING" || *got.Containers[0].Memory != "128" || *got.Containers[1].MemoryReservation != "32" || *got.Containers[1].Cpu != "0" {
		t.Errorf("containers are %+v", got.Containers)
	}
	if o := got.Overrides.ContainerOverrides; len(o) != 2 || o[0].Command[1] != "30" || *o[1].Name != "side" {
		t.Errorf("overrides are %+v", o)
	}
	r.admit()
	r.running(idOf(&arn))
	waiter := ecs.NewTasksRunningWaiter(r.ecs)
	described, err := waiter.WaitForOutput(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{arn}, Include: []types.TaskField{"TAGS"}}, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	got = described.Tasks[0]
	if idOf(got.ContainerInstanceArn) != in || *got.AvailabilityZone != "eu-central-1a" || got.Connectivity != "CONNECTED" || *got.Containers[0].NetworkBindings[0].HostPort != 8080 || *got.Containers[0].RuntimeId != "c0ffee" || len(got.Tags) != 2 {
		t.Errorf("running: %+v", got)
	}
	if got.HealthStatus != types.HealthStatusUnknown || got.Containers[0].HealthStatus != types.HealthStatusUnknown {
		t.Errorf("not checked, its health is %s, a container's %s", got.HealthStatus, got.Containers[0].HealthStatus)
	}
	r.change(idOf(&arn), func(t *control.Task) { t.Health, t.Containers[0].Health = task.Unhealthy, task.Healthy })
	described, err = r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{arn}})
	if err != nil {
		t.Fatal(err)
	}
	if got = described.Tasks[0]; got.HealthStatus != types.HealthStatusUnhealthy || got.Containers[0].HealthStatus != types.HealthStatusHealthy {
		t.Errorf("its health is %s, a container's %s", got.HealthStatus, got.Containers[0].HealthStatus)
	}
	r.stopped(idOf(&arn), 7)
	if err := ecs.NewTasksStoppedWaiter(r.ecs).Wait(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{arn}}, time.Second); err != nil {
		t.Fatal(err)
	}
	described, err = r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{idOf(&arn)}})
	if err != nil {
		t.Fatal(err)
	}
	got = described.Tasks[0]
	if *got.Containers[0].ExitCode != 7 || *got.Containers[1].LastStatus != "STOPPED" || got.StopCode != "EssentialContainerExited" || *got.StoppedReason != "Essential container in task exited" || len(got.Tags) != 0 {
		t.Errorf("stopped: %+v", got)
	}
	for name, at := range map[string]*time.Time{"pullStartedAt": got.PullStartedAt, "pullStoppedAt": got.PullStoppedAt, "startedAt": got.StartedAt, "stoppingAt": got.StoppingAt, "executionStoppedAt": got.ExecutionStoppedAt, "stoppedAt": got.StoppedAt} {
		if at == nil || at.Before(r.now) {
			t.Errorf("%s is %v", name, at)
		}
	}
}

func TestClient_WaitersSeeFailureAtOnce(t *testing.T) {
	r := newRig(t)
	r.world()
	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.ecs.StopTask(r.ctx, &ecs.StopTaskInput{Task: run.Tasks[0].TaskArn}); err != nil {
		t.Fatal(err)
	}
	for _, arn := range []string{*run.Tasks[0].TaskArn, strings.Repeat("e", 32)} {
		err := ecs.NewTasksRunningWaiter(r.ecs).Wait(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{arn}}, time.Second)
		if err == nil || !strings.Contains(err.Error(), "state transitioned to Failure") {
			t.Errorf("%s: %v, want the waiter's failure state", arn, err)
		}
	}
}

func TestClient_ATokenIsIdempotentAndAReusedOneNamesWhatItMade(t *testing.T) {
	r := newRig(t)
	r.world()
	in := &ecs.RunTaskInput{TaskDefinition: aws.String("web"), ClientToken: aws.String("token"), Count: aws.Int32(2)}
	a, err := r.ecs.RunTask(r.ctx, in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.ecs.RunTask(r.ctx, in)
	if err != nil || *a.Tasks[0].TaskArn != *b.Tasks[0].TaskArn || *a.Tasks[1].TaskArn != *b.Tasks[1].TaskArn {
		t.Fatalf("%+v, %v", b, err)
	}
	in.Count = aws.Int32(1)
	_, err = r.ecs.RunTask(r.ctx, in)
	x, ok := errors.AsType[*types.ConflictException](err)
	if !ok || len(x.ResourceIds) != 2 || x.ResourceIds[0] != *a.Tasks[0].TaskArn {
		t.Errorf("%v: %+v", err, x)
	}
}

func TestClient_StopTask(t *testing.T) {
	r := newRig(t)
	r.world()
	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	out, err := r.ecs.StopTask(r.ctx, &ecs.StopTaskInput{Task: run.Tasks[0].TaskArn, Reason: aws.String("enough")})
	if err != nil || *out.Task.LastStatus != "STOPPED" || *out.Task.DesiredStatus != "STOPPED" || out.Task.StopCode != "UserInitiated" || *out.Task.StoppedReason != "enough" || *out.Task.Containers[0].LastStatus != "STOPPED" {
		t.Errorf("%+v, %v", out, err)
	}
	_, err = r.ecs.StopTask(r.ctx, &ecs.StopTaskInput{Task: aws.String(strings.Repeat("a", 32))})
	if codeOf(err) != "InvalidParameterException" || !strings.Contains(err.Error(), "The referenced task was not found.") {
		t.Errorf("unknown: %v", err)
	}
	_, err = r.ecs.StopTask(r.ctx, &ecs.StopTaskInput{Task: aws.String("arn:aws:ecs:eu-central-1:123456789012:task/other/" + strings.Repeat("a", 32))})
	if codeOf(err) != "InvalidParameterException" || !strings.Contains(err.Error(), "Your cluster is default") {
		t.Errorf("of another cluster: %v", err)
	}
	_, err = r.ecs.StopTask(r.ctx, &ecs.StopTaskInput{Task: aws.String("x"), Cluster: aws.String("nowhere")})
	if _, ok := errors.AsType[*types.ClusterNotFoundException](err); !ok {
		t.Errorf("unknown cluster: %v", err)
	}
}

func TestClient_AWaitingTaskSaysWhy(t *testing.T) {
	r := newRig(t)
	r.world()
	big := ecs.RunTaskInput{TaskDefinition: aws.String("web"), Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{Name: aws.String("main"), Memory: aws.Int32(4096)}}}}
	run, err := r.ecs.RunTask(r.ctx, &big)
	if err != nil {
		t.Fatal(err)
	}
	r.admit()
	got, err := r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{*run.Tasks[0].TaskArn}})
	if err != nil || len(got.Tasks[0].Attributes) != 1 || *got.Tasks[0].Attributes[0].Name != "longshore.waitingReason" || *got.Tasks[0].Attributes[0].Value != "RESOURCE:MEMORY" {
		t.Errorf("%+v, %v", got.Tasks[0].Attributes, err)
	}
}

func TestClient_StartTask(t *testing.T) {
	r := newRig(t)
	in := r.world()
	unknown := strings.Repeat("d", 32)
	out, err := r.ecs.StartTask(r.ctx, &ecs.StartTaskInput{TaskDefinition: aws.String("web:1"), ContainerInstances: []string{in, unknown}})
	if err != nil || len(out.Tasks) != 1 || *out.Tasks[0].LastStatus != "PENDING" || idOf(out.Tasks[0].ContainerInstanceArn) != in || len(out.Failures) != 1 || *out.Failures[0].Reason != "MISSING" {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestClient_ListTasksPages(t *testing.T) {
	r := newRig(t)
	in := r.world()
	want := map[string]bool{}
	for range 3 {
		run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web"), Count: aws.Int32(5), StartedBy: aws.String("bob")})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range run.Tasks {
			want[*v.TaskArn] = true
		}
	}
	r.admit()
	got := map[string]bool{}
	pages := ecs.NewListTasksPaginator(r.ecs, &ecs.ListTasksInput{MaxResults: aws.Int32(4), StartedBy: aws.String("bob"), Family: aws.String("web"), DesiredStatus: "RUNNING", LaunchType: "EC2"})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, arn := range page.TaskArns {
			if got[arn] {
				t.Errorf("%s is listed twice", arn)
			}
			got[arn] = true
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%d listed, want %d", len(got), len(want))
	}
	on, err := r.ecs.ListTasks(r.ctx, &ecs.ListTasksInput{ContainerInstance: aws.String("arn:aws:ecs:eu-central-1:123456789012:container-instance/default/" + in)})
	if err != nil || len(on.TaskArns) != 1 { // port 8080 is one
		t.Errorf("%+v, %v", on, err)
	}
}

func TestClient_ContainerInstances(t *testing.T) {
	r := newRig(t)
	in := r.world()
	r.instance(2)
	if _, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web")}); err != nil {
		t.Fatal(err)
	}
	var arns []string
	pages := ecs.NewListContainerInstancesPaginator(r.ecs, &ecs.ListContainerInstancesInput{MaxResults: aws.Int32(1), Filter: aws.String("attribute:disk == ssd"), Status: "ACTIVE"})
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		arns = append(arns, page.ContainerInstanceArns...)
	}
	if len(arns) != 2 || idOf(&arns[0]) != in {
		t.Fatalf("lists %v", arns)
	}
	l := &control.Ledger{ID: idOf(&arns[1])}
	if err := r.store.Load(r.ctx, l); err != nil {
		t.Fatal(err)
	}
	l.Connected = false
	r.put(l)
	r.admit()
	got, err := r.ecs.DescribeContainerInstances(r.ctx, &ecs.DescribeContainerInstancesInput{ContainerInstances: append(arns, strings.Repeat("d", 32)), Include: []types.ContainerInstanceField{"TAGS", "CONTAINER_INSTANCE_HEALTH"}})
	if err != nil || len(got.ContainerInstances) != 2 || len(got.Failures) != 1 || *got.Failures[0].Reason != "MISSING" {
		t.Fatalf("%+v, %v", got, err)
	}
	v := got.ContainerInstances[0]
	if !v.AgentConnected || *v.Status != "ACTIVE" || v.PendingTasksCount != 1 || v.RunningTasksCount != 0 || len(v.Tags) != 1 || *v.VersionInfo.AgentVersion != "1.2.3" || *v.Ec2InstanceId != "i-0123456789abcdef0" || v.HealthStatus.OverallStatus != "OK" {
		t.Errorf("instance is %+v", v)
	}
	left := map[string]types.Resource{}
	for _, x := range v.RemainingResources {
		left[*x.Name] = x
	}
	if left["CPU"].IntegerValue != 768 || left["MEMORY"].IntegerValue != 1024-160 || !slices.Equal(left["PORTS"].StringSetValue, []string{"22", "8080"}) || !slices.Equal(left["GPU"].StringSetValue, []string{"gpu0"}) || *left["PORTS_UDP"].Type != "STRINGSET" {
		t.Errorf("left is %+v", v.RemainingResources)
	}
	if got.ContainerInstances[1].AgentConnected {
		t.Error("a silent agent is shown as connected")
	}
	drained, err := r.ecs.UpdateContainerInstancesState(r.ctx, &ecs.UpdateContainerInstancesStateInput{ContainerInstances: arns[:1], Status: "DRAINING"})
	if err != nil || *drained.ContainerInstances[0].Status != "DRAINING" {
		t.Errorf("%+v, %v", drained, err)
	}
	_, err = r.ecs.DeregisterContainerInstance(r.ctx, &ecs.DeregisterContainerInstanceInput{ContainerInstance: &arns[0]})
	if codeOf(err) != "InvalidParameterException" {
		t.Errorf("deregister: %v", err)
	}
	gone, err := r.ecs.DeregisterContainerInstance(r.ctx, &ecs.DeregisterContainerInstanceInput{ContainerInstance: &arns[0], Force: aws.Bool(true)})
	if err != nil || *gone.ContainerInstance.Status != "INACTIVE" {
		t.Errorf("%+v, %v", gone, err)
	}
}

func TestClient_ALostInstanceHasNothingLeft(t *testing.T) {
	r := newRig(t)
	in := r.world()
	lease := &control.Lease{ID: in}
	if err := r.store.Load(r.ctx, lease); err != nil {
		t.Fatal(err)
	}
	lease.Stage, lease.StageReason = control.StageLost, "no heartbeat for 10m"
	r.put(lease)
	got, err := r.ecs.DescribeContainerInstances(r.ctx, &ecs.DescribeContainerInstancesInput{ContainerInstances: []string{in}})
	if err != nil || !strings.HasPrefix(*got.ContainerInstances[0].StatusReason, "LOST ") {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, x := range got.ContainerInstances[0].RemainingResources {
		if x.IntegerValue != 0 || *x.Name == "GPU" && len(x.StringSetValue) > 0 {
			t.Errorf("left is %+v", x)
		}
	}
}

func TestClient_AKeptTaskIsShownAsDisconnected(t *testing.T) {
	r := newRig(t)
	r.world()
	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	r.admit()
	id := idOf(run.Tasks[0].TaskArn)
	for tags, until := range map[[2]string]string{
		{"longshore:onDisconnect", "keep"}:      r.now.Add(24 * time.Hour).UTC().Format(time.RFC3339),
		{"longshore:replaceAfter", "confirmed"}: "confirmed",
	} {
		r.change(id, func(t *control.Task) {
			t.LastStatus, t.Kept, t.Tags = task.Running, r.now, map[string]string{tags[0]: tags[1]}
		})
		got, err := r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{id}})
		if err != nil || got.Tasks[0].Connectivity != "DISCONNECTED" || !got.Tasks[0].ConnectivityAt.Equal(r.now) {
			t.Fatalf("%+v, %v", got, err)
		}
		if !slices.ContainsFunc(got.Tasks[0].Attributes, func(a types.Attribute) bool {
			return *a.Name == "longshore.keptUntil" && *a.Value == until
		}) {
			t.Errorf("attributes %+v, want it kept until %s", got.Tasks[0].Attributes, until)
		}
	}
}
