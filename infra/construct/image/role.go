package image

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsimagebuilder"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/identity"
)

// Policy is the name of the one inline policy of each role.
const Policy = "image"

// builder is the role of build and test instances: AWS's two managed policies for them, less
// what our component does not use. The wider of them reads every parameter of the account.
func builder(scope constructs.Construct, policies []string, component awsimagebuilder.CfnComponent, log awslogs.LogGroup, files []file) awsiam.Role {
	var objects []*string
	for _, f := range files {
		if f.object != nil {
			objects = append(objects, f.object)
		}
	}
	stack := awscdk.Stack_Of(scope)
	var managed []awsiam.IManagedPolicy
	for _, a := range policies {
		managed = append(managed, awsiam.ManagedPolicy_FromManagedPolicyArn(scope, jsii.String("Builder"+a), &a))
	}
	any := []*string{jsii.String("*")} // these actions know no resource
	return awsiam.NewRole(scope, jsii.String("BuilderRole"), &awsiam.RoleProps{
		AssumedBy:       awsiam.NewServicePrincipal(jsii.String("ec2.amazonaws.com"), nil),
		Description:     jsii.String("Longshore: instances that EC2 Image Builder starts to build and test machine images"),
		ManagedPolicies: &managed,
		InlinePolicies: &map[string]awsiam.PolicyDocument{Policy: identity.Document([]identity.Statement{
			{Actions: []string{"s3:GetObject"}, Resources: objects},
			// The task executor and what it needs are in AWS's own buckets.
			{Actions: []string{"s3:GetObject"}, Resources: []*string{jsii.String("arn:" + *stack.Partition() + ":s3:::ec2imagebuilder*")}},
			{Actions: []string{"imagebuilder:GetComponent"}, Resources: []*string{component.AttrArn()}},
			{Actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"}, Resources: []*string{log.LogGroupArn()}},
			{Actions: []string{
				"ssm:UpdateInstanceInformation",
				"ssmmessages:CreateControlChannel", "ssmmessages:CreateDataChannel", "ssmmessages:OpenControlChannel", "ssmmessages:OpenDataChannel",
				"ec2messages:AcknowledgeMessage", "ec2messages:DeleteMessage", "ec2messages:FailMessage", "ec2messages:GetEndpoint",
				"ec2messages:GetMessages", "ec2messages:SendReply",
			}, Resources: any},
		})},
	})
}

// keeper is the role by which Image Builder removes old images: what AWS's managed policy
// for it allows for machine images, which is only what Image Builder itself has made.
func keeper(scope constructs.Construct) awsiam.Role {
	arn := func(rest string) *string { return jsii.String("arn:" + *awscdk.Stack_Of(scope).Partition() + rest) }
	made := map[string]map[string]string{"StringEquals": {"aws:ResourceTag/CreatedBy": "EC2 Image Builder"}}
	images, snapshots := arn(":ec2:*::image/*"), arn(":ec2:*::snapshot/*")
	return awsiam.NewRole(scope, jsii.String("KeeperRole"), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("imagebuilder.amazonaws.com"), nil),
		Description: jsii.String("Longshore: EC2 Image Builder removes old machine images"),
		InlinePolicies: &map[string]awsiam.PolicyDocument{Policy: identity.Document([]identity.Statement{
			{Actions: []string{
				"ec2:DeregisterImage", "ec2:DescribeImageAttribute", "ec2:EnableImage", "ec2:DisableImage",
				"ec2:EnableImageDeprecation", "ec2:DisableImageDeprecation",
			}, Resources: []*string{images}, Conditions: made},
			{Actions: []string{"ec2:DeleteSnapshot"}, Resources: []*string{snapshots}, Conditions: made},
			{Actions: []string{"ec2:CreateTags", "ec2:DeleteTags"}, Resources: []*string{images, snapshots}, Conditions: map[string]map[string]string{
				"StringEquals":              {"aws:ResourceTag/CreatedBy": "EC2 Image Builder"},
				"ForAllValues:StringEquals": {"aws:TagKeys": "DeprecatedBy"},
			}},
			{Actions: []string{"ec2:DescribeImages", "tag:GetResources", "imagebuilder:DeleteImage"}, Resources: []*string{jsii.String("*")}},
		})},
	})
}
