package event

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/logkey"
)

// Services serves what kicks name: a service, or all those of a cluster.
type Services struct {
	Control interface {
		Serve(ctx context.Context, k control.Kick) error
	}
	Dead    DeadLetters
	DeadURL string
	Metrics control.Metrics
	Log     *slog.Logger
}

// Handle serves once for all kicks of a batch about the same. Only the messages of
// what could not be done come again; what can not be read is put aside at once.
func (s *Services) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	fail := func(m events.SQSMessage) {
		out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
	}
	var kicks []control.Kick
	var of [][]events.SQSMessage // the messages of each
	for _, m := range e.Records {
		k, err := decodeKick(m.Body)
		if err != nil {
			if s.bury(ctx, m, err) != nil {
				fail(m)
			}
			continue
		}
		at := sameService(kicks, k)
		if at == len(kicks) {
			kicks, of = append(kicks, control.Kick{Cluster: k.Cluster, Service: k.Service}), append(of, nil)
		}
		kicks[at].Tasks = append(kicks[at].Tasks, k.Tasks...)
		of[at] = append(of[at], m)
	}
	for i, k := range kicks {
		err := guarded("serve", func() error { return s.Control.Serve(ctx, k) })
		if err == nil {
			continue
		}
		s.Log.ErrorContext(ctx, "service not served", logkey.Cluster, k.Cluster, logkey.Service, k.Service, logkey.Count, len(of[i]), logkey.Error, err)
		for _, m := range of[i] {
			fail(m)
		}
	}
	return out, nil
}

// sameService is where the kick of the same service, or of the same whole cluster,
// is among kicks; their number if it is not.
func sameService(kicks []control.Kick, k control.Kick) int {
	for i, have := range kicks {
		if have.Cluster == k.Cluster && have.Service == k.Service {
			return i
		}
	}
	return len(kicks)
}

// bury puts a kick that can not be read aside, with why.
func (s *Services) bury(ctx context.Context, m events.SQSMessage, why error) error {
	s.Metrics.Count(countUndecodable, 1)
	s.Log.ErrorContext(ctx, "kick put aside", logkey.Message, m.MessageId, logkey.Reason, why)
	err := s.Dead.DeadLetter(ctx, s.DeadURL, letter(m), aboutLetter(m, why))
	if err != nil {
		s.Log.ErrorContext(ctx, "kick not put aside; it comes again", logkey.Message, m.MessageId, logkey.Error, err)
	}
	return err
}
