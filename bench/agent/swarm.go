package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/docker/docker/api/types/events"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/api/types/swarm"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/test/image"
)

// swarmSide is a swarm of one node, this engine: what `docker service create
// --no-resolve-image --replicas n` asks of it.
type swarmSide struct {
	api     *client.Client
	was     []string // the networks that were there before
	service string
	runs    int
}

func joinSwarm(ctx context.Context, api *client.Client) (*swarmSide, error) {
	info, err := api.Info(ctx)
	if err != nil {
		return nil, err
	}
	if state := info.Swarm.LocalNodeState; state != swarm.LocalNodeStateInactive {
		return nil, fmt.Errorf("the engine is %s in a swarm of somebody's: with -swarm=false it is left out", state)
	}
	s := &swarmSide{api: api}
	if s.was, err = s.networks(ctx); err != nil {
		return nil, err
	}
	_, err = api.SwarmInit(ctx, swarm.InitRequest{ListenAddr: "127.0.0.1:2377", AdvertiseAddr: "127.0.0.1"})
	if err != nil {
		return nil, fmt.Errorf("begin a swarm: %w", err)
	}
	return s, nil
}

func (s *swarmSide) networks(ctx context.Context) (names []string, err error) {
	all, err := s.api.NetworkList(ctx, network.ListOptions{})
	for _, n := range all {
		names = append(names, n.Name)
	}
	return names, err
}

func (s *swarmSide) start(ctx context.Context, mode string, n int) (time.Time, []string, error) {
	s.runs++
	replicas := uint64(n)
	spec := swarm.ServiceSpec{
		Annotations: swarm.Annotations{Name: fmt.Sprintf("longshore-bench-%d", s.runs)},
		Mode:        swarm.ServiceMode{Replicated: &swarm.ReplicatedService{Replicas: &replicas}},
		TaskTemplate: swarm.TaskSpec{
			ContainerSpec: &swarm.ContainerSpec{Image: image.Ref, Command: command},
			Resources:     &swarm.ResourceRequirements{Limits: &swarm.Limit{MemoryBytes: memoryMiB << 20}},
		},
	}
	if mode == "host" {
		spec.TaskTemplate.Networks = []swarm.NetworkAttachmentConfig{{Target: "host"}}
	}
	starts, failed := s.started(ctx)
	from := time.Now()
	made, err := s.api.ServiceCreate(ctx, spec, swarm.ServiceCreateOptions{})
	if err != nil {
		return from, nil, err
	}
	s.service = made.ID
	var ids []string
	for len(ids) < n {
		select {
		case e := <-starts:
			if e.of == s.service && !slices.Contains(ids, e.container) {
				ids = append(ids, e.container)
			}
		case err := <-failed:
			return from, nil, err
		}
	}
	return from, ids, nil
}

type swarmStart struct{ container, of string }

// started tells of each container that starts, from now on.
func (s *swarmSide) started(ctx context.Context) (<-chan swarmStart, <-chan error) {
	messages, failed := s.api.Events(ctx, events.ListOptions{Filters: filters.NewArgs(filters.Arg("type", "container"), filters.Arg("event", "start"))})
	out := make(chan swarmStart)
	go func() {
		for {
			select {
			case m := <-messages:
				select {
				case out <- swarmStart{m.Actor.ID, m.Actor.Attributes["com.docker.swarm.service.id"]}:
				case <-ctx.Done():
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return out, failed
}

func (s *swarmSide) clear(ctx context.Context) error {
	if s.service == "" {
		return nil
	}
	id := s.service
	s.service = ""
	if err := s.api.ServiceRemove(ctx, id); err != nil {
		return err
	}
	return gone(ctx, s.api, "com.docker.swarm.service.id="+id)
}

// close leaves the swarm, and takes away the networks that came with it.
func (s *swarmSide) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	errs := []error{s.clear(ctx), s.api.SwarmLeave(ctx, true)}
	now, err := s.networks(ctx)
	errs = append(errs, err)
	for _, name := range now {
		if !slices.Contains(s.was, name) && name != "ingress" { // that one goes by itself
			errs = append(errs, s.api.NetworkRemove(ctx, name))
		}
	}
	return errors.Join(errs...)
}
