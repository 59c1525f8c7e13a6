package role

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/shared/fault"
)

const arn = "arn:aws:iam::123456789012:role/longshore/reader"

// service is an STS that numbers what it gives.
type service struct {
	mu     sync.Mutex
	asked  []sts.AssumeRoleInput
	fails  error
	stalls bool
	skew   time.Duration // of its clock
}

func (s *service) AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, _ ...func(*sts.Options)) (*sts.AssumeRoleOutput, error) {
	s.mu.Lock()
	s.asked = append(s.asked, *in)
	n, fails, stalls := len(s.asked), s.fails, s.stalls
	s.mu.Unlock()
	time.Sleep(10 * time.Millisecond) // in the bubble's time: callers meet here
	if stalls {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if fails != nil {
		return nil, fails
	}
	end := time.Now().Add(s.skew).Add(time.Duration(*in.DurationSeconds) * time.Second)
	return &sts.AssumeRoleOutput{Credentials: &types.Credentials{
		AccessKeyId: aws.String(fmt.Sprint("key-", n)), SecretAccessKey: aws.String("secret"), SessionToken: aws.String("token"), Expiration: &end,
	}}, nil
}

func (s *service) set(fails error, stalls bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails, s.stalls = fails, stalls
}

func (s *service) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.asked)
}

func answer(code, message string) error {
	return fmt.Errorf("operation error STS: AssumeRole: %w", &smithy.GenericAPIError{Code: code, Message: message})
}

// bench runs a test in a bubble, whose time is ahead at once where everybody waits.
func bench(t *testing.T, test func(t *testing.T, api *service, s *Sessions)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		api := &service{}
		test(t, api, New(api, time.Now))
	})
}

func has(t *testing.T, s *Sessions, name, want string) {
	t.Helper()
	got, err := s.Credentials(t.Context(), arn, name)
	if err != nil || got.AccessKeyID != want {
		t.Fatalf("%s has %q, %v; want %s", name, got.AccessKeyID, err, want)
	}
}

func TestCredentials_AreAskedForOnceAndRenewedWellBeforeTheirEnd(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		has(t, s, "task-1", "key-1")
		in := api.asked[0]
		if *in.RoleArn != arn || *in.RoleSessionName != "task-1" || *in.DurationSeconds != 3600 {
			t.Errorf("asked for %s as %s for %d s", *in.RoleArn, *in.RoleSessionName, *in.DurationSeconds)
		}
		time.Sleep(39 * time.Minute)
		has(t, s, "task-1", "key-1")
		time.Sleep(time.Minute)
		has(t, s, "task-1", "key-2")
		has(t, s, "task-2", "key-3")
		has(t, s, "task-1", "key-2")
	})
}

func TestCredentials_AreForHalfAWorldWhoseClockIsWrongAsWell(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		for i, skew := range []time.Duration{-3 * time.Hour, 3 * time.Hour} {
			api.skew = skew
			name := fmt.Sprint("task-", i)
			has(t, s, name, fmt.Sprint("key-", 2*i+1))
			time.Sleep(30 * time.Minute)
			has(t, s, name, fmt.Sprint("key-", 2*i+1))
			time.Sleep(11 * time.Minute)
			has(t, s, name, fmt.Sprint("key-", 2*i+2))
		}
	})
}

// TestCredentials_EndOnAMachineThatHasSlept: its monotonic clock stood still meanwhile.
func TestCredentials_EndOnAMachineThatHasSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &service{}
		var slept time.Duration
		s := New(api, func() time.Time { return time.Now().Round(0).Add(slept) })
		has(t, s, "task-1", "key-1")
		slept = 8 * time.Hour
		has(t, s, "task-1", "key-2")
		slept = -2 * time.Hour // and its clock was set back
		has(t, s, "task-1", "key-2")
	})
}

func TestCredentials_ManyWhoAskShareOneQuestion(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		impatient, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.Credentials(impatient, arn, "task-1"); !fault.Is(err, fault.Unavailable) {
			t.Errorf("who left has %v", err)
		}
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { has(t, s, "task-1", "key-1") })
		}
		wg.Wait()
		if n := api.count(); n != 1 {
			t.Errorf("%d questions, want 1", n)
		}
	})
}

