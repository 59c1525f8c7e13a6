//go:build docker

package dockerengine

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// The image is made once, whoever asks and however many at a time, says whose it
// is, and one that was removed is made again.
func TestDocker_ThePauseImageIsMadeOnceOfTheAgentItself(t *testing.T) {
	program, err := theAgent()
	if err != nil {
		t.Fatal(err)
	}
	api := raw(t)
	if _, err := api.ImageRemove(t.Context(), agent.PauseImage, image.RemoveOptions{}); err != nil && !cerrdefs.IsNotFound(err) && !cerrdefs.IsConflict(err) {
		t.Fatal(err)
	}
	e := docker(t, newInstance(), WithPause(program, pauseCommand))
	ids, fails := make([]string, 4), make([]error, 4)
	var all sync.WaitGroup
	for i := range ids {
		all.Go(func() { ids[i], fails[i] = e.Image(t.Context(), agent.PauseImage, agent.Login{}) })
	}
	all.Wait()
	if err := errors.Join(fails...); err != nil {
		t.Fatal(err)
	}
	later, err := docker(t, newInstance(), WithPause("/nonexistent")).Image(t.Context(), agent.PauseImage, agent.Login{})
	if err != nil {
		t.Errorf("a later agent makes it again: %v", err)
	}
	if all := slices.Compact(append(ids, later)); len(all) != 1 {
		t.Errorf("made as %q", all)
	}
	i, err := api.ImageInspect(t.Context(), agent.PauseImage)
	if err != nil || i.Config.Labels[labelPause] != "1" || i.Config.User != "65534:65534" || !slices.Equal(i.Config.Entrypoint, []string{"/longshore-pause", "pause"}) {
		t.Errorf("%+v, %v", i.Config, err)
	}
	if f, err := os.Stat(program); err != nil || i.Size != f.Size() {
		t.Errorf("it has %d bytes, the agent %v", i.Size, f)
	}
}

func TestDocker_APauseImageThatCannotBeMadeSaysWhy(t *testing.T) {
	e := docker(t, newInstance(), WithPause("/nonexistent"))
	if _, present, err := e.held(t.Context(), agent.PauseImage); err != nil {
		t.Fatal(err)
	} else if present {
		if _, err := raw(t).ImageRemove(t.Context(), agent.PauseImage, image.RemoveOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.Image(t.Context(), agent.PauseImage, agent.Login{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("%v, want invalid", err)
	}
}

func TestDocker_APauseContainerIsSmall(t *testing.T) {
	program, err := theAgent()
	if err != nil {
		t.Fatal(err)
	}
	spec := testSpec(t, "sleep", "600")
	spec.Definition.PidMode, spec.Container = taskdef.NamespaceTask, agent.PauseContainer
	instance := newInstance()
	clearAfter(t, instance, spec.ContainerID)
	e := docker(t, instance, WithPause(program, pauseCommand))
	if _, err := e.Image(t.Context(), agent.PauseImage, agent.Login{}); err != nil {
		t.Fatal(err)
	}
	id, err := e.Create(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context(), spec.ContainerID); err != nil {
		t.Fatal(err)
	}
	c, err := raw(t).ContainerInspect(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	resident, own := memoryOf(t, c.State.Pid)
	t.Logf("a pause container: %d KiB resident, of which %d KiB are not its file", resident, own)
	if own > 8<<10 || resident > 20<<10 {
		t.Errorf("a pause container has %d KiB resident, %d KiB of its own", resident, own)
	}
}

// memoryOf reads how much of a process is in memory, and how much of that is in no
// file, in KiB.
func memoryOf(t *testing.T, pid int) (resident, own int) {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &resident)
		_, _ = fmt.Sscanf(line, "RssAnon: %d kB", &own)
	}
	return resident, own
}
