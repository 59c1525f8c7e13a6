// Package identity makes IAM roles and policies: the role of a function, the
// role of the machines' agents, and the policies for people and programs that
// call the API. Every statement names its resources. infra/stack and
// construct/function import it.
package identity

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
)

// Statement is one thing a policy allows.
type Statement struct {
	Actions   []string
	Resources []*string
	// Conditions is operator → key → value; the text of a policy variable
	// such as ${aws:userid} is written out as it is.
	Conditions map[string]map[string]string
}

// Document is a policy of the statements.
func Document(statements []Statement) awsiam.PolicyDocument {
	var all []awsiam.PolicyStatement
	for _, s := range statements {
		props := &awsiam.PolicyStatementProps{
			Actions:   jsii.Strings(s.Actions...),
			Resources: &s.Resources,
		}
		if len(s.Conditions) > 0 {
			conditions := map[string]any{}
			for operator, keys := range s.Conditions {
				conditions[operator] = keys
			}
			props.Conditions = &conditions
		}
		all = append(all, awsiam.NewPolicyStatement(props))
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &all, Minimize: jsii.Bool(false)})
}

// FunctionPolicy is the name of the one inline policy of a function's role.
const FunctionPolicy = "function"

// NewFunctionRole adds a role that Lambda may assume. Its policy is part of the
// role, so it is complete before anything that uses the role is made.
func NewFunctionRole(scope constructs.Construct, id, description string, statements []Statement) awsiam.Role {
	return awsiam.NewRole(scope, &id, &awsiam.RoleProps{
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description:    &description,
		InlinePolicies: &map[string]awsiam.PolicyDocument{FunctionPolicy: Document(statements)},
	})
}

// SenderTag is the tag of a command queue that says whose it is.
const SenderTag = "longshore-sender"

// AgentPolicy is the name of the inline policy of the agents' role.
const AgentPolicy = "agent"

// AgentProps names what an agent talks to.
type AgentProps struct {
	Reports, Heartbeats *string // ARNs
	CommandQueues       *string // ARN with a wildcard at its end
	// TaskRoles are ARNs of the roles that the agents may take for their tasks, each
	// with a wildcard at most at its end.
	TaskRoles       []string
	ManagedPolicies []string
}

// Agent is the role of the machines and the profile EC2 hands it out by.
type Agent struct {
	Role    awsiam.Role
	Profile awsiam.InstanceProfile
}

// NewAgent adds the agents' role. Its sessions are the instances' identities:
// whoever may choose the name of a session is that instance. So only EC2 and
// SSM, which choose the name themselves, are trusted; and a session may read
// only the queue that is tagged with its own aws:userid. What tasks and their
// images, secrets and files need is not its own to use: it may take their roles, if
// these trust it.
func NewAgent(scope constructs.Construct, id string, p AgentProps) Agent {
	stack := awscdk.Stack_Of(scope)
	ssm := awsiam.NewServicePrincipal(jsii.String("ssm.amazonaws.com"), nil).WithConditions(&map[string]any{
		"StringEquals": map[string]any{"aws:SourceAccount": stack.Account()},
		"ArnLike":      map[string]any{"aws:SourceArn": arn(stack, "ssm", "*")},
	})
	var managed []awsiam.IManagedPolicy
	for _, a := range p.ManagedPolicies {
		managed = append(managed, awsiam.ManagedPolicy_FromManagedPolicyArn(scope, jsii.String(id+a), &a))
	}
	statements := []Statement{{
		Actions:   []string{"sqs:SendMessage"},
		Resources: []*string{p.Reports, p.Heartbeats},
	}, {
		Actions: []string{
			"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility",
			"sqs:GetQueueUrl", "sqs:GetQueueAttributes",
		},
		Resources:  []*string{p.CommandQueues},
		Conditions: map[string]map[string]string{"StringEquals": {"aws:ResourceTag/" + SenderTag: "${aws:userid}"}},
	}}
	if len(p.TaskRoles) > 0 {
		statements = append(statements, Statement{Actions: []string{"sts:AssumeRole"}, Resources: *jsii.Strings(p.TaskRoles...)})
	}
	role := awsiam.NewRole(scope, &id, &awsiam.RoleProps{
		AssumedBy: awsiam.NewCompositePrincipal(
			awsiam.NewServicePrincipal(jsii.String("ec2.amazonaws.com"), nil), ssm),
		Description:     jsii.String("Longshore agents: one session is one container instance"),
		ManagedPolicies: &managed,
		InlinePolicies:  &map[string]awsiam.PolicyDocument{AgentPolicy: Document(statements)},
	})
	profile := awsiam.NewInstanceProfile(scope, jsii.String(id+"Profile"), &awsiam.InstanceProfileProps{Role: role})
	return Agent{Role: role, Profile: profile}
}

// Trust is the statement by which a role that tasks are to have lets the agents take
// it: for its AssumeRolePolicyDocument.
func (a Agent) Trust() *string {
	return awscdk.Fn_Join(jsii.String(""), &[]*string{
		jsii.String(`{"Effect":"Allow","Principal":{"AWS":"`), a.Role.RoleArn(), jsii.String(`"},"Action":"sts:AssumeRole"}`),
	})
}

func arn(stack awscdk.Stack, service, rest string) *string {
	return jsii.String("arn:" + *stack.Partition() + ":" + service + ":" + *stack.Region() + ":" + *stack.Account() + ":" + rest)
}

// NewCaller adds a managed policy for those who call the API at the Function
// URLs of the functions with the given ARNs. A URL needs InvokeFunction too,
// but a caller with more than that through the URL could hand the function an
// event that names any caller it likes.
func NewCaller(scope constructs.Construct, id, description string, functions ...*string) awsiam.ManagedPolicy {
	return awsiam.NewManagedPolicy(scope, &id, &awsiam.ManagedPolicyProps{
		Description: &description,
		Document: Document([]Statement{{
			Actions:   []string{"lambda:InvokeFunctionUrl"},
			Resources: functions,
		}, {
			Actions:    []string{"lambda:InvokeFunction"},
			Resources:  functions,
			Conditions: map[string]map[string]string{"Bool": {"lambda:InvokedViaFunctionUrl": "true"}},
		}}),
	})
}
