//go:build clients

package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// mostWait is how long the SDK's waiters, in their own pace, wait at most.
const mostWait = 5 * time.Minute

// goClient is the AWS SDK for Go, version 2, in the hands of one test.
type goClient struct {
	*ecs.Client
	t        *testing.T
	me       string
	image    string
	instance string
}

// goSDK does the same as testdata/core.py, in the same order.
func goSDK(t *testing.T, s *stack, d *door, name string) {
	g := newGoClient(t, s, d.url, name)
	for _, chapter := range []struct {
		name string
		run  func(context.Context)
	}{
		{"clusters", g.clusters}, {"tags", g.tags}, {"settings", g.settings}, {"definitions", g.definitions},
		{"instances", g.instances}, {"tasks", g.tasks}, {"services", g.services}, {"end", g.end},
	} {
		begun := time.Now()
		chapter.run(t.Context())
		fmt.Fprintf(t.Output(), "%-12s %-12s %5.1f s\n", name, chapter.name, time.Since(begun).Seconds())
	}
}

// answer is what a call returned.
type answer[Out any] struct {
	out Out
	err error
}

func of[Out any](out Out, err error) answer[Out] { return answer[Out]{out, err} }

// must is the answer of a call that may not fail.
func (a answer[Out]) must(g *goClient) Out {
	g.t.Helper()
	if a.err != nil {
		g.t.Fatal(a.err)
	}
	return a.out
}

func (g *goClient) want(ok bool, what string, shown any) {
	g.t.Helper()
	if !ok {
		g.t.Fatalf("not so: %s: %+v", what, shown)
	}
}

// pager is what the SDK's paginators have in common.
type pager[Out any] interface {
	HasMorePages() bool
	NextPage(context.Context, ...func(*ecs.Options)) (Out, error)
}

// pages is what a paginator lists one by one.
func pages[Out, Item any](ctx context.Context, g *goClient, p pager[Out], items func(Out) []Item) []Item {
	g.t.Helper()
	var found []Item
	count := 0
	for p.HasMorePages() {
		got := items(of(p.NextPage(ctx)).must(g))
		g.want(len(got) <= 1, "a page has no more than maxResults", got)
		found = append(found, got...)
		count++
	}
	g.want(count > 1, "there is more than one page", found)
	return found
}

func sorted(of ...string) []string { return slices.Sorted(slices.Values(of)) }

// names are what follows the last slashes of ARNs, sorted.
func names(arns []string) []string {
	var out []string
	for _, a := range arns {
		out = append(out, a[strings.LastIndexByte(a, '/')+1:])
	}
	return sorted(out...)
}

func (g *goClient) clusters(ctx context.Context) {
	own := of(g.CreateCluster(ctx, &ecs.CreateClusterInput{ClusterName: &g.me})).must(g).Cluster
	g.want(aws.ToString(own.Status) == "ACTIVE" && strings.HasSuffix(aws.ToString(own.ClusterArn), ":cluster/"+g.me), "a new cluster", own)
	g.want(aws.ToString(g.own(ctx).ClusterName) == g.me, "the cluster is described", nil)
	listed := pages(ctx, g, ecs.NewListClustersPaginator(g, &ecs.ListClustersInput{MaxResults: aws.Int32(1)}),
		func(out *ecs.ListClustersOutput) []string { return out.ClusterArns })
	g.want(slices.Contains(listed, *own.ClusterArn), "the cluster is listed", listed)
	_, err := g.ListTasks(ctx, &ecs.ListTasksInput{Cluster: aws.String(g.me + "-none")})
	var missing *types.ClusterNotFoundException
	g.want(errors.As(err, &missing), "a cluster that is not there is an error of its own", err)
}

func (g *goClient) own(ctx context.Context) types.Cluster {
	g.t.Helper()
	out := of(g.DescribeClusters(ctx, &ecs.DescribeClustersInput{Clusters: []string{g.me}})).must(g)
	g.want(len(out.Clusters) == 1, "one cluster", out)
	return out.Clusters[0]
}

