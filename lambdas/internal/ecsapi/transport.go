package ecsapi

import (
	"cmp"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
)

const (
	targetHeader = "X-Amz-Target"
	idHeader     = "x-amzn-RequestId"
)

// Function answers a request that came through a Function URL. Its error is
// always nil: a failed invocation would reach the caller as a bare 502.
func (h *Handler) Function(ctx context.Context, e events.LambdaFunctionURLRequest) (events.LambdaFunctionURLResponse, error) {
	id := e.RequestContext.RequestID
	if id == "" {
		id = requestID(h.control.NewID())
	}
	q := &call{
		id: id, method: e.RequestContext.HTTP.Method,
		body: bodyOf(e), caller: callerOf(e.RequestContext.Authorizer),
	}
	host := e.RequestContext.DomainName
	for name, value := range e.Headers {
		switch {
		case strings.EqualFold(name, targetHeader):
			q.target = value
		case strings.EqualFold(name, "Host"): // as the caller knows it, also behind a proxy or an emulator
			host = value
		}
	}
	q.endpoint = "https://" + host + "/"
	a := h.serve(ctx, q)
	return events.LambdaFunctionURLResponse{
		StatusCode: a.status, Body: string(a.body),
		Headers: map[string]string{"Content-Type": contentType, idHeader: a.id},
	}, nil
}

// bodyOf is a request's body. One that says it is base64 and is not stays as it
// came, and is refused as what it is: not JSON.
func bodyOf(e events.LambdaFunctionURLRequest) []byte {
	if e.IsBase64Encoded {
		if b, err := base64.StdEncoding.DecodeString(e.Body); err == nil {
			return b
		}
	}
	return []byte(e.Body)
}

// callerOf is who IAM says is calling.
func callerOf(a *events.LambdaFunctionURLRequestContextAuthorizerDescription) string {
	if a == nil || a.IAM == nil {
		return ""
	}
	return cmp.Or(a.IAM.UserARN, a.IAM.UserID, a.IAM.CallerID, a.IAM.AccessKey)
}

// ServeHTTP answers a request over plain HTTP, which nobody has authenticated:
// tests and local tools use it.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		http.Error(w, "the body can not be read", http.StatusBadRequest)
		return
	}
	a := h.serve(r.Context(), &call{
		id: requestID(h.control.NewID()), method: r.Method, target: r.Header.Get(targetHeader), body: body, caller: "unauthenticated",
		endpoint: "http://" + r.Host + r.URL.Path,
	})
	w.Header().Set("Content-Type", contentType)
	w.Header().Set(idHeader, a.id)
	w.WriteHeader(a.status)
	_, _ = w.Write(a.body)
}

// requestID writes 32 hex digits as a UUID; other ids stay as they are.
func requestID(id string) string {
	if !hex32.MatchString(id) {
		return id
	}
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}
