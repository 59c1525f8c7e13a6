package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/image"
)

// bareLoop makes the calls that starting a container takes, and nothing else:
// look for the image, create, start, look whether it runs. Its requests are
// those that made a container of the agent's.
type bareLoop struct {
	api  *client.Client
	like map[string]container.InspectResponse // by network mode
	runs int
}

const bareLabel = "longshore-bench=bare"

func (l *bareLoop) start(ctx context.Context, mode string, n int) (time.Time, []string, error) {
	l.runs++
	ids, errs := make([]string, n), make([]error, n)
	from := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { ids[i], errs[i] = l.one(ctx, mode, fmt.Sprintf("longshore-bench-%d-%d", l.runs, i)) })
	}
	all.Wait()
	return from, ids, errors.Join(errs...)
}

func (l *bareLoop) one(ctx context.Context, mode, name string) (string, error) {
	if _, err := l.api.ImageInspect(ctx, image.Ref); err != nil {
		return "", err
	}
	like := l.like[mode]
	config, host := *like.Config, *like.HostConfig
	config.Labels = map[string]string{}
	for key, value := range like.Config.Labels { // as many, of nobody the agent knows
		config.Labels["bench."+key] = value
	}
	config.Labels["longshore-bench"] = "bare"
	config.Hostname = ""
	made, err := l.api.ContainerCreate(ctx, &config, &host, nil, nil, name)
	if err != nil {
		return "", err
	}
	if err := l.api.ContainerStart(ctx, made.ID, container.StartOptions{}); err != nil {
		return "", err
	}
	seen, err := l.api.ContainerInspect(ctx, made.ID)
	if err == nil && !seen.State.Running {
		err = fmt.Errorf("container %s does not run: %s", name, seen.State.Error)
	}
	return made.ID, err
}

func (l *bareLoop) clear(context.Context) error { return removeAll(l.api, bareLabel) }

func (l *bareLoop) close() error { return removeAll(l.api, bareLabel) }
