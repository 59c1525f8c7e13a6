// Command services is the Lambda that the kicks of services wake. Nothing keeps
// a service at its count yet: kicks are read strictly, counted and done with, so
// that those who send them need not know. It only wires.
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
	h := &event.Services{Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
