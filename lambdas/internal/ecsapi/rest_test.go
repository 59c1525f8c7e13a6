package ecsapi_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

func TestClient_TagsByARN(t *testing.T) {
	r := newRig(t)
	in := r.world()
	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("web")})
	if err != nil {
		t.Fatal(err)
	}
	served, err := r.ecs.CreateService(r.ctx, &ecs.CreateServiceInput{ServiceName: aws.String("web"), TaskDefinition: aws.String("web"), DesiredCount: aws.Int32(1)})
	if err != nil {
		t.Fatal(err)
	}
	for _, arn := range []string{
		aws.ToString(served.Service.ServiceArn), r.control.ClusterARN("default"), aws.ToString(run.Tasks[0].TaskArn), r.control.InstanceARN("default", in), r.control.DefinitionARN("web", 1),
	} {
		if _, err := r.ecs.TagResource(r.ctx, &ecs.TagResourceInput{ResourceArn: &arn, Tags: []types.Tag{{Key: aws.String("stage"), Value: aws.String("a b")}, {Key: aws.String("gone")}}}); err != nil {
			t.Errorf("%s: %v", arn, err)
		}
		if _, err := r.ecs.UntagResource(r.ctx, &ecs.UntagResourceInput{ResourceArn: &arn, TagKeys: []string{"gone"}}); err != nil {
			t.Errorf("%s: %v", arn, err)
		}
		out, err := r.ecs.ListTagsForResource(r.ctx, &ecs.ListTagsForResourceInput{ResourceArn: &arn})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, tag := range out.Tags {
			found[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
		}
		if _, gone := found["gone"]; found["stage"] != "a b" || gone {
			t.Errorf("%s has %v", arn, found)
		}
	}
	services, err := r.ecs.DescribeServices(r.ctx, &ecs.DescribeServicesInput{Services: []string{"web"}, Include: []types.ServiceField{"TAGS"}})
	if err != nil || len(services.Services[0].Tags) != 1 {
		t.Errorf("the service is shown with %+v, %v", services, err)
	}
	shown, err := r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{aws.ToString(run.Tasks[0].TaskArn)}, Include: []types.TaskField{"TAGS"}})
	if err != nil || len(shown.Tasks[0].Tags) != 1 {
		t.Errorf("the task is shown with %+v, %v", shown.Tasks[0].Tags, err)
	}
}

