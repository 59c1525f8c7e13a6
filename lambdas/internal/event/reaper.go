package event

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	hostSource = "aws.ec2"
	hostDetail = "EC2 Instance State-change Notification"
	// restoreSource is a person's word, by longshore restore, that the tables were
	// restored; the event's time is since when.
	restoreSource = "longshore.restore"
)

// Reaper runs the reaper each minute, and takes the word of EC2 and Auto Scaling
// for the end of hosts.
type Reaper struct {
	Control interface {
		Tick(ctx context.Context) error
		IngestHostState(ctx context.Context, h control.HostState) error
		IngestInterruption(ctx context.Context, i control.Interruption) error
		IngestTermination(ctx context.Context, h control.Hook) error
		RaiseEpochs(ctx context.Context, since time.Time) (*control.Raised, error)
	}
	Metrics control.Metrics
	Log     *slog.Logger
}

// Handle takes one event of a rule, or a person's. An error makes Lambda try again,
// which is harmless: every run is safe to run twice. Only a person's has an answer.
func (r *Reaper) Handle(ctx context.Context, e events.CloudWatchEvent) (*control.Raised, error) {
	switch {
	case e.Source == hostSource || e.Source == groupSource:
		return nil, r.host(ctx, e)
	case e.Source == restoreSource && e.Time.IsZero():
		return nil, fault.Field("time", "must say since when the tables are restored")
	case e.Source == restoreSource:
		return r.Control.RaiseEpochs(ctx, e.Time)
	}
	return nil, r.Control.Tick(ctx)
}

func (r *Reaper) host(ctx context.Context, e events.CloudWatchEvent) error {
	ingest, err := r.read(e)
	if err != nil {
		r.Metrics.Count(countUndecodable, 1)
		r.Log.ErrorContext(ctx, "event dropped", logkey.Message, e.ID, logkey.Error, err)
		return nil
	}
	return ingest(ctx)
}

// read is what an event about a host comes to.
func (r *Reaper) read(e events.CloudWatchEvent) (ingest func(context.Context) error, err error) {
	switch {
	case e.Source == groupSource:
		h, err := termination(e)
		return func(ctx context.Context) error { return r.Control.IngestTermination(ctx, h) }, err
	case e.DetailType == warningDetail:
		i, err := interruption(e)
		return func(ctx context.Context) error { return r.Control.IngestInterruption(ctx, i) }, err
	}
	h, err := hostState(e)
	return func(ctx context.Context) error { return r.Control.IngestHostState(ctx, h) }, err
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