func (g *goClient) tags(ctx context.Context) {
	arn := g.own(ctx).ClusterArn
	tag := func(key, value string) types.Tag { return types.Tag{Key: &key, Value: &value} }
	of(g.TagResource(ctx, &ecs.TagResourceInput{ResourceArn: arn, Tags: []types.Tag{tag("team", "blue"), tag("tier", "1")}})).must(g)
	of(g.UntagResource(ctx, &ecs.UntagResourceInput{ResourceArn: arn, TagKeys: []string{"tier"}})).must(g)
	left := of(g.ListTagsForResource(ctx, &ecs.ListTagsForResourceInput{ResourceArn: arn})).must(g).Tags
	g.want(len(left) == 1 && *left[0].Key == "team" && *left[0].Value == "blue", "one tag is left", left)
}

func (g *goClient) settings(ctx context.Context) {
	of(g.PutAccountSettingDefault(ctx, &ecs.PutAccountSettingDefaultInput{Name: types.SettingNameServiceLongArnFormat, Value: aws.String("enabled")})).must(g)
	got := of(g.PutAccountSetting(ctx, &ecs.PutAccountSettingInput{Name: types.SettingNameTaskLongArnFormat, Value: aws.String("enabled")})).must(g).Setting
	g.want(got.Name == types.SettingNameTaskLongArnFormat && aws.ToString(got.Value) == "enabled", "the setting", got)
	listed := pages(ctx, g, ecs.NewListAccountSettingsPaginator(g, &ecs.ListAccountSettingsInput{EffectiveSettings: true, MaxResults: 1}),
		func(out *ecs.ListAccountSettingsOutput) []types.Setting { return out.Settings })
	for _, name := range []types.SettingName{types.SettingNameServiceLongArnFormat, types.SettingNameTaskLongArnFormat} {
		g.want(slices.ContainsFunc(listed, func(s types.Setting) bool { return s.Name == name }), "it is listed", listed)
	}
	of(g.DeleteAccountSetting(ctx, &ecs.DeleteAccountSettingInput{Name: types.SettingNameTaskLongArnFormat})).must(g)
}

func (g *goClient) definitions(ctx context.Context) {
	main := types.ContainerDefinition{Name: aws.String("main"), Image: &g.image, Memory: aws.Int32(16), StopTimeout: aws.Int32(30),
		Command: forever}
	web, job := g.me+"-web", g.me+"-job"
	for _, family := range []string{web, web, job} {
		of(g.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
			Family: &family, NetworkMode: types.NetworkModeNone, ContainerDefinitions: []types.ContainerDefinition{main},
			Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}}})).must(g)
	}
	got := of(g.DescribeTaskDefinition(ctx, &ecs.DescribeTaskDefinitionInput{
		TaskDefinition: &web, Include: []types.TaskDefinitionField{types.TaskDefinitionFieldTags}})).must(g)
	g.want(got.TaskDefinition.Revision == 2 && len(got.Tags) == 1 && *got.Tags[0].Value == "blue", "the newest", got)
	arns := pages(ctx, g, ecs.NewListTaskDefinitionsPaginator(g, &ecs.ListTaskDefinitionsInput{FamilyPrefix: &web, MaxResults: aws.Int32(1)}),
		func(out *ecs.ListTaskDefinitionsOutput) []string { return out.TaskDefinitionArns })
	g.want(slices.Equal(names(arns), []string{web + ":1", web + ":2"}), "both revisions", arns)
	families := pages(ctx, g, ecs.NewListTaskDefinitionFamiliesPaginator(g, &ecs.ListTaskDefinitionFamiliesInput{FamilyPrefix: &g.me, MaxResults: aws.Int32(1)}),
		func(out *ecs.ListTaskDefinitionFamiliesOutput) []string { return out.Families })
	g.want(slices.Equal(sorted(families...), []string{job, web}), "both families", families)
}

