package event

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	hostSource = "aws.ec2"
	hostDetail = "EC2 Instance State-change Notification"
)

// Reaper runs the reaper each minute, and takes EC2's word for the end of hosts.
type Reaper struct {
	Control interface {
		Tick(ctx context.Context) error
		IngestHostState(ctx context.Context, h control.HostState) error
	}
	Metrics control.Metrics
	Log     *slog.Logger
}

// Handle takes one event of a rule. An error makes Lambda try again, which is
// harmless: every run is safe to run twice.
func (r *Reaper) Handle(ctx context.Context, e events.CloudWatchEvent) error {
	if e.Source != hostSource {
		return r.Control.Tick(ctx)
	}
	h, err := hostState(e)
	if err != nil {
		r.Metrics.Count(countUndecodable, 1)
		r.Log.ErrorContext(ctx, "event dropped", logkey.Message, e.ID, logkey.Error, err)
		return nil
	}
	return r.Control.IngestHostState(ctx, h)
}

func hostState(e events.CloudWatchEvent) (h control.HostState, err error) {
	var detail struct {
		InstanceID string `json:"instance-id"`
		State      string `json:"state"`
	}
	if e.DetailType != hostDetail {
		return h, fault.Field("detail-type", "must be %q, not %.64q", hostDetail, e.DetailType)
	}
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return h, fault.Malformed(err, "decode the detail of an EC2 event")
	}
	if detail.InstanceID == "" || detail.State == "" || e.Time.IsZero() {
		return h, fault.Field("detail", "must have instance-id, state and time")
	}
	return control.HostState{EC2InstanceID: detail.InstanceID, State: detail.State, At: e.Time}, nil
}
