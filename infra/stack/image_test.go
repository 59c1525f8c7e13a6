package stack_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// document is the component of a stack, with each token as its name in braces.
func document(t *testing.T, of template) (phases map[string][]map[string]any) {
	t.Helper()
	_, c := of.one(t, "AWS::ImageBuilder::Component", "ImageComponent")
	var d struct {
		SchemaVersion string
		Phases        []struct {
			Name  string
			Steps []map[string]any
		}
	}
	data := text(c.Properties["Data"])
	if joined, ok := c.Properties["Data"].(map[string]any); ok {
		data = ""
		for _, part := range list(list(joined["Fn::Join"])[1]) {
			switch p := part.(type) {
			case string:
				data += p
			case map[string]any: // the name of a thing, or a pattern
				if sub, ok := p["Fn::Sub"].(string); ok {
					data += sub
				} else {
					data += strings.ReplaceAll(text(p), `"`, "'")
				}
			}
		}
	}
	if err := json.Unmarshal([]byte(data), &d); err != nil || d.SchemaVersion != "1.0" {
		t.Fatalf("%v in\n%s", err, data)
	}
	phases = map[string][]map[string]any{}
	var names []string
	for _, p := range d.Phases {
		names = append(names, p.Name)
		phases[p.Name] = p.Steps
	}
	if !slices.Equal(names, []string{"build", "validate", "test"}) {
		t.Fatalf("phases %v", names)
	}
	return phases
}

// commands are all commands of a phase.
func commandsOf(steps []map[string]any) (out []string) {
	for _, s := range steps {
		if in, ok := s["inputs"].(map[string]any); ok && s["action"] == "ExecuteBash" {
			for _, c := range list(in["commands"]) {
				out = append(out, c.(string))
			}
		}
	}
	return out
}

// downloads are source → destination of a phase's steps of an action.
func downloads(steps []map[string]any, action string) (out []string) {
	for _, s := range steps {
		if s["action"] != action {
			continue
		}
		for _, in := range list(s["inputs"]) {
			m := in.(map[string]any)
			line := fmt.Sprint(m["source"], " ", m["destination"])
			if m["checksum"] != nil {
				line += fmt.Sprint(" ", m["algorithm"], " ", m["checksum"])
			}
			out = append(out, line)
		}
	}
	return out
}

func TestImage_IsNotMadeUnlessAskedFor(t *testing.T) {
	for name, of := range map[string]template{"real": real, "local": local} {
		for id, r := range of.Resources {
			if strings.HasPrefix(r.Type, "AWS::ImageBuilder::") || strings.HasPrefix(id, "Image") {
				t.Errorf("%s: %s %s", name, id, r.Type)
			}
		}
	}
}

func TestImage_InstallsVerifiesAndLooksAtWhatItMade(t *testing.T) {
	of := document(t, imaged)
	build := strings.Join(commandsOf(of["build"]), "\n")
	if !strings.Contains(build, "sh /tmp/longshore/install.sh --docker --image --sha256 ") || !strings.HasSuffix(build, " /tmp/longshore/longshore-agent.rpm") {
		t.Errorf("build:\n%s", build)
	}
	if got := regexp.MustCompile(`--sha256 ([0-9a-f]{64}) `).FindStringSubmatch(build); got == nil || got[1] != sumOfAPackage {
		t.Errorf("the package's sum: %v, want %s", got, sumOfAPackage)
	}
	for _, setting := range []string{"LONGSHORE_CLUSTER='default'", "LONGSHORE_REPORTS_QUEUE_URL='", "LONGSHORE_HEARTBEATS_QUEUE_URL='", "LONGSHORE_COMMAND_QUEUE_NAME_START='shipyard-cmd-'", "AWS_REGION='"} {
		if !strings.Contains(build, "export "+setting) {
			t.Errorf("not set: %s", setting)
		}
	}
	if got := downloads(of["build"], "S3Download"); len(got) != 3 || !strings.HasSuffix(got[0], ".sh /tmp/longshore/install.sh") ||
		!strings.HasSuffix(got[1], ".sh /tmp/longshore/check.sh") || !strings.HasSuffix(got[2], ".rpm /tmp/longshore/longshore-agent.rpm") {
		t.Errorf("downloads:\n%s", strings.Join(got, "\n"))
	}
	if got := commandsOf(of["validate"]); !slices.Contains(got, "sh /tmp/longshore/check.sh") {
		t.Errorf("validate: %v", got)
	}
	if got := commandsOf(of["test"]); !slices.Contains(got, "sh /tmp/longshore/check.sh --started") || len(downloads(of["test"], "S3Download")) != 1 {
		t.Errorf("test: %v", got)
	}
}

// sumOfAPackage is the SHA-256 of the bytes "a package", which stand in for one.
const sumOfAPackage = "c0cd5ccfdb563a59366e33e73001b78fdb8cca5a6c48e2f90fffcde44b81f1f6"

