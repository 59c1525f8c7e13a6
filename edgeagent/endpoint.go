package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/endpoint"
	"github.com/longshore-run/longshore/edgeagent/internal/hostprep"
	"github.com/longshore-run/longshore/edgeagent/internal/role"
	"github.com/longshore-run/longshore/shared/logkey"
)

// keyName is the file in the data directory that the ids of containers are made with.
const keyName = "endpoint.key"

// newEndpoint is where containers find their task's metadata and credentials; nil if
// that is switched off.
func newEndpoint(c settings, region string, engine endpoint.Engine, roles *role.Sessions, served func(string) (agent.Served, bool), log *slog.Logger) (*endpoint.Server, error) {
	if c.TaskEndpoint == endpoint.Off {
		return nil, nil
	}
	key, err := endpoint.Key(filepath.Join(c.DataDir, keyName))
	if err != nil {
		return nil, err
	}
	config := endpoint.Config{
		Address: c.TaskEndpoint, Key: key, HostNetwork: c.TaskRolesHost, Rate: c.TaskRPS[0], Burst: c.TaskRPS[1],
		Region: region, Zone: c.Zone, Engine: engine, Served: served, Own: endpoint.Own, Log: log, Now: now,
	}
	if c.TaskRoles {
		config.Assume = func(ctx context.Context, arn, session string) (endpoint.Credentials, error) {
			got, err := roles.Credentials(ctx, arn, session)
			return endpoint.Credentials{AccessKeyID: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, SessionToken: got.SessionToken, Expires: got.Expires}, err
		}
	}
	return endpoint.New(config), nil
}

// machineLook is what is known of the machine beside the agent: whether it serves its
// containers, and whether they are kept from the instance metadata service.
type machineLook struct {
	settings settings
	server   *endpoint.Server // nil: off
	limits   *taskLimits
}

// add completes a look.
func (m machineLook) add(l agent.Look) agent.Look {
	if m.server != nil {
		h := m.server.Health()
		l.TaskEndpoint = &h
	}
	if m.settings.BlockMetadata {
		why := hostprep.Blocked(m.settings.DataDir, now())
		l.MetadataBlock = &agent.Health{OK: why == "", Why: why}
	}
	l.TaskLimits, l.TaskLimitsWanted = m.limits.health()
	return l
}

// watch says in the log when containers may reach the instance metadata service, and
// when not any more.
func (m machineLook) watch(ctx context.Context, log *slog.Logger) {
	if !m.settings.BlockMetadata {
		return
	}
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for last := ""; ; {
		switch why := hostprep.Blocked(m.settings.DataDir, now()); {
		case why == last:
		case why != "":
			log.Warn("containers may reach the instance metadata service", logkey.Reason, why)
			last = why
		default:
			log.Info("containers are kept from the instance metadata service")
			last = why
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
