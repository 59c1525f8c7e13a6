package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/hostnotice"
	"github.com/longshore-run/longshore/edgeagent/internal/role"
	"github.com/longshore-run/longshore/internal/meter"
	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/setting"
)

// cloud is what the agent needs of AWS: its queues, and once its own name.
type cloud struct {
	queues *sqs.Client
	names  *sts.Client
	host   *imds.Client // nil if it is switched off
	config aws.Config   // for what asks the host
	region string
	roles  *role.Sessions // of tasks
	calls  aws.Config     // for what calls services
}

func newCloud(ctx context.Context, c settings, log *slog.Logger) (*cloud, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithLogger(logging.LoggerFunc(func(_ logging.Classification, format string, v ...any) {
		log.Debug("AWS SDK", logkey.Message, fmt.Sprintf(format, v...)) // what matters comes back as an error
	})))
	if err != nil {
		return nil, fmt.Errorf("read the AWS settings: %w", err)
	}
	if cfg.Region == "" {
		if cfg.Region = regionOf(c.ReportsQueueURL); cfg.Region == "" {
			return nil, errors.New("AWS_REGION must be set: the queue's URL does not show a region")
		}
	}
	out := &cloud{}
	if off, _ := c.lookup("AWS_EC2_METADATA_DISABLED"); !strings.EqualFold(off, "true") {
		out.config = cfg
		out.host = imds.NewFromConfig(cfg) // with its own client, which gives up soon where there is no EC2
	}
	if cfg.HTTPClient == nil { // nothing in the environment asked for a special one
		cfg.HTTPClient = awshttp.NewBuildableClient()
	}
	cfg.HTTPClient = transport.Client{HTTP: cfg.HTTPClient}
	cfg.APIOptions = append(cfg.APIOptions, meter.Log(log)...)
	out.calls = cfg
	out.queues, out.names = sqs.NewFromConfig(cfg), sts.NewFromConfig(cfg)
	out.region, out.roles = cfg.Region, role.New(out.names, now)
	return out, nil
}

// hostOf is who says what is to come of the machine: nobody where there is no EC2.
func (c *cloud) hostOf(s settings) agent.Host {
	if c.host == nil || s.EC2InstanceID == "" || slices.Equal(s.Notices, []string{noNotices}) {
		return nil
	}
	return hostnotice.New(c.config, s.Notices)
}

var awsHost = regexp.MustCompile(`^sqs\.([a-z0-9-]+)\.(amazonaws\.com|api\.aws)`)

// regionOf reads the region from a queue's URL.
func regionOf(queueURL string) string {
	u, err := url.Parse(queueURL)
	if err != nil {
		return ""
	}
	if m := awsHost.FindStringSubmatch(u.Host); m != nil {
		return m[1]
	}
	return ""
}

// identityName is the file that remembers the identity, for a start without a
// network.
const identityName = "identity"

const (
	askFirst = 15 * time.Second // before the remembered identity is used
	askMost  = time.Minute
)

// whoAmI is the aws:userid that SQS shows as the sender. It is asked for until
// it is known; where it was known before, an agent without a network goes by
// that.
func (c *cloud) whoAmI(ctx context.Context, dataDir string, log *slog.Logger) (string, error) {
	file := filepath.Join(dataDir, identityName)
	known, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for wait := time.Second; ; wait = min(2*wait, askMost) {
		id, err := c.ask(ctx)
		switch {
		case err == nil:
			return id, remember(file, id)
		case ctx.Err() != nil:
			return "", ctx.Err()
		case len(known) > 0:
			log.Warn("STS does not answer: the identity of the last start is used", logkey.Error, err)
			return string(known), nil
		}
		log.Warn("STS does not say who this is", logkey.Error, err)
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(wait):
		}
	}
}

func (c *cloud) ask(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askFirst)
	defer cancel()
	out, err := c.names.GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return "", err
	}
	if aws.ToString(out.UserId) == "" {
		return "", errors.New("the answer names no user")
	}
	return *out.UserId, nil
}

func remember(file, id string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	if old, err := os.ReadFile(file); err == nil && string(old) == id {
		return nil
	}
	fresh := file + ".new"
	if err := os.WriteFile(fresh, []byte(id), 0o600); err != nil {
		return err
	}
	return os.Rename(fresh, file)
}

var ec2Session = regexp.MustCompile(`:(i-[0-9a-f]{8,32})$`)

// fillIn completes what EC2 knows of its own: on EC2 a role session is named
// after the instance.
func (c *cloud) fillIn(ctx context.Context, s *setting.Agent, identity string, log *slog.Logger) {
	m := ec2Session.FindStringSubmatch(identity)
	if m == nil {
		return
	}
	if s.EC2InstanceID == "" {
		s.EC2InstanceID = m[1]
	}
	if s.Zone != "" || c.host == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	doc, err := c.host.GetInstanceIdentityDocument(ctx, &imds.GetInstanceIdentityDocumentInput{})
	if err != nil {
		log.Warn("the instance metadata service does not say which zone this is; LONGSHORE_ZONE can", logkey.Error, err)
		return
	}
	s.Zone = doc.AvailabilityZone
}
