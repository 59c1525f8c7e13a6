package ecsapi

import (
	"cmp"
	"encoding/json"
	"strconv"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type bindingShape struct {
	BindIP             string `json:"bindIP,omitempty"`
	ContainerPort      int    `json:"containerPort,omitempty"`
	HostPort           int    `json:"hostPort,omitempty"`
	ContainerPortRange string `json:"containerPortRange,omitempty"`
	HostPortRange      string `json:"hostPortRange,omitempty"`
	Protocol           string `json:"protocol"`
}

type containerShape struct {
	ContainerARN      string         `json:"containerArn"`
	TaskARN           string         `json:"taskArn"`
	Name              string         `json:"name"`
	Image             string         `json:"image,omitempty"`
	ImageDigest       string         `json:"imageDigest,omitempty"`
	RuntimeID         string         `json:"runtimeId,omitempty"`
	LastStatus        string         `json:"lastStatus"`
	ExitCode          *int           `json:"exitCode,omitempty"`
	Reason            string         `json:"reason,omitempty"`
	NetworkBindings   []bindingShape `json:"networkBindings"`
	NetworkInterfaces []struct{}     `json:"networkInterfaces"`
	HealthStatus      string         `json:"healthStatus"`
	CPU               string         `json:"cpu"`
	Memory            string         `json:"memory,omitempty"`
	MemoryReservation string         `json:"memoryReservation,omitempty"`
	GPUIDs            []string       `json:"gpuIds,omitempty"`
}

type taskShape struct {
	TaskARN              string              `json:"taskArn"`
	ClusterARN           string              `json:"clusterArn"`
	TaskDefinitionARN    string              `json:"taskDefinitionArn"`
	ContainerInstanceARN string              `json:"containerInstanceArn,omitempty"`
	AvailabilityZone     string              `json:"availabilityZone,omitempty"`
	LastStatus           string              `json:"lastStatus"`
	DesiredStatus        string              `json:"desiredStatus"`
	HealthStatus         string              `json:"healthStatus"`
	Connectivity         string              `json:"connectivity,omitempty"`
	ConnectivityAt       taskdef.Instant     `json:"connectivityAt,omitzero"`
	Containers           []containerShape    `json:"containers"`
	Attachments          []struct{}          `json:"attachments"`
	Attributes           []taskdef.Attribute `json:"attributes"`
	Group                string              `json:"group"`
	StartedBy            string              `json:"startedBy,omitempty"`
	LaunchType           string              `json:"launchType"`
	EnableExec           bool                `json:"enableExecuteCommand"`
	CPU                  string              `json:"cpu"`
	Memory               string              `json:"memory"`
	Overrides            json.RawMessage     `json:"overrides"`
	Tags                 []taskdef.Tag       `json:"tags"`
	Version              int64               `json:"version"`
	CreatedAt            taskdef.Instant     `json:"createdAt"`
	PullStartedAt        taskdef.Instant     `json:"pullStartedAt,omitzero"`
	PullStoppedAt        taskdef.Instant     `json:"pullStoppedAt,omitzero"`
	StartedAt            taskdef.Instant     `json:"startedAt,omitzero"`
	StoppingAt           taskdef.Instant     `json:"stoppingAt,omitzero"`
	ExecutionStoppedAt   taskdef.Instant     `json:"executionStoppedAt,omitzero"`
	StoppedAt            taskdef.Instant     `json:"stoppedAt,omitzero"`
	StopCode             string              `json:"stopCode,omitempty"`
	StoppedReason        string              `json:"stoppedReason,omitempty"`
}

// Attributes by which a task tells what ECS has no member for.
const (
	waitingReasonAttribute = "longshore.waitingReason"
	attemptAttribute       = "longshore.attempt"
	// Of a task that is kept on a lost instance: until when, or until its end is confirmed.
	keptUntilAttribute = "longshore.keptUntil"
	keptConfirmed      = "confirmed"
)

func instant(t time.Time) taskdef.Instant {
	if t.IsZero() {
		return 0
	}
	return taskdef.At(t)
}

func (h *Handler) showTask(v *control.TaskView, tags bool) taskShape {
	arn := h.control.TaskARN(v.Cluster, v.ID)
	s := taskShape{
		TaskARN: arn, ClusterARN: h.control.ClusterARN(v.Cluster), TaskDefinitionARN: h.control.DefinitionARN(v.Family, v.Number),
		AvailabilityZone: v.Zone, LastStatus: string(v.LastStatus), DesiredStatus: string(v.DesiredStatus), HealthStatus: healthStatus(v.Health),
		Containers: []containerShape{}, Attachments: []struct{}{}, Attributes: attributesOf(v),
		Group: v.Group, StartedBy: v.StartedBy, LaunchType: v.Launch, EnableExec: v.Exec,
		CPU: strconv.Itoa(v.Needs.CPU), Memory: strconv.Itoa(v.Needs.MemoryMiB), Overrides: overridesOf(v),
		Tags: tagList(v.Tags, tags), Version: v.Version, CreatedAt: instant(v.CreatedAt),
		PullStartedAt: instant(v.PullStartedAt), PullStoppedAt: instant(v.PullStoppedAt), StartedAt: instant(v.StartedAt),
		StoppingAt: instant(v.StoppingAt), ExecutionStoppedAt: instant(v.ExecStoppedAt), StoppedAt: instant(v.StoppedAt),
	}
	if v.Instance != "" {
		s.ContainerInstanceARN = h.control.InstanceARN(v.Cluster, v.Instance)
	}
	if v.LastStatus.Open() {
		s.Connectivity, s.ConnectivityAt = "CONNECTED", instant(v.AdmittedAt)
		if !v.Connected {
			s.Connectivity, s.ConnectivityAt = "DISCONNECTED", instant(v.Kept)
		}
	}
	if v.DesiredStatus == task.DesiredStopped && v.StopCause != "" {
		end := task.EndOf(v.StopCause)
		s.StopCode, s.StoppedReason = string(end.Code), v.StoppedReason
		if s.StoppedReason == "" {
			s.StoppedReason = end.Reason
		}
	}
	for _, k := range v.ShownContainers() {
		s.Containers = append(s.Containers, h.showContainer(v, arn, k))
	}
	return s
}

// healthStatus shows what nothing checks as ECS does.
func healthStatus(h task.Health) string { return string(cmp.Or(h, task.HealthUnknown)) }

func attributesOf(v *control.TaskView) []taskdef.Attribute {
	out := []taskdef.Attribute{}
	if v.LastStatus == task.Provisioning && v.WaitingReason != "" {
		out = append(out, taskdef.Attribute{Name: waitingReasonAttribute, Value: v.WaitingReason})
	}
	if v.KeptConfirmed {
		out = append(out, taskdef.Attribute{Name: keptUntilAttribute, Value: keptConfirmed})
	} else if !v.KeptUntil.IsZero() {
		out = append(out, taskdef.Attribute{Name: keptUntilAttribute, Value: v.KeptUntil.UTC().Format(time.RFC3339)})
	}
	if v.Attempt > 1 {
		out = append(out, taskdef.Attribute{Name: attemptAttribute, Value: strconv.Itoa(v.Attempt)})
	}
	return out
}

func overridesOf(v *control.TaskView) json.RawMessage {
	b, err := json.Marshal(taskdef.EchoOverride(v.Definition, v.Override))
	if err != nil {
		panic("ecsapi: overrides: " + err.Error()) // our own types hold nothing that JSON can not
	}
	return b
}

func (h *Handler) showContainer(v *control.TaskView, taskARN string, k task.Container) containerShape {
	s := containerShape{
		ContainerARN: h.control.ContainerARN(v.Cluster, v.ID, task.ContainerID(v.ID, k.Name)), TaskARN: taskARN,
		Name: k.Name, Image: k.Image, ImageDigest: k.ImageDigest, RuntimeID: k.RuntimeID, LastStatus: string(k.Status),
		ExitCode: k.ExitCode, Reason: k.Reason, HealthStatus: healthStatus(k.Health), CPU: "0", GPUIDs: k.GPUs,
		NetworkBindings: []bindingShape{}, NetworkInterfaces: []struct{}{},
	}
	for _, b := range k.Bindings {
		s.NetworkBindings = append(s.NetworkBindings, bindingShape(b))
	}
	if d, ok := v.Definition.Container(k.Name); ok {
		if d.CPU != nil {
			s.CPU = strconv.Itoa(*d.CPU)
		}
		if d.Memory != nil {
			s.Memory = strconv.Itoa(*d.Memory)
		}
		if d.MemoryReservation != nil {
			s.MemoryReservation = strconv.Itoa(*d.MemoryReservation)
		}
	}
	return s
}
