// Command statechange is the Lambda that takes in what agents send, from two
// queues: reports, refusals and registrations from one; heartbeats, and the
// reaper's probes, from the other. It only wires.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/event"
)

func main() {
	f, err := boot.Start(context.Background(), os.LookupEnv, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "statechange:", err)
		os.Exit(1)
	}
	h := &event.Statechange{Control: f.Control, Dead: f.Queue, Metrics: f.Control.Metrics, Log: f.Log, Setting: f.Setting}
	lambda.Start(h.Handle)
}
