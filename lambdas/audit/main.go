// Command audit is the Lambda that runs each night: it recomputes every ledger
// and every service's count from the tasks, and answers with what it found. It
// only wires.
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
		fmt.Fprintln(os.Stderr, "audit:", err)
		os.Exit(1)
	}
	h := &event.Audit{Control: f.Control, Log: f.Log}
	lambda.Start(h.Handle)
}
