// Package boot makes what the main of every Lambda needs, from its environment:
// settings, log, store, queue and metrics, put together as control.Control. It
// starts nothing. Only the mains under lambdas import it.
package boot

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"

	"github.com/longshore-run/longshore/internal/meter"
	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/lambdas/internal/metric"
	"github.com/longshore-run/longshore/lambdas/internal/sqsqueue"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/setting"
)

// Function is what a Lambda works with.
type Function struct {
	Control *control.Control
	Setting setting.Control
	Log     *slog.Logger
	// Queue is Control's, for what only mains send: messages put aside.
	Queue *sqsqueue.Queue
	// Store is Control's, for what only mains hand on: the images of its streams.
	Store *dynamostore.Store
	// AWS is for what else a function calls.
	AWS aws.Config
}

// callTimeout bounds one call of one AWS API, so that a connection that died
// while the function was frozen does not take its whole time.
const callTimeout = 5 * time.Second

// Start reads the environment through lookup (os.LookupEnv) and writes the log
// and metrics to out (os.Stdout).
func Start(ctx context.Context, lookup func(string) (string, bool), out io.Writer) (*Function, error) {
	var s setting.Control
	if err := setting.FromEnv(&s, lookup); err != nil {
		return nil, fmt.Errorf("read settings: %w", err)
	}
	// A stack for an emulator that was deployed into an account must not run there:
	// any machine could speak for any other.
	if at, _ := lookup("AWS_ENDPOINT_URL"); s.SenderFromBody && at == "" {
		return nil, errors.New("read settings: LONGSHORE_SENDER_FROM_BODY is for emulators, and AWS_ENDPOINT_URL names none: deploy without -c longshore:local=true")
	}
	client := awshttp.NewBuildableClient().WithTimeout(callTimeout)
	amazon, err := config.LoadDefaultConfig(ctx, config.WithRegion(s.Region), config.WithHTTPClient(client))
	if err != nil {
		return nil, fmt.Errorf("load AWS configuration: %w", err)
	}
	amazon.HTTPClient = transport.Client{HTTP: amazon.HTTPClient}
	log := newLog(out, s.LogLevel)
	amazon.APIOptions = append(amazon.APIOptions, meter.Log(log)...)
	queue, store := sqsqueue.New(amazon, s), dynamostore.New(amazon, Tables(s), time.Now)
	return &Function{
		Setting: s, Log: log, Queue: queue, Store: store, AWS: amazon,
		Control: &control.Control{
			Store:   store,
			Queue:   queue,
			Metrics: metric.New(out, s.StackName, time.Now),
			Log:     log, Now: time.Now, NewID: NewID, Setting: s,
			Fleet: &control.Fleet{},
		},
	}, nil
}

// Tables are the names of the tables, by role.
func Tables(s setting.Control) map[string]string {
	return map[string]string{
		schema.Tasks: s.TasksTable, schema.Instances: s.InstancesTable,
		schema.Leases: s.LeasesTable, schema.Catalog: s.CatalogTable,
	}
}

// NewID draws 32 lower-case hex digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails: the runtime ends the process instead
	return hex.EncodeToString(b[:])
}
