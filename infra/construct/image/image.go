// Package image makes what EC2 Image Builder needs to bake the agent into machine images: a
// component that fetches the package and runs packaging/image's own scripts, recipe,
// infrastructure, distribution, pipeline, lifecycle, and the roles of the last two. It
// decides no setting. infra/stack imports it.
package image

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsimagebuilder"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3assets"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/option"
)

// Props describe the images.
type Props struct {
	Stack string // name of the Longshore stack: everything is named after it
	Image option.Image
	// Settings of the agent that the images have.
	Settings  map[string]*string
	Retention awslogs.RetentionDays
	Removal   awscdk.RemovalPolicy
}

// Pipeline makes images when it is told to, or on its schedule.
type Pipeline struct {
	ARN *string
}

// tag is on every image, so that its lifecycle and people find it.
const tag = "longshore"

// New adds it all to scope.
func New(scope constructs.Construct, id string, p Props) Pipeline {
	scope = constructs.NewConstruct(scope, &id)
	name := jsii.String(strings.ToLower(p.Stack) + "-agent")
	tags := &map[string]*string{tag: &p.Stack}

	files := fetched(scope, p)
	document := p.document(files)
	component := awsimagebuilder.NewCfnComponent(scope, jsii.String("Component"), &awsimagebuilder.CfnComponentProps{
		Name: name, Platform: jsii.String("Linux"), Version: version(scope, document), Tags: tags,
		Description: jsii.String("Longshore: the agent, enabled and without an identity"),
		Data:        awscdk.Stack_Of(scope).ToJsonString(document, nil),
	})
	recipe := awsimagebuilder.NewCfnImageRecipe(scope, jsii.String("Recipe"), &awsimagebuilder.CfnImageRecipeProps{
		Name: name, ParentImage: &p.Image.Base, Tags: tags,
		// It may not change under a version either.
		Version:    version(scope, map[string]any{"document": document, "base": p.Image.Base}),
		Components: []any{map[string]any{"componentArn": component.AttrArn()}},
	})
	log := awslogs.NewLogGroup(scope, jsii.String("Log"), &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/imagebuilder/" + *name),
		Retention:    p.Retention, RemovalPolicy: p.Removal,
	})
	profile := awsiam.NewInstanceProfile(scope, jsii.String("Profile"), &awsiam.InstanceProfileProps{
		Role: builder(scope, p.Image.Policies, component, log, files),
	})
	infrastructure := awsimagebuilder.NewCfnInfrastructureConfiguration(scope, jsii.String("Infrastructure"), &awsimagebuilder.CfnInfrastructureConfigurationProps{
		Name: name, InstanceProfileName: profile.InstanceProfileName(), InstanceTypes: jsii.Strings(p.Image.InstanceType),
		InstanceMetadataOptions: &awsimagebuilder.CfnInfrastructureConfiguration_InstanceMetadataOptionsProperty{
			HttpTokens: jsii.String("required"), HttpPutResponseHopLimit: jsii.Number(1),
		},
		SubnetId: some(p.Image.Subnet), SecurityGroupIds: someOf(p.Image.SecurityGroups),
		TerminateInstanceOnFailure: jsii.Bool(true), ResourceTags: tags, Tags: tags,
	})
	pipeline := awsimagebuilder.NewCfnImagePipeline(scope, jsii.String("Pipeline"), &awsimagebuilder.CfnImagePipelineProps{
		Name: name, ImageRecipeArn: recipe.AttrArn(), InfrastructureConfigurationArn: infrastructure.AttrArn(),
		DistributionConfigurationArn: distribution(scope, name, tags, p).AttrArn(),
		Description:                  jsii.String("Longshore: machine images with the agent"),
		Schedule:                     schedule(p.Image.Schedule),
		ImageTestsConfiguration: &awsimagebuilder.CfnImagePipeline_ImageTestsConfigurationProperty{
			ImageTestsEnabled: jsii.Bool(true), TimeoutMinutes: jsii.Number(60),
		},
		// What the list of an image's software is made from would need rights to SSM's inventory.
		EnhancedImageMetadataEnabled: jsii.Bool(false),
		ImageTags:                    tags, Tags: tags,
	})
	lifecycle(scope, name, tags, p)
	return Pipeline{ARN: pipeline.AttrArn()}
}

// file is what a build fetches: from S3, or from a URL with its sum.
type file struct {
	to, source string
	sha256     string // "": from S3
	object     *string
}

const folder = "/tmp/longshore/"

