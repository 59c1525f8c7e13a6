// Package transport is the HTTP client of our AWS SDK clients, in the functions,
// the agent and the tests. It changes nothing of what is sent. Only mains, what
// boots them, and tests import it.
package transport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
)

// Doer is the client that does the work: aws.HTTPClient, by the SDK's name.
type Doer interface {
	Do(r *http.Request) (*http.Response, error)
}

// Client sends each request's body from memory, in one piece with its head.
//
// The SDK hands net/http a body that it closes as soon as the answer begins, and
// that fails, where it should end, when net/http then looks whether anything
// follows. net/http takes that for a failed write and closes the connection
// under the answer being read: on a busy machine one answer in a few thousand is
// lost, and with it the knowledge whether a write was made.
type Client struct{ HTTP Doer }

// Do implements Doer.
func (c Client) Do(r *http.Request) (*http.Response, error) {
	if r.Body == nil || r.Body == http.NoBody || r.ContentLength <= 0 {
		return c.HTTP.Do(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read request body: %w", err)
	}
	whole := r.WithContext(r.Context())
	whole.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	whole.Body, _ = whole.GetBody()
	return c.HTTP.Do(whole)
}
