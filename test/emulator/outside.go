package emulator

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

const (
	// Endpoint is an emulator that somebody else started, at AWS_ENDPOINT_URL:
	// LocalStack's image with a token, say.
	Endpoint Product = "endpoint"
	// AWS is a real account, the one of the environment's credentials. Tests make
	// and remove tables and queues there, which costs money.
	AWS Product = "aws"
)

const (
	// EndpointVariable says where an emulator of somebody else is.
	EndpointVariable = "AWS_ENDPOINT_URL"
	// AccountVariable names the real account that tests may use, so that none is
	// used because its credentials happened to lie about.
	AccountVariable = "LONGSHORE_AWS_ACCOUNT"
)

// outside is what plays AWS without a process of ours, and is nobody's to stop.
type outside struct {
	endpoint string // "" for AWS itself
	account  string
	config   aws.Config
}

// QueueURL is where a queue is, or will be.
func (p *Process) QueueURL(name string) string {
	base, account := p.Endpoint(), Account
	if p.outside != nil && p.outside.endpoint == "" {
		base, account = "https://sqs."+p.outside.config.Region+".amazonaws.com", p.outside.account
	}
	return base + "/" + account + "/" + name
}

// Outside says whether the options, or the environment, ask for something that
// is not started here.
func (o Options) Outside() bool {
	product, err := o.chosen()
	return err == nil && (product == Endpoint || product == AWS)
}

// reach finds what is not started here, and refuses what was not meant.
func reach(ctx context.Context, product Product) (*outside, error) {
	out := &outside{}
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the AWS configuration: %w", err)
	}
	if product == Endpoint {
		out.endpoint = strings.TrimSuffix(os.Getenv(EndpointVariable), "/")
		u, err := url.Parse(out.endpoint)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || amazon(u.Hostname()) {
			return nil, fmt.Errorf("%s=%s wants the emulator's URL in %s, such as http://localhost:4566; it is %q", ProductVariable, Endpoint, EndpointVariable, out.endpoint)
		}
		cfg.BaseEndpoint, cfg.Region = aws.String(out.endpoint), cmp.Or(cfg.Region, Region)
		out.config = cfg
		return out, nil
	}
	if cfg.Region == "" {
		return nil, errors.New("no AWS region is set: name it in AWS_REGION")
	}
	out.config, out.account = cfg, os.Getenv(AccountVariable)
	return out, meant(ctx, cfg)
}

// amazon says whether a host is AWS's own, behind which a real account is.
func amazon(host string) bool {
	for _, end := range []string{".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".on.aws"} {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// meant holds the account of the credentials against the one that was named.
func meant(ctx context.Context, cfg aws.Config) error {
	want := os.Getenv(AccountVariable)
	if want == "" {
		return fmt.Errorf("%s=%s makes and removes tables and queues in a real account: name the account in %s", ProductVariable, AWS, AccountVariable)
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return fmt.Errorf("ask AWS whose credentials these are: %w", err)
	}
	if got := aws.ToString(who.Account); got != want {
		return fmt.Errorf("the credentials are of account %s, and %s names %s: nothing was done", got, AccountVariable, want)
	}
	return nil
}
