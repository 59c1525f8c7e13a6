//go:build docker

package dockerengine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/pkg/stdcopy"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
)

// privateRegistry has the test image for one login alone: the pulling half of the
// registry protocol, on loopback, which Docker speaks to without TLS.
type privateRegistry struct {
	login  agent.Login
	blobs  map[string][]byte // by digest
	digest string            // of the manifest
}

const (
	manifestType = "application/vnd.docker.distribution.manifest.v2+json"
	configType   = "application/vnd.docker.container.image.v1+json"
	layerType    = "application/vnd.docker.image.rootfs.diff.tar.gzip" // or plain: engines look
)

// serveImage serves the test image as NAME:1 and returns the reference to it.
func serveImage(t *testing.T, login agent.Login) (ref, digest string) {
	t.Helper()
	saved, err := raw(t).ImageSave(t.Context(), []string{testImage(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	files := map[string][]byte{}
	for r := tar.NewReader(saved); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	var index []struct {
		Config string
		Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &index); err != nil || len(index) != 1 {
		t.Fatalf("the saved image has %d manifests, %v", len(index), err)
	}
	p := &privateRegistry{login: login, blobs: map[string][]byte{}}
	entry := func(kind string, blob []byte) map[string]any {
		return map[string]any{"mediaType": kind, "size": len(blob), "digest": p.keep(blob)}
	}
	layers := []any{}
	for _, l := range index[0].Layers {
		layers = append(layers, entry(layerType, files[l]))
	}
	manifest, err := json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": manifestType, "config": entry(configType, files[index[0].Config]), "layers": layers})
	if err != nil {
		t.Fatal(err)
	}
	p.digest = p.keep(manifest)
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://") + "/private/app:1", p.digest
}

func (p *privateRegistry) keep(blob []byte) (digest string) {
	digest = fmt.Sprintf("sha256:%x", sha256.Sum256(blob))
	p.blobs[digest] = blob
	return digest
}

func (p *privateRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, password, _ := r.BasicAuth()
	name := path.Base(r.URL.Path)
	if name == "1" {
		name = p.digest
	}
	blob, ok := p.blobs[name]
	switch {
	case user != p.login.Username || password != p.login.Password:
		w.Header().Set("WWW-Authenticate", `Basic realm="private"`)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}`)
		return
	case strings.Trim(r.URL.Path, "/") == "v2":
		return
	case !ok:
		w.WriteHeader(http.StatusNotFound)
		return
	case strings.Contains(r.URL.Path, "/manifests/"):
		w.Header().Set("Content-Type", manifestType)
	}
	w.Header().Set("Docker-Content-Digest", name)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(blob))
}

// TestDocker_APrivateImageRunsWithSecretsForItsLoginAlone pulls from a registry that
// asks for a password, as the right one, a wrong one and nobody.
func TestDocker_APrivateImageRunsWithSecretsForItsLoginAlone(t *testing.T) {
	login := agent.Login{Username: "ann", Password: "CANARY-pull"}
	ref, digest := serveImage(t, login)
	spec := testSpec(t, "/bin/sh", "-c", `printf %s "$PASSWORD" | sha256sum; echo "LEVEL is $LEVEL"`)
	spec.Definition.ContainerDefinitions[0].Image = ref
	spec.Environment = map[string]string{"PASSWORD": "CANARY-secret", "LEVEL": "debug"}
	instance := newInstance()
	e := docker(t, instance)
	t.Cleanup(func() { _, _ = raw(t).ImageRemove(context.Background(), ref, image.RemoveOptions{}) })
	clearAfter(t, instance, spec.ContainerID)
	denied := func(when string, l agent.Login) {
		t.Helper()
		_, err := e.Image(t.Context(), ref, l)
		if !fault.Is(err, fault.NotFound) || !strings.HasPrefix(err.Error(), "CannotPullContainerError: ") || strings.Contains(err.Error(), "CANARY") {
			t.Errorf("%s, as %q: %v", when, l.Username, err)
		}
	}
	denied("before", agent.Login{})
	denied("before", agent.Login{Username: "ann", Password: "CANARY-wrong"})
	if got, err := e.Image(t.Context(), ref, login); err != nil || got != digest {
		t.Fatalf("%s, %v; want %s", got, err, digest)
	}
	denied("though it is there", agent.Login{})
	denied("though it is there", agent.Login{Username: "ann", Password: "CANARY-wrong"})

	id, err := e.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), spec.ContainerID); err != nil {
		t.Fatal(err)
	}
	api := raw(t)
	done, failed := api.ContainerWait(t.Context(), id, container.WaitConditionNotRunning)
	select {
	case <-done:
	case err := <-failed:
		t.Fatal(err)
	}
	out, err := api.ContainerLogs(t.Context(), id, container.LogsOptions{ShowStdout: true, ShowStderr: true})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var said bytes.Buffer
	if _, err := stdcopy.StdCopy(&said, &said, out); err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("%x  -\nLEVEL is debug\n", sha256.Sum256([]byte("CANARY-secret"))); said.String() != want {
		t.Errorf("it said %q, want %q", said.String(), want)
	}
	c, err := api.ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range c.Config.Labels {
		if strings.Contains(value, "CANARY") {
			t.Errorf("label %s has a secret", name)
		}
	}
}