func TestCredentials_ErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		err  error
		want fault.Kind
	}{
		{answer("AccessDenied", "User: x is not authorized to perform: sts:AssumeRole"), fault.Denied},
		{answer("ValidationError", "1 validation error detected"), fault.Invalid},
		{answer("Throttling", "Rate exceeded"), fault.Unavailable},
		{answer("ExpiredToken", "The security token included in the request is expired"), fault.Unavailable},
		{answer("InternalFailure", "oops"), fault.Unavailable},
		{errors.New("dial tcp: connection refused"), fault.Unavailable},
	} {
		bench(t, func(t *testing.T, api *service, s *Sessions) {
			api.set(c.err, false)
			_, err := s.Credentials(t.Context(), arn, "task-1")
			if fault.Of(err) != c.want || !strings.Contains(err.Error(), arn) {
				t.Errorf("%v: %v, want %s and the role's name", c.err, err, c.want)
			}
			if c.want == fault.Denied && !strings.HasPrefix(err.Error(), "ECS was unable to assume the role '"+arn+"' that was provided for this task.") {
				t.Errorf("not in ECS's words: %v", err)
			}
			api.set(nil, false)
			time.Sleep(pause)
			has(t, s, "task-1", "key-2")
		})
	}
}

func TestCredentials_WhatCannotBeARoleIsInvalid(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		for _, c := range [][2]string{{"reader", "task-1"}, {"", "task-1"}, {arn, ""}, {arn, "a b"}, {arn, strings.Repeat("x", 65)}, {"arn:aws:iam::1:role/x", "task-1"}} {
			if _, err := s.Credentials(t.Context(), c[0], c[1]); !fault.Is(err, fault.Invalid) {
				t.Errorf("%q: %v", c, err)
			}
		}
		if api.count() != 0 {
			t.Error("STS was asked")
		}
	})
}

// TestCredentials_OldOnesAreKeptUntilTheyEnd has STS fail, or stall, for an hour.
func TestCredentials_OldOnesAreKeptUntilTheyEnd(t *testing.T) {
	for _, stalls := range []bool{false, true} {
		bench(t, func(t *testing.T, api *service, s *Sessions) {
			has(t, s, "task-1", "key-1")
			api.set(answer("AccessDenied", "no more"), stalls)
			for range 19 {
				time.Sleep(3 * time.Minute)
				began := time.Now()
				has(t, s, "task-1", "key-1")
				if took := time.Since(began); took > courtesy {
					t.Fatalf("good credentials took %s, longer than an SDK waits", took)
				}
			}
			time.Sleep(4 * time.Minute)
			if _, err := s.Credentials(t.Context(), arn, "task-1"); err == nil {
				t.Error("credentials that have ended are answered")
			}
			api.set(nil, false)
			time.Sleep(time.Minute)
			if got, err := s.Credentials(t.Context(), arn, "task-1"); err != nil || got.AccessKeyID == "key-1" {
				t.Errorf("afterwards: %s, %v", got.AccessKeyID, err)
			}
		})
	}
}

func TestCredentials_WhoAsksInALoopMakesFewQuestions(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		api.set(answer("AccessDenied", "no"), false)
		for range 600 {
			_, _ = s.Credentials(t.Context(), arn, "task-1")
			time.Sleep(50 * time.Millisecond)
		}
		if n := api.count(); n > 6 {
			t.Errorf("%d questions in half a minute", n)
		}
	})
}

func (s *Sessions) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

func TestDrop_ForgetsTheSessionsOfATask(t *testing.T) {
	bench(t, func(t *testing.T, api *service, s *Sessions) {
		has(t, s, "task-1", "key-1")
		has(t, s, "task-2", "key-2")
		s.Drop("task-1")
		if s.size() != 1 {
			t.Errorf("%d sessions are held, want 1", s.size())
		}
		has(t, s, "task-1", "key-3")
		go func() { _, _ = s.Credentials(t.Context(), arn, "task-3") }()
		synctest.Wait()
		s.Drop("task-3") // while it is asked for
		time.Sleep(time.Second)
		if s.size() != 2 {
			t.Errorf("%d sessions are held, want 2: an answer that came late is kept", s.size())
		}
		time.Sleep(2 * time.Hour)
		has(t, s, "task-4", "key-5")
		if s.size() != 1 {
			t.Errorf("%d sessions are held, want 1: what has ended goes", s.size())
		}
	})
}
