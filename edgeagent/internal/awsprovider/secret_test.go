package awsprovider

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

const (
	secretARN    = "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf"
	awayARN      = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:away-AbCdEf"
	parameterARN = "arn:aws:ssm:eu-west-1:210987654321:parameter/shared/key"
)

func TestValues_SecretsAreReadByEveryFormOfTheirName(t *testing.T) {
	c, s, p := bench(t, Auth{})
	c.parameters = map[string]string{"plain": canary + "-p", "/a/b": canary + "-q", parameterARN: canary + "-arn"}
	const held = `{"user":"ann","port":5432,"big":100000000000000000001,"tls":true,"list":[1, "x"],"":"empty key"}`
	c.secrets = map[string]string{
		secretARN: held, awayARN: canary + "-away",
		secretARN + "#AWSPREVIOUS#": `{"user":"old"}`, secretARN + "##v-1": `{"user":"first"}`, secretARN + "#S#v-2": "whole of v-2",
	}
	want := map[string]string{
		"plain": canary + "-p", "/a/b": canary + "-q", parameterARN: canary + "-arn",
		secretARN: held, secretARN + ":::": held, awayARN: canary + "-away",
		secretARN + ":user::": "ann", secretARN + ":port::": "5432", secretARN + ":big::": "100000000000000000001",
		secretARN + ":tls::": "true", secretARN + ":list::": `[1, "x"]`,
		secretARN + ":user:AWSPREVIOUS:": "old", secretARN + ":user::v-1": "first", secretARN + "::S:v-2": "whole of v-2",
	}
	var d taskdef.ContainerDefinition
	for i, from := range slices.Sorted(maps.Keys(want)) {
		d.Secrets = append(d.Secrets, taskdef.Secret{Name: fmt.Sprint("V", i), ValueFrom: from})
	}
	d.LogConfiguration = &taskdef.LogConfiguration{SecretOptions: []taskdef.Secret{{Name: "splunk-token", ValueFrom: "plain"}}}
	v, err := p.Values(t.Context(), need(d))
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range d.Secrets {
		if got := v.Secrets[secret.Name]; got != want[secret.ValueFrom] {
			t.Errorf("%s is %q, want %q", secret.ValueFrom, got, want[secret.ValueFrom])
		}
	}
	if len(v.LogOptions) != 1 || v.LogOptions["splunk-token"] != canary+"-p" || len(v.Files) != 0 {
		t.Errorf("log options %v, files %v", v.LogOptions, v.Files)
	}
	slices.Sort(c.asked)
	if got := strings.Join(c.asked, "\n"); got != strings.Join([]string{
		"secretsmanagerGetSecretValue eu-west-1 key-of-exec",
		"secretsmanagerGetSecretValue us-east-1 key-of-exec", // once for all keys of a version
		"secretsmanagerGetSecretValue us-east-1 key-of-exec",
		"secretsmanagerGetSecretValue us-east-1 key-of-exec",
		"secretsmanagerGetSecretValue us-east-1 key-of-exec",
		"ssmGetParameters eu-west-1 key-of-exec",
		"ssmGetParameters us-east-1 key-of-exec",
	}, "\n") {
		t.Errorf("asked:\n%s", got)
	}
	if strings.Join(s.asked, ",") != roleARN+" task-1" {
		t.Errorf("sessions: %v", s.asked)
	}
}

func TestValues_ParametersAreReadTenAtATime(t *testing.T) {
	c, _, p := bench(t, Auth{})
	var d taskdef.ContainerDefinition
	for i := range 23 {
		name := fmt.Sprint("p", i)
		c.parameters[name] = fmt.Sprint("v", i)
		d.Secrets = append(d.Secrets, taskdef.Secret{Name: strings.ToUpper(name), ValueFrom: name}, taskdef.Secret{Name: "AGAIN" + name, ValueFrom: name})
	}
	v, err := p.Values(t.Context(), need(d))
	if err != nil || len(v.Secrets) != 46 || v.Secrets["P22"] != "v22" || v.Secrets["AGAINp0"] != "v0" {
		t.Errorf("%d values, %v", len(v.Secrets), err)
	}
	slices.Sort(c.batches)
	if fmt.Sprint(c.batches) != "[3 10 10]" {
		t.Errorf("batches of %v", c.batches)
	}
}

