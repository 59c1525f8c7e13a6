package introspect

import (
	"net/http"
	"time"

	"github.com/VictoriaMetrics/metrics"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// metricsOf writes one look in Prometheus's text format.
type metricsOf struct{ look func() agent.Look }

func newMetrics(look func() agent.Look) http.Handler { return metricsOf{look} }

func (m metricsOf) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	l := m.look()
	set := metrics.NewSet()
	gauge := func(name string, value float64) { set.NewGauge(name, func() float64 { return value }) }
	flag := func(name string, yes bool) {
		if yes {
			gauge(name, 1)
		} else {
			gauge(name, 0)
		}
	}
	flag("longshore_agent_registered", l.Registered)
	flag("longshore_agent_docker_ok", l.Docker.OK)
	flag("longshore_agent_commands_ok", l.Commands.OK)
	flag("longshore_agent_heartbeats_ok", l.Heartbeats.OK)
	if l.TaskEndpoint != nil {
		flag("longshore_agent_task_endpoint_ok", l.TaskEndpoint.OK)
	}
	if l.MetadataBlock != nil {
		flag("longshore_agent_instance_metadata_blocked", l.MetadataBlock.OK)
	}
	gauge("longshore_agent_epoch", float64(l.Epoch))
	if !l.HeartbeatSent.IsZero() {
		gauge("longshore_agent_heartbeat_timestamp_seconds", float64(l.HeartbeatSent.UnixNano())/float64(time.Second))
	}
	gauge("longshore_agent_commands_held", float64(l.Held))
	gauge("longshore_agent_tombstones", float64(l.Tombstones))
	flag("longshore_agent_room_ok", l.NoRoom == "")
	if i := l.Images; i != nil {
		gauge("longshore_agent_images", float64(i.Known))
		gauge("longshore_agent_images_tracked", float64(i.Tracked))
		gauge("longshore_agent_images_removed", float64(i.Removed))
		gauge("longshore_agent_images_freed_bytes", float64(i.FreedBytes))
		gauge(`longshore_agent_pulls{state="running"}`, float64(i.PullsRunning))
		gauge(`longshore_agent_pulls{state="waiting"}`, float64(i.PullsWaiting))
		if i.DiskUsed > 0 {
			gauge("longshore_agent_images_disk_used_percent", i.DiskUsed)
			gauge("longshore_agent_images_disk_free_bytes", float64(i.DiskFreeMiB<<20))
		}
		if !i.CleanedAt.IsZero() {
			gauge("longshore_agent_images_cleaned_timestamp_seconds", float64(i.CleanedAt.UnixNano())/float64(time.Second))
		}
	}
	counts := map[string]int{"PENDING": 0, "RUNNING": 0, "STOPPING": 0, "STOPPED": 0, "REFUSED": 0}
	unacknowledged, abandoned := 0, 0
	for _, t := range l.Tasks {
		if t.Refused != "" {
			counts["REFUSED"]++
		} else {
			counts[string(t.Status)]++
		}
		if t.Ended() && !t.Acknowledged {
			unacknowledged++
		}
		if t.Abandoned {
			abandoned++
		}
	}
	for status, n := range counts {
		gauge(`longshore_agent_tasks{status="`+status+`"}`, float64(n))
	}
	gauge("longshore_agent_ends_unacknowledged", float64(unacknowledged))
	gauge("longshore_agent_cleanups_abandoned", float64(abandoned))
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	set.WritePrometheus(w)
	metrics.WriteProcessMetrics(w)
}
