//go:build docker

package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// waiting is STS, SSM and Secrets Manager, which may leave one question unanswered.
type waiting struct {
	rest http.Handler // what else is asked for
	mu   sync.Mutex
	hold string
	held chan struct{}
}

// at has the next question of a kind wait for as long as there is somebody who asks.
func (w *waiting) at(kind string) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hold, w.held = kind, make(chan struct{})
	return w.held
}

func (w *waiting) ServeHTTP(out http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, kind, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if form, err := url.ParseQuery(string(body)); kind == "" && err == nil {
		kind = form.Get("Action")
	}
	w.mu.Lock()
	held := w.held
	hit := w.hold != "" && w.hold == kind
	if hit {
		w.hold = ""
	}
	w.mu.Unlock()
	if hit {
		close(held)
		<-r.Context().Done()
		return
	}
	out.Header().Set("Content-Type", "application/x-amz-json-1.1")
	switch kind {
	case "AssumeRole":
		out.Header().Set("Content-Type", "text/xml")
		fmt.Fprintf(out, `<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleResult><Credentials><AccessKeyId>CANARYKEY</AccessKeyId>`+
			`<SecretAccessKey>CANARY-key</SecretAccessKey><SessionToken>CANARY-token</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
			time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	case "GetParameters":
		fmt.Fprint(out, `{"Parameters": [{"Name": "/prod/key", "ARN": "arn:aws:ssm:us-east-1:000000000000:parameter/prod/key", "Value": "CANARY-p"}], "InvalidParameters": []}`)
	case "GetSecretValue":
		fmt.Fprint(out, `{"ARN": "arn:aws:secretsmanager:us-east-1:000000000000:secret:db-AbCdEf", "SecretString": "CANARY-s"}`)
	default:
		r.Body = io.NopCloser(bytes.NewReader(body))
		w.rest.ServeHTTP(out, r)
	}
}

// A real agent is killed while it waits for a role's session, for a parameter and for
// a secret. The next one reads anew; the container is made once, with what was read,
// and no value is in a file of the agent's or in its log.
func TestProgram_KilledWhileItReadsSecretsKeepsNoneAndStartsTheTaskOnce(t *testing.T) {
	p := newProgram(t)
	services := &waiting{}
	for _, e := range p.env {
		if at, ok := strings.CutPrefix(e, "AWS_ENDPOINT_URL="); ok {
			to, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			services.rest = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
		}
	}
	server := httptest.NewServer(services)
	t.Cleanup(server.Close)
	for _, name := range []string{"STS", "SSM", "SECRETS_MANAGER"} {
		p.env = append(p.env, "AWS_ENDPOINT_URL_"+name+"="+server.URL)
	}
	r := p.welcomed()
	runs := t.TempDir()
	c := p.container("app", `echo run >> /runs/1; case "$KEY$PASSWORD" in C*Y-pC*Y-s) ;; *) exit 6; esac; `+goesOn)
	c.MountPoints = []taskdef.MountPoint{{SourceVolume: "runs", ContainerPath: "/runs"}}
	c.Secrets = []taskdef.Secret{{Name: "KEY", ValueFrom: "/prod/key"}, {Name: "PASSWORD", ValueFrom: "arn:aws:secretsmanager:us-east-1:000000000000:secret:db-AbCdEf"}}
	spec := taskdef.Spec{
		Family: "program", NetworkMode: taskdef.NetworkNone, ExecutionRoleArn: "arn:aws:iam::000000000000:role/longshore/reader",
		ContainerDefinitions: []taskdef.ContainerDefinition{c}, Volumes: []taskdef.Volume{{Name: "runs", Host: &taskdef.HostVolume{SourcePath: runs}}},
	}
	last := r.Session
	for n, kind := range []string{"AssumeRole", "GetParameters", "GetSecretValue"} {
		asked := services.at(kind)
		if n == 0 {
			p.assignSpec(1, spec)
		} else {
			last = p.welcomedAgain(r, last).Session
		}
		select {
		case <-asked:
		case <-time.After(60 * time.Second):
			t.Fatalf("nobody asked for %s", kind)
		}
		p.signal(syscall.SIGKILL)
	}
	p.welcomedAgain(r, last)
	p.status(1, task.Running)
	p.send(&wire.Stop{Header: wire.Header{Instance: p.instance}, Task: taskID(1), Attempt: 1})
	end := p.status(1, task.Stopped)
	if c := end.Containers[0]; c.ExitCode == nil || *c.ExitCode != 5 {
		t.Errorf("it ended as %+v", end)
	}
	if text, err := os.ReadFile(filepath.Join(runs, "1")); err != nil || string(text) != "run\n" {
		t.Errorf("it ran so often: %q, %v", text, err)
	}
	p.send(&wire.Ack{Header: wire.Header{Instance: p.instance}, Task: taskID(1), Attempt: 1})
	p.await("everything to be removed", func() bool {
		list, err := p.engine.List(t.Context())
		return err == nil && len(list) == 0
	})
	if code := p.signal(syscall.SIGTERM); code != exitOK {
		t.Errorf("SIGTERM ended it with %d", code)
	}
	p.oneEndEach()
	searched := 0
	err := filepath.WalkDir(p.dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || file == p.binary {
			return err
		}
		searched++
		text, err := os.ReadFile(file)
		if bytes.Contains(text, []byte("CANARY")) {
			t.Errorf("a secret is in %s", file)
		}
		return err
	})
	if err != nil || searched < 2 {
		t.Errorf("%d files were looked into: %v", searched, err)
	}
}
