// Package tasklog reads what a task's container wrote, where that can be had:
// from CloudWatch Logs (driver awslogs), or from the Docker engine of this
// machine if it has the container. For others it says where the log is. Packages
// of the command import it.
package tasklog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	cwltypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/exit"
)

// Want is what of a log is wanted.
type Want struct {
	Follow bool
	Since  time.Time // zero for all
	Tail   int       // last lines only; 0 for all
	Stamps bool
	// Ended says whether the container has ended: a log that is followed is then
	// read to its end and no further.
	Ended func(context.Context) bool
}

// Source is where a container's log is.
type Source interface {
	// Copy writes the log to w until its end, or while Follow wants it.
	Copy(ctx context.Context, w io.Writer, want Want) error
	String() string
}

// Of finds the source of a container of a task; host is what people call its
// instance. The error of a log that can not be had says where it is.
func Of(ctx context.Context, cfg aws.Config, t *types.Task, c *types.ContainerDefinition, host string) (Source, error) {
	id := aws.ToString(t.TaskArn)
	id = id[strings.LastIndexByte(id, '/')+1:]
	name := aws.ToString(c.Name)
	driver := "json-file"
	if c.LogConfiguration != nil {
		driver = string(c.LogConfiguration.LogDriver)
	}
	if driver == "awslogs" {
		return cloudWatch(cfg, t, c, id)
	}
	if container := onThisEngine(ctx, id, name); container != "" {
		return docker(container), nil
	}
	if t.ContainerInstanceArn == nil {
		return nil, exit.New(exit.NotFound, "see why it waits: longshore queue", "task %s has not been placed, so container %s has written nothing", short(id), name)
	}
	if driver != "json-file" && driver != "local" && driver != "journald" {
		return nil, exit.New(exit.NotFound, "look there", "container %s logs with the driver %s", name, driver)
	}
	return nil, exit.New(exit.NotFound,
		fmt.Sprintf("there: docker logs $(docker ps -aqf label=%s=%s -f label=%s=%s); or use the driver awslogs", labelTask, id, labelContainer, name),
		"the log of container %s is on instance %s, which is not this machine", name, host)
}

func short(id string) string { return id[:min(len(id), 12)] }

// The labels by which the agent's engine names its containers.
const (
	labelTask      = "run.longshore.task"
	labelContainer = "run.longshore.container"
)

// onThisEngine is the id of a task's container on the local engine, or "".
func onThisEngine(ctx context.Context, task, name string) string {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "docker", "ps", "-aq", "--no-trunc", "--filter", "label="+labelTask+"="+task, "--filter", "label="+labelContainer+"="+name).Output()
	if err != nil { // no docker here, or no right to it
		return ""
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n") // the newest attempt
	return first
}

type docker string

func (d docker) String() string { return "the Docker engine of this machine" }

func (d docker) Copy(ctx context.Context, w io.Writer, want Want) error {
	args := []string{"logs"}
	if want.Follow {
		args = append(args, "--follow")
	}
	if want.Stamps {
		args = append(args, "--timestamps")
	}
	if want.Tail > 0 {
		args = append(args, "--tail", strconv.Itoa(want.Tail))
	}
	if !want.Since.IsZero() {
		args = append(args, "--since", want.Since.UTC().Format(time.RFC3339))
	}
	cmd := exec.CommandContext(ctx, "docker", append(args, string(d))...)
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Run(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("docker logs: %w", err)
	}
	return ctx.Err()
}

// stream is a container's stream in CloudWatch Logs.
type stream struct {
	client        *cloudwatchlogs.Client
	group, stream string
	every         time.Duration
}

func cloudWatch(cfg aws.Config, t *types.Task, c *types.ContainerDefinition, id string) (Source, error) {
	o := c.LogConfiguration.Options
	s := &stream{group: o["awslogs-group"], every: 2 * time.Second}
	if prefix := o["awslogs-stream-prefix"]; prefix != "" {
		s.stream = prefix + "/" + aws.ToString(c.Name) + "/" + id
	} else {
		for _, k := range t.Containers { // the driver names it after the container then
			if aws.ToString(k.Name) == aws.ToString(c.Name) {
				s.stream = aws.ToString(k.RuntimeId)
			}
		}
		if s.stream == "" {
			return nil, exit.New(exit.NotFound, "try again when it runs", "container %s has not been started, so its log stream has no name yet", aws.ToString(c.Name))
		}
	}
	if s.group == "" {
		return nil, exit.New(exit.Failed, "set it in the task definition", "container %s has no option awslogs-group", aws.ToString(c.Name))
	}
	s.client = cloudwatchlogs.NewFromConfig(cfg, func(l *cloudwatchlogs.Options) { l.Region = cmp.Or(o["awslogs-region"], l.Region) })
	return s, nil
}

func (s *stream) String() string { return "CloudWatch Logs, group " + s.group + ", stream " + s.stream }

func (s *stream) Copy(ctx context.Context, w io.Writer, want Want) error {
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: &s.group, LogStreamName: &s.stream, StartFromHead: aws.Bool(want.Tail == 0)}
	if !want.Since.IsZero() {
		in.StartTime = aws.Int64(want.Since.UnixMilli())
	}
	if want.Tail > 0 {
		in.Limit = aws.Int32(int32(min(want.Tail, 10_000)))
	}
	tick := time.NewTicker(s.every)
	defer tick.Stop()
	last := false // the container had ended before this reading
	for {
		more, err := s.read(ctx, w, in, want)
		if err != nil {
			return err
		}
		in.Limit = nil
		if more {
			continue
		}
		if !want.Follow || last {
			return nil
		}
		last = want.Ended != nil && want.Ended(ctx)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// read writes one page, and says whether there may be another at once. A stream
// that is not there yet is empty while it is followed.
func (s *stream) read(ctx context.Context, w io.Writer, in *cloudwatchlogs.GetLogEventsInput, want Want) (more bool, err error) {
	out, err := s.client.GetLogEvents(ctx, in)
	if _, missing := errors.AsType[*cwltypes.ResourceNotFoundException](err); missing {
		if want.Follow {
			return false, nil
		}
		return false, exit.New(exit.NotFound, "a container that wrote nothing has none; did the agent's role get rights to CloudWatch Logs?", "there is no log stream %s in group %s", s.stream, s.group)
	}
	if err != nil {
		return false, fmt.Errorf("read %s: %w", s, err)
	}
	for _, e := range out.Events {
		line := aws.ToString(e.Message)
		if want.Stamps {
			line = time.UnixMilli(aws.ToInt64(e.Timestamp)).UTC().Format(time.RFC3339Nano) + " " + line
		}
		if _, err := io.WriteString(w, strings.TrimRight(line, "\n")+"\n"); err != nil {
			return false, err
		}
	}
	same := aws.ToString(out.NextForwardToken) == aws.ToString(in.NextToken) // AWS's sign of the end
	in.NextToken, in.StartFromHead = out.NextForwardToken, aws.Bool(true)
	return want.Tail == 0 && !same && out.NextForwardToken != nil, nil
}
