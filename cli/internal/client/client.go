// Package client makes the stock ECS client of a Longshore installation: it
// finds the endpoint, signs for the service lambda, and calls what ECS has no
// operation for. It decides nothing about tasks. Commands import it.
package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/auth"
	"github.com/aws/smithy-go/logging"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/cli/internal/sigv4"
)

// Options say which installation is meant, and as whom.
type Options struct {
	Endpoint string // "" finds it in the stack's outputs
	Stack    string
	Region   string
	Profile  string
}

// Client speaks to one installation.
type Client struct {
	ECS      *ecs.Client
	AWS      aws.Config // for what else a command asks AWS
	Endpoint string
	Stack    string
	now      func() time.Time
}

// New is a client as the options and the environment say.
func New(ctx context.Context, o Options, now func() time.Time) (*Client, error) {
	cfg, err := Load(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Client{AWS: cfg, Stack: o.Stack, Endpoint: o.Endpoint, now: now}
	if c.Endpoint == "" {
		if c.Endpoint, err = discover(ctx, cfg, o.Stack); err != nil {
			return nil, err
		}
	}
	if u, err := url.Parse(c.Endpoint); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, exit.New(exit.Usage, "it looks like https://….lambda-url.REGION.on.aws/", "the endpoint %q is no URL", c.Endpoint)
	}
	c.ECS = ecs.NewFromConfig(cfg, func(e *ecs.Options) {
		e.BaseEndpoint = aws.String(c.Endpoint)
		e.AuthSchemeResolver = forLambda{}
	})
	return c, nil
}

// Load is the AWS configuration of the options and the environment.
func Load(ctx context.Context, o Options) (aws.Config, error) {
	// What the SDK would log is for its own authors; errors come back.
	how := []func(*config.LoadOptions) error{config.WithLogger(logging.Nop{})}
	if o.Region != "" {
		how = append(how, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		how = append(how, config.WithSharedConfigProfile(o.Profile))
	}
	cfg, err := config.LoadDefaultConfig(ctx, how...)
	if err != nil {
		return cfg, &exit.Error{Code: exit.Failed, Text: "read the AWS configuration", Cause: err, Next: "check --profile and ~/.aws/config"}
	}
	if u, err := url.Parse(o.Endpoint); err == nil {
		cfg.Region = cmp.Or(cfg.Region, sigv4.Region(u.Hostname()))
	}
	if cfg.Region == "" {
		return cfg, exit.New(exit.Usage, "name it with --region or AWS_REGION", "no AWS region is set")
	}
	return cfg, nil
}

// Outputs are the outputs of a CloudFormation stack.
func Outputs(ctx context.Context, cfg aws.Config, stack string) (map[string]string, error) {
	got, err := cloudformation.NewFromConfig(cfg).DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	if err != nil {
		if e, ok := errors.AsType[smithy.APIError](err); ok && strings.Contains(e.ErrorMessage(), "does not exist") {
			return nil, exit.New(exit.NotFound, "name the stack with --stack, or the API with --endpoint-url or LONGSHORE_ENDPOINT; deploy it with: make deploy",
				"there is no stack %s in %s", stack, cfg.Region)
		}
		return nil, fmt.Errorf("read the outputs of stack %s: %w", stack, err)
	}
	out := map[string]string{}
	for _, s := range got.Stacks {
		for _, o := range s.Outputs {
			out[aws.ToString(o.OutputKey)] = aws.ToString(o.OutputValue)
		}
	}
	return out, nil
}

func discover(ctx context.Context, cfg aws.Config, stack string) (string, error) {
	outputs, err := Outputs(ctx, cfg, stack)
	if err != nil {
		return "", err
	}
	if outputs["ApiUrl"] == "" {
		return "", exit.New(exit.NotFound, "is it a Longshore stack? name another with --stack", "stack %s has no output ApiUrl", stack)
	}
	return outputs["ApiUrl"], nil
}

// forLambda signs every operation for the service that a Function URL wants.
type forLambda struct{}

func (forLambda) ResolveAuthSchemes(_ context.Context, p *ecs.AuthResolverParameters) ([]*auth.Option, error) {
	var props smithy.Properties
	smithyhttp.SetSigV4SigningName(&props, sigv4.Service)
	smithyhttp.SetSigV4SigningRegion(&props, p.Region)
	return []*auth.Option{{SchemeID: auth.SchemeIDSigV4, SignerProperties: props}}, nil
}
