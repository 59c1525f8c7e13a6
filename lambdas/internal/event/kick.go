package event

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"regexp"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	maxKickBytes = 8 * 1024
	maxKickTasks = 10
)

var (
	kickName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
	kickID   = regexp.MustCompile(`^[0-9a-f]{32}$`)
)

// decodeKick reads one kick strictly.
func decodeKick(body string) (k control.Kick, err error) {
	if len(body) > maxKickBytes {
		return k, fault.New(fault.Invalid, "kick has %d bytes; at most %d are allowed", len(body), maxKickBytes)
	}
	d := json.NewDecoder(bytes.NewReader([]byte(body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&k); err != nil {
		return k, fault.Malformed(err, "decode kick")
	}
	if _, err := d.Token(); err != io.EOF {
		return k, fault.New(fault.Invalid, "decode kick: something follows it")
	}
	switch {
	case !kickName.MatchString(k.Cluster):
		return k, fault.Field("cluster", "must be 1 to 255 letters, digits, underscores and hyphens")
	case k.Service != "" && !kickName.MatchString(k.Service):
		return k, fault.Field("service", "must be 1 to 255 letters, digits, underscores and hyphens")
	case k.Instance != "" && !kickID.MatchString(k.Instance):
		return k, fault.Field("instance", "must be 32 lower-case hex digits")
	case len(k.Tasks) > maxKickTasks:
		return k, fault.Field("tasks", "has %d entries; at most %d are allowed", len(k.Tasks), maxKickTasks)
	}
	for _, id := range k.Tasks {
		if !kickID.MatchString(id) {
			return k, fault.Field("tasks", "must be 32 lower-case hex digits each")
		}
	}
	return k, nil
}

// Admission runs admission for kicks.
type Admission struct {
	Control interface {
		Admit(ctx context.Context, k control.Kick) error
	}
	Dead    DeadLetters
	DeadURL string
	Metrics control.Metrics
	Log     *slog.Logger
}

// Handle runs one pass for each cluster that a batch of kicks names. It
// never fails: a failing batch would block its cluster for the queue's whole
// visibility timeout and take healthy kicks to the dead-letter queue with it.
// The sweep kicks again.
func (a *Admission) Handle(ctx context.Context, e events.SQSEvent) error {
	var kicks []control.Kick
	for _, m := range e.Records {
		k, err := decodeKick(m.Body)
		if err != nil {
			a.bury(ctx, m, err)
			continue
		}
		kicks = mergeKick(kicks, k)
	}
	for _, k := range kicks {
		err := guarded("admit", func() error { return a.Control.Admit(ctx, k) })
		if err != nil {
			a.Log.ErrorContext(ctx, "admission pass failed; the sweep kicks again", logkey.Cluster, k.Cluster, logkey.Error, err)
			continue
		}
		a.Log.InfoContext(ctx, "admission pass", logkey.Cluster, k.Cluster, logkey.Instance, k.Instance, logkey.Count, len(k.Tasks))
	}
	return nil
}

// bury puts a kick that can not be read aside. One that can not be put aside
// either is in the log alone: failing it would block its cluster.
func (a *Admission) bury(ctx context.Context, m events.SQSMessage, why error) {
	a.Metrics.Count(countUndecodable, 1)
	a.Log.ErrorContext(ctx, "kick put aside", logkey.Message, m.MessageId, logkey.Reason, why)
	if err := a.Dead.DeadLetter(ctx, a.DeadURL, letter(m), aboutLetter(m, why)); err != nil {
		a.Log.ErrorContext(ctx, "kick not put aside", logkey.Message, m.MessageId, "body", m.Body, logkey.Error, err)
	}
}

// mergeKick adds a kick to those of the same cluster: one pass reads everything
// that waits there, so it needs only the names that an index may not show.
func mergeKick(kicks []control.Kick, k control.Kick) []control.Kick {
	for i := range kicks {
		have := &kicks[i]
		if have.Cluster == k.Cluster {
			switch {
			case have.Instance == "":
				have.Instance = k.Instance
			case k.Instance != "" && k.Instance != have.Instance:
				have.Others = append(have.Others, k.Instance)
			}
			have.Tasks = append(have.Tasks, k.Tasks...)
			return kicks
		}
	}
	return append(kicks, k)
}
