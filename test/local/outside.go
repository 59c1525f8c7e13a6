package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// outsideFile holds the endpoint of an emulator that this stack did not start.
const outsideFile = "outside"

// outside is the endpoint of an emulator of somebody else, or "".
func outside(dir string) string {
	text, _ := os.ReadFile(filepath.Join(dir, outsideFile))
	return string(text)
}

// removeOutside removes what was deployed into somebody else's emulator: the
// stack, and the command queues that registrations made.
func removeOutside(ctx context.Context, dir string) error {
	endpoint := outside(dir)
	if endpoint == "" {
		return nil
	}
	c := cloudformation.NewFromConfig(configOf(endpoint))
	if _, err := c.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: aws.String(StackName)}); err != nil {
		return fmt.Errorf("delete stack %s: %w", StackName, err)
	}
	err := cloudformation.NewStackDeleteCompleteWaiter(c, func(o *cloudformation.StackDeleteCompleteWaiterOptions) { o.MinDelay = time.Second }).Wait(ctx,
		&cloudformation.DescribeStacksInput{StackName: aws.String(StackName)}, 2*time.Minute)
	if err != nil {
		return fmt.Errorf("wait for stack %s to be gone: %w", StackName, err)
	}
	q := sqs.NewFromConfig(configOf(endpoint))
	pages := sqs.NewListQueuesPaginator(q, &sqs.ListQueuesInput{QueueNamePrefix: aws.String("longshore-cmd-"), MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return fmt.Errorf("list command queues: %w", err)
		}
		for _, u := range page.QueueUrls {
			if _, err := q.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &u}); err != nil {
				return fmt.Errorf("delete queue %s: %w", u, err)
			}
		}
	}
	if err := os.Remove(filepath.Join(dir, outsideFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
