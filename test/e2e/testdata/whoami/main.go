// Command whoami runs in the containers of the end-to-end tests: what a program sees
// there that uses the AWS SDK as anybody does, and the network as a thief would. It
// stands in testdata, so that it is no part of what ships.
package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

func main() {
	switch verb := os.Args[1]; verb {
	case "ask": // AWS who one is, again and again, each time as a new program would
		for n := 1; ; n++ {
			fmt.Println(n, ask(context.Background()))
			time.Sleep(300 * time.Millisecond)
		}
	case "get": // some URLs, once each
		for _, url := range os.Args[2:] {
			fmt.Println(get(url))
		}
	case "metadata":
		base := os.Getenv("ECS_CONTAINER_METADATA_URI_V4")
		for _, path := range []string{"", "/task", "/stats", "/task/stats"} {
			fmt.Println(get(base + path))
		}
	case "serve": // in place of the instance metadata service
		l, err := net.Listen("tcp4", os.Args[2])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("ready")
		fmt.Println(http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the machine's own role") })))
	}
}

func ask(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err.Error()
	}
	who, err := sts.NewFromConfig(cfg).GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return err.Error()
	}
	return aws.ToString(who.Arn)
}

func get(url string) string {
	client := &http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%d %s", answer.StatusCode, body)
}
