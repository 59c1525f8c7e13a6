// Command events is the Lambda that the tables' streams wake: it publishes each
// committed state change to the stack's event bus, in ECS's shapes. It only wires.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/lambdas/internal/eventbus"
)

func main() {
	f, err := boot.Start(context.Background(), os.LookupEnv, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "events:", err)
		os.Exit(1)
	}
	f.Control.Shape = ecsapi.New(f.Control).Event
	f.Control.Bus = eventbus.New(f.AWS, f.Setting.EventBusName, nil)
	h := &event.Stream{Images: f.Store, Control: f.Control, Dead: f.Queue, DeadURL: f.Setting.EventsDeadQueueURL, Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
