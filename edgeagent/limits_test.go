package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/setting"
)

// Where there can be no group for tasks that is said once, as loudly as they were asked for.
func TestLimits_WhatCannotBeIsSaid(t *testing.T) {
	for _, c := range []struct {
		setting, host, driver string
		log, why              string
		unwell                bool
	}{
		{"auto", "tcp://10.0.0.1:2376", "systemd", "level=WARN", "another machine", false},
		{"true", "tcp://10.0.0.1:2376", "systemd", "level=ERROR", "another machine", true},
		{"true", "unix:///var/run/docker.sock", "cgroupfs (rootless)", "level=ERROR", "cgroupfs (rootless)", true},
		{"false", "tcp://10.0.0.1:2376", "systemd", "", "", false},
	} {
		var log bytes.Buffer
		l := &taskLimits{instance: "i", log: slog.New(slog.NewTextHandler(&log, nil)),
			settings: settings{Agent: setting.Agent{DockerHost: c.host, TaskLimits: c.setting, CgroupPath: t.TempDir()}}}
		for range 2 {
			if l.open(t.Context(), c.driver, "2") != nil {
				t.Errorf("%+v: there are groups", c)
			}
		}
		said := log.String()
		if !strings.Contains(said, c.log) || !strings.Contains(said, c.why) || strings.Count(said, "\n") != min(len(c.log), 1) {
			t.Errorf("%+v: the log says %s", c, said)
		}
		look := machineLook{limits: l}.add(agent.Look{Registered: true, Docker: agent.Health{OK: true}, Commands: agent.Health{OK: true}, Heartbeats: agent.Health{OK: true}})
		if well(look) == c.unwell {
			t.Errorf("%+v: well: %t", c, well(look))
		}
		var page bytes.Buffer
		if err := show(&page, look, now()); err != nil {
			t.Fatal(err)
		}
		if got := page.String(); strings.Contains(got, "HOLD FOR EACH container: ") != (c.why != "") || !strings.Contains(got, c.why) {
			t.Errorf("%+v: the status says %s", c, got)
		}
	}
}
