//go:build docker

package dockerengine

import (
	"archive/tar"
	"bytes"
	"slices"
	"testing"

	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
)

// imported makes an image of one small file, as somebody would who pulled it.
func imported(t *testing.T, api *client.Client, ref string) {
	t.Helper()
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	note := []byte(ref)
	if err := w.WriteHeader(&tar.Header{Name: "note", Mode: 0o644, Size: int64(len(note))}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(note); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	body, err := api.ImageImport(t.Context(), image.ImportSource{Source: &layer, SourceName: "-"}, ref, image.ImportOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if _, err := progress(body, func() {}); err != nil {
		t.Fatal(err)
	}
}

func TestRemoveImage_OnDockerGoesWithAllItsNamesAndNothingElse(t *testing.T) {
	api := raw(t)
	name := "longshore-suite/" + agenttest.RandomID()[:12]
	imported(t, api, name+":1")
	imported(t, api, name+":other")
	if err := api.ImageTag(t.Context(), name+":1", name+":2"); err != nil {
		t.Fatal(err)
	}
	e := docker(t, "instance-store")
	find := func(tag string) (found agent.Image, ok bool) {
		t.Helper()
		all, err := e.Images(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(all, func(i agent.Image) bool { return slices.Contains(i.Names, name+":"+tag) })
		if i < 0 {
			return found, false
		}
		return all[i], true
	}
	one, ok := find("1")
	if !ok || one.InUse || one.Kept || !slices.Contains(one.Names, name+":2") || one.ID == "" {
		t.Fatalf("%+v", one)
	}
	for range 2 {
		if err := e.RemoveImage(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := find("1"); there {
		t.Error("it is still there")
	}
	other, there := find("other")
	if !there {
		t.Fatal("another image went with it")
	}
	if err := e.RemoveImage(t.Context(), other); err != nil {
		t.Error(err)
	}
}
