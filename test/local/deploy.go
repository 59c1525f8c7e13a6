package local

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/test/emulator"
)

// StackName is the CloudFormation stack's name, Cluster the cluster made in it.
const (
	StackName = "Longshore"
	Cluster   = "default"
)

// Outputs are the deployed stack's outputs, by name.
type Outputs map[string]string

func (s *Stack) cdk() string {
	return filepath.Join(s.Options.Root, ".tools", "node", "node_modules", ".bin", "cdk")
}

// Env is what makes AWS clients talk to the local stack and nothing else.
func (s *Stack) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + s.Endpoint, "AWS_ENDPOINT_URL_S3=" + s.Endpoint,
		"AWS_REGION=" + emulator.Region, "AWS_DEFAULT_REGION=" + emulator.Region,
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_EC2_METADATA_DISABLED=true", "AWS_PAGER=",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Config is the same for the Go SDK.
func (s *Stack) Config() aws.Config { return configOf(s.Endpoint) }

func configOf(endpoint string) aws.Config {
	return aws.Config{Region: emulator.Region, BaseEndpoint: &endpoint, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"}, nil
	})}
}

func (s *Stack) deploy(ctx context.Context) error {
	s.say("  compile the CDK app (2 min the first time, seconds after)")
	app := filepath.Join(s.Options.Dir, "infra")
	if err := s.run(ctx, s.Options.Root, "go", "build", "-o", app, "./infra"); err != nil {
		return err
	}
	s.say("  cdk bootstrap")
	// From a folder without a cdk.json, so that the app is not run for it.
	if err := s.run(ctx, s.Options.Dir, s.cdk(), "bootstrap", "aws://"+emulator.Account+"/"+emulator.Region); err != nil {
		return err
	}
	if s.Options.Auth {
		if err := s.openAssets(ctx); err != nil {
			return err
		}
	}
	s.say("  cdk deploy")
	args := []string{"deploy", "--app", app, "--require-approval", "never", "--output", filepath.Join(s.Options.Dir, "cdk.out"), "--progress", "events"}
	for _, c := range []string{
		"local=true", "build=false", "name=" + StackName, "logLevel=" + s.Options.LogLevel,
		"heartbeatEvery=" + s.Options.HeartbeatEvery.String(), "suspectAfter=" + s.Options.SuspectAfter.String(), "reapAfter=" + s.Options.ReapAfter.String(),
	} {
		args = append(args, "-c", "longshore:"+c)
	}
	if err := s.run(ctx, s.Options.Root, s.cdk(), args...); err != nil {
		return err
	}
	if err := s.readOutputs(ctx); err != nil {
		return err
	}
	if err := s.refuseFallbacks(ctx); err != nil {
		return err
	}
	return s.switchOnExpiry(ctx)
}

// openAssets removes the policy of the bootstrap's bucket: it denies plain http,
// which is all there is here, and the emulator heeds it.
func (s *Stack) openAssets(ctx context.Context) error {
	bucket := "cdk-hnb659fds-assets-" + emulator.Account + "-" + emulator.Region
	return s.run(ctx, s.Options.Root, filepath.Join(s.Options.Root, ".tools", "venv", "bin", "aws"), "s3api", "--endpoint-url", s.Endpoint, "delete-bucket-policy", "--bucket", bucket)
}

// run runs a step's command with its output in a log of its own; the end of it
// goes into the error.
func (s *Stack) run(ctx context.Context, dir, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), s.Env()...)
	cmd.Env = append(cmd.Env, "CDK_HOME="+filepath.Join(s.Options.Dir, "cdk-home"), "CDK_DISABLE_CLI_TELEMETRY=true",
		"JSII_SILENCE_WARNING_END_OF_LIFE_NODE_VERSION=20", "NODE_NO_WARNINGS=1", "LONGSHORE_BUILD=false", "CI=true")
	out, err := cmd.CombinedOutput()
	if log, openErr := os.OpenFile(filepath.Join(s.Options.Dir, "deploy.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); openErr == nil {
		fmt.Fprintf(log, "$ %s %s\n%s\n", name, strings.Join(args, " "), out)
		_ = log.Close() // a log
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(out)), "\n")
		return fmt.Errorf("%s: %w\n%s", filepath.Base(name), err, strings.Join(lines[max(0, len(lines)-15):], "\n"))
	}
	return nil
}