// fetched are the scripts and the package.
func fetched(scope constructs.Construct, p Props) []file {
	asset := func(id, path, to string) file {
		a := awss3assets.NewAsset(scope, &id, &awss3assets.AssetProps{Path: &path})
		return file{to: folder + to, source: *a.S3ObjectUrl(), object: a.Bucket().ArnForObjects(a.S3ObjectKey())}
	}
	files := []file{
		asset("Install", filepath.Join(p.Image.Scripts, "install.sh"), "install.sh"),
		asset("Check", filepath.Join(p.Image.Scripts, "check.sh"), "check.sh"),
	}
	to := "longshore-agent." + p.Image.Kind
	if p.Image.URL() {
		return append(files, file{to: folder + to, source: p.Image.Package, sha256: p.Image.SHA256})
	}
	return append(files, asset("Package", p.Image.Package, to))
}

// version is one that no other content has had: of a component and a recipe, once they
// are made, nothing may change under one name and version.
func version(scope constructs.Construct, content any) *string {
	text, err := json.Marshal(awscdk.Stack_Of(scope).Resolve(content))
	if err != nil {
		panic(err) // what the CDK resolves is JSON
	}
	sum := sha256.Sum256(text)
	return jsii.String(fmt.Sprintf("1.0.%d", binary.BigEndian.Uint32(sum[:])>>2)) // below 2^30
}

func distribution(scope constructs.Construct, name *string, tags *map[string]*string, p Props) awsimagebuilder.CfnDistributionConfiguration {
	to := map[string]any{
		"Name":        *name + "-{{ imagebuilder:buildDate }}",
		"Description": "Longshore: the agent of stack " + p.Stack, "AmiTags": tags,
	}
	if len(p.Image.Accounts) > 0 {
		to["LaunchPermissionConfiguration"] = map[string]any{"UserIds": p.Image.Accounts}
	}
	regions := []*string{awscdk.Stack_Of(scope).Region()}
	for _, r := range p.Image.Regions {
		regions = append(regions, &r)
	}
	var all []any
	for _, r := range regions {
		all = append(all, &awsimagebuilder.CfnDistributionConfiguration_DistributionProperty{Region: r, AmiDistributionConfiguration: to})
	}
	return awsimagebuilder.NewCfnDistributionConfiguration(scope, jsii.String("Distribution"), &awsimagebuilder.CfnDistributionConfigurationProps{
		Name: name, Distributions: all, Tags: tags,
	})
}

func schedule(expression string) any {
	if expression == "" {
		return nil
	}
	return &awsimagebuilder.CfnImagePipeline_ScheduleProperty{
		ScheduleExpression: &expression, PipelineExecutionStartCondition: jsii.String("EXPRESSION_MATCH_ONLY"),
	}
}

// lifecycle removes images beyond the newest few, with their snapshots; not one that was started lately.
func lifecycle(scope constructs.Construct, name *string, tags *map[string]*string, p Props) {
	type detail = awsimagebuilder.CfnLifecyclePolicy_PolicyDetailProperty
	awsimagebuilder.NewCfnLifecyclePolicy(scope, jsii.String("Lifecycle"), &awsimagebuilder.CfnLifecyclePolicyProps{
		Name: name, ExecutionRole: keeper(scope).RoleArn(), ResourceType: jsii.String("AMI_IMAGE"), Status: jsii.String("ENABLED"),
		ResourceSelection: &awsimagebuilder.CfnLifecyclePolicy_ResourceSelectionProperty{TagMap: tags},
		PolicyDetails: []any{&detail{
			Action: &awsimagebuilder.CfnLifecyclePolicy_ActionProperty{
				Type:             jsii.String("DELETE"),
				IncludeResources: &awsimagebuilder.CfnLifecyclePolicy_IncludeResourcesProperty{Amis: jsii.Bool(true), Snapshots: jsii.Bool(true)},
			},
			Filter: &awsimagebuilder.CfnLifecyclePolicy_FilterProperty{Type: jsii.String("COUNT"), Value: jsii.Number(p.Image.Keep)},
			ExclusionRules: &awsimagebuilder.CfnLifecyclePolicy_ExclusionRulesProperty{
				Amis: &awsimagebuilder.CfnLifecyclePolicy_AmiExclusionRulesProperty{
					LastLaunched: &awsimagebuilder.CfnLifecyclePolicy_LastLaunchedProperty{Unit: jsii.String("DAYS"), Value: jsii.Number(30)},
				},
			},
		}},
		Tags: tags,
	})
}

func some(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func someOf(all []string) *[]*string {
	if len(all) == 0 {
		return nil
	}
	return jsii.Strings(all...)
}
