package taskdef_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/taskdef"
)

const (
	anyRole    = "allowed is the ARN of an IAM role, arn:PARTITION:iam::ACCOUNT:role/NAME, or its name with its path before it, PATH/NAME\n"
	anySecret  = "; allowed are the name or the ARN of an SSM parameter, and the ARN of a Secrets Manager secret, alone or with :JSON-KEY:VERSION-STAGE:VERSION-ID"
	anyFile    = "; allowed is the ARN of an S3 object whose name ends in .env: arn:PARTITION:s3:::BUCKET/KEY.env"
	anyLogin   = "; allowed are the name and the ARN of a Secrets Manager secret"
	needsRole  = "executionRoleArn is required: When you are specifying %, you must also specify a value for 'executionRoleArn'."
	sharedName = " cannot be used: The secret name must be unique and not shared with any new or existing environment variables set on the container, such as 'KEY'."
	reader     = `"executionRoleArn":"arn:aws:iam::000000000000:role/longshore/pull"`
	secretARN  = "arn:aws:secretsmanager:eu-west-1:000000000000:secret:shop/db-AbCdEf"
)

func needs(what string) string { return strings.Replace(needsRole, "%", what, 1) }

func TestRule_Roles(t *testing.T) {
	judge(t, []verdict{
		{"ARNs", beside(`"taskRoleArn":"arn:aws:iam::000000000000:role/longshore/team/app_1+=,.@-","executionRoleArn":"arn:aws-cn:iam::000000000000:role/x"`), nil},
		{"names", beside(`"taskRoleArn":"app","executionRoleArn":"/longshore/pull"`), nil},
		{"no roles", beside(`"taskRoleArn":"arn:aws:iam::000000000000:user/x","executionRoleArn":"longshore//pull"`), []string{
			`taskRoleArn is "arn:aws:iam::000000000000:user/x"; ` + strings.TrimSpace(anyRole), `executionRoleArn is "longshore//pull"; ` + strings.TrimSpace(anyRole),
		}},
		{"of no account", beside(`"taskRoleArn":"arn:aws:iam::12:role/x"`), []string{`taskRoleArn is "arn:aws:iam::12:role/x"; ` + strings.TrimSpace(anyRole)}},
		{"every role", beside(`"taskRoleArn":"arn:aws:iam::000000000000:role/*"`), []string{`taskRoleArn is "arn:aws:iam::000000000000:role/*"; ` + strings.TrimSpace(anyRole)}},
		{"of another service", beside(`"taskRoleArn":"arn:aws:ecs::000000000000:role/x"`), []string{`taskRoleArn is "arn:aws:ecs::000000000000:role/x"; ` + strings.TrimSpace(anyRole)}},
	})
}

func TestRule_Secrets(t *testing.T) {
	const at = "containerDefinitions[0].secrets[0]"
	secret := func(from string) string { return with(`"secrets":[{"name":"KEY","valueFrom":"`+from+`"}]`, reader) }
	good := []string{
		"key", "/shop/session-key", "shop/key", "arn:aws:ssm:eu-west-1:000000000000:parameter/shop/key", "arn:aws-us-gov:ssm:us-gov-west-1:000000000000:parameter/k",
		secretARN, secretARN + ":password::", secretARN + "::AWSPREVIOUS:", secretARN + ":::9d4cb84b-ad69-40c0-a0ab-cead36b967e8", "arn:aws:secretsmanager:eu-west-1:000000000000:secret:rds!db-1234-AbCdEf",
	}
	bad := []string{
		"a b", "/shop//key", "shop/", "/", "key:3", "arn:aws:ssm:eu-west-1:000000000000:parameter/key:3", "arn:aws:ssm:eu-west-1:000000000000:parameterkey", "arn:aws:s3:::bucket/key",
		secretARN + ":password", secretARN + ":password:", secretARN + ":a:b:c:d", "arn:aws:secretsmanager:eu-west-1:12:secret:x", "arn:aws:secretsmanager:eu-west-1:000000000000:x:y",
	}
	var all []verdict
	for _, from := range good {
		all = append(all, verdict{from, secret(from), nil})
	}
	for _, from := range bad {
		all = append(all, verdict{from, secret(from), []string{at + `.valueFrom is ` + shown(from) + anySecret}})
	}
	judge(t, append(all, []verdict{
		{"empty", with(`"secrets":[{}]`, reader), []string{at + ".name is required", at + ".valueFrom is required"}},
		{"without a role", with(`"secrets":[{"name":"KEY","valueFrom":"k"}]`), []string{needs("container secrets")}},
		{"no variable", with(`"secrets":[{"name":"A=B","valueFrom":"k"}]`, reader), []string{at + `.name is "A=B"; it must not hold = or a zero byte`}},
		{"one name twice", with(`"secrets":[{"name":"KEY","valueFrom":"k"},{"name":"KEY","valueFrom":"k"}]`, reader), []string{"containerDefinitions[0].secrets[1].name" + sharedName}},
		{"a variable's name", with(`"secrets":[{"name":"KEY","valueFrom":"k"}],"environment":[{"name":"KEY","value":""}]`, reader), []string{at + ".name" + sharedName}},
		{"another container's variable", two(`"secrets":[{"name":"KEY","valueFrom":"k"}]`, `"environment":[{"name":"KEY","value":""}]`, reader), nil},
	}...))
}

