package proxy_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/longshore-run/longshore/cli/internal/proxy"
	"github.com/longshore-run/longshore/internal/transport"
)

var (
	at   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	keys = credentials.NewStaticCredentialsProvider("AKIDPROXY", "SECRET", "TOKEN")
)

// upstream is a Function URL that keeps what it got.
type upstream struct {
	*httptest.Server
	got  *http.Request
	body string
}

func newUpstream(t *testing.T, answer http.HandlerFunc) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		u.got, u.body = r, string(b)
		answer(w, r)
	}))
	t.Cleanup(u.Close)
	return u
}

func serve(t *testing.T, c proxy.Config) *httptest.Server {
	t.Helper()
	if c.Now == nil {
		c.Now = func() time.Time { return at }
	}
	if c.Region == "" {
		c.Region = "eu-central-1"
	}
	server := httptest.NewServer(proxy.New(c))
	t.Cleanup(server.Close)
	return server
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_, _ = io.WriteString(w, `{"clusterArns":[]}`)
}

func target(t *testing.T, base string) *url.URL {
	u, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// verified signs what the upstream got anew, with the headers that the proxy says
// it signed, and compares.
func verified(t *testing.T, u *upstream, host string) {
	t.Helper()
	_, names, _ := strings.Cut(u.got.Header.Get("Authorization"), "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	again, err := http.NewRequest(u.got.Method, "http://"+host+u.got.URL.String(), strings.NewReader(u.body))
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.SplitSeq(names, ";") {
		if v := u.got.Header.Get(name); v != "" && name != "host" && !strings.HasPrefix(name, "x-amz-date") && name != "x-amz-security-token" {
			again.Header.Set(name, v)
		}
	}
	sum := sha256.Sum256([]byte(u.body))
	k, _ := keys.Retrieve(t.Context())
	if err := v4.NewSigner().SignHTTP(t.Context(), k, again, hex.EncodeToString(sum[:]), "lambda", "eu-central-1", at); err != nil {
		t.Fatal(err)
	}
	if again.Header.Get("Authorization") != u.got.Header.Get("Authorization") {
		t.Errorf("signature\n%s, want\n%s", u.got.Header.Get("Authorization"), again.Header.Get("Authorization"))
	}
}

func TestProxy_SignsAStockClientsCallsForLambda(t *testing.T) {
	u := newUpstream(t, ok)
	p := serve(t, proxy.Config{Target: target(t, u.URL+"/_aws/lambda-url/abc/"), Credentials: keys})
	stock := ecs.New(ecs.Options{Region: "us-west-2", BaseEndpoint: aws.String(p.URL), RetryMaxAttempts: 1, HTTPClient: transport.Client{HTTP: http.DefaultClient},
		Credentials: credentials.NewStaticCredentialsProvider("AKIDCLIENT", "OTHER", "CLIENTTOKEN")})
	if _, err := stock.ListClusters(t.Context(), &ecs.ListClustersInput{MaxResults: aws.Int32(3)}); err != nil {
		t.Fatal(err)
	}
	auth := u.got.Header.Get("Authorization")
	if !strings.Contains(auth, "Credential=AKIDPROXY/20260102/eu-central-1/lambda/aws4_request") {
		t.Errorf("signed %s", auth)
	}
	if u.got.Header.Get("X-Amz-Security-Token") != "TOKEN" || u.got.URL.Path != "/_aws/lambda-url/abc/" || u.body != `{"maxResults":3}` {
		t.Errorf("token %q, path %s, body %s", u.got.Header.Get("X-Amz-Security-Token"), u.got.URL.Path, u.body)
	}
	if !strings.HasSuffix(u.got.Header.Get("X-Amz-Target"), ".ListClusters") {
		t.Errorf("target %s", u.got.Header.Get("X-Amz-Target"))
	}
	host := strings.TrimPrefix(u.URL, "http://")
	if u.got.Host != host {
		t.Errorf("host %s", u.got.Host)
	}
	verified(t, u, host)
}

func post(t *testing.T, address string, change func(*http.Request), body string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListClusters")
	if change != nil {
		change(r)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, _ := io.ReadAll(res.Body)
	return res, string(b)
}

func TestProxy_PassesAnswersOnAsTheyAre(t *testing.T) {
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-amzn-RequestId", "1-2-3")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"ClusterNotFoundException"}`)
	})
	var served []int
	p := serve(t, proxy.Config{Target: target(t, u.URL), Credentials: keys, Served: func(_ string, status int, _ time.Duration) { served = append(served, status) }})
	res, body := post(t, p.URL, nil, "{}")
	if res.StatusCode != http.StatusBadRequest || body != `{"__type":"ClusterNotFoundException"}` || res.Header.Get("x-amzn-RequestId") != "1-2-3" {
		t.Errorf("%d %s %v", res.StatusCode, body, res.Header)
	}
	p.Close() // waits until the call is over, which is told after its answer
	if len(served) != 1 || served[0] != http.StatusBadRequest {
		t.Errorf("served %v", served)
	}
}

func TestProxy_StreamsAnAnswer(t *testing.T) {
	release := make(chan struct{})
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first")
		w.(http.Flusher).Flush()
		<-release
		_, _ = io.WriteString(w, "second")
	})
	p := serve(t, proxy.Config{Target: target(t, u.URL), Credentials: keys})
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL, strings.NewReader("{}"))
	r.Header.Set("X-Amz-Target", "x.ListClusters")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b := make([]byte, 5)
	if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "first" {
		t.Errorf("%q, %v", b, err)
	}
	close(release)
	rest, _ := io.ReadAll(res.Body)
	if string(rest) != "second" {
		t.Errorf("%q", rest)
	}
}

