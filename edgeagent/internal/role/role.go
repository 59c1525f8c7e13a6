// Package role is sessions of IAM roles that the agent assumes with its own
// credentials for its tasks: each is asked for once, kept, renewed well before its
// end, and forgotten with its task. It stores nothing, and decides nothing about
// tasks. Only the agent's main imports it.
package role

import (
	"context"
	"errors"
	"regexp"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/longshore-run/longshore/shared/fault"
)

const (
	// lasts is how long a session is asked for: no role allows less, and role chaining
	// (the agent's own credentials are a role's) no more.
	lasts = time.Hour
	// renewAfter leaves more than SDKs in containers want to see: botocore asks for other
	// credentials when a quarter of an hour is left.
	renewAfter = lasts * 2 / 3
	// patience bounds one question to STS with its retries.
	patience = 15 * time.Second
	// courtesy is how long new credentials are waited for while old ones are good: SDKs in
	// containers wait for two seconds.
	courtesy = time.Second
	// pause is between two questions about one session that did not get an answer: a
	// container that asks in a loop does not make STS throttle its neighbours.
	pause = 5 * time.Second
)

// STS is what is asked of the service, by the SDK's name.
type STS interface {
	AssumeRole(ctx context.Context, in *sts.AssumeRoleInput, options ...func(*sts.Options)) (*sts.AssumeRoleOutput, error)
}

// Sessions are those of one agent. It is safe for concurrent use.
type Sessions struct {
	api STS
	now func() time.Time

	mu   sync.Mutex
	held map[key]*session
}

type key struct{ role, name string }

// session is one, as far as it is known. Its fields are under the lock of Sessions.
type session struct {
	credentials aws.Credentials
	began       time.Time     // when it was asked for, by this machine's clock; zero if there is none
	failed      error         // what STS answered last, if it did not give one
	failedAt    time.Time     // when
	asking      chan struct{} // closed once the question under way is over; nil if none is
}

// New makes sessions that are asked for with the client's credentials.
func New(api STS, now func() time.Time) *Sessions {
	return &Sessions{api: api, now: now, held: map[key]*session{}}
}

// Credentials are those of a session of the role; the name is what CloudTrail shows of
// it, and with the role what it is known by here. They are good for twenty minutes
// at least, while STS answers.
//
// Errors: Denied (STS says that this agent may not assume the role, or that there is
// none: it names the role), Invalid (the role or the name cannot be one), Unavailable
// (no answer: try again). Old credentials are answered until they have ended.
func (s *Sessions) Credentials(ctx context.Context, role, name string) (aws.Credentials, error) {
	if !roleARN.MatchString(role) {
		return aws.Credentials{}, fault.New(fault.Invalid, "role %q: it must be the ARN of an IAM role", role)
	}
	if !sessionName.MatchString(name) {
		return aws.Credentials{}, fault.New(fault.Invalid, "session %q of role %s: its name must be 2 to 64 letters, digits and _+=,.@-", name, role)
	}
	k := key{role, name}
	s.mu.Lock()
	one := s.entry(k)
	s.mu.Unlock()
	for {
		s.mu.Lock()
		now := s.now()
		have := one.age(now) < lasts
		switch {
		case one.age(now) < renewAfter, have && one.rests(now):
			defer s.mu.Unlock()
			return one.credentials, nil
		case one.rests(now):
			defer s.mu.Unlock()
			return aws.Credentials{}, one.failed
		case one.asking == nil:
			one.asking = make(chan struct{})
			go s.ask(context.WithoutCancel(ctx), k, one, now)
		}
		asking, old := one.asking, one.credentials
		s.mu.Unlock()
		var enough <-chan time.Time
		if have {
			enough = time.After(courtesy)
		}
		select {
		case <-asking:
		case <-enough:
			return old, nil
		case <-ctx.Done():
			return aws.Credentials{}, fault.Wrap(fault.Unavailable, ctx.Err(), "assume role %s", role)
		}
	}
}

var (
	roleARN     = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[\x21-\x7e]{1,640}$`)
	sessionName = regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
)

// Drop forgets all sessions of a name: its task has ended.
func (s *Sessions) Drop(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.held {
		if k.name == name {
			delete(s.held, k)
		}
	}
}

// entry is the session of a key. A new one makes room: what has ended and was not
// asked for again goes.
func (s *Sessions) entry(k key) *session {
	if one := s.held[k]; one != nil {
		return one
	}
	now := s.now()
	for other, one := range s.held {
		if one.asking == nil && one.age(now) >= lasts && !one.rests(now) {
			delete(s.held, other)
		}
	}
	one := &session{}
	s.held[k] = one
	return one
}

// ask puts the question, whether or not anybody still waits for the answer.
func (s *Sessions) ask(ctx context.Context, k key, one *session, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	out, err := s.api.AssumeRole(ctx, &sts.AssumeRoleInput{
		RoleArn: &k.role, RoleSessionName: &k.name, DurationSeconds: aws.Int32(int32(lasts / time.Second)),
	})
	if err == nil && (out.Credentials == nil || aws.ToString(out.Credentials.AccessKeyId) == "") {
		err = errors.New("the answer has no credentials")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	close(one.asking)
	one.asking = nil
	if err != nil {
		one.failed, one.failedAt = classify(err, k.role), s.now()
		return
	}
	one.began, one.failed, one.failedAt = began, nil, time.Time{}
	one.credentials = aws.Credentials{
		AccessKeyID: *out.Credentials.AccessKeyId, SecretAccessKey: aws.ToString(out.Credentials.SecretAccessKey),
		SessionToken: aws.ToString(out.Credentials.SessionToken), Source: "AssumeRole",
		CanExpire: true, Expires: aws.ToTime(out.Credentials.Expiration),
	}
}

// age is how old the credentials are, by whichever of this machine's clocks has gone
// further: it may have slept, and it may have been set. What STS says of their end is
// not compared with a clock that may be wrong.
func (o *session) age(now time.Time) time.Duration {
	if o.began.IsZero() {
		return lasts
	}
	return max(now.Sub(o.began), now.Round(0).Sub(o.began.Round(0)))
}

// rests says whether STS has failed so lately that it is not asked again yet.
func (o *session) rests(now time.Time) bool {
	return o.failed != nil && now.Sub(o.failedAt).Abs() < pause
}

// denials are answers that stay the same until somebody changes a policy.
var denials = map[string]bool{"AccessDenied": true, "AccessDeniedException": true, "NoSuchEntity": true, "RegionDisabledException": true}

func classify(err error, role string) error {
	text := "ECS was unable to assume the role '" + role + "' that was provided for this task. " +
		"Please verify that the role has the proper trust relationship and permissions"
	api, ok := errors.AsType[smithy.APIError](err)
	switch {
	case !ok:
		return fault.Wrap(fault.Unavailable, err, "assume role %s", role)
	case denials[api.ErrorCode()]:
		return fault.New(fault.Denied, "%s (%s: %s)", text, api.ErrorCode(), api.ErrorMessage())
	case api.ErrorCode() == "ValidationError":
		return fault.New(fault.Invalid, "%s (%s: %s)", text, api.ErrorCode(), api.ErrorMessage())
	}
	// The rest is throttling, a fault of the service, or of the agent's own credentials,
	// which are renewed.
	return fault.New(fault.Unavailable, "assume role %s: %s: %s", role, api.ErrorCode(), api.ErrorMessage())
}
