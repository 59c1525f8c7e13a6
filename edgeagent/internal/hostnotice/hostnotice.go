// Package hostnotice is agent.Host on EC2's instance metadata service (version 2
// alone): it reads whether EC2 or an Auto Scaling group is about to take the
// machine. It decides nothing, and remembers nothing but the service's token. The
// agent's main imports it.
package hostnotice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	// readTimeout bounds one read: the service is on the machine's own link.
	readTimeout = 2 * time.Second
	// mostBytes is more than any of the answers has.
	mostBytes = 4096
)

// Host reads the notices of some kinds. It is safe for concurrent use.
type Host struct {
	client *imds.Client
	kinds  []string
}

var _ agent.Host = (*Host)(nil)

// Kinds are the notices there are, the most certain first.
func Kinds() []string { return []string{wire.NoticeSpot, wire.NoticeAutoScaling, wire.NoticeRebalance} }

// New reads notices of the given kinds, from the service that config's environment
// names, or the machine's own.
func New(config aws.Config, kinds []string) *Host {
	return &Host{kinds: kinds, client: imds.NewFromConfig(config, func(o *imds.Options) {
		o.EnableFallback = aws.FalseTernary // never the version that any program can be led to ask
		o.Retryer = aws.NopRetryer{}        // the next look is near
	})}
}

// Notice implements agent.Host: the first kind of which there is one. A read that
// fails says nothing, of the kinds after it neither.
func (h *Host) Notice(ctx context.Context) (*wire.Notice, error) {
	for _, kind := range Kinds() {
		if !slices.Contains(h.kinds, kind) {
			continue
		}
		if n, err := h.of(ctx, kind); err != nil || n != nil {
			return n, err
		}
	}
	return nil, nil
}

func (h *Host) of(ctx context.Context, kind string) (*wire.Notice, error) {
	switch kind {
	case wire.NoticeSpot:
		return h.spot(ctx)
	case wire.NoticeAutoScaling:
		return h.autoScaling(ctx)
	}
	text, err := h.read(ctx, "events/recommendations/rebalance")
	if err != nil || text == "" {
		return nil, err
	}
	return &wire.Notice{Kind: wire.NoticeRebalance}, nil
}

func (h *Host) spot(ctx context.Context) (*wire.Notice, error) {
	text, err := h.read(ctx, "spot/instance-action")
	if err != nil || text == "" {
		return nil, err
	}
	var said struct {
		Action string    `json:"action"`
		Time   time.Time `json:"time"`
	}
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		return nil, fault.Malformed(err, "read the Spot notice")
	}
	if said.Action == "" || len(said.Action) > 64 || said.Time.Year() < 2000 || said.Time.Year() >= 3000 {
		return nil, fault.New(fault.Invalid, "the Spot notice has action %.32q and time %s", said.Action, said.Time)
	}
	return &wire.Notice{Kind: wire.NoticeSpot, Action: said.Action, At: said.Time.UTC()}, nil
}

// autoScaling reads where the group is taking the machine. In service it is to
// work, and somebody who put it on standby or took it out of the group wants it to
// go on; every other state is the way out, or into a warm pool.
func (h *Host) autoScaling(ctx context.Context) (*wire.Notice, error) {
	state, err := h.read(ctx, "autoscaling/target-lifecycle-state")
	switch {
	case err != nil || state == "" || slices.Contains([]string{"InService", "Standby", "Detached"}, state):
		return nil, err
	case len(state) > 64:
		return nil, fault.New(fault.Invalid, "the target lifecycle state is %.32q", state)
	}
	return &wire.Notice{Kind: wire.NoticeAutoScaling, Action: state}, nil
}

// read reads one item, "" if there is none: there is nothing to say then.
func (h *Host) read(ctx context.Context, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, err := h.client.GetMetadata(ctx, &imds.GetMetadataInput{Path: path})
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() == http.StatusNotFound {
		return "", nil
	}
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "read %s of the instance metadata service", path)
	}
	text, err := io.ReadAll(io.LimitReader(out.Content, mostBytes))
	if err := errors.Join(err, out.Content.Close()); err != nil {
		return "", fmt.Errorf("read %s of the instance metadata service: %w", path, err)
	}
	return strings.TrimSpace(string(text)), nil
}
