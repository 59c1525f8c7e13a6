package control

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
)

const (
	maxCount = 10
	maxToken = 64
	// tokenLife is how long a client token holds on to its request.
	tokenLife = 24 * time.Hour
	// undecidedFor is how long a request that was cut off may still be finished
	// by its repetition.
	undecidedFor = 15 * time.Minute
)

// RunTaskRequest asks for tasks that wait for room, or for an answer at once
// where their tags say so.
type RunTaskRequest struct {
	TaskRequest
	Count int    `json:"count"`
	Token string `json:"-"` // makes the request idempotent, if not empty
}

// Run is what RunTask and StartTask made, and what they could not.
type Run struct {
	Tasks    []TaskView
	Failures []Failure
}

// Failure is one thing of many that a call could not do.
type Failure struct {
	ARN    string
	Reason string // in ECS's words: MISSING, INACTIVE, RESOURCE:MEMORY …
	Detail string
}

const (
	reasonMissing  = "MISSING"
	reasonInactive = "INACTIVE"
	// reasonUnavailable is ours: the store could not be asked.
	reasonUnavailable = "UNAVAILABLE"
)

func (r *RunTaskRequest) check() error {
	if r.Count < 1 || r.Count > maxCount {
		return invalid("count", "is %d; 1 to %d are allowed", r.Count, maxCount)
	}
	if err := checkToken(r.Token); err != nil {
		return err
	}
	return r.TaskRequest.check()
}

func checkToken(token string) error {
	if len(token) > maxToken {
		return invalid("clientToken", "has %d characters; at most %d are allowed", len(token), maxToken)
	}
	for _, b := range []byte(token) {
		if b < 33 || b > 126 {
			return invalid("clientToken", "holds byte %d; 33 to 126 are allowed", b)
		}
	}
	return nil
}

// hash tells one request from another.
func (r *RunTaskRequest) hash() string { return hashOf(r) }