func TestImage_OfAURLIsVerifiedWhereItIsFetchedAndWhereItIsInstalled(t *testing.T) {
	of := document(t, imagedByURL)
	sum := strings.Repeat("ab", 32)
	if got := downloads(of["build"], "WebDownload"); !slices.Equal(got, []string{"https://example.org/longshore-agent_1.0.0_amd64.deb /tmp/longshore/longshore-agent.deb SHA256 " + sum}) {
		t.Errorf("downloads %v", got)
	}
	if got := downloads(of["build"], "S3Download"); len(got) != 2 {
		t.Errorf("downloads %v", got)
	}
	if got := strings.Join(commandsOf(of["build"]), "\n"); !strings.Contains(got, "--sha256 "+sum+" /tmp/longshore/longshore-agent.deb") || !strings.Contains(got, "LONGSHORE_CLUSTER='edge'") {
		t.Errorf("build:\n%s", got)
	}
}

// What the parts of Image Builder say, each with what the context asked for.
func TestImage_PartsFitTogether(t *testing.T) {
	for _, c := range []struct {
		of                                    template
		base, kind, instance, schedule, where string
		regions, share                        string
		keep                                  float64
		policy                                string
	}{
		{imaged, "ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64", "rpm", `["t4g.small"]`, "null", "null null", "{AWS::Region}", "null", 5, "Retain"},
		{imagedByURL, "ami-0123456789abcdef0", "deb", `["t3.small"]`, `{"PipelineExecutionStartCondition":"EXPRESSION_MATCH_ONLY","ScheduleExpression":"cron(0 3 * * ? *)"}`,
			`subnet-0123456789abcdef0 ["sg-0123456789abcdef0","sg-0123456789abcdef1"]`, "{AWS::Region} eu-west-1", `{"UserIds":["111111111111","222222222222"]}`, 3, "Delete"},
	} {
		component, made := c.of.one(t, "AWS::ImageBuilder::Component", "ImageComponent")
		recipeID, recipe := c.of.one(t, "AWS::ImageBuilder::ImageRecipe", "ImageRecipe")
		infraID, infra := c.of.one(t, "AWS::ImageBuilder::InfrastructureConfiguration", "ImageInfrastructure")
		distID, dist := c.of.one(t, "AWS::ImageBuilder::DistributionConfiguration", "ImageDistribution")
		_, pipeline := c.of.one(t, "AWS::ImageBuilder::ImagePipeline", "ImagePipeline")
		_, lifecycle := c.of.one(t, "AWS::ImageBuilder::LifecyclePolicy", "ImageLifecycle")
		_, log := c.of.one(t, "AWS::Logs::LogGroup", "ImageLog")
		attr := func(id, name string) string { return text(map[string]any{"Fn::GetAtt": []any{id, name}}) }
		for what, pair := range map[string][2]string{
			"base":           {text(recipe.Properties["ParentImage"]), c.base},
			"component":      {text(recipe.Properties["Components"]), text([]any{map[string]any{"ComponentArn": map[string]any{"Fn::GetAtt": []any{component, "Arn"}}}})},
			"instance":       {text(infra.Properties["InstanceTypes"]), c.instance},
			"metadata":       {text(infra.Properties["InstanceMetadataOptions"]), `{"HttpPutResponseHopLimit":1,"HttpTokens":"required"}`},
			"left running":   {text(infra.Properties["TerminateInstanceOnFailure"]), "true"},
			"where":          {text(infra.Properties["SubnetId"]) + " " + text(infra.Properties["SecurityGroupIds"]), c.where},
			"recipe":         {text(pipeline.Properties["ImageRecipeArn"]), attr(recipeID, "Arn")},
			"infrastructure": {text(pipeline.Properties["InfrastructureConfigurationArn"]), attr(infraID, "Arn")},
			"distribution":   {text(pipeline.Properties["DistributionConfigurationArn"]), attr(distID, "Arn")},
			"schedule":       {text(pipeline.Properties["Schedule"]), c.schedule},
			"tests":          {text(pipeline.Properties["ImageTestsConfiguration"]), `{"ImageTestsEnabled":true,"TimeoutMinutes":60}`},
			"log":            {text(log.Properties["LogGroupName"]), "/aws/imagebuilder/" + text(recipe.Properties["Name"])},
			"log's removal":  {log.DeletionPolicy, c.policy},
			"lifecycle of":   {text(lifecycle.Properties["ResourceSelection"]), text(map[string]any{"TagMap": pipeline.Properties["ImageTags"]})},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s of %s is %s, want %s", what, c.base, pair[0], pair[1])
			}
		}
		var regions []string
		for _, d := range list(dist.Properties["Distributions"]) {
			m := d.(map[string]any)
			regions = append(regions, text(m["Region"]))
			to := m["AmiDistributionConfiguration"].(map[string]any)
			if !strings.HasSuffix(text(to["Name"]), "-agent-{{ imagebuilder:buildDate }}") || text(to["LaunchPermissionConfiguration"]) != c.share {
				t.Errorf("distribution %v", to)
			}
		}
		if got := strings.Join(regions, " "); got != c.regions {
			t.Errorf("regions %s", got)
		}
		details := list(lifecycle.Properties["PolicyDetails"])
		detail := details[0].(map[string]any)
		if text(detail["Filter"]) != fmt.Sprintf(`{"Type":"COUNT","Value":%v}`, c.keep) || text(detail["Action"]) != `{"IncludeResources":{"Amis":true,"Snapshots":true},"Type":"DELETE"}` ||
			text(detail["ExclusionRules"]) != `{"Amis":{"LastLaunched":{"Unit":"DAYS","Value":30}}}` || len(details) != 1 {
			t.Errorf("lifecycle %s", text(details))
		}
		// A component and a recipe never change under one version.
		form := regexp.MustCompile(`^1\.0\.[0-9]{1,10}$`)
		if v, w := text(made.Properties["Version"]), text(recipe.Properties["Version"]); !form.MatchString(v) || !form.MatchString(w) || v == w {
			t.Errorf("versions %s and %s", v, w)
		}
	}
	_, one := imaged.one(t, "AWS::ImageBuilder::Component", "ImageComponent")
	_, two := imagedByURL.one(t, "AWS::ImageBuilder::Component", "ImageComponent")
	if one.Properties["Version"] == two.Properties["Version"] {
		t.Error("two contents have one version")
	}
	if imaged.Outputs["ImagePipelineArn"].Value == nil {
		t.Error("no output names the pipeline")
	}
}

