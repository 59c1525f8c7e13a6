package strict

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
)

const requestID = "01234567-89ab-cdef-0123-456789abcdef"

// behind starts a proxy before a backend that answers as told, and returns how to call it.
func behind(t *testing.T, answer http.HandlerFunc) (p *Proxy, call func(operation string) (status int, body string)) {
	t.Helper()
	backend := httptest.NewServer(answer)
	t.Cleanup(backend.Close)
	to, err := url.Parse(backend.URL + "/prefix/")
	if err != nil {
		t.Fatal(err)
	}
	p = NewProxy(read(t), to)
	front := httptest.NewServer(p)
	t.Cleanup(front.Close)
	return p, func(operation string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, front.URL+"/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Amz-Target", "Coffee."+operation)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
}

func header(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.Header().Set("x-amzn-RequestId", requestID)
}

func TestProxy_PassesAnswersUnchangedAndCountsThem(t *testing.T) {
	p, call := behind(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/prefix/" || r.Header.Get("X-Amz-Target") != "Coffee.Brew" {
			t.Errorf("the backend is asked for %s %s", r.URL.Path, r.Header.Get("X-Amz-Target"))
		}
		header(w)
		_, _ = io.WriteString(w, good)
	})
	for range 2 {
		if status, body := call("Brew"); status != 200 || body != good {
			t.Errorf("status %d, body %s", status, body)
		}
	}
	if found := p.Violations(); len(found) > 0 {
		t.Error(found)
	}
	if n := p.Calls()["Brew"]["OK"]; n != 2 {
		t.Errorf("counted %d", n)
	}
}

func TestProxy_RemembersWhatWasWrong(t *testing.T) {
	p, call := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		w.Header().Set("x-amzn-ErrorType", "NoCup")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"__type":"Saucer","message":"x"}`)
	})
	if status, body := call("Brew"); status != 400 || body != `{"__type":"Saucer","message":"x"}` {
		t.Errorf("status %d, body %s", status, body)
	}
	want := []string{
		"Brew: __type is Saucer, which the operation does not have",
		`Brew: Content-Type is "text/html"`,
		`Brew: x-amzn-RequestId is ""; it is a UUID`,
		`Brew: x-amzn-ErrorType is "NoCup" beside the body's __type`,
	}
	if found := p.Violations(); !slices.Equal(found, want) {
		t.Errorf("found %q", found)
	}
	if n := p.Calls()["Brew"]["400"]; n != 1 {
		t.Errorf("counted %v", p.Calls())
	}
}

func TestProxy_JudgesWhatIsInAPackedAnswer(t *testing.T) {
	p, call := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		header(w)
		w.Header().Set("Content-Encoding", "gzip")
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, `{"cup":{},"cups":[],"saucer":1}`)
		_ = z.Close()
		_, _ = w.Write(b.Bytes())
	})
	call("Brew")
	if found := p.Violations(); !slices.Equal(found, []string{"Brew: saucer is no member of BrewOut"}) {
		t.Errorf("found %q", found)
	}
}

func TestProxy_TellsOfABackendThatDoesNotAnswer(t *testing.T) {
	p, call := behind(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	if status, _ := call("Brew"); status != http.StatusBadGateway {
		t.Errorf("status %d", status)
	}
	if found := p.Violations(); len(found) != 1 || !strings.HasPrefix(found[0], "no answer: ") {
		t.Errorf("found %q", found)
	}
}
