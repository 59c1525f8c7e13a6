// Command services is the Lambda that keeps services at what their owners want: it
// is woken by the kicks of its queue. It only wires.
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
		fmt.Fprintln(os.Stderr, "services:", err)
		os.Exit(1)
	}
	h := &event.Services{Control: f.Control, Dead: f.Queue, DeadURL: f.Setting.ServicesDeadQueueURL, Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
