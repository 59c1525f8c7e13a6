// Command schedule is the Lambda that the rules of scheduled tasks wake: it makes
// the tasks of a run that is due, or notes that it is missed. It only wires.
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
		fmt.Fprintln(os.Stderr, "schedule:", err)
		os.Exit(1)
	}
	h := &event.Scheduled{Control: f.Control, Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
