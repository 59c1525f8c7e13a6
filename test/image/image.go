// Package image provides busybox:latest, the image that the tests and the demo run: the one
// that is there, else the registry's, else one built from scratch out of this machine's static
// busybox. So sh, sleep, nc, httpd and wget are there with or without a registry in reach.
//
// It runs no containers. Tests and the programs under test/ may import it, nothing that ships may.
package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/jsonmessage"
)

// Ref is the image that Ensure provides.
const Ref = "busybox:latest"

const (
	// registryPatience is how long a registry may take to answer at all.
	registryPatience = 4 * time.Second
	// pullPatience bounds the pull of two megabytes from a registry that did answer.
	pullPatience = 60 * time.Second
)

// Ensure makes the engine have Ref and returns it. Calling it twice is no work.
func Ensure(ctx context.Context) (string, error) {
	api, err := client.NewClientWithOpts(client.FromEnv, client.WithAPIVersionNegotiation())
	if err != nil {
		return "", fmt.Errorf("make Docker client: %w", err)
	}
	defer api.Close()
	return Ref, ensure(ctx, api, Ref, pull, buildLocally)
}

// ensure is Ensure with its two sources given, the first of which may fail.
func ensure(ctx context.Context, api *client.Client, ref string, sources ...source) error {
	_, err := api.ImageInspect(ctx, ref)
	if err == nil {
		return nil
	}
	if client.IsErrConnectionFailed(err) {
		return fmt.Errorf("the Docker engine does not answer (%w); mend: tools/check docker", err)
	}
	if !errdefs.IsNotFound(err) {
		return fmt.Errorf("look for image %s: %w", ref, err)
	}
	var failures []error
	for _, provide := range sources {
		if err := provide(ctx, api, ref); err != nil {
			failures = append(failures, err)
			continue
		}
		return nil
	}
	return errors.Join(failures...)
}

// source provides an image or says why it cannot.
type source func(ctx context.Context, api *client.Client, ref string) error

// pull takes the image from a registry, giving up early where none answers: the first thing
// the engine tells about a pull comes after the registry's first answer.
func pull(ctx context.Context, api *client.Client, ref string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, pullPatience, errors.New("the pull takes too long"))
	defer cancel()
	ctx, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	watchdog := time.AfterFunc(registryPatience, func() { giveUp(errors.New("no registry answers")) })
	defer watchdog.Stop()

	body, err := api.ImagePull(ctx, ref, image.PullOptions{})
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, because(ctx, err))
	}
	defer body.Close()
	messages := firstByte{Reader: body, then: func() { watchdog.Stop() }}
	if err := jsonmessage.DisplayJSONMessagesStream(&messages, io.Discard, 0, false, nil); err != nil {
		return fmt.Errorf("pull %s: %w", ref, because(ctx, err))
	}
	return nil
}

// because prefers the reason why a context ended over "context canceled".
func because(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// firstByte calls then when something was read.
type firstByte struct {
	io.Reader
	then func()
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	if n > 0 {
		f.then()
	}
	return n, err
}
