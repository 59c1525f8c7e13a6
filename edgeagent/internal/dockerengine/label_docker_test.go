//go:build docker

package dockerengine

import (
	"context"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
)

// An image that wants to be another task's, or not to count, run by a real engine.
func TestDocker_AnImagesLabelsNeverShowThroughOurs(t *testing.T) {
	spec := testSpec(t, "sleep", "600")
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	base, err := api.ContainerCreate(t.Context(), &container.Config{Image: spec.Definition.ContainerDefinitions[0].Image, Cmd: []string{"true"}}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	ref := "longshore-hostile-" + agenttest.RandomID()[:12] + ":latest"
	t.Cleanup(func() {
		_ = api.ContainerRemove(context.Background(), base.ID, container.RemoveOptions{Force: true})
		if _, err := api.ImageRemove(context.Background(), ref, image.RemoveOptions{Force: true}); err != nil {
			t.Error(err)
		}
	})
	const forged = "1-9223372036854775807/udp"
	if _, err := api.ContainerCommit(t.Context(), base.ID, container.CommitOptions{Reference: ref, Config: &container.Config{Image: ref, Labels: hostile(forged)}}); err != nil {
		t.Fatal(err)
	}
	spec.Definition.ContainerDefinitions[0].Image = ref
	e, id := made(t, spec)
	c, err := api.ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	for name := range hostile("") {
		if got := c.Config.Labels[name]; got == forged {
			t.Errorf("the image says what %s is", name)
		}
	}
	if got, err := e.Observe(t.Context(), spec.ContainerID); err != nil || got.ContainerID != spec.ContainerID || len(got.Bindings) != 0 {
		t.Errorf("%+v, %v", got, err)
	}
}
