package endpoint

import (
	"cmp"
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

func (s *Server) containerMetadata(w http.ResponseWriter, _ *http.Request, b bearer) {
	answer(w, http.StatusOK, containerOf(b.task, b.shown, b.detail))
}

func (s *Server) taskMetadata(w http.ResponseWriter, r *http.Request, b bearer) {
	t, no := s.taskOf(r.Context(), b)
	if no != nil {
		refuse(w, no)
		return
	}
	answer(w, http.StatusOK, t)
}

// taskWithTags is the task and, in ECS's own words for it, that its tags are not to
// be had: the agent does not know them.
func (s *Server) taskWithTags(w http.ResponseWriter, r *http.Request, b bearer) {
	t, no := s.taskOf(r.Context(), b)
	if no != nil {
		refuse(w, no)
		return
	}
	for _, field := range []string{"ContainerInstanceTags", "TaskTags"} {
		t.Errors = append(t.Errors, ecsError{ErrorField: field, ErrorCode: "UnsupportedFeatureException",
			ErrorMessage: "tags are not known to the agent; ListTagsForResource has them", StatusCode: http.StatusBadRequest, ResourceARN: t.TaskARN})
	}
	answer(w, http.StatusOK, t)
}

func (s *Server) taskOf(ctx context.Context, b bearer) (ecsTask, *refusal) {
	v := b.task
	t := ecsTask{
		Cluster: clusterARN(v.ARN, v.Cluster), TaskARN: v.ARN, Family: v.Family, Revision: strconv.Itoa(v.Revision), ServiceName: v.ServiceName,
		DesiredStatus: string(v.Desired), KnownStatus: knownTask(v.Status), PullStartedAt: v.PullStartedAt, PullStoppedAt: v.PullStoppedAt,
		AvailabilityZone: s.Zone, LaunchType: "EC2", Containers: []ecsContainer{},
	}
	if def := v.Definition; def != nil && cmp.Or(def.CPU, def.Memory) != "" {
		whole := taskdef.Needs(*def, taskdef.TaskOverride{})
		t.Limits = &ecsTaskLimits{}
		if def.CPU != "" {
			t.Limits.CPU = float64(whole.CPU) / 1024
		}
		if def.Memory != "" {
			t.Limits.Memory = whole.MemoryMiB
		}
	}
	for _, c := range v.Containers {
		id := b.id
		id.Container = c.Name
		d, err := s.details.of(ctx, id)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return t, errNoEngine
		}
		t.Containers = append(t.Containers, containerOf(v, c, d))
	}
	return t, nil
}

// containerOf is a container in ECS's words; d is empty for one that is not made yet.
func containerOf(v agent.Served, c task.Container, d agent.Detail) ecsContainer {
	out := ecsContainer{
		DockerID: cmp.Or(d.RuntimeID, c.RuntimeID), Name: c.Name, DockerName: d.Name, Image: cmp.Or(c.Image, d.Image), ImageID: cmp.Or(c.ImageDigest, d.ImageID),
		Labels: d.Labels, DesiredStatus: string(v.Desired), KnownStatus: knownContainer(c.Status, d), ExitCode: c.ExitCode,
		CreatedAt: d.CreatedAt, StartedAt: d.StartedAt, FinishedAt: d.FinishedAt, Type: "NORMAL", LogDriver: d.LogDriver,
		ContainerARN: containerARN(v.ARN, v.ID, c.Name),
	}
	if c.Status == task.ContainerStopped {
		out.DesiredStatus = string(task.DesiredStopped)
	}
	for _, b := range c.Bindings {
		if b.ContainerPort > 0 { // a row of ports has no member in ECS's shape
			out.Ports = append(out.Ports, ecsPort{ContainerPort: b.ContainerPort, Protocol: b.Protocol, HostPort: b.HostPort, HostIP: b.BindIP})
		}
	}
	for _, m := range d.Mounts {
		out.Volumes = append(out.Volumes, ecsVolume{DockerName: m.Name, Source: m.Source, Destination: m.Destination})
	}
	if h := d.Health; h != nil && c.Health != "" {
		out.Health = &ecsHealth{Status: string(c.Health), Since: h.At, ExitCode: h.ExitCode, Output: h.Output}
	}
	if n, has := v.Restarts[c.Name]; has {
		out.RestartCount = &n
	}
	if d.RuntimeID != "" {
		out.Networks = []ecsNetwork{networkOf(d)}
	}
	if v.Definition == nil {
		return out
	}
	def, _ := v.Definition.Container(c.Name)
	if def.CPU != nil || def.Memory != nil {
		out.Limits = &ecsLimits{CPU: value(def.CPU), Memory: value(def.Memory)}
	}
	if l := def.LogConfiguration; l != nil {
		out.LogDriver, out.LogOptions = l.LogDriver, plain(l.Options)
	}
	return out
}

func networkOf(d agent.Detail) ecsNetwork {
	n := ecsNetwork{NetworkMode: taskdef.NetworkBridge}
	if d.HostNetwork {
		n.NetworkMode = taskdef.NetworkHost
	}
	for _, a := range d.Addresses {
		if a.Is4() {
			n.IPv4 = append(n.IPv4, a.String())
		} else {
			n.IPv6 = append(n.IPv6, a.String())
		}
	}
	return n
}

// secretOption are options of log drivers that may hold a secret.
var secretOption = regexp.MustCompile(`(?i)token|secret|password|passwd|credential|key$|auth`)

// plain are the options that anybody may read. Those that come from secrets are not
// in a definition's options at all.
func plain(options map[string]string) logOptions {
	out := logOptions{}
	for name, v := range options {
		if !secretOption.MatchString(name) {
			out[name] = v
		}
	}
	return out
}

// The statuses of ECS's agent, which differ from the API's.
func knownTask(s task.Status) string {
	switch s {
	case task.Running, task.Stopping:
		return "RUNNING"
	case task.Stopped:
		return "STOPPED"
	case task.Provisioning, task.Pending: // one of its containers asks
	}
	return "CREATED"
}

func knownContainer(s task.ContainerStatus, d agent.Detail) string {
	switch {
	case s == task.ContainerStopped:
		return "STOPPED"
	case s == task.ContainerRunning || d.Running:
		return "RUNNING"
	case d.RuntimeID != "":
		return "CREATED"
	}
	return "NONE"
}

// clusterARN is made of a task's, arn:…:task/CLUSTER/ID.
func clusterARN(taskARN, cluster string) string {
	head, rest, ok := strings.Cut(taskARN, ":task/")
	if name, _, found := strings.Cut(rest, "/"); ok && found {
		return head + ":cluster/" + name
	}
	return cluster
}

func containerARN(taskARN, taskID, container string) string {
	head, rest, ok := strings.Cut(taskARN, ":task/")
	if !ok {
		return ""
	}
	return head + ":container/" + rest + "/" + task.ContainerID(taskID, container)
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
