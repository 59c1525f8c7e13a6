// Command reaper is the Lambda that runs each minute: it sweeps what was lost,
// judges leases, reaps the silent and goes on with closings; and it takes EC2's
// word for the end of hosts, and tells Auto Scaling groups of them. It only wires.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/lambdas/internal/scalinggroup"
)

func main() {
	f, err := boot.Start(context.Background(), os.LookupEnv, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "reaper:", err)
		os.Exit(1)
	}
	if len(f.Setting.AutoScalingGroups) > 0 {
		f.Control.Groups = scalinggroup.New(f.AWS)
	}
	h := &event.Reaper{Control: f.Control, Metrics: f.Control.Metrics, Log: f.Log}
	lambda.Start(h.Handle)
}