// Rights of the two roles, one a line.
func TestImage_RightsAreThoseOfTheGoldenList(t *testing.T) {
	var lines []string
	for name, all := range rights(imaged) {
		if !strings.HasPrefix(name, "Image") {
			continue
		}
		for _, s := range all {
			for _, a := range list(s["Action"]) {
				for _, r := range list(s["Resource"]) {
					line := fmt.Sprintf("%s %s %s %s", name, s["Effect"], text(a), regexp.MustCompile(`[0-9a-f]{64}`).ReplaceAllString(text(r), "HASH"))
					if s["Condition"] != nil {
						line += " if " + text(s["Condition"])
					}
					lines = append(lines, line)
				}
			}
		}
	}
	slices.Sort(lines)
	golden(t, "image-rights.txt", lines)
	for role, service := range map[string]string{"ImageBuilderRole": "ec2.amazonaws.com", "ImageKeeperRole": "imagebuilder.amazonaws.com"} {
		_, r := imaged.one(t, "AWS::IAM::Role", role)
		trust := statements(r.Properties["AssumeRolePolicyDocument"])
		if len(trust) != 1 || text(trust[0]["Principal"]) != `{"Service":"`+service+`"}` || r.Properties["ManagedPolicyArns"] != nil {
			t.Errorf("%s: %v, %v", role, trust, r.Properties["ManagedPolicyArns"])
		}
	}
	_, r := imagedByURL.one(t, "AWS::IAM::Role", "ImageBuilderRole")
	if got := text(r.Properties["ManagedPolicyArns"]); got != `["arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"]` {
		t.Errorf("the policy an operator asked for: %s", got)
	}
}

// A build instance may not do what an agent may: what it runs is not trusted yet.
func TestImage_BuildInstancesAreNoAgents(t *testing.T) {
	for _, s := range rights(imaged)["ImageBuilderRole"] {
		for _, a := range list(s["Action"]) {
			if strings.HasPrefix(text(a), "sqs:") || strings.HasPrefix(text(a), "dynamodb:") || strings.HasPrefix(text(a), "iam:") || strings.Contains(text(a), "*") {
				t.Errorf("a build instance may %s", text(a))
			}
		}
	}
}

func TestImage_NagFindsOnlyWhatIsAcceptedForAReason(t *testing.T) {
	judge(t, slices.DeleteFunc(slices.Clone(imageFindings), func(f finding) bool { return !strings.HasPrefix(f.about, "Image/") }), []exception{
		{"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::ec2imagebuilder*]", "Image/BuilderRole", "AWS's own buckets, with the program that carries out components"},
		{"AwsSolutions-IAM5[Resource::*]", "Image/BuilderRole", "the actions by which an instance speaks to SSM know no resource"},
		{"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:*::image/*]", "Image/KeeperRole", "made narrow by its condition: what Image Builder itself has made"},
		{"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:ec2:*::snapshot/*]", "Image/KeeperRole", "made narrow by its condition: what Image Builder itself has made"},
		{"AwsSolutions-IAM5[Resource::*]", "Image/KeeperRole", "looking for images by tag knows no resource; AWS's own policy for it says the same"},
	})
}