// shown is how a fault quotes a value: shortened.
func shown(s string) string {
	if len(s) > 60 {
		return `"` + s[:60] + `"…`
	}
	return `"` + s + `"`
}

func TestRule_WhatIsReadElsewhere(t *testing.T) {
	const at = "containerDefinitions[0]."
	file := func(key string) string { return `{"type":"s3","value":"arn:aws:s3:::bucket/` + key + `"}` }
	logs := func(options, secrets string) string {
		return with(`"logConfiguration":{"logDriver":"splunk","options":{"splunk-url":"u"`+options+`},"secretOptions":[`+secrets+`]}`, reader)
	}
	login := func(secret string) string {
		return with(`"repositoryCredentials":{"credentialsParameter":"`+secret+`"}`, reader)
	}
	judge(t, []verdict{
		{"ten files", with(`"environmentFiles":[`+file("a b/x.env")+strings.Repeat(","+file(".env"), 9)+`]`, reader), nil},
		{"eleven files", with(`"environmentFiles":[`+file("x.env")+strings.Repeat(","+file("x.env"), 10)+`]`, reader), []string{at + "environmentFiles are 11; allowed are 10"}},
		{"empty file", with(`"environmentFiles":[{}]`, reader), []string{at + "environmentFiles[0].type is required", at + "environmentFiles[0].value is required"}},
		{"other files", with(`"environmentFiles":[`+file("x.txt")+`,{"type":"s3","value":"s3://bucket/x.env"}]`, reader), []string{
			at + `environmentFiles[0].value is "arn:aws:s3:::bucket/x.txt"` + anyFile, at + `environmentFiles[1].value is "s3://bucket/x.env"` + anyFile,
		}},
		{"other type", with(`"environmentFiles":[{"type":"efs","value":"arn:aws:s3:::bucket/x.env"}]`, reader), []string{at + `environmentFiles[0].type is "efs"; allowed: s3`}},
		{"files without a role", with(`"environmentFiles":[` + file("x.env") + `]`), []string{needs("environment files")}},
		{"a login by ARN", login(secretARN), nil},
		{"a login by name", login("registry/login"), nil},
		{"a part of a login", login(secretARN + ":password::"), []string{at + "repositoryCredentials.credentialsParameter is " + shown(secretARN+":password::") + anyLogin}},
		{"no login", with(`"repositoryCredentials":{}`, reader), []string{at + "repositoryCredentials.credentialsParameter is required"}},
		{"a login without a role", with(`"repositoryCredentials":{"credentialsParameter":"x"}`), []string{needs("repository credentials")}},
		{"log options", logs("", `{"name":"splunk-token","valueFrom":"/token"}`), nil},
		{"a log option twice", logs(`,"splunk-token":"t"`, `{"name":"splunk-token","valueFrom":"/token"}`), []string{at + `logConfiguration.secretOptions[0].name is "splunk-token", which options has already`}},
		{"a log option of nothing", logs(`,"splunk-token":"t"`, `{"name":"k","valueFrom":"a b"}`), []string{at + `logConfiguration.secretOptions[0].valueFrom is "a b"` + anySecret}},
		{"secrets for no log", with(`"logConfiguration":{"logDriver":"none","secretOptions":[{"name":"k","valueFrom":"k"}]}`, reader), []string{
			at + "logConfiguration.secretOptions must be empty with the log driver none",
		}},
	})
}

func TestEcho_ShowsRolesAsARNsOfTheAccount(t *testing.T) {
	for _, c := range []struct{ role, partition, want string }{
		{"app", "", "arn:aws:iam::1:role/app"},
		{"/longshore/app", "aws-cn", "arn:aws-cn:iam::1:role/longshore/app"},
		{"arn:aws:iam::000000000000:role/x", "aws-cn", "arn:aws:iam::000000000000:role/x"},
		{"", "", ""},
	} {
		in, err := taskdef.Decode([]byte(beside(`"taskRoleArn":"` + c.role + `","executionRoleArn":"` + c.role + `"`)))
		if err != nil {
			t.Fatal(err)
		}
		def := taskdef.Echo(in, taskdef.Registration{Region: "r", Account: "1", Partition: c.partition, Revision: 1})
		if def.TaskRoleArn != c.want || def.ExecutionRoleArn != c.want {
			t.Errorf("%+v: the roles are %q and %q", c, def.TaskRoleArn, def.ExecutionRoleArn)
		}
	}
}