func TestValues_ErrorsNameTheSecretAndNeverItsValue(t *testing.T) {
	const words = "ResourceInitializationError: unable to pull secrets or registry auth: "
	for _, c := range []struct {
		what, from string
		fails      map[string]answer
		sessions   error
		kind       fault.Kind
		says       []string
	}{
		{what: "no such parameter", from: "absent", kind: fault.Invalid, says: []string{"invalid parameters: absent: none is there of that name, version or label"}},
		{what: "no such secret", from: awayARN, kind: fault.Invalid, says: []string{awayARN, "ResourceNotFoundException: Secrets Manager can't find the specified secret."}},
		{what: "no such key", from: secretARN + ":pass::", kind: fault.Invalid, says: []string{secretARN, "did not contain json key pass"}},
		{what: "a key of null", from: secretARN + ":none::", kind: fault.Invalid, says: []string{secretARN, "json key none has no value"}},
		{what: "a key of what is not JSON", from: secretARN + ":k:plain:", kind: fault.Invalid, says: []string{secretARN, "not a JSON object"}},
		{what: "a key of a list", from: secretARN + ":k:list:", kind: fault.Invalid, says: []string{secretARN, "not a JSON object"}},
		{what: "a binary secret", from: secretARN + "::binary:", kind: fault.Invalid, says: []string{secretARN, "binary"}},
		{what: "a zero byte", from: "zero", kind: fault.Invalid, says: []string{"zero: its value has a zero byte"}},
		{what: "too large", from: "large", kind: fault.Invalid, says: []string{"the value of NAME has 140000 bytes"}},
		{what: "parameter denied", from: "plain", fails: map[string]answer{"ssm": {400, "AccessDeniedException", "User: x is not authorized to perform: ssm:GetParameters"}}, kind: fault.Denied, says: []string{"plain", "ssm:GetParameters"}},
		{what: "secret denied", from: secretARN, fails: map[string]answer{"secretsmanager": {400, "AccessDeniedException", "not authorized"}}, kind: fault.Denied, says: []string{secretARN, "AccessDeniedException"}},
		{what: "key denied", from: secretARN, fails: map[string]answer{"secretsmanager": {400, "DecryptionFailure", "KMS says no"}}, kind: fault.Invalid, says: []string{secretARN, "DecryptionFailure"}},
		{what: "throttled parameter", from: "plain", fails: map[string]answer{"ssm": {400, "ThrottlingException", "Rate exceeded"}}, kind: fault.Unavailable, says: []string{"plain", "Rate exceeded"}},
		{what: "throttled secret", from: secretARN, fails: map[string]answer{"secretsmanager": {400, "ThrottlingException", "Rate exceeded"}}, kind: fault.Unavailable, says: []string{secretARN}},
		{what: "broken service", from: secretARN, fails: map[string]answer{"secretsmanager": {500, "InternalServiceError", "oops"}}, kind: fault.Unavailable, says: []string{secretARN}},
		{what: "role denied", from: "plain", sessions: fault.New(fault.Denied, "ECS was unable to assume the role '%s'", roleARN), kind: fault.Denied, says: []string{"ECS was unable to assume the role '" + roleARN + "'"}},
		{what: "no STS", from: "plain", sessions: fault.New(fault.Unavailable, "assume role %s: no answer", roleARN), kind: fault.Unavailable, says: []string{roleARN}},
	} {
		t.Run(c.what, func(t *testing.T) {
			cloud, sessions, p := bench(t, Auth{})
			cloud.parameters = map[string]string{"plain": canary, "zero": canary + "\x00", "large": strings.Repeat("x", 139_994) + canary}
			cloud.secrets = map[string]string{
				secretARN: `{"none":null,"other":"` + canary + `"}`, secretARN + "#plain#": canary + "{", secretARN + "#list#": `["` + canary + `"]`, secretARN + "#binary#": "binary",
			}
			sessions.fails = c.sessions
			if c.fails != nil {
				cloud.fails = c.fails
			}
			_, err := p.Values(t.Context(), need(taskdef.ContainerDefinition{Secrets: []taskdef.Secret{{Name: "NAME", ValueFrom: c.from}}}))
			tells(t, err, c.kind, append(c.says, words)...)
			if !strings.HasPrefix(err.Error(), words) {
				t.Errorf("%q does not begin as ECS has it", err)
			}
		})
	}
}

func TestValues_ASilentServiceMayAnswerLater(t *testing.T) {
	c, _, p := bench(t, Auth{})
	n := need(taskdef.ContainerDefinition{Secrets: []taskdef.Secret{{Name: "A", ValueFrom: "plain"}}})
	gone := "http://127.0.0.1:1"
	p.config.BaseEndpoint = &gone
	_, err := p.Values(t.Context(), n)
	tells(t, err, fault.Unavailable, "plain", "no answer")
	p.config.BaseEndpoint = &c.url
	c.parameters["plain"] = "v"
	if v, err := p.Values(t.Context(), n); err != nil || v.Secrets["A"] != "v" {
		t.Errorf("%v, %v", v.Secrets, err)
	}
}

func TestValues_WithoutAnExecutionRoleNothingIsRead(t *testing.T) {
	c, _, p := bench(t, Auth{})
	n := need(taskdef.ContainerDefinition{Secrets: []taskdef.Secret{{Name: "A", ValueFrom: "plain"}}})
	n.ExecutionRole = ""
	_, err := p.Values(t.Context(), n)
	tells(t, err, fault.Invalid, "executionRoleArn")
	if len(c.asked) != 0 {
		t.Errorf("asked with the agent's own credentials: %v", c.asked)
	}
}

func TestForget_DropsTheSessions(t *testing.T) {
	_, s, p := bench(t, Auth{})
	p.Forget("task-1")
	if strings.Join(s.dropped, ",") != "task-1" {
		t.Errorf("dropped %v", s.dropped)
	}
}
