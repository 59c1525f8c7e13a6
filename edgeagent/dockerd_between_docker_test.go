//go:build docker && soak

package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// killer stands between the agent and a dockerd of a test's own, which it kills in the
// middle of a call.
type killer struct {
	d      *dockerd
	mu     sync.Mutex
	verb   *regexp.Regexp // the call at which it is killed next; nil: none
	after  time.Duration  // so long after the engine was asked
	killed chan struct{}
}

// between returns the address by which an agent reaches the engine through it.
func (d *dockerd) between() (*killer, string) {
	d.Helper()
	k := &killer{d: d, killed: make(chan struct{}, 1)}
	file := filepath.Join(d.dir, "k")
	l, err := new(net.ListenConfig).Listen(d.Context(), "unix", file)
	if err != nil {
		d.Fatal(err)
	}
	d.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go k.serve(c)
		}
	}()
	return k, "unix://" + file
}

// at has the engine killed so long after the next call that is like this.
func (k *killer) at(verb string, after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.verb, k.after = regexp.MustCompile("^"+verb), after
}

func (k *killer) serve(c net.Conn) {
	defer c.Close()
	engine, err := net.Dial("unix", filepath.Join(k.d.dir, "s"))
	if err != nil {
		return
	}
	defer engine.Close()
	go func() {
		_, _ = io.Copy(c, engine)
		c.Close()
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := c.Read(buffer)
		if err != nil {
			return
		}
		k.mu.Lock()
		hit, after := k.verb != nil && k.verb.Match(buffer[:n]), k.after
		if hit {
			k.verb = nil
		}
		k.mu.Unlock()
		if _, err := engine.Write(buffer[:n]); err != nil {
			return
		}
		if hit {
			<-time.After(after)
			_ = k.d.cmd.Process.Signal(syscall.SIGKILL)
			k.killed <- struct{}{}
		}
	}
}

// registry has an image of the engine for it to pull, by HTTP and in its network.
type registry struct {
	blobs    map[string][]byte // by digest
	manifest string            // its digest
	layer    string
	mu       sync.Mutex
	stalls   chan struct{} // closed once a layer is asked for, which then does not come; nil: it comes
}

const manifestType = "application/vnd.docker.distribution.manifest.v2+json"

// serve puts an image of the engine into a registry, and returns its name there.
func (d *dockerd) serve(image string) (*registry, string) {
	d.Helper()
	saved, err := d.raw("GET", "/images/"+image+"/get", "")
	if err != nil {
		d.Fatal(err)
	}
	files := map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(saved)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			d.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			d.Fatal(err)
		}
	}
	var index []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &index); err != nil || len(index) != 1 || len(index[0].Layers) != 1 {
		d.Fatalf("the saved image is %+v, %v", index, err)
	}
	// One more file makes it a layer that the engine does not have.
	config := files[index[0].Config]
	old := files[index[0].Layers[0]]
	var fresh bytes.Buffer
	w := tar.NewWriter(&fresh)
	for r := tar.NewReader(bytes.NewReader(old)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = w.WriteHeader(h)
		}
		if err == nil {
			_, err = io.Copy(w, r)
		}
		if err != nil {
			d.Fatal(err)
		}
	}
	if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "pulled", Mode: 0o644}), w.Close()); err != nil {
		d.Fatal(err)
	}
	config = bytes.ReplaceAll(config, fmt.Appendf(nil, "%x", sha256.Sum256(old)), fmt.Appendf(nil, "%x", sha256.Sum256(fresh.Bytes())))
	g := &registry{blobs: map[string][]byte{}}
	entry := func(kind string, blob []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(blob), "digest": g.keep(blob)}
	}
	g.layer = g.keep(fresh.Bytes())
	layers := []any{entry("application/vnd.docker.image.rootfs.diff.tar.gzip", fresh.Bytes())}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": entry("application/vnd.docker.container.image.v1+json", config), "layers": layers})
	if err != nil {
		d.Fatal(err)
	}
	g.manifest = g.keep(manifest)
	var l net.Listener
	d.within(func() {
		if text, bad := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); bad != nil {
			err = fmt.Errorf("%w: %s", bad, text)
			return
		}
		l, err = new(net.ListenConfig).Listen(d.Context(), "tcp", "127.0.0.1:0")
	})
	if err != nil {
		d.Fatal(err)
	}
	server := &http.Server{Handler: g, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	d.Cleanup(func() { _ = server.Close() })
	return g, l.Addr().String() + "/app:1"
}

func (g *registry) keep(blob []byte) (digest string) {
	digest = fmt.Sprintf("sha256:%x", sha256.Sum256(blob))
	g.blobs[digest] = blob
	return digest
}

// stall has the next pull stay in its middle, and tells when it is there.
func (g *registry) stall() <-chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stalls = make(chan struct{})
	return g.stalls
}

func (g *registry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := path.Base(r.URL.Path)
	if name == "1" {
		name = g.manifest
	}
	if blob, ok := g.blobs[name]; !ok && strings.Trim(r.URL.Path, "/") != "v2" {
		w.WriteHeader(http.StatusNotFound)
		return
	} else if strings.Contains(r.URL.Path, "/manifests/") {
		w.Header().Set("Content-Type", manifestType)
	} else if name == g.layer && r.Method == http.MethodGet {
		g.mu.Lock()
		stalls := g.stalls
		g.stalls = nil
		g.mu.Unlock()
		if stalls != nil {
			w.Header().Set("Content-Length", fmt.Sprint(len(blob)))
			_, _ = w.Write(blob[:len(blob)/2])
			_ = http.NewResponseController(w).Flush()
			close(stalls)
			<-r.Context().Done()
			return
		}
	}
	w.Header().Set("Docker-Content-Digest", name)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(g.blobs[name]))
}
