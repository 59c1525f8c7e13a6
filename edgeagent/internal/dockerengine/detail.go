package dockerengine

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Detail shows a container to those of its own task.
func (e *Engine) Detail(ctx context.Context, id agent.ContainerID) (agent.Detail, error) {
	var c container.InspectResponse
	err := e.do(ctx, "inspect container", e.limits.Inspect, func(ctx context.Context, api *client.Client) error {
		var err error
		c, err = e.inspect(ctx, api, id)
		return err
	})
	if err != nil {
		return agent.Detail{}, err
	}
	return detail(c), nil
}

// Stats is what the engine measures of a container at one moment, in its own JSON.
func (e *Engine) Stats(ctx context.Context, id agent.ContainerID) (json.RawMessage, error) {
	var raw json.RawMessage
	err := e.do(ctx, "read the stats of container", e.limits.Inspect, func(ctx context.Context, api *client.Client) error {
		return e.with(ctx, api, id, func(runtimeID string) error {
			answer, err := api.ContainerStatsOneShot(ctx, runtimeID)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			return json.NewDecoder(answer.Body).Decode(&raw)
		})
	})
	return raw, err
}

func detail(c container.InspectResponse) agent.Detail {
	d := agent.Detail{
		RuntimeID: c.ID, Name: strings.TrimPrefix(c.Name, "/"), Image: c.Config.Image, ImageID: c.Image, Labels: map[string]string{},
		Running: c.State.Running, CreatedAt: instant(c.Created), StartedAt: instant(c.State.StartedAt), FinishedAt: instant(c.State.FinishedAt),
		TaskRole: c.Config.Labels[labelTaskRole],
	}
	if c.State.Running { // Docker goes on showing the end of an earlier run
		d.FinishedAt = instant("")
	}
	for name, value := range c.Config.Labels {
		if !strings.HasPrefix(name, ours) {
			d.Labels[name] = value
		}
	}
	if c.HostConfig != nil {
		d.HostNetwork, d.LogDriver = c.HostConfig.NetworkMode.IsHost(), c.HostConfig.LogConfig.Type
	}
	if c.NetworkSettings != nil && !d.HostNetwork {
		for _, n := range c.NetworkSettings.Networks {
			for _, text := range []string{n.IPAddress, n.GlobalIPv6Address} {
				if a, err := netip.ParseAddr(text); err == nil {
					d.Addresses = append(d.Addresses, a)
				}
			}
		}
	}
	for _, m := range c.Mounts {
		d.Mounts = append(d.Mounts, agent.Mount{Name: m.Name, Source: m.Source, Destination: m.Destination})
	}
	if h := c.State.Health; h != nil && h.Status != container.NoHealthcheck {
		d.Health = &agent.HealthCheck{Status: h.Status}
		if n := len(h.Log); n > 0 && h.Log[n-1] != nil {
			last := h.Log[n-1]
			d.Health.ExitCode, d.Health.Output, d.Health.At = last.ExitCode, last.Output, last.End.UTC()
		}
	}
	return d
}