// instances are those of no agent: listed, disconnected, given no work.
func (g *goClient) instances(ctx context.Context) {
	var two []string
	for _, rack := range []string{"a", "b"} {
		out := of(g.RegisterContainerInstance(ctx, &ecs.RegisterContainerInstanceInput{
			Cluster:    &g.me,
			Attributes: []types.Attribute{{Name: aws.String("rack"), Value: &rack}},
			TotalResources: []types.Resource{
				{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: 1024},
				{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: 512}}})).must(g)
		two = append(two, *out.ContainerInstance.ContainerInstanceArn)
	}
	listed := pages(ctx, g, ecs.NewListContainerInstancesPaginator(g, &ecs.ListContainerInstancesInput{Cluster: &g.me, MaxResults: aws.Int32(1)}),
		func(out *ecs.ListContainerInstancesOutput) []string { return out.ContainerInstanceArns })
	g.want(slices.Equal(sorted(listed...), sorted(two...)), "both are listed", listed)
	got := of(g.DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{Cluster: &g.me, ContainerInstances: two})).must(g).ContainerInstances
	g.want(len(got) == 2 && !got[0].AgentConnected && !got[1].AgentConnected, "both are disconnected", got)
	failures := of(g.StartTask(ctx, &ecs.StartTaskInput{Cluster: &g.me, TaskDefinition: aws.String(g.me + "-job"), ContainerInstances: two[:1]})).must(g).Failures
	g.want(len(failures) == 1 && aws.ToString(failures[0].Reason) == "AGENT", "nothing starts there", failures)
	g.attributes(ctx, two)
	drained := of(g.UpdateContainerInstancesState(ctx, &ecs.UpdateContainerInstancesStateInput{
		Cluster: &g.me, ContainerInstances: two[:1], Status: types.ContainerInstanceStatusDraining})).must(g).ContainerInstances
	g.want(len(drained) == 1 && aws.ToString(drained[0].Status) == "DRAINING", "one drains", drained)
	poll := of(g.DiscoverPollEndpoint(ctx, &ecs.DiscoverPollEndpointInput{Cluster: &g.me})).must(g)
	g.want(aws.ToString(poll.Endpoint) != "", "an endpoint is named", poll)
	for _, arn := range two {
		gone := of(g.DeregisterContainerInstance(ctx, &ecs.DeregisterContainerInstanceInput{Cluster: &g.me, ContainerInstance: &arn, Force: aws.Bool(true)})).must(g).ContainerInstance
		g.want(aws.ToString(gone.Status) == "INACTIVE", "it is gone", gone)
	}
}

func (g *goClient) attributes(ctx context.Context, two []string) {
	put := []types.Attribute{
		{Name: aws.String("stack"), Value: aws.String("blue"), TargetId: &two[0]},
		{Name: aws.String("stack"), Value: aws.String("blue"), TargetId: &two[1]}}
	of(g.PutAttributes(ctx, &ecs.PutAttributesInput{Cluster: &g.me, Attributes: put})).must(g)
	found := pages(ctx, g, ecs.NewListAttributesPaginator(g, &ecs.ListAttributesInput{
		Cluster: &g.me, TargetType: types.TargetTypeContainerInstance, AttributeName: aws.String("stack"), MaxResults: aws.Int32(1)}),
		func(out *ecs.ListAttributesOutput) []types.Attribute { return out.Attributes })
	g.want(len(found) == 2 && slices.Equal(sorted(*found[0].TargetId, *found[1].TargetId), sorted(two...)), "both have the attribute", found)
	of(g.DeleteAttributes(ctx, &ecs.DeleteAttributesInput{Cluster: &g.me, Attributes: []types.Attribute{{Name: aws.String("stack"), TargetId: &two[0]}}})).must(g)
}

