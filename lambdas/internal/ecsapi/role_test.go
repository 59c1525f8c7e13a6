package ecsapi_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Roles and what is read with them, as a stock client sends and sees them; each answer is held against botocore's model.
func TestRoles_AreShownAsECSShowsThem(t *testing.T) {
	r := newRig(t)
	r.world()
	const roles, file = "arn:aws:iam::123456789012:role/longshore/", "arn:aws:s3:::settings/web.env"
	in := &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("shop"), TaskRoleArn: aws.String("longshore/shop"), ExecutionRoleArn: aws.String(roles + "pull"),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name: aws.String("main"), Image: aws.String("registry.example/shop"), Memory: aws.Int32(16),
			Secrets:               []types.Secret{{Name: aws.String("KEY"), ValueFrom: aws.String("/shop/key")}},
			EnvironmentFiles:      []types.EnvironmentFile{{Type: types.EnvironmentFileTypeS3, Value: aws.String(file)}},
			RepositoryCredentials: &types.RepositoryCredentials{CredentialsParameter: aws.String("login")},
			LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverSplunk, Options: map[string]string{"splunk-url": "https://splunk.example"},
				SecretOptions: []types.Secret{{Name: aws.String("splunk-token"), ValueFrom: aws.String("/shop/splunk")}}},
		}},
	}
	if _, err := r.ecs.RegisterTaskDefinition(r.ctx, in); err != nil {
		t.Fatal(err)
	}
	got, err := r.ecs.DescribeTaskDefinition(r.ctx, &ecs.DescribeTaskDefinitionInput{TaskDefinition: aws.String("shop")})
	if err != nil {
		t.Fatal(err)
	}
	def := got.TaskDefinition
	c := def.ContainerDefinitions[0]
	if aws.ToString(def.TaskRoleArn) != roles+"shop" || aws.ToString(def.ExecutionRoleArn) != roles+"pull" || len(c.Secrets) != 1 || aws.ToString(c.Secrets[0].ValueFrom) != "/shop/key" ||
		len(c.EnvironmentFiles) != 1 || aws.ToString(c.RepositoryCredentials.CredentialsParameter) != "login" || len(c.LogConfiguration.SecretOptions) != 1 {
		t.Errorf("%+v", def)
	}
	var required []string
	for _, a := range def.RequiresAttributes {
		required = append(required, aws.ToString(a.Name))
	}
	for _, name := range []string{"com.amazonaws.ecs.capability.task-iam-role", "ecs.capability.secrets.ssm.environment-variables", "ecs.capability.secrets.ssm.bootstrap.log-driver",
		"ecs.capability.env-files.s3", "ecs.capability.private-registry-authentication.secretsmanager"} {
		if !slices.Contains(required, name) {
			t.Errorf("%s is not required: %v", name, required)
		}
	}

	run, err := r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("shop"), Overrides: &types.TaskOverride{
		TaskRoleArn: aws.String("longshore/other"), ContainerOverrides: []types.ContainerOverride{{Name: aws.String("main"),
			EnvironmentFiles: []types.EnvironmentFile{{Type: types.EnvironmentFileTypeS3, Value: aws.String(file)}}}},
	}})
	if err != nil || len(run.Tasks) != 1 {
		t.Fatal(run, err)
	}
	tasks, err := r.ecs.DescribeTasks(r.ctx, &ecs.DescribeTasksInput{Tasks: []string{idOf(run.Tasks[0].TaskArn)}})
	if err != nil {
		t.Fatal(err)
	}
	o := tasks.Tasks[0].Overrides
	if aws.ToString(o.TaskRoleArn) != roles+"other" || o.ExecutionRoleArn != nil || len(o.ContainerOverrides) != 1 || len(o.ContainerOverrides[0].EnvironmentFiles) != 1 {
		t.Errorf("overrides are %+v", o)
	}

	_, err = r.ecs.RunTask(r.ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("shop"), Overrides: &types.TaskOverride{TaskRoleArn: aws.String("admin")}})
	if codeOf(err) != "AccessDeniedException" || !strings.Contains(err.Error(), "arn:aws:iam::123456789012:role/admin is not a role that tasks of cluster default may have; allowed: "+roles+"*") {
		t.Errorf("%v", err)
	}
	in.ExecutionRoleArn = nil
	_, err = r.ecs.RegisterTaskDefinition(r.ctx, in)
	if codeOf(err) != "ClientException" || !strings.Contains(err.Error(), "When you are specifying container secrets, you must also specify a value for 'executionRoleArn'.") {
		t.Errorf("%v", err)
	}
}