func TestRequest_WhatIsWrongWithTheRestIsNamed(t *testing.T) {
	r := newRig(t)
	in := r.world()
	const short = "arn:aws:ecs:eu-central-1:123456789012:task/0123456789abcdef0123456789abcdef"
	for _, x := range []struct{ operation, body, exception, says string }{
		{"TagResource", `{"resourceArn":"web","tags":[{"key":"a"}]}`, "InvalidParameterException", "resourceArn"},
		{"TagResource", `{"resourceArn":"` + short + `","tags":[{"key":"a"}]}`, "InvalidParameterException", "Long arn format must be used for tagging operations"},
		{"TagResource", `{"resourceArn":"arn:aws:ecs:us-east-1:123456789012:cluster/default","tags":[{"key":"a"}]}`, "InvalidParameterException", "eu-central-1"},
		{"TagResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:capacity-provider/x","tags":[{"key":"a"}]}`, "InvalidParameterException", "capacity-provider"},
		{"TagResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:cluster/default","tags":[]}`, "InvalidParameterException", "tags: is required"},
		{"TagResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:cluster/default","tags":[{"key":"a"},{"key":"a"}]}`, "InvalidParameterException", "repeats"},
		{"ListTagsForResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:cluster/none"}`, "ClusterNotFoundException", "Cluster not found."},
		{"ListTagsForResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:task/default/none"}`, "InvalidParameterException", "task"},
		{"TagResource", `{"resourceArn":"arn:aws:ecs:eu-central-1:123456789012:task/default/none","tags":[{"key":"a"}]}`, "ResourceNotFoundException", "task"},
		{"PutAttributes", `{"attributes":[{"name":"a","targetId":"` + in + `"}]}`, "InvalidParameterException", "targetType: is required"},
		{"PutAttributes", `{"attributes":[{"name":"a"}]}`, "InvalidParameterException", "attributes[0].targetId: is required"},
		{"PutAttributes", `{"attributes":[{"name":"a","targetType":"task","targetId":"x"}]}`, "InvalidParameterException", "attributes[0].targetType"},
		{"DeleteAttributes", `{"attributes":[{"name":"a","value":"b","targetType":"container-instance","targetId":"` + in + `"}]}`, "InvalidParameterException", "whatever its value"},
		{"ListAttributes", `{}`, "InvalidParameterException", "targetType: is required"},
		{"PutAccountSetting", `{"name":"awsvpcTrunking","value":"enabled"}`, "InvalidParameterException", "network interfaces"},
		{"UpdateCluster", `{"cluster":"default","configuration":{"executeCommandConfiguration":{"logging":"DEFAULT"}}}`, "InvalidParameterException", "configuration.executeCommandConfiguration: is not supported"},
		{"UpdateCluster", `{"cluster":"none"}`, "ClusterNotFoundException", "Cluster not found."},
		{"UpdateClusterSettings", `{"cluster":"default","settings":[]}`, "InvalidParameterException", "settings: is required"},
		{"DeleteTaskDefinitions", `{"taskDefinitions":[]}`, "InvalidParameterException", "taskDefinitions: is required"},
		{"RegisterContainerInstance", `{"totalResources":[{"name":"DISK","integerValue":1}]}`, "InvalidParameterException", "DISK"},
		{"RegisterContainerInstance", `{"totalResources":[{"name":"PORTS","stringSetValue":["0"]}]}`, "InvalidParameterException", "PORTS"},
		{"RegisterContainerInstance", `{"containerInstanceArn":"` + in + `"}`, "InvalidParameterException", "its agent registers this instance"},
		{"SubmitTaskStateChange", `{"cluster":"none"}`, "ClusterNotFoundException", "Cluster not found."},
		{"SubmitTaskStateChange", `{"executionStoppedAt":"yesterday"}`, "SerializationException", "executionStoppedAt"},
		{"UpdateContainerAgent", `{"containerInstance":"` + in + `"}`, "UnknownOperationException", "machine image"},
		{"ExecuteCommand", `{"task":"x","command":"sh","interactive":true}`, "UnknownOperationException", "docker exec"},
		{"PutClusterCapacityProviders", `{}`, "UnknownOperationException", "capacity providers"},
		{"CreateCapacityProvider", `{"name":"x"}`, "UnsupportedFeatureException", "capacity providers"},
	} {
		exception, message := r.refused(x.operation, x.body)
		if exception != x.exception || !strings.Contains(message, x.says) {
			t.Errorf("%s %.80s: %s %q, want %s with %q", x.operation, x.body, exception, message, x.exception, x.says)
		}
	}
}

func TestClient_AttributesPageByPage(t *testing.T) {
	r := newRig(t)
	in := r.world()
	put, err := r.ecs.PutAttributes(r.ctx, &ecs.PutAttributesInput{Attributes: []types.Attribute{{Name: aws.String("stack"), Value: aws.String("production"), TargetId: aws.String(r.control.InstanceARN("default", in))}}})
	if err != nil || len(put.Attributes) != 1 || aws.ToString(put.Attributes[0].TargetId) != r.control.InstanceARN("default", in) {
		t.Fatalf("put %+v, %v", put, err)
	}
	pages := ecs.NewListAttributesPaginator(r.ecs, &ecs.ListAttributesInput{TargetType: "container-instance", MaxResults: aws.Int32(1)})
	names := ""
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range page.Attributes {
			names += aws.ToString(a.Name) + "=" + aws.ToString(a.Value) + " "
		}
	}
	if names != "disk=ssd ecs.availability-zone=eu-central-1a ecs.instance-id=i-0123456789abcdef0 stack=production " {
		t.Errorf("listed %s", names)
	}
	shown, err := r.ecs.DescribeContainerInstances(r.ctx, &ecs.DescribeContainerInstancesInput{ContainerInstances: []string{in}})
	if err != nil || len(shown.ContainerInstances[0].Attributes) != 4 {
		t.Errorf("the instance is shown with %+v, %v", shown.ContainerInstances[0].Attributes, err)
	}
	if _, err := r.ecs.DeleteAttributes(r.ctx, &ecs.DeleteAttributesInput{Attributes: []types.Attribute{{Name: aws.String("stack"), TargetId: &in, TargetType: "container-instance"}}}); err != nil {
		t.Fatal(err)
	}
	out, err := r.ecs.ListAttributes(r.ctx, &ecs.ListAttributesInput{TargetType: "container-instance", AttributeName: aws.String("stack")})
	if err != nil || len(out.Attributes) != 0 {
		t.Errorf("still there: %+v, %v", out, err)
	}
	_, err = r.ecs.PutAttributes(r.ctx, &ecs.PutAttributesInput{Attributes: []types.Attribute{{Name: aws.String("a"), TargetId: aws.String("nobody"), TargetType: "container-instance"}}})
	if code := codeOf(err); code != "TargetNotFoundException" {
		t.Errorf("of an instance that is not there: %s", code)
	}
}

func TestClient_AccountSettings(t *testing.T) {
	r := newRig(t)
	set, err := r.ecs.PutAccountSettingDefault(r.ctx, &ecs.PutAccountSettingDefaultInput{Name: types.SettingNameContainerInsights, Value: aws.String("enabled")})
	if err != nil || aws.ToString(set.Setting.PrincipalArn) != "arn:aws:iam::123456789012:root" || set.Setting.Type != types.SettingTypeUser {
		t.Fatalf("set %+v, %v", set, err)
	}
	made, err := r.ecs.CreateCluster(r.ctx, &ecs.CreateClusterInput{ClusterName: aws.String("insight")})
	if err != nil || aws.ToString(made.Cluster.Settings[0].Value) != "enabled" {
		t.Errorf("a cluster made then has %+v, %v", made.Cluster.Settings, err)
	}
	pages := ecs.NewListAccountSettingsPaginator(r.ecs, &ecs.ListAccountSettingsInput{EffectiveSettings: true, MaxResults: 1})
	found := map[string]string{}
	for pages.HasMorePages() {
		page, err := pages.NextPage(r.ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range page.Settings {
			found[string(s.Name)] = aws.ToString(s.Value)
		}
	}
	if len(found) != 11 || found["containerInsights"] != "enabled" || found["taskLongArnFormat"] != "enabled" || found["guardDutyActivate"] != "off" {
		t.Errorf("in effect are %v", found)
	}
	gone, err := r.ecs.DeleteAccountSetting(r.ctx, &ecs.DeleteAccountSettingInput{Name: types.SettingNameContainerInsights})
	if err != nil || aws.ToString(gone.Setting.Value) != "disabled" {
		t.Errorf("after it is deleted: %+v, %v", gone, err)
	}
}

func TestClient_UpdatesAClustersSettings(t *testing.T) {
	r := newRig(t)
	r.world()
	one, err := r.ecs.UpdateCluster(r.ctx, &ecs.UpdateClusterInput{Cluster: aws.String("default"), Settings: []types.ClusterSetting{{Name: "containerInsights", Value: aws.String("enhanced")}}})
	if err != nil || aws.ToString(one.Cluster.Settings[0].Value) != "enhanced" || one.Cluster.RegisteredContainerInstancesCount != 1 {
		t.Fatalf("updated to %+v, %v", one, err)
	}
	two, err := r.ecs.UpdateClusterSettings(r.ctx, &ecs.UpdateClusterSettingsInput{Cluster: aws.String("default"), Settings: []types.ClusterSetting{{Name: "containerInsights", Value: aws.String("disabled")}}})
	if err != nil || aws.ToString(two.Cluster.Settings[0].Value) != "disabled" {
		t.Errorf("updated to %+v, %v", two, err)
	}
}

func TestClient_DeletesTaskDefinitions(t *testing.T) {
	r := newRig(t)
	r.world()
	out, err := r.ecs.DeleteTaskDefinitions(r.ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: []string{"web:1"}})
	if err != nil || len(out.Failures) != 1 || len(out.TaskDefinitions) != 0 {
		t.Fatalf("an ACTIVE one: %+v, %v", out, err)
	}
	if _, err := r.ecs.DeregisterTaskDefinition(r.ctx, &ecs.DeregisterTaskDefinitionInput{TaskDefinition: aws.String("web:1")}); err != nil {
		t.Fatal(err)
	}
	out, err = r.ecs.DeleteTaskDefinitions(r.ctx, &ecs.DeleteTaskDefinitionsInput{TaskDefinitions: []string{r.control.DefinitionARN("web", 1)}})
	if err != nil || len(out.TaskDefinitions) != 1 || out.TaskDefinitions[0].Status != types.TaskDefinitionStatusDeleteInProgress || out.TaskDefinitions[0].DeleteRequestedAt == nil {
		t.Errorf("an INACTIVE one: %+v, %v", out, err)
	}
}

// What ECS's own agent asks is answered as the model says, and moves nothing.
func TestClient_AnswersAnAgentThatIsNotOurs(t *testing.T) {
	r := newRig(t)
	r.world()
	made, err := r.ecs.RegisterContainerInstance(r.ctx, &ecs.RegisterContainerInstanceInput{
		InstanceIdentityDocument: aws.String(`{"instanceId":"i-0aaa","availabilityZone":"eu-central-1b","region":"eu-central-1"}`), InstanceIdentityDocumentSignature: aws.String("x"),
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: 2048}, {Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: 4096},
			{Name: aws.String("PORTS"), Type: aws.String("STRINGSET"), StringSetValue: []string{"22", "2375"}},
		},
		VersionInfo: &types.VersionInfo{AgentVersion: aws.String("1.99.0")},
		Attributes:  []types.Attribute{{Name: aws.String("ecs.os-type"), Value: aws.String("linux")}},
		Tags:        []types.Tag{{Key: aws.String("rack"), Value: aws.String("9")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	in := made.ContainerInstance
	if in.AgentConnected || aws.ToString(in.Status) != "ACTIVE" || aws.ToString(in.Ec2InstanceId) != "i-0aaa" || in.RegisteredResources[0].IntegerValue != 2048 || len(in.Tags) != 1 {
		t.Errorf("registered as %+v", in)
	}
	polled, err := r.ecs.DiscoverPollEndpoint(r.ctx, &ecs.DiscoverPollEndpointInput{ContainerInstance: in.ContainerInstanceArn})
	if err != nil || aws.ToString(polled.Endpoint) != r.url+"/" || aws.ToString(polled.TelemetryEndpoint) != r.url+"/" {
		t.Errorf("polled %+v, %v", polled, err)
	}
	if out, err := r.ecs.SubmitTaskStateChange(r.ctx, &ecs.SubmitTaskStateChangeInput{Task: aws.String("gone"), Status: aws.String("STOPPED"), ExecutionStoppedAt: &r.now}); err != nil || aws.ToString(out.Acknowledgment) == "" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := r.ecs.SubmitContainerStateChange(r.ctx, &ecs.SubmitContainerStateChangeInput{Task: aws.String("gone"), ContainerName: aws.String("main"), Status: aws.String("STOPPED"), ExitCode: aws.Int32(0)}); err != nil || aws.ToString(out.Acknowledgment) == "" {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := r.ecs.SubmitAttachmentStateChanges(r.ctx, &ecs.SubmitAttachmentStateChangesInput{Attachments: []types.AttachmentStateChange{{AttachmentArn: aws.String("a"), Status: aws.String("ATTACHED")}}}); err != nil || aws.ToString(out.Acknowledgment) == "" {
		t.Errorf("%+v, %v", out, err)
	}
	started, err := r.ecs.StartTask(r.ctx, &ecs.StartTaskInput{TaskDefinition: aws.String("web"), ContainerInstances: []string{aws.ToString(in.ContainerInstanceArn)}})
	if err != nil || len(started.Tasks) != 0 || aws.ToString(started.Failures[0].Reason) != "AGENT" {
		t.Errorf("started %+v, %v", started, err)
	}
	if _, err := r.ecs.DeregisterContainerInstance(r.ctx, &ecs.DeregisterContainerInstanceInput{ContainerInstance: in.ContainerInstanceArn}); err != nil {
		t.Error(err)
	}
}

// Through a Function URL the caller is known: account settings are his own.
func TestFunction_KnowsWhoAsksAndWhere(t *testing.T) {
	r := newRig(t)
	ask := func(operation, body string) string {
		t.Helper()
		e := request(operation, body, false)
		e.Headers["host"] = "abc.lambda-url.eu-central-1.on.aws"
		res, err := r.handler.Function(r.ctx, e)
		if err != nil || res.StatusCode != 200 {
			t.Fatalf("%s: %+v, %v", operation, res, err)
		}
		return res.Body
	}
	caller := callerArn(request("RunTask", `{}`, false))
	if got := ask("PutAccountSetting", `{"name":"containerInsights","value":"enabled"}`); !strings.Contains(got, `"principalArn":"`+caller+`"`) {
		t.Errorf("set %s, not of %s", got, caller)
	}
	if value, err := r.control.InsightsSetting(r.ctx, "arn:aws:iam::123456789012:user/other"); err != nil || value != "disabled" {
		t.Errorf("another has %q, %v", value, err)
	}
	if got := ask("DiscoverPollEndpoint", `{}`); !strings.Contains(got, `"endpoint":"https://abc.lambda-url.eu-central-1.on.aws/"`) {
		t.Errorf("polls at %s", got)
	}
}

func callerArn(e events.LambdaFunctionURLRequest) string {
	return e.RequestContext.Authorizer.IAM.UserARN
}
