package dockerengine

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// WithPause says which program a pause container runs, and how it is told to: one
// that needs no other file. By itself it is this very program.
func WithPause(program string, args ...string) Option {
	return func(e *Engine) { e.pause = pauseProgram{program, args} }
}

type pauseProgram struct {
	file string
	args []string
}

// thisProgram is the running one's file, also if it has been replaced since.
const thisProgram = "/proc/self/exe"

// pauseCommand is this program's argument for being a pause container.
const pauseCommand = "pause"

// pauseFile is the only file of the image.
const pauseFile = "longshore-pause"

// labelPause is the label of the image.
const labelPause = ours + "pause"

// What a pause container may take. It sleeps; most of the memory is its program's
// file, which the kernel shares between all of them and may drop.
const (
	pauseMemory = 32 * mib
	pausePids   = 32
)

// pauseImage makes the image of pause containers, once on an engine: of the
// agent's own program, so that no registry is needed. An image that an earlier
// agent made will do; one that was removed is made again.
func (e *Engine) pauseImage(ctx context.Context) (string, error) {
	select { // one is made at a time
	case e.pausing <- struct{}{}:
		defer func() { <-e.pausing }()
	case <-ctx.Done():
		return "", fault.Wrap(fault.Unavailable, ctx.Err(), "make image %s", agent.PauseImage)
	}
	if id, present, err := e.held(ctx, agent.PauseImage); err != nil || present {
		return id, err
	}
	archive, err := e.pause.archive()
	if err != nil {
		return "", fault.Wrap(fault.Invalid, err, "%s: image of the pause container", cannotCreate)
	}
	defer archive.Close()
	err = e.do(ctx, "make image "+agent.PauseImage, e.limits.Create, func(ctx context.Context, api *client.Client) error {
		err := importPause(ctx, api, archive, e.pause.args)
		if err != nil && ctx.Err() == nil {
			return refuse(ctx, "make image", cannotCreate+": image of the pause container", err)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	id, present, err := e.held(ctx, agent.PauseImage)
	if err == nil && !present {
		err = fault.New(fault.Unavailable, "%s: image %s was made and is not there", cannotCreate, agent.PauseImage)
	}
	return id, err
}

func importPause(ctx context.Context, api *client.Client, archive io.Reader, args []string) error {
	entry, err := json.Marshal(append([]string{"/" + pauseFile}, args...))
	if err != nil {
		return err
	}
	body, err := api.ImageImport(ctx, image.ImportSource{Source: archive, SourceName: "-"}, agent.PauseImage, image.ImportOptions{
		Message: "made by longshore-agent: it holds the namespaces of a task",
		Changes: []string{"ENTRYPOINT " + string(entry), "USER 65534:65534", "ENV GOMAXPROCS=1", "LABEL " + labelPause + "=1"},
	})
	if err != nil {
		return err
	}
	defer body.Close()
	return jsonmessage.DisplayJSONMessagesStream(body, io.Discard, 0, false, nil)
}

// archive is the image's file system: the program alone, read as it is sent.
func (p pauseProgram) archive() (io.ReadCloser, error) {
	f, err := os.Open(p.file)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	out, in := io.Pipe()
	go func() {
		defer f.Close()
		w := tar.NewWriter(in)
		err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: pauseFile, Mode: 0o555, Size: info.Size()})
		if err == nil {
			_, err = io.CopyN(w, f, info.Size())
		}
		if err == nil {
			err = w.Close()
		}
		_ = in.CloseWithError(err)
	}()
	return out, nil
}

// pauseRequest is what Docker is asked for to make a task's pause container: one
// that can do nothing but be there.
func pauseRequest(instance string, spec agent.Spec) createRequest {
	limit := int64(pausePids)
	r := createRequest{
		Name: nameOf(spec, spec.Container),
		Config: &container.Config{
			Image:  agent.PauseImage,
			Labels: containerLabels(instance, spec, taskdef.ContainerDefinition{}),
		},
		Host: &container.HostConfig{
			NetworkMode:    taskdef.NetworkNone,
			LogConfig:      container.LogConfig{Type: "none"},
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			ReadonlyRootfs: true,
			CapDrop:        []string{"ALL"},
			SecurityOpt:    []string{"no-new-privileges"},
			Resources:      container.Resources{CPUShares: minShares, Memory: pauseMemory, PidsLimit: &limit},
		},
	}
	if spec.Definition.IpcMode == taskdef.NamespaceTask {
		r.Host.IpcMode = container.IPCModeShareable
		r.Host.ShmSize = sharedMemory(spec.Definition)
	}
	return r
}

// sharedMemory is how much the containers of a task that share their IPC want:
// there is one /dev/shm for all of them, so the most that one asks for. 0 is
// Docker's own.
func sharedMemory(def *taskdef.TaskDefinition) (bytes int64) {
	for _, c := range def.ContainerDefinitions {
		if l := c.LinuxParameters; l != nil {
			bytes = max(bytes, int64(value(l.SharedMemorySize))*mib)
		}
	}
	return bytes
}

// joined is the mode of a namespace of a container: a value of ECS's is one of
// Docker's, but for task, which is the pause container's.
func joined(spec agent.Spec, mode string) string {
	if mode == taskdef.NamespaceTask {
		return "container:" + nameOf(spec, agent.PauseContainer)
	}
	return mode
}
