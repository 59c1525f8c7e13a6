package stack_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/stack"
)

func statements(document any) []map[string]any {
	var out []map[string]any
	d, _ := document.(map[string]any)
	for _, s := range list(d["Statement"]) {
		out = append(out, s.(map[string]any))
	}
	return out
}

// rights are all policy statements of a stack by the thing that carries them.
func rights(of template) map[string][]map[string]any {
	out := map[string][]map[string]any{}
	for id, r := range of.Resources {
		name := plain(id)
		for _, p := range list(r.Properties["Policies"]) {
			if policy, ok := p.(map[string]any); ok {
				out[name] = append(out[name], statements(policy["PolicyDocument"])...)
			}
		}
		out[name] = append(out[name], statements(r.Properties["PolicyDocument"])...)
	}
	return out
}

// wildcards are the only resources that may hold a "*", and why.
var wildcards = map[string]string{
	"arn:{AWS::Partition}:sqs:{AWS::Region}:{AWS::AccountId}:longshore-cmd-*": "an instance's command queue is made when it registers; " +
		"its name is this and 32 hex digits",
	"arn:{AWS::Partition}:iam::{AWS::AccountId}:role/longshore/*": "the roles of tasks are made by those who write the tasks; " +
		"their path says that the agents may take them",
}

func TestRights_NameTheirResourcesAndActions(t *testing.T) {
	checked := 0
	for name, all := range rights(real) {
		for _, s := range all {
			checked++
			if s["NotResource"] != nil || s["NotAction"] != nil || s["NotPrincipal"] != nil {
				t.Errorf("%s: a statement by exclusion: %v", name, s)
			}
			for _, r := range list(s["Resource"]) {
				if got := text(r); strings.Contains(got, "*") && wildcards[got] == "" {
					t.Errorf("%s: resource %s", name, got)
				}
			}
			if s["Effect"] == "Deny" {
				continue
			}
			if len(list(s["Resource"])) == 0 {
				t.Errorf("%s: no resource: %v", name, s)
			}
			for _, a := range list(s["Action"]) {
				if strings.Contains(text(a), "*") {
					t.Errorf("%s: action %s", name, text(a))
				}
			}
		}
	}
	if checked < 40 {
		t.Errorf("only %d statements found", checked)
	}
}

// Rights that the CDK adds by itself come as policies of their own, and are
// wider than ours.
func TestRights_AreOnlyThoseWeWrote(t *testing.T) {
	if got := real.all("AWS::IAM::Policy"); len(got) != 0 {
		t.Errorf("policies that nobody wrote: %v", got)
	}
	for _, id := range real.all("AWS::IAM::Role") {
		if m := list(real.Resources[id].Properties["ManagedPolicyArns"]); len(m) != 0 {
			t.Errorf("%s has managed policies: %v", id, m)
		}
	}
	_, agent := second.one(t, "AWS::IAM::Role", "Agent")
	if got := text(agent.Properties["ManagedPolicyArns"]); got != `["arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly"]` {
		t.Errorf("the policy an operator asked for: %s", got)
	}
}

// Every right of every role, one a line: a change is seen in review.
func TestRights_AreThoseOfTheGoldenList(t *testing.T) {
	var lines []string
	for name, all := range rights(real) {
		for _, s := range all {
			for _, a := range list(s["Action"]) {
				for _, r := range list(s["Resource"]) {
					line := fmt.Sprintf("%s %s %s %s", name, s["Effect"], text(a), text(r))
					if s["Condition"] != nil {
						line += " if " + text(s["Condition"])
					}
					lines = append(lines, line)
				}
			}
		}
	}
	slices.Sort(lines)
	golden(t, "rights.txt", lines)
}