func (g *goClient) tasks(ctx context.Context) {
	job := g.me + "-job"
	run := of(g.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: &job, Count: aws.Int32(2), StartedBy: &g.me})).must(g)
	start := of(g.StartTask(ctx, &ecs.StartTaskInput{TaskDefinition: &job, ContainerInstances: []string{g.instance}, StartedBy: &g.me})).must(g)
	g.want(len(run.Failures)+len(start.Failures) == 0, "no failures", run)
	var arns []string
	for _, task := range slices.Concat(run.Tasks, start.Tasks) {
		arns = append(arns, *task.TaskArn)
	}
	described := &ecs.DescribeTasksInput{Tasks: arns}
	running := of(ecs.NewTasksRunningWaiter(g).WaitForOutput(ctx, described, mostWait)).must(g)
	g.want(len(running.Tasks) == 3, "three tasks run", running)
	listed := pages(ctx, g, ecs.NewListTasksPaginator(g, &ecs.ListTasksInput{Family: &job, MaxResults: aws.Int32(1)}),
		func(out *ecs.ListTasksOutput) []string { return out.TaskArns })
	g.want(slices.Equal(sorted(listed...), sorted(arns...)), "the tasks are listed", listed)
	// Of its own tasks only an agent may tell; what is said of one that is not there is heard, and changes nothing.
	never := strings.Repeat("0", 32)
	container := of(g.SubmitContainerStateChange(ctx, &ecs.SubmitContainerStateChangeInput{Task: &never, ContainerName: aws.String("main"), Status: aws.String("RUNNING")})).must(g)
	task := of(g.SubmitTaskStateChange(ctx, &ecs.SubmitTaskStateChangeInput{Task: &never, Status: aws.String("RUNNING")})).must(g)
	g.want(aws.ToString(container.Acknowledgment) != "" && aws.ToString(task.Acknowledgment) != "", "what is submitted is acknowledged", task)
	for _, arn := range arns {
		stopping := of(g.StopTask(ctx, &ecs.StopTaskInput{Task: &arn, Reason: aws.String("seen enough")})).must(g).Task
		g.want(aws.ToString(stopping.DesiredStatus) == "STOPPED", "it is to stop", stopping)
	}
	stopped := of(ecs.NewTasksStoppedWaiter(g).WaitForOutput(ctx, described, mostWait)).must(g)
	for _, task := range stopped.Tasks {
		g.want(task.StopCode == types.TaskStopCodeUserInitiated && aws.ToString(task.StoppedReason) == "seen enough", "why it ended", task)
		g.want(len(task.Containers) == 1 && task.Containers[0].ExitCode != nil && *task.Containers[0].ExitCode == 0, "how it ended", task)
	}
	missing := of(g.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: []string{never}})).must(g).Failures
	g.want(len(missing) == 1 && aws.ToString(missing[0].Reason) == "MISSING", "a task that never was", missing)
}

func (g *goClient) services(ctx context.Context) {
	web, two := g.me+"-web", []string{g.me + "-a", g.me + "-b"}
	described := &ecs.DescribeServicesInput{Services: two}
	for _, name := range two {
		made := of(g.CreateService(ctx, &ecs.CreateServiceInput{ServiceName: &name, TaskDefinition: aws.String(web + ":1"), DesiredCount: aws.Int32(1)})).must(g).Service
		g.want(aws.ToString(made.Status) == "ACTIVE" && len(made.Deployments) == 1, "a new service", made)
	}
	stable := func() *ecs.DescribeServicesOutput {
		return of(ecs.NewServicesStableWaiter(g).WaitForOutput(ctx, described, mostWait)).must(g)
	}
	stable()
	listed := pages(ctx, g, ecs.NewListServicesPaginator(g, &ecs.ListServicesInput{MaxResults: aws.Int32(1)}),
		func(out *ecs.ListServicesOutput) []string { return out.ServiceArns })
	g.want(slices.Contains(names(listed), two[0]) && slices.Contains(names(listed), two[1]), "the services are listed", listed)
	of(g.UpdateService(ctx, &ecs.UpdateServiceInput{Service: &two[0], TaskDefinition: aws.String(web + ":2"), DesiredCount: aws.Int32(2)})).must(g)
	got := stable().Services[0]
	g.want(got.RunningCount == 2 && strings.HasSuffix(aws.ToString(got.TaskDefinition), web+":2"), "it was rolled", got)
	g.want(got.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted, "its rollout is done", got.Deployments)
	for _, name := range two {
		gone := of(g.DeleteService(ctx, &ecs.DeleteServiceInput{Service: &name, Force: aws.Bool(true)})).must(g).Service
		g.want(aws.ToString(gone.Status) == "DRAINING", "it drains", gone)
	}
	if err := ecs.NewServicesInactiveWaiter(g).Wait(ctx, described, mostWait); err != nil {
		g.t.Fatal(err)
	}
}

func (g *goClient) end(ctx context.Context) {
	arns := []string{g.me + "-web:1", g.me + "-web:2", g.me + "-job:1"}
	for _, arn := range arns {
		got := of(g.DeregisterTaskDefinition(ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: &arn})).must(g).TaskDefinition
		g.want(got.Status == types.TaskDefinitionStatusInactive, "the definition is inactive", got)
	}
	got := of(g.DeleteTaskDefinitions(ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: arns})).must(g)
	g.want(len(got.Failures) == 0 && len(got.TaskDefinitions) == 3, "the definitions are deleted", got)
	gone := of(g.DeleteCluster(ctx, &ecs.DeleteClusterInput{Cluster: &g.me})).must(g).Cluster
	g.want(aws.ToString(gone.Status) == "INACTIVE", "the cluster is gone", gone)
}
