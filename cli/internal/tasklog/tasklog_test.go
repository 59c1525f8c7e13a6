package tasklog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/internal/transport"
)

const taskID = "0123456789abcdef0123456789abcdef"

func theTask() *types.Task {
	return &types.Task{TaskArn: aws.String("arn:aws:ecs:eu-west-1:1:task/default/" + taskID), ContainerInstanceArn: aws.String("x/i"),
		Containers: []types.Container{{Name: aws.String("main"), RuntimeId: aws.String("c0ffee")}}}
}

func awslogs(options map[string]string) *types.ContainerDefinition {
	return &types.ContainerDefinition{Name: aws.String("main"), LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: options}}
}

// watchLogs plays CloudWatch Logs: pages of one stream, then nothing new.
func watchLogs(t *testing.T, stream string, pages ...[]string) aws.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			LogGroupName, LogStreamName, NextToken string
			StartFromHead                          bool
		}
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &in); err != nil {
			t.Error(err)
		}
		if in.LogGroupName != "jobs" || in.LogStreamName != stream {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"ResourceNotFoundException","message":"no such stream"}`)
			return
		}
		at := 0
		_, _ = fmt.Sscanf(in.NextToken, "t%d", &at)
		events := []map[string]any{}
		if at < len(pages) {
			for i, line := range pages[at] {
				events = append(events, map[string]any{"message": line, "timestamp": 1767323045000 + i})
			}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"events": events, "nextForwardToken": fmt.Sprintf("t%d", min(at+1, len(pages)))})
	}))
	t.Cleanup(server.Close)
	return aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("A", "S", ""), HTTPClient: transport.Client{HTTP: http.DefaultClient}}
}

func noDocker(t *testing.T) { t.Helper(); t.Setenv("PATH", t.TempDir()) }

func TestCopy_ReadsEveryPageOfAStream(t *testing.T) {
	noDocker(t)
	cfg := watchLogs(t, "web/main/"+taskID, []string{"one", "two"}, []string{"three"})
	s, err := Of(t.Context(), cfg, theTask(), awslogs(map[string]string{"awslogs-group": "jobs", "awslogs-stream-prefix": "web"}), "host")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := s.Copy(t.Context(), &out, Want{}); err != nil || out.String() != "one\ntwo\nthree\n" {
		t.Errorf("%v: %q", err, out.String())
	}
	out.Reset()
	if err := s.Copy(t.Context(), &out, Want{Stamps: true}); err != nil || !strings.HasPrefix(out.String(), "2026-01-02T03:04:05Z one\n") {
		t.Errorf("%v: %q", err, out.String())
	}
}

func TestCopy_FollowsUntilTheContainerHasEndedAndIsReadOut(t *testing.T) {
	noDocker(t)
	cfg := watchLogs(t, "c0ffee", []string{"one"}, []string{"two"})
	s, err := Of(t.Context(), cfg, theTask(), awslogs(map[string]string{"awslogs-group": "jobs"}), "host")
	if err != nil {
		t.Fatal(err)
	}
	s.(*stream).every = time.Millisecond
	asked := 0
	var out strings.Builder
	err = s.Copy(t.Context(), &out, Want{Follow: true, Ended: func(context.Context) bool { asked++; return asked > 2 }})
	if err != nil || out.String() != "one\ntwo\n" || asked != 3 {
		t.Errorf("%v after %d: %q", err, asked, out.String())
	}
}

func TestCopy_OfAStreamThatIsNotThere(t *testing.T) {
	noDocker(t)
	cfg := watchLogs(t, "another")
	s, err := Of(t.Context(), cfg, theTask(), awslogs(map[string]string{"awslogs-group": "jobs"}), "host")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Copy(t.Context(), io.Discard, Want{}); exit.Code(err) != exit.NotFound {
		t.Errorf("%v", err)
	}
	s.(*stream).every = time.Millisecond
	if err := s.Copy(t.Context(), io.Discard, Want{Follow: true, Ended: func(context.Context) bool { return true }}); err != nil {
		t.Errorf("one that wrote nothing is followed to its end: %v", err)
	}
}

// engine puts a docker command into the path that knows one container.
func engine(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := `#!/bin/sh
case "$1 $*" in
"ps "*label=run.longshore.task=` + taskID + `*label=run.longshore.container=main*) echo newest; echo older ;;
"ps "*) ;;
"logs "*) echo "$*"; echo "to stderr" >&2 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

func TestOf_TheLocalEnginesContainerOfTheNewestAttempt(t *testing.T) {
	engine(t)
	s, err := Of(t.Context(), aws.Config{}, theTask(), &types.ContainerDefinition{Name: aws.String("main")}, "host")
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := s.Copy(t.Context(), &out, Want{Follow: true, Tail: 5, Stamps: true, Since: since}); err != nil {
		t.Fatal(err)
	}
	if out.String() != "logs --follow --timestamps --tail 5 --since 2026-01-02T03:04:05Z newest\nto stderr\n" {
		t.Errorf("%q", out.String())
	}
}

func TestOf_SaysWhereALogIsThatCanNotBeHad(t *testing.T) {
	noDocker(t)
	elsewhere := theTask()
	elsewhere.ContainerInstanceArn = nil
	fluent := &types.ContainerDefinition{Name: aws.String("main"), LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverFluentd}}
	for _, c := range []struct {
		task *types.Task
		def  *types.ContainerDefinition
		says string
	}{
		{theTask(), &types.ContainerDefinition{Name: aws.String("main")}, "on instance i-0abc, which is not this machine; there: docker logs $(docker ps -aqf label=run.longshore.task=" + taskID},
		{elsewhere, &types.ContainerDefinition{Name: aws.String("main")}, "has not been placed"},
		{theTask(), fluent, "driver fluentd"},
		{&types.Task{TaskArn: aws.String("x/1")}, awslogs(map[string]string{"awslogs-group": "jobs"}), "has not been started"},
		{theTask(), awslogs(nil), "no option awslogs-group"},
	} {
		if _, err := Of(t.Context(), aws.Config{}, c.task, c.def, "i-0abc"); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, want %s", err, c.says)
		}
	}
}
