package installation

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// CommandQueues are the queues that registrations made, by URL: no template knows
// them, so they outlive the stack. start is what their names start with.
func CommandQueues(ctx context.Context, cfg aws.Config, start string) (urls []string, err error) {
	pages := sqs.NewListQueuesPaginator(sqs.NewFromConfig(cfg), &sqs.ListQueuesInput{QueueNamePrefix: &start, MaxResults: aws.Int32(1000)})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, fmt.Errorf("list the queues that start with %s: %w", start, err)
		}
		urls = append(urls, page.QueueUrls...)
	}
	return urls, nil
}

// RemoveQueues deletes queues; one that is gone is success.
func RemoveQueues(ctx context.Context, cfg aws.Config, urls []string) (removed int, err error) {
	c := sqs.NewFromConfig(cfg)
	for _, u := range urls {
		_, err := c.DeleteQueue(ctx, &sqs.DeleteQueueInput{QueueUrl: &u})
		if _, gone := errors.AsType[*types.QueueDoesNotExist](err); err != nil && !gone {
			return removed, fmt.Errorf("delete queue %s: %w", nameOf(u), err)
		}
		removed++
	}
	return removed, nil
}
