package ecsapi

import (
	"maps"
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type resourceShape struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Double  float64  `json:"doubleValue"`
	Long    int64    `json:"longValue"`
	Integer int      `json:"integerValue"`
	Set     []string `json:"stringSetValue,omitzero"`
}

type versionShape struct {
	AgentVersion  string `json:"agentVersion,omitempty"`
	AgentHash     string `json:"agentHash,omitempty"`
	DockerVersion string `json:"dockerVersion,omitempty"`
}

type healthDetail struct {
	Type             string          `json:"type"`
	Status           string          `json:"status"`
	LastUpdated      taskdef.Instant `json:"lastUpdated,omitzero"`
	LastStatusChange taskdef.Instant `json:"lastStatusChange,omitzero"`
}

type healthShape struct {
	OverallStatus string         `json:"overallStatus"`
	Details       []healthDetail `json:"details"`
}

type instanceShape struct {
	ContainerInstanceARN string              `json:"containerInstanceArn"`
	EC2InstanceID        string              `json:"ec2InstanceId,omitempty"`
	Status               string              `json:"status"`
	StatusReason         string              `json:"statusReason,omitempty"`
	AgentConnected       bool                `json:"agentConnected"`
	RunningTasksCount    int                 `json:"runningTasksCount"`
	PendingTasksCount    int                 `json:"pendingTasksCount"`
	RegisteredResources  []resourceShape     `json:"registeredResources"`
	RemainingResources   []resourceShape     `json:"remainingResources"`
	VersionInfo          versionShape        `json:"versionInfo"`
	Attributes           []taskdef.Attribute `json:"attributes"`
	Attachments          []struct{}          `json:"attachments"`
	Tags                 []taskdef.Tag       `json:"tags"`
	RegisteredAt         taskdef.Instant     `json:"registeredAt,omitzero"`
	Version              int64               `json:"version"`
	HealthStatus         *healthShape        `json:"healthStatus,omitempty"`
}

func (h *Handler) showInstance(v *control.InstanceView, tags bool) instanceShape {
	s := instanceShape{
		ContainerInstanceARN: h.control.InstanceARN(v.Cluster, v.ID), EC2InstanceID: v.EC2InstanceID,
		Status: string(v.Ledger.Status), StatusReason: v.StatusReason(), AgentConnected: v.Ledger.Connected,
		RunningTasksCount: v.Tasks.Running, PendingTasksCount: v.Tasks.Pending,
		RegisteredResources: resources(v.Ledger.Registered.CPU, v.Ledger.Registered.MemoryMiB, v.Ledger.Registered.TCP, v.Ledger.Registered.UDP, v.Ledger.Registered.GPUs),
		RemainingResources:  remaining(v),
		VersionInfo:         versionShape{AgentVersion: v.AgentVersion, AgentHash: v.AgentHash},
		Attributes:          []taskdef.Attribute{}, Attachments: []struct{}{},
		Tags: tagList(v.Instance.Tags, tags), RegisteredAt: instant(v.RegisteredAt), Version: v.Revision(),
	}
	if v.DockerVersion != "" {
		s.VersionInfo.DockerVersion = "DockerVersion: " + v.DockerVersion
	}
	all := v.ShownAttributes()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		s.Attributes = append(s.Attributes, taskdef.Attribute{Name: name, Value: all[name]})
	}
	return s
}

// remaining is what the ledger has left to give: of ports, as ECS has it, those
// that are taken. A lost instance has nothing left.
func remaining(v *control.InstanceView) []resourceShape {
	l := &v.Ledger
	if v.Lost() || l.Status == control.Inactive {
		return resources(0, 0, l.Registered.TCP, l.Registered.UDP, nil)
	}
	cpu, memory := l.Free()
	return resources(max(cpu, 0), max(memory, 0), union(l.Registered.TCP, l.Held.TCP), union(l.Registered.UDP, l.Held.UDP), l.FreeGPUs())
}

func union(a, b []int) []int {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

func resources(cpu, memory int, tcp, udp []int, gpus []string) []resourceShape {
	return []resourceShape{
		{Name: "CPU", Type: "INTEGER", Integer: cpu},
		{Name: "MEMORY", Type: "INTEGER", Integer: memory},
		{Name: "PORTS", Type: "STRINGSET", Set: each(tcp, strconv.Itoa)},
		{Name: "PORTS_UDP", Type: "STRINGSET", Set: each(udp, strconv.Itoa)},
		{Name: "GPU", Type: "STRINGSET", Set: each(gpus, func(id string) string { return id })},
	}
}

// healthOf is what the instance's agent last said of its container engine.
func healthOf(v *control.InstanceView) *healthShape {
	status, since := "OK", v.Lease.StageSince
	switch {
	case v.Lease.Version == 0 || v.Lost():
		status = "INSUFFICIENT_DATA"
	case !v.Lease.Impaired.IsZero():
		status, since = "IMPAIRED", v.Lease.Impaired
	case !v.Lease.NoRoom.IsZero(): // it can not start what it would have to pull
		status, since = "IMPAIRED", v.Lease.NoRoom
	}
	return &healthShape{status, []healthDetail{{"CONTAINER_RUNTIME", status, instant(v.Lease.Sent), instant(since)}}}
}
