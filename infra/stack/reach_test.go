package stack_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What the template's policies say about concrete requests, by the rules of IAM:
// what nothing allows is refused, and a Deny wins. It knows what our policies are
// written with and stops the test at anything else, so that a condition it does
// not understand is never taken for one that holds. Emulators put no values in
// place of policy variables and know no lambda:InvokedViaFunctionUrl; this does.

// request is one call: by whom is told by the conditions' keys.
type request struct {
	action, resource string
	keys             map[string]string // "aws:userid", "aws:ResourceTag/longshore-sender" …
}

// glob is a pattern of IAM: * and ?.
func glob(pattern, s string) bool {
	expr := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile("^" + expr + "$").MatchString(s)
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}`)

// allows judges a request by statements.
func allows(t *testing.T, all []map[string]any, r request) bool {
	t.Helper()
	allowed := false
	for _, s := range all {
		for name := range s {
			if !slices.Contains([]string{"Sid", "Effect", "Action", "Resource", "Condition", "Principal"}, name) {
				t.Fatalf("a statement with %s: %v", name, s)
			}
		}
		action := slices.ContainsFunc(list(s["Action"]), func(a any) bool { return glob(strings.ToLower(text(a)), strings.ToLower(r.action)) })
		resource := slices.ContainsFunc(list(s["Resource"]), func(p any) bool { return glob(text(p), r.resource) })
		if !action || !resource || !holds(t, s["Condition"], r) {
			continue
		}
		if s["Effect"] == "Deny" {
			return false
		}
		allowed = true
	}
	return allowed
}

// holds judges a condition: every key of every operator. A key that the request
// does not have makes none of these operators true.
func holds(t *testing.T, condition any, r request) bool {
	t.Helper()
	operators, _ := condition.(map[string]any)
	for operator, keys := range operators {
		for key, want := range keys.(map[string]any) {
			got, known := r.keys[key]
			one := func(w any) bool {
				value := variable.ReplaceAllStringFunc(text(w), func(v string) string {
					if in, ok := r.keys[v[2:len(v)-1]]; ok {
						return in
					}
					return "\x00" // a variable without a value matches nothing
				})
				switch operator {
				case "StringEquals":
					return got == value
				case "Bool":
					return strings.EqualFold(got, value)
				case "ArnLike":
					return glob(value, got)
				}
				t.Fatalf("condition operator %s is not understood here", operator)
				return false
			}
			if !known || !slices.ContainsFunc(list(want), one) {
				return false
			}
		}
	}
	return true
}

const (
	anyRegion = "arn:{AWS::Partition}:sqs:{AWS::Region}:{AWS::AccountId}:"
	victimID  = "AROAAGENT:i-0victim"
	thiefID   = "AROAAGENT:i-0thief"
)

// queueOf is a request of the thief's about a command queue, whose tag says whose
// it is.
func queueOf(action, owner string) request {
	r := request{action, anyRegion + "longshore-cmd-0123456789abcdef0123456789abcdef", map[string]string{"aws:userid": thiefID}}
	if owner != "" {
		r.keys["aws:ResourceTag/longshore-sender"] = owner
	}
	return r
}

func TestReach_AnAgentReadsItsOwnQueueAndNoOther(t *testing.T) {
	agent := rights(real)["Agent"]
	reading := []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueUrl", "sqs:GetQueueAttributes"}
	for _, action := range reading {
		if !allows(t, agent, queueOf(action, thiefID)) {
			t.Errorf("an agent may not %s its own queue", action)
		}
		for _, owner := range []string{victimID, "", "AROAAGENT", "AROAAGENT:*", "*", "${aws:userid}", thiefID + "x"} {
			if allows(t, agent, queueOf(action, owner)) {
				t.Errorf("an agent may %s a queue tagged %q", action, owner)
			}
		}
	}
	// One whose identity is not known reads nothing, not even what is tagged as the
	// variable is written.
	for _, tag := range []string{"", "${aws:userid}"} {
		r := queueOf("sqs:ReceiveMessage", tag)
		delete(r.keys, "aws:userid")
		if allows(t, agent, r) {
			t.Errorf("somebody without an identity reads a queue tagged %q", tag)
		}
	}
}

func TestReach_AnAgentForgesNoCommandAndNoOwner(t *testing.T) {
	agent := rights(real)["Agent"]
	for _, action := range []string{"sqs:SendMessage", "sqs:TagQueue", "sqs:UntagQueue", "sqs:CreateQueue", "sqs:DeleteQueue", "sqs:PurgeQueue", "sqs:SetQueueAttributes", "sqs:AddPermission", "sqs:ListQueues", "sqs:StartMessageMoveTask"} {
		for _, owner := range []string{thiefID, victimID, ""} {
			if allows(t, agent, queueOf(action, owner)) {
				t.Errorf("an agent may %s a command queue tagged %q", action, owner)
			}
		}
	}
	for _, queue := range []string{"{ReportsQueue.Arn}", "{HeartbeatsQueue.Arn}"} {
		for action, may := range map[string]bool{"sqs:SendMessage": true, "sqs:ReceiveMessage": false, "sqs:DeleteMessage": false, "sqs:PurgeQueue": false} {
			if got := allows(t, agent, request{action, queue, map[string]string{"aws:userid": thiefID, "aws:ResourceTag/longshore-sender": thiefID}}); got != may {
				t.Errorf("an agent may %s %s: %v", action, queue, got)
			}
		}
	}
}

func TestReach_AnAgentOfOneStackIsNobodyInAnother(t *testing.T) {
	if allows(t, rights(second)["Agent"], queueOf("sqs:ReceiveMessage", thiefID)) {
		t.Error("an agent of Harbor reads a command queue of Longshore")
	}
	r := queueOf("sqs:ReceiveMessage", thiefID)
	r.resource = anyRegion + "harbor-cmd-0123456789abcdef0123456789abcdef"
	if allows(t, rights(real)["Agent"], r) || !allows(t, rights(second)["Agent"], r) {
		t.Error("command queues of Harbor are not its own agents'")
	}
}

// everything is each kind of call that would be worth stealing a role for.
func everything() []request {
	var all []request
	for _, table := range []string{"Tasks", "Instances", "Leases", "Catalog"} {
		for _, action := range []string{"GetItem", "BatchGetItem", "Query", "Scan", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "BatchWriteItem", "DeleteTable", "UpdateTable", "UpdateTimeToLive", "ExportTableToPointInTime", "CreateBackup", "PartiQLDelete"} {
			all = append(all, request{action: "dynamodb:" + action, resource: "{" + table + "Table.Arn}"})
		}
	}
	for _, queue := range []string{"Admission", "Reports", "Heartbeats", "Services"} {
		for _, action := range []string{"SendMessage", "ReceiveMessage", "DeleteMessage", "PurgeQueue", "DeleteQueue", "SetQueueAttributes", "StartMessageMoveTask"} {
			all = append(all, request{action: "sqs:" + action, resource: "{" + queue + "Queue.Arn}"}, request{action: "sqs:" + action, resource: "{" + queue + "QueueDead.Arn}"})
		}
	}
	for _, function := range []string{"Api", "Readapi", "Admission", "Statechange", "Reaper", "Services", "Events", "Schedule", "Audit"} {
		for _, action := range []string{"InvokeFunction", "InvokeFunctionUrl", "UpdateFunctionCode", "AddPermission"} {
			all = append(all, request{action: "lambda:" + action, resource: "{" + function + ".Arn}"})
		}
	}
	for _, action := range []string{"iam:PassRole", "iam:CreateUser", "iam:PutRolePolicy", "sts:AssumeRole", "ec2:RunInstances", "s3:GetObject", "kms:Decrypt", "ssm:GetParameter", "secretsmanager:GetSecretValue", "cloudformation:DeleteStack", "logs:DeleteLogGroup", "sns:Publish", "events:PutRule"} {
		all = append(all, request{action: action, resource: "arn:aws:anything"})
	}
	return all
}

func TestReach_AnAgentReachesNothingElse(t *testing.T) {
	for _, r := range everything() {
		r.keys = map[string]string{"aws:userid": thiefID}
		want := r.action == "sqs:SendMessage" && (r.resource == "{ReportsQueue.Arn}" || r.resource == "{HeartbeatsQueue.Arn}")
		if got := allows(t, rights(real)["Agent"], r); got != want {
			t.Errorf("an agent may %s %s: %v", r.action, r.resource, got)
		}
	}
}

// Which roles an agent may take for its tasks is a list, and what is not on it is out of its reach, whatever that trusts. It
// may do nothing else with them.
func TestReach_AnAgentTakesTheRolesOnTheListAndNoOther(t *testing.T) {
	const here = "arn:{AWS::Partition}:iam::{AWS::AccountId}:role/"
	for _, c := range []struct {
		of   template
		role string
		may  bool
	}{
		{real, here + "longshore/app", true}, {real, here + "longshore/team/app", true}, {local, here + "longshore/app", true},
		{real, here + "longshore", false}, {real, here + "longshore-admin", false}, {real, here + "admin", false}, {real, here + "team/longshore/app", false},
		{real, "arn:aws:iam::111111111111:role/longshore/app", false}, {real, "{ApiRole.Arn}", false}, {real, "{Agent.Arn}", false},
		{second, here + "jobs/app", true}, {second, here + "jobs/edge", true}, {second, "arn:aws:iam::111111111111:role/shared", true},
		{second, here + "longshore/app", false}, {second, here + "none", false}, {second, here + "shared", false}, {second, "arn:aws:iam::111111111111:role/jobs/app", false},
	} {
		if got := allows(t, rights(c.of)["Agent"], request{"sts:AssumeRole", c.role, map[string]string{"aws:userid": thiefID}}); got != c.may {
			t.Errorf("an agent may take %s: %v", c.role, got)
		}
		for _, action := range []string{"sts:TagSession", "sts:SetSourceIdentity", "sts:AssumeRoleWithWebIdentity", "iam:PassRole", "iam:UpdateAssumeRolePolicy", "iam:PutRolePolicy", "iam:GetRole"} {
			if allows(t, rights(c.of)["Agent"], request{action, c.role, map[string]string{"aws:userid": thiefID}}) {
				t.Errorf("an agent may %s %s", action, c.role)
			}
		}
	}
	// What a task's execution role is for, the machine's own role may not.
	for _, action := range []string{"ecr:GetAuthorizationToken", "ecr:BatchGetImage", "ssm:GetParameters", "secretsmanager:GetSecretValue", "s3:GetObject", "logs:PutLogEvents", "kms:Decrypt"} {
		if allows(t, rights(real)["Agent"], request{action, "arn:aws:anything", map[string]string{"aws:userid": thiefID}}) {
			t.Errorf("an agent may %s", action)
		}
	}
}

func TestReach_CallersInvokeThroughTheirURLAndReachNothingElse(t *testing.T) {
	for policy, functions := range map[string][]string{"Caller": {"{Api.Arn}", "{Readapi.Arn}"}, "ReadOnlyCaller": {"{Readapi.Arn}"}} {
		for _, r := range everything() {
			for _, via := range []string{"", "false", "true"} {
				r.keys = map[string]string{}
				if via != "" {
					r.keys["lambda:InvokedViaFunctionUrl"] = via
				}
				mine := slices.Contains(functions, r.resource)
				want := mine && (r.action == "lambda:InvokeFunctionUrl" || r.action == "lambda:InvokeFunction" && via == "true")
				if got := allows(t, rights(real)[policy], r); got != want {
					t.Errorf("%s may %s %s, via the URL %q: %v", policy, r.action, r.resource, via, got)
				}
			}
		}
	}
}

// What a compromised function can not do, whichever it is.
func TestReach_NoFunctionManagesAnything(t *testing.T) {
	managing := regexp.MustCompile(`^(iam|sts|ec2|s3|kms|ssm|secretsmanager|cloudformation|lambda|sns):|:(DeleteTable|UpdateTable|UpdateTimeToLive|ExportTableToPointInTime|CreateBackup|PartiQLDelete|BatchWriteItem|PurgeQueue|SetQueueAttributes|StartMessageMoveTask|PutRule|DeleteLogGroup)$`)
	scans := map[string]string{"ReaperRole": "{LeasesTable.Arn} {InstancesTable.Arn}", "AuditRole": "{TasksTable.Arn} {InstancesTable.Arn}"}
	for role, all := range rights(real) {
		if !strings.HasSuffix(role, "Role") {
			continue
		}
		for _, r := range everything() {
			got := allows(t, all, r)
			switch {
			case got && managing.MatchString(r.action):
				t.Errorf("%s may %s %s", role, r.action, r.resource)
			case got && r.action == "sqs:DeleteQueue":
				t.Errorf("%s may delete %s", role, r.resource)
			case got && r.action == "dynamodb:Scan" && !strings.Contains(scans[role], r.resource):
				t.Errorf("%s may scan %s", role, r.resource)
			}
		}
	}
}

func TestReach_OnlyEC2AndThisAccountsSSMAreAnAgent(t *testing.T) {
	_, role := real.one(t, "AWS::IAM::Role", "Agent")
	trust := statements(role.Properties["AssumeRolePolicyDocument"])
	may := func(service string, keys map[string]string) bool {
		for _, s := range trust {
			if p, _ := s["Principal"].(map[string]any); p["Service"] == service && len(p) == 1 && holds(t, s["Condition"], request{keys: keys}) {
				return true
			}
		}
		return false
	}
	here, there := `{AWS::AccountId}`, "999999999999"
	ssm := func(account string) map[string]string {
		return map[string]string{"aws:SourceAccount": account, "aws:SourceArn": "arn:{AWS::Partition}:ssm:{AWS::Region}:" + account + ":managed-instance/mi-1"}
	}
	if !may("ec2.amazonaws.com", nil) || !may("ssm.amazonaws.com", ssm(here)) {
		t.Error("machines are not trusted")
	}
	for _, service := range []string{"lambda.amazonaws.com", "ecs-tasks.amazonaws.com", "*"} {
		if may(service, ssm(here)) {
			t.Errorf("%s is trusted", service)
		}
	}
	if may("ssm.amazonaws.com", ssm(there)) || may("ssm.amazonaws.com", nil) {
		t.Error("another account's machines are trusted")
	}
	for _, s := range trust {
		if p, _ := s["Principal"].(map[string]any); p["AWS"] != nil || p["Federated"] != nil {
			t.Errorf("people are trusted: %v", s)
		}
	}
}

// The evaluator itself: what it must find, on policies that are wrong.
func TestReach_TheEvaluatorFindsWhatIsWrong(t *testing.T) {
	statement := func(doc string) []map[string]any {
		var s map[string]any
		if err := json.Unmarshal([]byte(doc), &s); err != nil {
			t.Fatal(err)
		}
		return []map[string]any{s}
	}
	for doc, want := range map[string]bool{
		`{"Effect":"Allow","Action":"sqs:*","Resource":"*"}`:                                                                                                            true,
		`{"Effect":"Allow","Action":"SQS:receivemessage","Resource":"arn:*:longshore-cmd-*"}`:                                                                           true,
		`{"Effect":"Deny","Action":"sqs:*","Resource":"*"}`:                                                                                                             false,
		`{"Effect":"Allow","Action":"sqs:Receive","Resource":"*"}`:                                                                                                      false,
		`{"Effect":"Allow","Action":"sqs:ReceiveMessage","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/longshore-sender":"${aws:userid}"}}}`:             false,
		`{"Effect":"Allow","Action":"sqs:ReceiveMessage","Resource":"*","Condition":{"StringEquals":{"aws:ResourceTag/longshore-sender":["x","AROAAGENT:i-0victim"]}}}`: true,
		`{"Effect":"Allow","Action":"sqs:ReceiveMessage","Resource":"*","Condition":{"Bool":{"aws:SecureTransport":"true"}}}`:                                           false,
	} {
		if got := allows(t, statement(doc), queueOf("sqs:ReceiveMessage", victimID)); got != want {
			t.Errorf("%s: %v", doc, got)
		}
	}
}