func TestProxy_RetriesNothing(t *testing.T) {
	calls := 0
	p := serve(t, proxy.Config{Target: target(t, "http://127.0.0.1:1"), Credentials: keys, Transport: roundTrip(func(*http.Request) (*http.Response, error) {
		calls++
		return nil, errors.New("connection reset")
	})})
	res, body := post(t, p.URL, nil, "{}")
	if res.StatusCode != http.StatusBadGateway || calls != 1 || !strings.Contains(body, "connection reset") || !strings.Contains(body, "__type") {
		t.Errorf("%d after %d calls: %s", res.StatusCode, calls, body)
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestProxy_TurnsAwayWhatNoClientSends(t *testing.T) {
	u := newUpstream(t, ok)
	p := serve(t, proxy.Config{Target: target(t, u.URL), Credentials: keys})
	for name, change := range map[string]func(*http.Request){
		"a page's request":        func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"a page's fetch":          func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"a name that was rebound": func(r *http.Request) { r.Host = "evil.example:8080" },
		"what is no call":         func(r *http.Request) { r.Header.Del("X-Amz-Target") },
		"another method":          func(r *http.Request) { r.Method = http.MethodPut },
	} {
		if res, body := post(t, p.URL, change, "{}"); res.StatusCode != http.StatusForbidden || u.got != nil {
			t.Errorf("%s: %d %s", name, res.StatusCode, body)
		}
	}
	anywhere := serve(t, proxy.Config{Target: target(t, u.URL), Credentials: keys, AnyHost: true})
	if res, body := post(t, anywhere.URL, func(r *http.Request) { r.Host = "proxy.internal" }, "{}"); res.StatusCode != http.StatusOK {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestProxy_RefusesWhatNoFunctionURLTakes(t *testing.T) {
	u := newUpstream(t, ok)
	p := serve(t, proxy.Config{Target: target(t, u.URL), Credentials: keys})
	if res, _ := post(t, p.URL, nil, strings.Repeat("x", 6<<20+1)); res.StatusCode != http.StatusRequestEntityTooLarge || u.got != nil {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestProxy_HealthSaysWhetherItCouldSign(t *testing.T) {
	good := serve(t, proxy.Config{Target: target(t, "http://127.0.0.1:1"), Credentials: keys})
	bad := serve(t, proxy.Config{Target: target(t, "http://127.0.0.1:1"), Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no role")
	})})
	for server, want := range map[*httptest.Server]int{good: http.StatusOK, bad: http.StatusServiceUnavailable} {
		res, err := http.Get(server.URL + proxy.Health)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != want || bytes.Contains(body, []byte("SECRET")) {
			t.Errorf("%d %s", res.StatusCode, body)
		}
	}
}

func TestLoopback_IsThisMachineAlone(t *testing.T) {
	for address, want := range map[string]bool{
		"127.0.0.1:8080": true, "localhost:8080": true, "[::1]:8080": true, "127.1.2.3": true, "::1": true,
		"0.0.0.0:8080": false, ":8080": false, "10.0.0.1:80": false, "localhost.evil.example:80": false, "[::]:80": false,
	} {
		if proxy.Loopback(address) != want {
			t.Errorf("%s", address)
		}
	}
}
