package scalinggroup_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/scalinggroup"
	"github.com/longshore-run/longshore/shared/fault"
)

// played is Auto Scaling as far as its reference tells: members, terminations that
// wait, and the one code for what is not there.
type played struct {
	t        *testing.T
	waiting  map[string]bool
	requests []url.Values
	refusal  string // code of every answer
}

func (p *played) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := r.ParseForm(); err != nil {
		p.t.Error(err)
	}
	p.requests = append(p.requests, r.Form)
	refuse := func(status int, code, message string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `<ErrorResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><Error><Type>Sender</Type><Code>%s</Code><Message>%s</Message></Error><RequestId>r</RequestId></ErrorResponse>`, code, message)
	}
	action, token := r.Form.Get("Action"), r.Form.Get("LifecycleActionToken")
	switch {
	case p.refusal == "InternalFailure":
		refuse(http.StatusInternalServerError, p.refusal, "no")
	case p.refusal != "":
		refuse(http.StatusBadRequest, p.refusal, "no")
	case action == "SetInstanceHealth" && r.Form.Get("InstanceId") != "i-member":
		refuse(http.StatusBadRequest, "ValidationError", "Instance Id not found - No managed instance found for instance ID: "+r.Form.Get("InstanceId"))
	case action != "SetInstanceHealth" && !p.waiting[token]:
		refuse(http.StatusBadRequest, "ValidationError", "No active Lifecycle Action found with token "+token)
	default:
		if action == "CompleteLifecycleAction" {
			delete(p.waiting, token)
		}
		fmt.Fprintf(w, `<%[1]sResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><%[1]sResult/><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></%[1]sResponse>`, action)
	}
}

func play(t *testing.T) (*scalinggroup.Groups, *played) {
	t.Helper()
	p := &played{t: t, waiting: map[string]bool{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return scalinggroup.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient: transport.Client{HTTP: http.DefaultClient},
	}), p
}

func TestGroups_PassTheSuite(t *testing.T) {
	controltest.GroupsSuite(t, "i-member", func(t *testing.T) (control.Groups, func(control.Hook)) {
		g, p := play(t)
		return g, func(h control.Hook) { p.waiting[h.Token] = true }
	})
}

func TestGroups_SayWhichActionOfWhichHook(t *testing.T) {
	g, p := play(t)
	h := control.Hook{Group: "web-1", Name: "longshore", Token: "t1", EC2: "i-1"}
	p.waiting["t1"] = true
	for _, call := range []func() (bool, error){
		func() (bool, error) { return g.Extend(t.Context(), h) },
		func() (bool, error) { return g.Continue(t.Context(), h) },
		func() (bool, error) { return g.SetUnhealthy(t.Context(), "i-member") },
	} {
		if found, err := call(); err != nil || !found {
			t.Fatalf("%v %v", found, err)
		}
	}
	about := url.Values{"Version": {"2011-01-01"}, "AutoScalingGroupName": {"web-1"}, "LifecycleHookName": {"longshore"}, "LifecycleActionToken": {"t1"}, "InstanceId": {"i-1"}}
	extend, complete := url.Values{"Action": {"RecordLifecycleActionHeartbeat"}}, url.Values{"Action": {"CompleteLifecycleAction"}, "LifecycleActionResult": {"CONTINUE"}}
	for name, values := range about {
		extend[name], complete[name] = values, values
	}
	health := url.Values{"Action": {"SetInstanceHealth"}, "Version": {"2011-01-01"}, "InstanceId": {"i-member"}, "HealthStatus": {"Unhealthy"}, "ShouldRespectGracePeriod": {"false"}}
	for i, want := range []url.Values{extend, complete, health} {
		if got := p.requests[i]; got.Encode() != want.Encode() {
			t.Errorf("sent %s, not %s", got.Encode(), want.Encode())
		}
	}
}

func TestGroups_WhatFailedIsNotTakenForDone(t *testing.T) {
	for code, kind := range map[string]fault.Kind{
		"AccessDenied": fault.Denied, "ResourceContention": fault.Unavailable, "Throttling": fault.Unavailable,
		"InternalFailure": fault.Unavailable, "InvalidClientTokenId": fault.Internal,
	} {
		g, p := play(t)
		p.refusal = code
		if found, err := g.SetUnhealthy(t.Context(), "i-member"); found || !fault.Is(err, kind) {
			t.Errorf("%s: found %v, %v", code, found, err)
		}
	}
}

func TestGroups_WithoutAnAnswerNothingIsKnown(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	address := server.URL
	server.Close()
	g := scalinggroup.New(aws.Config{Region: "us-east-1", BaseEndpoint: &address, Credentials: credentials.NewStaticCredentialsProvider("k", "s", "")})
	if found, err := g.Continue(t.Context(), control.Hook{Group: "g", Name: "h", Token: "t", EC2: "i-1"}); found || !fault.Is(err, fault.Unavailable) {
		t.Errorf("found %v, %v", found, err)
	}
}