func TestRights_ReadapiChangesNothing(t *testing.T) {
	allowed := []string{"dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "logs:CreateLogStream", "logs:PutLogEvents"}
	got := rights(real)["ReadapiRole"]
	if len(got) == 0 {
		t.Fatal("readapi may do nothing")
	}
	for _, s := range got {
		for _, a := range list(s["Action"]) {
			if !slices.Contains(allowed, text(a)) {
				t.Errorf("readapi may %s", text(a))
			}
		}
	}
}

func TestRights_FunctionsWriteTheirOwnLogOnly(t *testing.T) {
	for _, f := range stack.Functions() {
		for _, s := range rights(real)[upper(f)+"Role"] {
			if !strings.HasPrefix(text(list(s["Action"])[0]), "logs:") {
				continue
			}
			if got := text(s["Resource"]); got != "{"+upper(f)+"Log.Arn}" {
				t.Errorf("%s may write to %s", f, got)
			}
		}
	}
}

func TestRoles_AreTrustedToTheirOwnServiceOnly(t *testing.T) {
	for _, id := range real.all("AWS::IAM::Role") {
		var trusted []string
		for _, s := range statements(real.Resources[id].Properties["AssumeRolePolicyDocument"]) {
			if s["Effect"] != "Allow" || text(s["Action"]) != "sts:AssumeRole" {
				t.Errorf("%s: trust %v", id, s)
			}
			line := text(s["Principal"])
			if s["Condition"] != nil {
				line += " if " + text(s["Condition"])
			}
			trusted = append(trusted, line)
		}
		want := []string{`{"Service":"lambda.amazonaws.com"}`}
		if plain(id) == "Agent" {
			// A session's name is the instance's identity: only those who choose
			// it themselves, and for machines of this account, are trusted.
			want = []string{
				`{"Service":"ec2.amazonaws.com"}`,
				`{"Service":"ssm.amazonaws.com"} if {"ArnLike":{"aws:SourceArn":{"Fn::Join":["",["arn:",{"Ref":"AWS::Partition"},":ssm:",` +
					`{"Ref":"AWS::Region"},":",{"Ref":"AWS::AccountId"},":*"]]}},"StringEquals":{"aws:SourceAccount":{"Ref":"AWS::AccountId"}}}`,
			}
		}
		if !slices.Equal(trusted, want) {
			t.Errorf("%s trusts\n%s\nwant\n%s", id, strings.Join(trusted, "\n"), strings.Join(want, "\n"))
		}
	}
}

func TestAgent_ReadsOnlyTheQueueTaggedWithItsOwnUserID(t *testing.T) {
	for name, of := range map[string]template{"Longshore": real, "Local": local, "Harbor": second} {
		got := rights(of)["Agent"]
		if len(got) != 3 || text(got[2]["Action"]) != "sts:AssumeRole" { // of which more in TestReach_AnAgentTakesTheRolesOnTheListAndNoOther
			t.Fatalf("%s: %d statements: %v", name, len(got), got)
		}
		send, read := got[0], got[1]
		if text(send["Action"]) != "sqs:SendMessage" ||
			text(send["Resource"]) != text([]any{arnOf(of, t, "ReportsQueue"), arnOf(of, t, "HeartbeatsQueue")}) {
			t.Errorf("%s: an agent may send: %v", name, send)
		}
		want := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"}
		for _, a := range list(read["Action"]) {
			if !slices.Contains(want, text(a)) {
				t.Errorf("%s: an agent may %s", name, text(a))
			}
		}
		if len(list(read["Action"])) != len(want) {
			t.Errorf("%s: an agent may only %v", name, read["Action"])
		}
		start := "arn:{AWS::Partition}:sqs:{AWS::Region}:{AWS::AccountId}:"
		if got := text(read["Resource"]); got != start+strings.ToLower(name)+"-cmd-*" {
			t.Errorf("%s: an agent may read %s", name, got)
		}
		if got := text(read["Condition"]); got != `{"StringEquals":{"aws:ResourceTag/longshore-sender":"${aws:userid}"}}` {
			t.Errorf("%s: condition %s", name, got)
		}
	}
}

func arnOf(of template, t *testing.T, queue string) any {
	id, _ := of.one(t, "AWS::SQS::Queue", queue)
	return map[string]any{"Fn::GetAtt": []any{id, "Arn"}}
}

func TestCallers_InvokeOnlyThroughTheURL(t *testing.T) {
	for policy, functions := range map[string][]string{"Caller": {"{Api.Arn}", "{Readapi.Arn}"}, "ReadOnlyCaller": {"{Readapi.Arn}"}} {
		got := rights(real)[policy]
		if len(got) != 2 {
			t.Fatalf("%s: %v", policy, got)
		}
		for _, s := range got {
			var on []string
			for _, r := range list(s["Resource"]) {
				on = append(on, text(r))
			}
			if !slices.Equal(on, functions) {
				t.Errorf("%s on %v", policy, on)
			}
		}
		if text(got[0]["Action"]) != "lambda:InvokeFunctionUrl" {
			t.Errorf("%s: %v", policy, got[0])
		}
		// Without the condition a caller could hand the function an event of its own.
		if text(got[1]["Action"]) != "lambda:InvokeFunction" ||
			text(got[1]["Condition"]) != `{"Bool":{"lambda:InvokedViaFunctionUrl":"true"}}` {
			t.Errorf("%s: %v", policy, got[1])
		}
	}
}

func TestTopic_LetsThisAccountsAlarmsPublish(t *testing.T) {
	var allowed []string
	for _, s := range rights(real)["AlarmTopicPolicy"] {
		if s["Effect"] == "Allow" {
			allowed = append(allowed, text(s["Principal"])+" "+text(s["Action"])+" if "+text(s["Condition"]))
		}
	}
	want := []string{`{"Service":"cloudwatch.amazonaws.com"} sns:Publish if {"StringEquals":{"aws:SourceAccount":{"Ref":"AWS::AccountId"}}}`}
	if !slices.Equal(allowed, want) {
		t.Errorf("allowed %v", allowed)
	}
}