// hashOf tells one request from another.
func hashOf(request any) string {
	b, err := json.Marshal(request)
	if err != nil {
		panic("control: hash of a request: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// RunTask writes tasks that wait for room, with their client token in one
// transaction, and wakes admission. Tasks that are not to wait are decided here.
func (c *Control) RunTask(ctx context.Context, r RunTaskRequest) (*Run, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	var o *origin
	var tasks []*Task
	token := &Token{Scope: "RunTask#" + r.Cluster, Token: r.Token}
	err := c.decide(ctx, "run task", func() (writes []Write, err error) {
		tasks = nil
		o, err = c.originOf(ctx, &r.TaskRequest, r.tokenOf(token), r.hash())
		if o == nil || err != nil {
			return nil, err
		}
		token.Request, token.ExpiresAt, token.IDs = r.hash(), c.Now().Add(tokenLife), nil
		token.Undecided, token.Failures = o.task.NoWait, nil
		for range r.Count {
			t := o.with(c.NewID())
			token.IDs = append(token.IDs, t.ID)
			tasks = append(tasks, t)
			if !t.NoWait {
				writes = append(writes, Put(t))
			}
		}
		if r.Token != "" {
			writes = append(writes, Put(token))
		}
		return writes, nil
	})
	switch {
	case err != nil:
		return nil, err
	case token.Undecided:
		return c.runNow(ctx, &r, token)
	case o == nil:
		return c.replay(ctx, r.Cluster, token)
	}
	c.kick(ctx, Kick{Cluster: r.Cluster, Tasks: token.IDs})
	return &Run{Tasks: viewsOf(o, tasks)}, nil
}

// tokenOf is the token's record, nil for a request without one.
func (r *RunTaskRequest) tokenOf(token *Token) *Token {
	if r.Token == "" {
		return nil
	}
	return token
}

// known says whether a client token, as loaded, stands for this request.
func (c *Control) known(token *Token, hash string) (bool, error) {
	switch {
	case token.Version == 0 || expired(token.ExpiresAt, c.Now()):
		return false, nil
	case token.Request != hash:
		var arns []string
		for _, id := range token.IDs {
			arns = append(arns, c.TaskARN(token.cluster(), id))
		}
		return false, tokenReused(arns)
	}
	return true, nil
}

func (r *Token) cluster() string { return r.Scope[len("RunTask#"):] }

// replay answers a repeated request as the first time, as its tasks now are. The
// kick is sent again: the first answer may have been lost before it.
func (c *Control) replay(ctx context.Context, cluster string, token *Token) (*Run, error) {
	tasks := tasksOf(token.IDs)
	if err := load(ctx, c.Store, tasks); err != nil {
		return nil, fmt.Errorf("run task again: %w", err)
	}
	run := &Run{}
	var waiting []string
	var found []*Task
	for _, t := range tasks {
		switch reason, failed := token.Failures[t.ID]; {
		case failed:
			run.fail(c.TaskARN(cluster, t.ID), reason)
		case t.Version == 0:
			run.fail(c.TaskARN(cluster, t.ID), reasonMissing)
		default:
			found = append(found, t)
			if t.LastStatus == task.Provisioning {
				waiting = append(waiting, t.ID)
			}
		}
	}
	if len(waiting) > 0 {
		c.kick(ctx, Kick{Cluster: cluster, Tasks: waiting})
	}
	var err error
	run.Tasks, err = c.views(ctx, found)
	return run, err
}

func (r *Run) fail(arn, reason string) {
	r.Failures = append(r.Failures, Failure{ARN: arn, Reason: reason, Detail: reasonDetails[reason]})
}

// reasonDetails explain the reasons that ECS does not have.
var reasonDetails = map[string]string{
	placement.ReasonDistinct: "Every instance with room runs a task of this group already, and each is to be on an instance of its own.",
	placement.ReasonEarmark:  "The room there is is kept for a task that has waited long.",
	placement.ReasonRefused:  "The instance that has room refused such a task lately.",
	placement.ReasonInternal: "The task could not be judged; the log of this installation says why.",
	reasonUnavailable:        "The instance could not be asked; try again.",
}

// runNow decides each task of a token that is not decided yet: it is stored as
// admitted or not at all. An interrupted request is finished by its repetition,
// unless that comes so late that a task may have run and been forgotten.
func (c *Control) runNow(ctx context.Context, r *RunTaskRequest, token *Token) (*Run, error) {
	if c.Now().Sub(token.ExpiresAt.Add(-tokenLife)) > undecidedFor {
		return c.replay(ctx, r.Cluster, token)
	}
	o, err := c.originOf(ctx, &r.TaskRequest, nil, "")
	if err != nil {
		return nil, err
	}
	if err := c.mustHaveInstances(ctx, r.Cluster); err != nil {
		return nil, err
	}
	tasks := tasksOf(token.IDs)
	if err := load(ctx, c.Store, tasks); err != nil {
		return nil, fmt.Errorf("run task: %w", err)
	}
	run := &Run{}
	var placed []*Task
	failures := map[string]string{}
	for _, t := range tasks {
		if t.Version == 0 {
			t = o.with(t.ID)
			reason, err := c.AdmitNow(ctx, t)
			if err != nil {
				return nil, err
			}
			if reason != "" {
				failures[t.ID] = reason
				run.fail(c.TaskARN(r.Cluster, t.ID), reason)
				continue
			}
		}
		placed = append(placed, t)
	}
	if r.Token != "" {
		token.Undecided, token.Failures = false, failures
		if err := c.Store.Commit(ctx, Put(token)); fault.Is(err, fault.Conflict) {
			return nil, fault.Wrap(fault.Unavailable, err, "the same request is being answered elsewhere")
		} else if err != nil {
			return nil, fmt.Errorf("run task: %w", err)
		}
	}
	run.Tasks, err = c.views(ctx, placed)
	return run, err
}

// mustHaveInstances refuses work that is not to wait in a cluster that has
// nowhere to put it. One that is INACTIVE is remembered, and is none.
func (c *Control) mustHaveInstances(ctx context.Context, cluster string) error {
	for after := ""; ; {
		ids, next, err := c.Store.InstanceIDs(ctx, cluster, Page{After: after, Limit: walkPage})
		if err != nil {
			return err
		}
		ledgers := make([]*Ledger, len(ids))
		for i, id := range ids {
			ledgers[i] = &Ledger{ID: id}
		}
		if err := load(ctx, c.Store, ledgers); err != nil {
			return err
		}
		if slices.ContainsFunc(ledgers, func(l *Ledger) bool { return l.Version > 0 && l.Cluster == cluster && l.Status != Inactive }) {
			return nil
		}
		if after = next; next == "" {
			return fault.New(fault.Invalid, "No Container Instances were found in your cluster.").WithCode(InvalidParameterException)
		}
	}
}
