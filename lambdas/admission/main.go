// Command admission is the Lambda that gives waiting tasks their instances: it
// is woken by the kicks of its FIFO queue, one cluster a message group. It only
// wires.
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
		fmt.Fprintln(os.Stderr, "admission:", err)
		os.Exit(1)
	}
	h := &event.Admission{Control: f.Control, Dead: f.Queue, DeadURL: f.Setting.AdmissionDeadQueueURL, Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
