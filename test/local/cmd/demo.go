package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// demo runs the main job: a stack comes up, the stock AWS CLI registers a task
// definition and runs it, each status is shown as it comes, all goes away.
func demo(ctx context.Context, root, dir string) (err error) {
	o, err := options(root, dir)
	if err != nil {
		return err
	}
	if err := ready(root, dir); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, down(dir)) }()
	s, err := local.Up(ctx, o)
	if err != nil {
		return err
	}
	fmt.Println("\nA task definition from examples/, registered and run by the stock AWS CLI:")
	if _, err := awsECS(ctx, s, root, "register-task-definition", "--cli-input-json", "file://"+filepath.Join("examples", "taskdefs", "12-minimal-and-defaults.json"),
		"--query", "taskDefinition.taskDefinitionArn", "--output", "text"); err != nil {
		return err
	}
	arn, err := awsECS(ctx, s, root, "run-task", "--cluster", local.Cluster, "--task-definition", "hello_minimal-1", "--query", "tasks[0].taskArn", "--output", "text")
	if err != nil {
		return err
	}
	task, err := follow(ctx, s, arn)
	if err != nil {
		return err
	}
	return verdict(ctx, s, task)
}

// awsECS runs the AWS CLI as a user would, and shows it.
func awsECS(ctx context.Context, s *local.Stack, root string, args ...string) (string, error) {
	cli := filepath.Join(root, ".tools", "venv", "bin", "aws")
	fmt.Println("  $ aws ecs", strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, cli, append([]string{"ecs", "--endpoint-url", s.API()}, args...)...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), s.Env()...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("aws ecs %s: %w", args[0], err)
	}
	text := strings.TrimSpace(string(out))
	fmt.Println("   ", text)
	return text, nil
}

// follow shows each status of a task as it comes, until it is STOPPED.
func follow(ctx context.Context, s *local.Stack, arn string) (*types.Task, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	client, begun, last := s.ECS(), time.Now(), ""
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	fmt.Println("\nIts life, as DescribeTasks tells it:\n  PROVISIONING  when RunTask answered")
	for {
		out, err := client.DescribeTasks(ctx, &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: []string{arn}})
		if err != nil {
			return nil, fmt.Errorf("describe the task: %w", err)
		}
		if len(out.Tasks) != 1 {
			return nil, fmt.Errorf("describe the task: %+v", out.Failures)
		}
		t := out.Tasks[0]
		if status := aws.ToString(t.LastStatus); status != last && status != "PROVISIONING" {
			last = status
			fmt.Printf("  %-12s  +%.2f s\n", status, time.Since(begun).Seconds())
			if status == "STOPPED" {
				return &t, nil
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the task is still %s (waiting for %s): %w", last, attribute(t, "longshore.waitingReason"), ctx.Err())
		case <-tick.C:
		}
	}
}

func attribute(t types.Task, name string) string {
	for _, a := range t.Attributes {
		if aws.ToString(a.Name) == name {
			return aws.ToString(a.Value)
		}
	}
	return "nothing"
}

// verdict shows how the task ended and that nothing is held for it any more.
func verdict(ctx context.Context, s *local.Stack, t *types.Task) error {
	for _, c := range t.Containers {
		fmt.Printf("  container %s: exit code %d, %s\n", aws.ToString(c.Name), aws.ToInt32(c.ExitCode), aws.ToString(t.StoppedReason))
		if aws.ToInt32(c.ExitCode) != 7 {
			return fmt.Errorf("exit code %d, want 7", aws.ToInt32(c.ExitCode))
		}
	}
	out, err := s.ECS().DescribeContainerInstances(ctx, &ecs.DescribeContainerInstancesInput{Cluster: aws.String(local.Cluster), ContainerInstances: []string{aws.ToString(t.ContainerInstanceArn)}})
	if err != nil {
		return err
	}
	for _, i := range out.ContainerInstances {
		for n, r := range i.RegisteredResources {
			if left := i.RemainingResources[n]; r.Type != nil && *r.Type == "INTEGER" {
				fmt.Printf("  %s: %d of %d free\n", aws.ToString(r.Name), left.IntegerValue, r.IntegerValue)
				if left.IntegerValue != r.IntegerValue {
					return fmt.Errorf("%s is still held", aws.ToString(r.Name))
				}
			}
		}
	}
	fmt.Println()
	return nil
}
