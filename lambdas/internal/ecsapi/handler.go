// Package ecsapi speaks the ECS API, JSON 1.1, in front of the use cases of
// package control: it reads requests strictly, calls one use case each, and
// writes answers and errors in ECS's shapes. It decides nothing about tasks and
// stores nothing. Mains and tests may import it.
//
// Each of ECS's operations stands in the table of operation.go: done, or refused
// by name. What a request asks for and Longshore does not do is refused with the
// member's name; nothing is dropped silently.
package ecsapi

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	targetPrefix = "AmazonEC2ContainerServiceV20141113."
	contentType  = "application/x-amz-json-1.1"
	// maxBody bounds a request: the largest task definition with room for white space.
	maxBody = 256 * 1024
)

// Handler answers requests. It is safe for concurrent use.
type Handler struct {
	control *control.Control
	log     *slog.Logger
}

// New is a handler over the use cases. Settings of theirs say whether it only reads.
func New(c *control.Control) *Handler { return &Handler{control: c, log: c.Log} }

// call is one request, whatever brought it.
type call struct {
	id     string
	method string
	target string
	body   []byte
	caller string
	// endpoint is where the call came in, as a URL.
	endpoint string
}

// answer is the response to a call.
type answer struct {
	status int
	id     string
	body   []byte
}

func (h *Handler) serve(ctx context.Context, q *call) *answer {
	start := h.control.Now()
	name, body, err := h.answer(ctx, q)
	a := &answer{status: http.StatusOK, id: q.id}
	result := "OK"
	if err != nil {
		x := exceptionOf(err)
		a.status, result = x.status, x.Type
		body = x
		if x.status >= http.StatusInternalServerError {
			h.log.ErrorContext(ctx, "call failed", logkey.Operation, name, logkey.RequestID, q.id, logkey.Error, err)
		}
	}
	if a.body, err = json.Marshal(body); err != nil {
		h.log.ErrorContext(ctx, "answer not written", logkey.Operation, name, logkey.RequestID, q.id, logkey.Error, err)
		a.status, a.body, result = http.StatusInternalServerError, []byte(`{"__type":"ServerException","message":"the answer could not be written"}`), serverException
	}
	h.audit(ctx, q, name, result, h.control.Now().Sub(start))
	return a
}

// audit leaves one line for each call: who asked for what, and what came of it.
func (h *Handler) audit(ctx context.Context, q *call, operation, result string, took time.Duration) {
	h.log.InfoContext(ctx, "api call",
		logkey.Operation, operation, logkey.Caller, q.caller, logkey.Result, result,
		logkey.Duration, took.String(), logkey.RequestID, q.id)
}

func (h *Handler) answer(ctx context.Context, q *call) (name string, body any, err error) {
	defer func() {
		if p := recover(); p != nil {
			h.log.ErrorContext(ctx, "panic", logkey.Operation, name, logkey.RequestID, q.id, logkey.Error, fmt.Sprint(p), "stack", string(debug.Stack()))
			body, err = nil, fault.New(fault.Internal, "panic: %v", p)
		}
	}()
	name, op, known := find(q.target)
	switch {
	case q.method != http.MethodPost:
		return "", nil, &exception{status: http.StatusMethodNotAllowed, Type: control.ClientException, Message: fmt.Sprintf("method %.20q is not allowed; send POST", q.method)}
	case !known:
		return "", nil, unknownOperation("X-Amz-Target: %.100q names no operation of ECS; it must be %s and the operation's name", q.target, targetPrefix)
	case op == nil:
		return name, nil, notDone(name)
	case h.control.Setting.ReadOnly && !reads(name):
		return name, nil, fault.New(fault.Denied, "%s changes something, and this endpoint only reads", name)
	case len(q.body) > maxBody:
		return name, nil, fault.New(fault.Invalid, "the request has %d bytes; at most %d are allowed", len(q.body), maxBody).WithCode(control.ClientException)
	}
	body, err = op.do(ctx, h, q)
	return name, body, err
}