func TestApply_RolesAndFilesOfTheOverrideStandInsteadOfTheDefinitions(t *testing.T) {
	files := func(names ...string) string {
		var all []string
		for _, n := range names {
			all = append(all, `{"type":"s3","value":"arn:aws:s3:::b/`+n+`.env"}`)
		}
		return `"environmentFiles":[` + strings.Join(all, ",") + `]`
	}
	def := registered(t, with(files("one", "two"), reader))
	for over, want := range map[string]taskdef.TaskDefinition{
		`{"taskRoleArn":"longshore/other","executionRoleArn":"arn:aws:iam::000000000000:role/y","containerOverrides":[{"name":"a",` + files("three") + `}]}`: registered(t,
			with(files("three"), `"taskRoleArn":"longshore/other","executionRoleArn":"arn:aws:iam::000000000000:role/y"`)),
		`{"taskRoleArn":"","containerOverrides":[{"name":"a","environmentFiles":[]}]}`: def,
	} {
		got, err := taskdef.Apply(def, override(t, over))
		if g, w := string(taskdef.Canonical(got)), string(taskdef.Canonical(want)); err != nil || g != w {
			t.Errorf("%s: %v\ngot  %s\nwant %s", over, err, g, w)
		}
	}
}

// What a task asks of its roles is asked of its instance by ECS's names: of an agent that does not do it it would be dropped.
func TestEcho_RequiresWhatIsDoneWithRoles(t *testing.T) {
	const role = `"taskRoleArn":"x"`
	const image = `"image":"000000000000.dkr.ecr.eu-west-1.amazonaws.com/shop/api:1"`
	ecr := strings.Replace(beside(reader), `"image":"busybox"`, image, 1)
	log := func(driver, secret string) string {
		return with(`"logConfiguration":{"logDriver":"`+driver+`","options":{"awslogs-group":"g","awslogs-region":"r","splunk-url":"u","splunk-token":"t"},"secretOptions":[`+secret+`]}`, reader)
	}
	for _, c := range []struct {
		sentence, body string
		want           []string
	}{
		{"a role for nothing", beside(reader), nil},
		{"a task role", beside(role), []string{taskdef.CapabilityTaskRole}},
		{"a task role on the host's network", beside(role + `,"networkMode":"host"`), []string{taskdef.CapabilityTaskRoleHost}},
		{"an image of ECR", ecr, []string{taskdef.CapabilityPullECR}},
		{"an image of ECR and nobody to pull it", strings.Replace(beside(""), `"image":"busybox"`, image, 1), nil},
		{"a login", with(`"repositoryCredentials":{"credentialsParameter":"x"}`, reader), []string{taskdef.CapabilityPrivateRegistry}},
		{"files", with(`"environmentFiles":[{"type":"s3","value":"arn:aws:s3:::b/x.env"}]`, reader), []string{taskdef.CapabilityEnvironmentFiles}},
		{"secrets", two(`"secrets":[{"name":"A","valueFrom":"k"}]`, `"secrets":[{"name":"A","valueFrom":"`+secretARN+`:k::"}]`, reader),
			[]string{taskdef.CapabilitySecretsASM, taskdef.CapabilitySecretsSSM}},
		{"logs", log("awslogs", ""), []string{"ecs.capability.execution-role-awslogs"}},
		{"secrets of logs", log("splunk", `{"name":"a","valueFrom":"k"},{"name":"b","valueFrom":"`+secretARN+`"}`), []string{taskdef.CapabilityLogSecretsASM, taskdef.CapabilityLogSecretsSSM}},
	} {
		def := registered(t, c.body)
		var got []string
		for _, a := range def.RequiresAttributes {
			if taskdef.PlacedBy(a.Name) || a.Name == "ecs.capability.execution-role-awslogs" {
				got = append(got, a.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: requires %v, want %v", c.sentence, got, c.want)
		}
	}
	if taskdef.PlacedBy("ecs.capability.execution-role-awslogs") {
		t.Error("a task whose logs Docker writes with credentials of its own would wait for ever")
	}
	merged, err := taskdef.Apply(registered(t, beside("")), override(t, `{"taskRoleArn":"x"}`))
	if err != nil || len(merged.RequiresAttributes) != 1 || merged.RequiresAttributes[0].Name != taskdef.CapabilityTaskRole {
		t.Errorf("a task role by override requires %v, %v", merged.RequiresAttributes, err)
	}
}

// A definition that a later release has registered is read by an agent of this one: what it does not know is left out.
func TestParseStored_PassesOverWhatALaterReleaseWrites(t *testing.T) {
	def := registered(t, with(`"secrets":[{"name":"KEY","valueFrom":"k"}]`, reader))
	var tree map[string]any
	if err := json.Unmarshal(taskdef.Canonical(def), &tree); err != nil {
		t.Fatal(err)
	}
	tree["fromTomorrow"] = map[string]any{"a": 1}
	box := tree["containerDefinitions"].([]any)[0].(map[string]any)
	box["tomorrow"] = []any{"x"}
	box["secrets"].([]any)[0].(map[string]any)["rotation"] = true
	later, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	got, err := taskdef.ParseStored(later)
	if err != nil || string(taskdef.Canonical(got)) != string(taskdef.Canonical(def)) {
		t.Errorf("%v\n%s\n%s", err, taskdef.Canonical(got), taskdef.Canonical(def))
	}
}