func (s *Stack) readOutputs(ctx context.Context) error {
	c := cloudformation.NewFromConfig(s.Config())
	out, err := c.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: aws.String(StackName)})
	if err != nil {
		return fmt.Errorf("read the stack's outputs: %w", err)
	}
	s.Outputs = Outputs{}
	for _, o := range out.Stacks[0].Outputs {
		s.Outputs[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
	}
	for _, need := range []string{"ApiUrl", "ReadApiUrl", "ReportsQueueUrl", "HeartbeatsQueueUrl", "CommandQueueNameStart", "ReaperFunctionName"} {
		if s.Outputs[need] == "" {
			return fmt.Errorf("the stack has no output %s", need)
		}
	}
	return nil
}

// refuseFallbacks names resources that LocalStack calls complete without having
// made them: a stack of which a part is missing proves nothing.
func (s *Stack) refuseFallbacks(ctx context.Context) error {
	pages := cloudformation.NewDescribeStackEventsPaginator(cloudformation.NewFromConfig(s.Config()), &cloudformation.DescribeStackEventsInput{StackName: aws.String(StackName)})
	var missing []string
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("read the stack's events: %w", err)
		}
		for _, e := range page.StackEvents {
			if strings.Contains(aws.ToString(e.ResourceStatusReason), "fallback") {
				missing = append(missing, aws.ToString(e.ResourceType)+" "+aws.ToString(e.LogicalResourceId))
			}
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("the emulator has not made: %s", strings.Join(missing, ", "))
	}
	return nil
}

// switchOnExpiry does what the emulator's CloudFormation leaves out.
func (s *Stack) switchOnExpiry(ctx context.Context) error {
	c := dynamodb.NewFromConfig(s.Config())
	for _, role := range []string{"Tasks", "Instances", "Leases", "Catalog"} {
		_, err := c.UpdateTimeToLive(ctx, &dynamodb.UpdateTimeToLiveInput{
			TableName:               aws.String(s.Outputs[role+"TableName"]),
			TimeToLiveSpecification: &dynamotypes.TimeToLiveSpecification{AttributeName: aws.String(schema.TTL), Enabled: aws.Bool(true)},
		})
		if err != nil {
			return fmt.Errorf("switch on expiry of table %s: %w", role, err)
		}
	}
	return nil
}

// API is what `--endpoint-url` takes for the ECS API; ReadAPI for its reading half.
func (s *Stack) API() string     { return s.functionURL("ApiUrl") }
func (s *Stack) ReadAPI() string { return s.functionURL("ReadApiUrl") }

// functionURL is a function URL as the emulator serves it to clients that do not
// resolve its host name: by path. LocalStack's image has names that every machine
// resolves to itself, and no such paths.
func (s *Stack) functionURL(output string) string {
	if u, err := url.Parse(s.Outputs[output]); err == nil && strings.HasSuffix(u.Hostname(), ".localhost.localstack.cloud") && outside(s.Options.Dir) != "" {
		return s.Outputs[output]
	}
	host := strings.TrimPrefix(strings.TrimPrefix(s.Outputs[output], "https://"), "http://")
	id, _, _ := strings.Cut(host, ".")
	return s.Endpoint + "/_aws/lambda-url/" + id + "/"
}

// ECS is a stock ECS client of the local stack.
func (s *Stack) ECS() *ecs.Client {
	return ecs.NewFromConfig(s.Config(), func(o *ecs.Options) { o.BaseEndpoint = aws.String(s.API()) })
}

func (s *Stack) createCluster(ctx context.Context) error {
	out, err := s.ECS().CreateCluster(ctx, &ecs.CreateClusterInput{ClusterName: aws.String(Cluster)})
	if err != nil {
		return err
	}
	if aws.ToString(out.Cluster.Status) != "ACTIVE" {
		return errors.New("the cluster is not ACTIVE")
	}
	return nil
}

func (s *Stack) writeEnv(context.Context) error {
	var b strings.Builder
	b.WriteString("# A shell file: what the local stack's clients need. Read it with: . .local/env\n")
	for _, kv := range append(s.Env(),
		"LONGSHORE_ENDPOINT="+s.API(), "LONGSHORE_READ_ENDPOINT="+s.ReadAPI(), "AWS_ENDPOINT_URL_ECS="+s.API(),
		"LONGSHORE_CLUSTER="+Cluster, "LONGSHORE_IMAGE="+s.Image,
		"LONGSHORE_REAPER="+s.Outputs["ReaperFunctionName"], "LONGSHORE_REPORTS_SOURCE="+s.Outputs["ReportsSourceId"]) {
		name, value, _ := strings.Cut(kv, "=")
		fmt.Fprintf(&b, "export %s='%s'\n", name, value)
	}
	if err := os.WriteFile(filepath.Join(s.Options.Dir, "env"), []byte(b.String()), 0o644); err != nil {
		return err
	}
	return s.save()
}
