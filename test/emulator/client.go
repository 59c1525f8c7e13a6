package emulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/longshore-run/longshore/internal/transport"
)

// rootKey is the access key, and its secret, that the emulator lets do everything.
const rootKey = "test"

// AWSConfig is a client configuration for this emulator, with credentials that may do everything:
// of what is not started here, those of the environment.
func (p *Process) AWSConfig() aws.Config {
	if p.outside != nil {
		return p.outside.config.Copy()
	}
	return aws.Config{
		Region:       Region,
		Credentials:  credentials.NewStaticCredentialsProvider(rootKey, rootKey, ""),
		BaseEndpoint: aws.String(p.Endpoint()),
		HTTPClient:   transport.Client{HTTP: awshttp.NewBuildableClient()},
	}
}

// Env is the environment that makes AWS clients, the CDK command among them, talk to this
// emulator and to nothing else. `aws sqs` ignores the endpoint: give it --endpoint-url.
func (p *Process) Env() []string {
	return []string{
		"AWS_ENDPOINT_URL=" + p.Endpoint(),
		"AWS_ENDPOINT_URL_S3=" + p.Endpoint(),
		"AWS_REGION=" + Region,
		"AWS_DEFAULT_REGION=" + Region,
		"AWS_ACCESS_KEY_ID=" + rootKey,
		"AWS_SECRET_ACCESS_KEY=" + rootKey,
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_CONFIG_FILE=/dev/null",
		"AWS_SHARED_CREDENTIALS_FILE=/dev/null",
	}
}

// Reset wipes everything the emulator holds.
func (p *Process) Reset(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.Endpoint()+"/_ministack/reset", http.NoBody)
	if err != nil {
		return fmt.Errorf("make reset request: %w", err)
	}
	if err := answer(req); err != nil {
		return fmt.Errorf("reset the AWS emulator: %w", err)
	}
	return nil
}

// awaitHealth polls until the emulator answers, its process ends, or time is up.
func (p *Process) awaitHealth(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Endpoint()+p.program.health, http.NoBody)
		if err != nil {
			return fmt.Errorf("make health request: %w", err)
		}
		healthErr := answer(req)
		select {
		case <-p.exited: // also when somebody else answered on its port
			return errors.New("it ended by itself")
		default:
		}
		if healthErr == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it does not answer: %w", errors.Join(ctx.Err(), healthErr))
		case <-p.exited:
			return errors.New("it ended by itself")
		case <-tick.C:
		}
	}
}

// wake asks for what a client with a deadline may ask for first.
func (p *Process) wake(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if _, err := sqs.NewFromConfig(p.AWSConfig()).ListQueues(ctx, &sqs.ListQueuesInput{}); err != nil {
		return fmt.Errorf("it answers, and its SQS does not: %w", err)
	}
	return nil
}

func answer(req *http.Request) error {
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", req.URL, resp.Status)
	}
	return nil
}

// logTail is the end of the log, for an error about a start.
func logTail(file string) string {
	const lines = 15
	data, err := os.ReadFile(file)
	if err != nil || len(data) == 0 {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return "\nthe end of " + file + ":\n  " + strings.Join(all[max(0, len(all)-lines):], "\n  ")
}
