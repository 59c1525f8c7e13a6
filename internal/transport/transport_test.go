package transport_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/internal/transport"
)

// doer is an HTTP client of a function.
type doer func(*http.Request) (*http.Response, error)

func (d doer) Do(r *http.Request) (*http.Response, error) { return d(r) }

// closing is a body that fails once it was read to its end, as the SDK's does
// after the answer has begun.
type closing struct{ io.Reader }

func (c closing) Close() error { return nil }

func TestDo_SendsTheBodyFromMemoryAndLeavesTheRequestAlone(t *testing.T) {
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://example.com/x", closing{strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 5
	r.Header.Set("A", "b")
	before := r.Body
	called := false
	client := transport.Client{HTTP: doer(func(got *http.Request) (*http.Response, error) {
		called = true
		for range 2 { // net/http may send it again over another connection
			body, err := io.ReadAll(got.Body)
			if err != nil || string(body) != "hello" {
				t.Errorf("body is %q, %v", body, err)
			}
			if got.Body, err = got.GetBody(); err != nil {
				t.Error(err)
			}
		}
		if got.ContentLength != 5 || got.Header.Get("A") != "b" || got.URL.Path != "/x" || got.Context() != r.Context() {
			t.Errorf("request is %+v", got)
		}
		return &http.Response{StatusCode: 200}, nil
	})}
	if resp, err := client.Do(r); err != nil || resp.StatusCode != 200 || !called {
		t.Fatalf("gave %v, %v", resp, err)
	}
	if r.Body != before {
		t.Error("the caller's request was changed")
	}
}

func TestDo_SendsHeadAndBodyInOneWrite(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	first := make(chan string, 1)
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		buffer := make([]byte, 4096)
		n, _ := conn.Read(buffer)
		first <- string(buffer[:n])
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		_, _ = bufio.NewReader(conn).ReadByte()
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+l.Addr().String(), closing{strings.NewReader("hello")})
	if err != nil {
		t.Fatal(err)
	}
	r.ContentLength = 5
	web := &http.Client{Transport: &http.Transport{}}
	resp, err := transport.Client{HTTP: web}.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	web.CloseIdleConnections()
	if got := <-first; err != nil || string(body) != "ok" || !strings.HasSuffix(got, "\r\n\r\nhello") {
		t.Fatalf("answer %q, %v; the first packet is %q", body, err, got)
	}
}
