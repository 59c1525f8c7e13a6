package local

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// As is Config with other keys.
func (s *Stack) As(key, secret, session string) aws.Config {
	cfg := s.Config()
	cfg.Credentials = credentials.NewStaticCredentialsProvider(key, secret, session)
	return cfg
}

// FunctionAs is Config as the role of a function, named as in the outputs (Api).
func (s *Stack) FunctionAs(ctx context.Context, name string) (aws.Config, error) {
	f, err := lambda.NewFromConfig(s.Config()).GetFunctionConfiguration(ctx, &lambda.GetFunctionConfigurationInput{FunctionName: aws.String(s.Outputs[name+"FunctionName"])})
	if err != nil {
		return aws.Config{}, fmt.Errorf("read function %s: %w", name, err)
	}
	out, err := sts.NewFromConfig(s.Config()).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: f.Role, RoleSessionName: aws.String("test")})
	if err != nil {
		return aws.Config{}, fmt.Errorf("assume the role of %s: %w", name, err)
	}
	c := out.Credentials
	return s.As(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken), nil
}

// AgentAs is Config as an agent.
func (s *Stack) AgentAs(n int) (aws.Config, error) {
	text, err := os.ReadFile(filepath.Join(s.agentDir(n), "env"))
	if err != nil {
		return aws.Config{}, err
	}
	env := map[string]string{}
	for kv := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = strings.TrimSpace(value)
	}
	return s.As(env["AWS_ACCESS_KEY_ID"], env["AWS_SECRET_ACCESS_KEY"], ""), nil
}

// NewUser is Config as a new IAM user with some managed policies.
func (s *Stack) NewUser(ctx context.Context, name string, policies ...string) (aws.Config, error) {
	users := iam.NewFromConfig(s.Config())
	if _, err := users.CreateUser(ctx, &iam.CreateUserInput{UserName: &name}); err != nil {
		return aws.Config{}, fmt.Errorf("create user %s: %w", name, err)
	}
	for _, arn := range policies {
		if _, err := users.AttachUserPolicy(ctx, &iam.AttachUserPolicyInput{UserName: &name, PolicyArn: &arn}); err != nil {
			return aws.Config{}, fmt.Errorf("attach %s to user %s: %w", arn, name, err)
		}
	}
	key, err := users.CreateAccessKey(ctx, &iam.CreateAccessKeyInput{UserName: &name})
	if err != nil {
		return aws.Config{}, fmt.Errorf("create key of %s: %w", name, err)
	}
	return s.As(*key.AccessKey.AccessKeyId, *key.AccessKey.SecretAccessKey, ""), nil
}
