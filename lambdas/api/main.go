// Command api is the Lambda behind the Function URL: the ECS API. With
// LONGSHORE_READ_ONLY it is readapi, which refuses whatever changes something;
// its role could not do it either.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/longshore-run/longshore/lambdas/internal/boot"
	"github.com/longshore-run/longshore/lambdas/internal/ecsapi"
)

func main() {
	f, err := boot.Start(context.Background(), os.LookupEnv, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		os.Exit(1)
	}
	lambda.Start(ecsapi.New(f.Control).Function)
}
