// Package proxy re-signs requests of stock ECS clients, which sign for the
// service ecs, as a Function URL wants them. It verifies no signature: whoever
// reaches it acts with its credentials, so it listens on loopback, and turns
// away what a browser may have been talked into. It retries nothing and changes
// no answer. The command proxy imports it.
package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-run/longshore/cli/internal/sigv4"
)

// Health is the path that says whether the proxy could sign.
const Health = "/_longshore/health"

// maxBody is as much as a Function URL takes.
const maxBody = 6 << 20

// Config is what a proxy works with.
type Config struct {
	Target      *url.URL
	Region      string
	Credentials aws.CredentialsProvider
	Now         func() time.Time
	// AnyHost serves also callers that know it by another name than loopback's.
	AnyHost bool
	// Served is told of each call; it may be nil.
	Served func(operation string, status int, took time.Duration)
	// Transport is nil for the usual one.
	Transport http.RoundTripper
}

// New is the proxy as a handler.
func New(c Config) http.Handler {
	if c.Transport == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.DisableCompression = true // a header it would add is not signed
		c.Transport = t
	}
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(c.Target) },
		Transport:     signing{c},
		FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			refuse(w, statusOf(err), "ServerException", err.Error())
		},
		ErrorLog: nil,
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == Health && r.Method == http.MethodGet {
			c.health(w, r)
			return
		}
		if why := c.turnsAway(r); why != "" {
			refuse(w, http.StatusForbidden, "AccessDeniedException", "longshore proxy: "+why)
			return
		}
		begun := c.Now()
		s := &seen{ResponseWriter: w, status: http.StatusOK}
		forward.ServeHTTP(s, r)
		if c.Served != nil {
			_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
			c.Served(operation, s.status, c.Now().Sub(begun))
		}
	})
}

// turnsAway says why a request is not forwarded, or "". No SDK sends what a
// browser does, and a page can not set X-Amz-Target without being asked first.
func (c Config) turnsAway(r *http.Request) string {
	switch {
	case r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "":
		return "requests of browsers are not forwarded"
	case r.Method != http.MethodPost || r.Header.Get("X-Amz-Target") == "":
		return "only calls of the ECS API are forwarded"
	case !c.AnyHost && !Loopback(r.Host):
		return fmt.Sprintf("it is called %.100q, which is no name of loopback", r.Host)
	}
	return ""
}

// Loopback says whether an address is one of this machine alone.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (c Config) health(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	if c.Credentials == nil {
		refuse(w, http.StatusServiceUnavailable, "AccessDeniedException", "there are no credentials")
		return
	}
	if _, err := c.Credentials.Retrieve(ctx); err != nil {
		refuse(w, http.StatusServiceUnavailable, "AccessDeniedException", "there are no credentials: "+err.Error())
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"status":"ok"}`+"\n")
}

// refuse answers in ECS's shape, so that clients can read it.
func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": kind, "message": message})
}

// tooLarge is a request that no Function URL takes.
var errTooLarge = errors.New("longshore proxy: the request has more than 6 MiB")

func statusOf(err error) int {
	if errors.Is(err, errTooLarge) {
		return http.StatusRequestEntityTooLarge
	}
	return http.StatusBadGateway
}

// signing signs what it sends: last, when nothing is added any more.
type signing struct{ c Config }

// fromClient are the headers of the client's own signature.
var fromClient = []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256"}

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxBody+1)); err != nil {
			return nil, fmt.Errorf("longshore proxy: read the request: %w", err)
		}
		if len(body) > maxBody {
			return nil, errTooLarge
		}
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = nil // one that is sent again by the transport would be a retry
	r.TransferEncoding = nil
	for _, name := range fromClient {
		r.Header.Del(name)
	}
	if err := sigv4.Sign(r.Context(), s.c.Credentials, r, body, s.c.Region, s.c.Now()); err != nil {
		return nil, fmt.Errorf("longshore proxy: %w", err)
	}
	answer, err := s.c.Transport.RoundTrip(r)
	if err != nil {
		return nil, fmt.Errorf("longshore proxy: call the API: %w", err)
	}
	return answer, nil
}

// seen remembers the status of an answer.
type seen struct {
	http.ResponseWriter
	status int
}

func (s *seen) WriteHeader(status int) { s.status = status; s.ResponseWriter.WriteHeader(status) }

func (s *seen) Unwrap() http.ResponseWriter { return s.ResponseWriter }
