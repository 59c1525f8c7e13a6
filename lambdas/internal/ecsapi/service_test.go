package ecsapi_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
)

// serviceWorld is world with definitions plain:1 and plain:2, which need little.
func (r *rig) serviceWorld() {
	r.t.Helper()
	r.world()
	r.instance(2)
	for range 2 {
		if status, answer, _ := r.post("RegisterTaskDefinition", `{"family":"plain","containerDefinitions":[{"name":"main","image":"busybox","memory":16}],"tags":[{"key":"of","value":"definition"}]}`); status != 200 {
			r.t.Fatal(answer)
		}
	}
}

func (r *rig) createService(change ...func(*ecs.CreateServiceInput)) *types.Service {
	r.t.Helper()
	in := &ecs.CreateServiceInput{ServiceName: aws.String("web"), TaskDefinition: aws.String("plain:1"), DesiredCount: aws.Int32(2)}
	for _, do := range change {
		do(in)
	}
	out, err := r.ecs.CreateService(r.ctx, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Service
}

// turn lets services, admission and agents do what there is to do, once.
func (r *rig) turn() {
	r.t.Helper()
	for _, k := range append(r.queue.TakeServiceKicks(), control.Kick{Cluster: "default"}) {
		if err := r.control.Serve(r.ctx, k); err != nil {
			r.t.Fatal(err)
		}
	}
	r.admit()
	for id, t := range r.store.Tasks() {
		switch {
		case t.LastStatus.Open() && t.DesiredStatus == task.DesiredStopped:
			r.ended(id)
		case t.LastStatus == task.Pending:
			r.running(id)
		}
	}
}

// ended makes an open task of a service STOPPED, as its agent's report would.
func (r *rig) ended(id string) {
	r.t.Helper()
	t := &control.Task{ID: id}
	if err := r.store.Load(r.ctx, t); err != nil {
		r.t.Fatal(err)
	}
	l, live := &control.Ledger{ID: t.Instance}, &control.Live{Cluster: t.Cluster, Service: t.Service}
	if err := r.store.Load(r.ctx, l, live); err != nil {
		r.t.Fatal(err)
	}
	l.Held.CPU, l.Held.MemoryMiB, l.Open = l.Held.CPU-t.Held.CPU, l.Held.MemoryMiB-t.Held.MemoryMiB, l.Open-1
	live.Live--
	t.LastStatus, t.Held, t.StoppedAt = task.Stopped, nil, r.now
	for i := range t.Containers {
		t.Containers[i].Status = task.ContainerStopped
	}
	if err := r.store.Commit(r.ctx, control.Put(t), control.Put(l), control.Put(live)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stable() error {
	return ecs.NewServicesStableWaiter(r.ecs).Wait(r.ctx, &ecs.DescribeServicesInput{Services: []string{"web"}}, time.Second)
}

func (r *rig) describeService() types.Service {
	r.t.Helper()
	out, err := r.ecs.DescribeServices(r.ctx, &ecs.DescribeServicesInput{Services: []string{"web"}, Include: []types.ServiceField{"TAGS"}})
	if err != nil || len(out.Services) != 1 || len(out.Failures) != 0 {
		r.t.Fatalf("%+v, %v", out, err)
	}
	return out.Services[0]
}

func TestClient_AServicesWholeLife(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	made := r.createService(func(in *ecs.CreateServiceInput) {
		in.Tags = []types.Tag{{Key: aws.String("team"), Value: aws.String("a")}}
		in.PropagateTags, in.EnableECSManagedTags = "SERVICE", true
		in.PlacementStrategy = []types.PlacementStrategy{{Type: "spread", Field: aws.String("attribute:ecs.availability-zone")}, {Type: "spread", Field: aws.String("instanceId")}}
		in.PlacementConstraints = []types.PlacementConstraint{{Type: "memberOf", Expression: aws.String("attribute:disk == ssd")}}
		in.DeploymentConfiguration = &types.DeploymentConfiguration{MaximumPercent: aws.Int32(200), MinimumHealthyPercent: aws.Int32(50), Strategy: "ROLLING",
			DeploymentCircuitBreaker: &types.DeploymentCircuitBreaker{Enable: true, Rollback: true}}
		in.DeploymentController = &types.DeploymentController{Type: "ECS"}
		in.AvailabilityZoneRebalancing, in.HealthCheckGracePeriodSeconds = "DISABLED", aws.Int32(30)
	})
	if *made.ServiceArn != "arn:aws:ecs:eu-central-1:123456789012:service/default/web" || *made.ServiceName != "web" || *made.Status != "ACTIVE" || made.DesiredCount != 2 ||
		made.LaunchType != "EC2" || made.SchedulingStrategy != "REPLICA" || !strings.HasSuffix(*made.TaskDefinition, ":task-definition/plain:1") || *made.HealthCheckGracePeriodSeconds != 30 ||
		len(made.PlacementStrategy) != 2 || len(made.PlacementConstraints) != 1 || len(made.Tags) != 1 || made.PropagateTags != "SERVICE" || !made.EnableECSManagedTags ||
		made.DeploymentController.Type != "ECS" || *made.DeploymentConfiguration.MinimumHealthyPercent != 50 || !made.DeploymentConfiguration.DeploymentCircuitBreaker.Rollback || made.LoadBalancers == nil || made.Events == nil {
		t.Errorf("created %+v", made)
	}
	if d := made.Deployments; len(d) != 1 || !strings.HasPrefix(*d[0].Id, "ecs-svc/") || *d[0].Status != "PRIMARY" || d[0].RolloutState != "IN_PROGRESS" || d[0].DesiredCount != 2 {
		t.Errorf("deployments %+v", d)
	}
	r.turn()
	if got := r.describeService(); got.PendingCount+got.RunningCount != 2 {
		t.Errorf("%d pend, %d run", got.PendingCount, got.RunningCount)
	}
	r.turn()
	r.turn()
	if err := r.stable(); err != nil {
		t.Fatal(err)
	}
	got := r.describeService()
	if got.RunningCount != 2 || got.Deployments[0].RolloutState != "COMPLETED" || got.Deployments[0].RunningCount != 2 || len(got.Events) < 2 || len(*got.Events[0].Id) != 36 {
		t.Errorf("stable as %+v", got)
	}
	tasks, err := r.ecs.ListTasks(r.ctx, &ecs.ListTasksInput{ServiceName: made.ServiceArn})
	if err != nil || len(tasks.TaskArns) != 2 {
		t.Fatalf("%+v, %v", tasks, err)
	}
	described, err := r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: tasks.TaskArns, Include: []types.TaskField{"TAGS"}})
	if err != nil || *described.Tasks[0].Group != "service:web" || *described.Tasks[0].StartedBy != *got.Deployments[0].Id || len(described.Tasks[0].Tags) != 3 {
		t.Errorf("tasks %+v, %v", described.Tasks, err)
	}
	clusters, err := r.ecs.DescribeClusters(r.ctx, &ecs.DescribeClustersInput{})
	if err != nil || clusters.Clusters[0].ActiveServicesCount != 1 || clusters.Clusters[0].RunningTasksCount != 2 {
		t.Errorf("cluster %+v, %v", clusters.Clusters, err)
	}
	r.update(func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain:2") })
	if got := r.describeService(); len(got.Deployments) != 2 || *got.Deployments[1].Status != "ACTIVE" || got.CurrentServiceDeployment == nil || len(got.CurrentServiceRevisions) != 2 {
		t.Errorf("rolls as %+v", got.Deployments)
	}
	for range 6 {
		r.turn()
	}
	if err := r.stable(); err != nil {
		t.Fatal(err)
	}
	_, err = r.ecs.DeleteService(r.ctx, &ecs.DeleteServiceInput{Service: aws.String("web")})
	if codeOf(err) != "InvalidParameterException" || !strings.Contains(err.Error(), "The service cannot be stopped while it is scaled above 0.") {
		t.Errorf("delete: %v", err)
	}
	if got := r.update(func(in *ecs.UpdateServiceInput) { in.DesiredCount = aws.Int32(0) }); got.DesiredCount != 0 || len(got.Deployments) != 1 {
		t.Errorf("scaled to 0: %+v", got)
	}
	for range 3 {
		r.turn()
	}
	gone, err := r.ecs.DeleteService(r.ctx, &ecs.DeleteServiceInput{Service: made.ServiceArn})
	if err != nil || *gone.Service.Status != "DRAINING" {
		t.Fatalf("%+v, %v", gone, err)
	}
	r.turn()
	if err := ecs.NewServicesInactiveWaiter(r.ecs).Wait(r.ctx, &ecs.DescribeServicesInput{Services: []string{"web"}}, time.Second); err != nil {
		t.Fatal(err)
	}
	if list, err := r.ecs.ListServices(r.ctx, &ecs.ListServicesInput{}); err != nil || len(list.ServiceArns) != 0 {
		t.Errorf("an INACTIVE service is listed: %+v, %v", list, err)
	}
}

func (r *rig) update(change func(*ecs.UpdateServiceInput)) *types.Service {
	r.t.Helper()
	in := &ecs.UpdateServiceInput{Service: aws.String("web")}
	change(in)
	out, err := r.ecs.UpdateService(r.ctx, in)
	if err != nil {
		r.t.Fatal(err)
	}
	return out.Service
}

func TestClient_OnlyADefinitionOrForceStartsADeployment(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	first := *r.createService().Deployments[0].Id
	for name, c := range map[string]struct {
		change func(*ecs.UpdateServiceInput)
		starts bool
	}{
		"a count": {func(in *ecs.UpdateServiceInput) { in.DesiredCount = aws.Int32(3) }, false},
		"percents": {func(in *ecs.UpdateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{MaximumPercent: aws.Int32(150)}
		}, false},
		"constraints": {func(in *ecs.UpdateServiceInput) {
			in.PlacementConstraints = []types.PlacementConstraint{{Type: "distinctInstance"}}
		}, false},
		"a strategy": {func(in *ecs.UpdateServiceInput) { in.PlacementStrategy = []types.PlacementStrategy{{Type: "random"}} }, false},
		"tags": {func(in *ecs.UpdateServiceInput) {
			in.PropagateTags, in.EnableECSManagedTags = "SERVICE", aws.Bool(true)
		}, false},
		"a grace":             {func(in *ecs.UpdateServiceInput) { in.HealthCheckGracePeriodSeconds = aws.Int32(7) }, false},
		"the same definition": {func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain:1") }, false},
		"another definition":  {func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain") }, true},
		"force":               {func(in *ecs.UpdateServiceInput) { in.ForceNewDeployment = true }, true},
		"force with definition": {func(in *ecs.UpdateServiceInput) {
			in.ForceNewDeployment, in.TaskDefinition = true, aws.String("plain:1")
		}, true},
	} {
		before := *r.describeService().Deployments[0].Id
		if got := *r.update(c.change).Deployments[0].Id; (got != before) != c.starts {
			t.Errorf("%s: deployment %s after %s", name, got, before)
		}
		r.update(func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain:1") })
	}
	got := r.describeService()
	if got.DesiredCount != 3 || *got.DeploymentConfiguration.MaximumPercent != 150 || *got.DeploymentConfiguration.MinimumHealthyPercent != 100 || len(got.PlacementConstraints) != 1 ||
		got.PlacementStrategy[0].Type != "random" || got.PropagateTags != "SERVICE" || !got.EnableECSManagedTags || *got.HealthCheckGracePeriodSeconds != 7 {
		t.Errorf("after all updates %+v", got)
	}
	if !slices.ContainsFunc(got.Deployments, func(d types.Deployment) bool { return *d.Id == first }) {
		t.Errorf("the first deployment is forgotten before its tasks are gone")
	}
	cleared := r.update(func(in *ecs.UpdateServiceInput) {
		in.PlacementConstraints, in.PlacementStrategy = []types.PlacementConstraint{}, []types.PlacementStrategy{}
	})
	if len(cleared.PlacementConstraints) != 0 || len(cleared.PlacementStrategy) != 0 {
		t.Errorf("not cleared: %+v", cleared)
	}
}

func TestClient_CreateServiceIsIdempotentByItsTokenAlone(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	with := func(in *ecs.CreateServiceInput) { in.ClientToken = aws.String("token") }
	a := r.createService(with)
	b := r.createService(with)
	if *a.Deployments[0].Id != *b.Deployments[0].Id {
		t.Errorf("the same request made another deployment")
	}
	for name, change := range map[string]func(*ecs.CreateServiceInput){
		"without a token": func(*ecs.CreateServiceInput) {},
		"another request": func(in *ecs.CreateServiceInput) { in.ClientToken, in.DesiredCount = aws.String("token"), aws.Int32(1) },
	} {
		in := &ecs.CreateServiceInput{ServiceName: aws.String("web"), TaskDefinition: aws.String("plain:1"), DesiredCount: aws.Int32(2)}
		change(in)
		if _, err := r.ecs.CreateService(r.ctx, in); codeOf(err) != "InvalidParameterException" || !strings.Contains(err.Error(), "Creation of service was not idempotent.") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClient_ServicesThatAreNotThere(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	_, err := r.ecs.UpdateService(r.ctx, &ecs.UpdateServiceInput{Service: aws.String("none")})
	if codeOf(err) != "ServiceNotFoundException" {
		t.Errorf("update: %v", err)
	}
	_, err = r.ecs.DeleteService(r.ctx, &ecs.DeleteServiceInput{Service: aws.String("none")})
	if codeOf(err) != "ServiceNotFoundException" {
		t.Errorf("delete: %v", err)
	}
	_, err = r.ecs.ListTasks(r.ctx, &ecs.ListTasksInput{ServiceName: aws.String("none")})
	if codeOf(err) != "ServiceNotFoundException" {
		t.Errorf("list tasks: %v", err)
	}
	_, err = r.ecs.ListServiceDeployments(r.ctx, &ecs.ListServiceDeploymentsInput{Service: aws.String("none")})
	if codeOf(err) != "ServiceNotFoundException" {
		t.Errorf("list deployments: %v", err)
	}
	out, err := r.ecs.DescribeServices(r.ctx, &ecs.DescribeServicesInput{Services: []string{"none"}})
	if err != nil || len(out.Services) != 0 || *out.Failures[0].Reason != "MISSING" || *out.Failures[0].Arn != "arn:aws:ecs:eu-central-1:123456789012:service/default/none" {
		t.Errorf("describe: %+v, %v", out, err)
	}
	_, err = r.ecs.DescribeServices(r.ctx, &ecs.DescribeServicesInput{Services: []string{"none"}, Cluster: aws.String("nowhere")})
	if codeOf(err) != "ClusterNotFoundException" {
		t.Errorf("describe: %v", err)
	}
	if err := ecs.NewServicesStableWaiter(r.ecs).Wait(r.ctx, &ecs.DescribeServicesInput{Services: []string{"none"}}, time.Second); err == nil || !strings.Contains(err.Error(), "Failure") {
		t.Errorf("wait: %v", err)
	}
	r.createService()
	r.put(&control.Service{Cluster: "default", Name: "old", Status: control.ServiceInactive, ExpiresAt: r.now.Add(time.Hour)})
	_, err = r.ecs.UpdateService(r.ctx, &ecs.UpdateServiceInput{Service: aws.String("old")})
	if codeOf(err) != "ServiceNotActiveException" {
		t.Errorf("update of an INACTIVE one: %v", err)
	}
}

func TestClient_WhatAServiceCanNotHaveIsRefusedByName(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	plain := `"serviceName":"web","taskDefinition":"plain","desiredCount":1`
	for body, member := range map[string]string{
		`"loadBalancers":[{"containerName":"main","containerPort":80,"targetGroupArn":"arn"}]`:    "loadBalancers",
		`"serviceRegistries":[{"registryArn":"arn"}]`:                                             "serviceRegistries",
		`"networkConfiguration":{"awsvpcConfiguration":{"subnets":["a"]}}`:                        "networkConfiguration.awsvpcConfiguration",
		`"capacityProviderStrategy":[{"capacityProvider":"x"}]`:                                   "capacityProviderStrategy",
		`"deploymentController":{"type":"EXTERNAL"}`:                                              "deploymentController.type",
		`"deploymentController":{"type":"CODE_DEPLOY"}`:                                           "deploymentController.type",
		`"volumeConfigurations":[{"name":"x"}]`:                                                   "volumeConfigurations",
		`"serviceConnectConfiguration":{"enabled":true}`:                                          "serviceConnectConfiguration",
		`"enableExecuteCommand":true`:                                                             "enableExecuteCommand",
		`"availabilityZoneRebalancing":"ENABLED"`:                                                 "availabilityZoneRebalancing",
		`"launchType":"FARGATE"`:                                                                  "launchType",
		`"role":"arn"`:                                                                            "role",
		`"deploymentConfiguration":{"strategy":"BLUE_GREEN"}`:                                     "deploymentConfiguration.strategy",
		`"deploymentConfiguration":{"alarms":{"alarmNames":["a"],"enable":true,"rollback":true}}`: "deploymentConfiguration.alarms",
		`"deploymentConfiguration":{"bakeTimeInMinutes":5}`:                                       "deploymentConfiguration.bakeTimeInMinutes",
		`"deploymentConfiguration":{"lifecycleHooks":[{"hookTargetArn":"a"}]}`:                    "deploymentConfiguration.lifecycleHooks",
		`"deploymentConfiguration":{"maximumPercent":100,"minimumHealthyPercent":100}`:            "deploymentConfiguration",
		`"deploymentConfiguration":{"maximumPercent":99}`:                                         "deploymentConfiguration.maximumPercent",
		`"deploymentConfiguration":{"minimumHealthyPercent":101}`:                                 "deploymentConfiguration.minimumHealthyPercent",
		`"schedulingStrategy":"DAEMON"`:                                                           "desiredCount",
		`"tags":[{"key":"longshore:what","value":"x"}]`:                                           "tags",
		`"clientToken":"ü"`:                                                                       "clientToken",
		`"healthCheckGracePeriodSeconds":-1`:                                                      "healthCheckGracePeriodSeconds",
		`"deploymentConfiguration":{"deploymentCircuitBreaker":{"enable":true,"rollback":true,"resetOnHealthyTask":false}}`: "deploymentConfiguration.deploymentCircuitBreaker.resetOnHealthyTask",
	} {
		if x, message := r.refused("CreateService", "{"+plain+","+body+"}"); x != "InvalidParameterException" || !strings.Contains(message, member) {
			t.Errorf("%s: %s: %s", body, x, message)
		}
	}
	for body, want := range map[string]string{
		`{"serviceName":"a b","taskDefinition":"plain","desiredCount":1}`:                                                               "InvalidParameterException",
		`{"serviceName":"web","desiredCount":1}`:                                                                                        "InvalidParameterException",
		`{"serviceName":"web","taskDefinition":"plain"}`:                                                                                "InvalidParameterException",
		`{"serviceName":"web","taskDefinition":"nothing","desiredCount":1}`:                                                             "ClientException",
		`{"serviceName":"web","taskDefinition":"plain","desiredCount":1,"cluster":"nowhere"}`:                                           "ClusterNotFoundException",
		`{"serviceName":"web","taskDefinition":"plain","schedulingStrategy":"DAEMON","placementStrategy":[{"type":"random"}]}`:          "InvalidParameterException",
		`{"serviceName":"web","taskDefinition":"plain","schedulingStrategy":"DAEMON","deploymentConfiguration":{"maximumPercent":200}}`: "InvalidParameterException",
	} {
		if x, message := r.refused("CreateService", body); x != want {
			t.Errorf("%s: %s: %s", body, x, message)
		}
	}
	if _, message := r.refused("ContinueServiceDeployment", `{}`); !strings.Contains(message, "not supported") {
		t.Error(message)
	}
	if list, err := r.ecs.ListServices(r.ctx, &ecs.ListServicesInput{}); err != nil || len(list.ServiceArns) != 0 {
		t.Errorf("something was made: %v, %v", list, err)
	}
	r.createService(func(in *ecs.CreateServiceInput) { // what stands for absence is taken
		in.LoadBalancers, in.ServiceRegistries, in.EnableExecuteCommand = []types.LoadBalancer{}, []types.ServiceRegistry{}, false
		in.DeploymentConfiguration = &types.DeploymentConfiguration{Alarms: &types.DeploymentAlarms{AlarmNames: []string{}, Enable: false, Rollback: false}, BakeTimeInMinutes: aws.Int32(0)}
	})
}

func TestClient_ListServicesPagesAndFilters(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	for n := range 12 {
		r.createService(func(in *ecs.CreateServiceInput) {
			in.ServiceName = aws.String(fmt.Sprintf("s%02d", n))
			if n == 3 {
				in.SchedulingStrategy, in.DesiredCount = "DAEMON", nil
			}
			if n > 9 {
				in.LaunchType = "EXTERNAL"
			}
		})
	}
	first, err := r.ecs.ListServices(r.ctx, &ecs.ListServicesInput{})
	if err != nil || len(first.ServiceArns) != 10 || first.NextToken == nil {
		t.Fatalf("by default %d, %v", len(first.ServiceArns), err)
	}
	for want, in := range map[int]*ecs.ListServicesInput{
		12: {}, 1: {SchedulingStrategy: "DAEMON"}, 2: {LaunchType: "EXTERNAL"}, 11: {SchedulingStrategy: "REPLICA"}, 0: {LaunchType: "FARGATE"},
	} {
		in.MaxResults = aws.Int32(1)
		var got []string
		for pages := ecs.NewListServicesPaginator(r.ecs, in); pages.HasMorePages(); {
			page, err := pages.NextPage(r.ctx)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, page.ServiceArns...)
		}
		if len(got) != want || !slices.IsSorted(got) {
			t.Errorf("%+v lists %v", in, got)
		}
	}
}

func TestClient_AServicesHistory(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	r.createService()
	for range 3 {
		r.turn()
	}
	r.now = r.now.Add(time.Minute)
	r.update(func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain:2") })
	list, err := r.ecs.ListServiceDeployments(r.ctx, &ecs.ListServiceDeploymentsInput{Service: aws.String("web")})
	if err != nil || len(list.ServiceDeployments) != 2 || list.ServiceDeployments[0].Status != "IN_PROGRESS" || list.ServiceDeployments[1].Status != "SUCCESSFUL" || list.ServiceDeployments[1].FinishedAt == nil {
		t.Fatalf("%+v, %v", list, err)
	}
	current := list.ServiceDeployments[0]
	for want, in := range map[string]*ecs.ListServiceDeploymentsInput{
		"IN_PROGRESS": {Status: []types.ServiceDeploymentStatus{"IN_PROGRESS"}}, "SUCCESSFUL": {CreatedAt: &types.CreatedAt{Before: aws.Time(r.now.Add(-time.Second))}},
	} {
		in.Service = aws.String("web")
		got, err := r.ecs.ListServiceDeployments(r.ctx, in)
		if err != nil || len(got.ServiceDeployments) != 1 || string(got.ServiceDeployments[0].Status) != want {
			t.Errorf("%s: %+v, %v", want, got.ServiceDeployments, err)
		}
	}
	described, err := r.ecs.DescribeServiceDeployments(r.ctx, &ecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*current.ServiceDeploymentArn, "arn:aws:ecs:eu-central-1:123456789012:service-deployment/default/web/none", "x"}})
	if err != nil || len(described.ServiceDeployments) != 1 || len(described.Failures) != 2 {
		t.Fatalf("%+v, %v", described, err)
	}
	d := described.ServiceDeployments[0]
	if d.TargetServiceRevision.RequestedTaskCount != 2 || len(d.SourceServiceRevisions) != 1 || d.SourceServiceRevisions[0].RunningTaskCount != 2 || d.DeploymentCircuitBreaker.Status != "DISABLED" || d.DeploymentCircuitBreaker.Threshold != 3 {
		t.Errorf("%+v", d)
	}
	revisions, err := r.ecs.DescribeServiceRevisions(r.ctx, &ecs.DescribeServiceRevisionsInput{ServiceRevisionArns: []string{*d.TargetServiceRevision.Arn, "x"}})
	if err != nil || len(revisions.ServiceRevisions) != 1 || len(revisions.Failures) != 1 || !strings.HasSuffix(*revisions.ServiceRevisions[0].TaskDefinition, "plain:2") || *revisions.ServiceRevisions[0].ContainerImages[0].Image != "busybox" {
		t.Errorf("%+v, %v", revisions, err)
	}
	stopped, err := r.ecs.StopServiceDeployment(r.ctx, &ecs.StopServiceDeploymentInput{ServiceDeploymentArn: current.ServiceDeploymentArn})
	if err != nil || *stopped.ServiceDeploymentArn != *current.ServiceDeploymentArn {
		t.Fatalf("%+v, %v", stopped, err)
	}
	if _, err := r.ecs.StopServiceDeployment(r.ctx, &ecs.StopServiceDeploymentInput{ServiceDeploymentArn: current.ServiceDeploymentArn}); codeOf(err) != "ConflictException" {
		t.Errorf("stopped twice: %v", err)
	}
	for range 6 {
		r.turn()
	}
	if err := r.stable(); err != nil {
		t.Fatal(err)
	}
	if got := r.describeService(); !strings.HasSuffix(*got.TaskDefinition, "plain:1") {
		t.Errorf("after the rollback it runs %s", *got.TaskDefinition)
	}
	described, err = r.ecs.DescribeServiceDeployments(r.ctx, &ecs.DescribeServiceDeploymentsInput{ServiceDeploymentArns: []string{*current.ServiceDeploymentArn}})
	if err != nil || described.ServiceDeployments[0].Status != "ROLLBACK_SUCCESSFUL" || described.ServiceDeployments[0].Rollback == nil {
		t.Errorf("%+v, %v", described.ServiceDeployments, err)
	}
	_, err = r.ecs.StopServiceDeployment(r.ctx, &ecs.StopServiceDeploymentInput{ServiceDeploymentArn: aws.String("arn:aws:ecs:eu-central-1:123456789012:service-deployment/default/web/none")})
	if codeOf(err) != "ServiceDeploymentNotFoundException" {
		t.Errorf("unknown: %v", err)
	}
}

func TestClient_ARolloutThatIsAbortedStaysWhereItIs(t *testing.T) {
	r := newRig(t)
	r.serviceWorld()
	r.createService()
	for range 3 {
		r.turn()
	}
	r.update(func(in *ecs.UpdateServiceInput) { in.TaskDefinition = aws.String("plain:2") })
	arn := r.describeService().CurrentServiceDeployment
	if _, err := r.ecs.StopServiceDeployment(r.ctx, &ecs.StopServiceDeploymentInput{ServiceDeploymentArn: arn, StopType: "ABORT"}); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		r.turn()
	}
	got := r.describeService()
	if got.RunningCount != 2 || got.Deployments[0].RolloutState != "FAILED" || got.Deployments[0].RunningCount != 0 || got.CurrentServiceDeployment != nil {
		t.Errorf("%+v", got)
	}
	r.update(func(in *ecs.UpdateServiceInput) { in.ForceNewDeployment = true })
	for range 6 {
		r.turn()
	}
	if err := r.stable(); err != nil {
		t.Fatal(err)
	}
}
