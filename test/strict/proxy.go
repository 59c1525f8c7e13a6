package strict

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"sync"
)

// Proxy hands requests on to a backend and holds every answer against the model. Serve it on a loopback port, as
// httptest.NewServer does, and point stock clients there. Answers pass unchanged. It is safe for concurrent use.
type Proxy struct {
	model   *Model
	forward *httputil.ReverseProxy

	mu    sync.Mutex
	calls map[string]map[string]int // operation → "OK" or the status → how often
	found []string
}

// NewProxy is a proxy to a backend, whose path is kept as a prefix.
func NewProxy(m *Model, backend *url.URL) *Proxy {
	p := &Proxy{model: m, calls: map[string]map[string]int{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(backend)
			// The answer is read here: one that the client unzips itself would have to be unzipped twice.
			r.Out.Header.Del("Accept-Encoding")
		},
		ModifyResponse: p.judge,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			p.note(operationOf(r.Header.Get("X-Amz-Target")), "unreachable", fmt.Sprintf("no answer: %v", err))
			http.Error(w, "the backend does not answer", http.StatusBadGateway)
		},
	}
	return p
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.forward.ServeHTTP(w, r) }

// Violations tells what was wrong so far, each with its operation, in the order in which it came.
func (p *Proxy) Violations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.found)
}

// Calls tells how often each operation was answered, and by what: OK, or the status. An operation that a test meant
// to cover and that is not here was never called.
func (p *Proxy) Calls() map[string]map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	out := map[string]map[string]int{}
	for name, results := range p.calls {
		out[name] = maps.Clone(results)
	}
	return out
}

func (p *Proxy) note(operation, result string, violations ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.calls[operation] == nil {
		p.calls[operation] = map[string]int{}
	}
	p.calls[operation][result]++
	p.found = append(p.found, violations...)
}

func (p *Proxy) judge(res *http.Response) error {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	_ = res.Body.Close()
	res.Body = io.NopCloser(bytes.NewReader(body))
	plain := body
	if res.Header.Get("Content-Encoding") == "gzip" {
		if z, err := gzip.NewReader(bytes.NewReader(body)); err == nil {
			if plain, err = io.ReadAll(z); err != nil {
				return err
			}
		}
	}
	operation, result := operationOf(res.Request.Header.Get("X-Amz-Target")), "OK"
	if res.StatusCode >= http.StatusBadRequest {
		result = fmt.Sprint(res.StatusCode)
	}
	found := p.model.Check(operation, res.StatusCode, plain)
	p.note(operation, result, append(found, CheckHeader(operation, res.Header)...)...)
	return nil
}

var uuid = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// CheckHeader tells what is wrong with an answer's header.
func CheckHeader(operation string, h http.Header) []string {
	var found []string
	if got := h.Get("Content-Type"); got != "application/x-amz-json-1.1" {
		found = append(found, fmt.Sprintf("%s: Content-Type is %q", operation, got))
	}
	if got := h.Get("x-amzn-RequestId"); !uuid.MatchString(got) {
		found = append(found, fmt.Sprintf("%s: x-amzn-RequestId is %q; it is a UUID", operation, got))
	}
	// Some SDKs believe this header and some the body.
	if got := h.Get("x-amzn-ErrorType"); got != "" {
		found = append(found, fmt.Sprintf("%s: x-amzn-ErrorType is %q beside the body's __type", operation, got))
	}
	return found
}
