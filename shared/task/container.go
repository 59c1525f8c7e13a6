package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
)

// ContainerStatus is a container's lastStatus.
type ContainerStatus string

const (
	ContainerPending ContainerStatus = "PENDING"
	ContainerRunning ContainerStatus = "RUNNING"
	ContainerStopped ContainerStatus = "STOPPED"
)

var containerRanks = map[ContainerStatus]int{ContainerPending: 10, ContainerRunning: 20, ContainerStopped: 30}

// Rank orders container statuses; an unknown one ranks 0.
func (s ContainerStatus) Rank() int { return containerRanks[s] }

// Known says whether s is a status at all.
func (s ContainerStatus) Known() bool { return containerRanks[s] > 0 }

// Binding is a port of a container on its host, or a row of them: then the two
// ranges (FIRST-LAST) are set and the two ports are 0.
type Binding struct {
	BindIP             string `json:"bindIP,omitempty"`
	ContainerPort      int    `json:"containerPort"`
	HostPort           int    `json:"hostPort"`
	ContainerPortRange string `json:"containerPortRange,omitempty"`
	HostPortRange      string `json:"hostPortRange,omitempty"`
	Protocol           string `json:"protocol"`
}

// Container is what is known of one container of a task.
type Container struct {
	Name        string          `json:"name"`
	Status      ContainerStatus `json:"status"`
	RuntimeID   string          `json:"runtimeId,omitempty"`
	Image       string          `json:"image,omitempty"`
	ImageDigest string          `json:"imageDigest,omitempty"`
	ExitCode    *int            `json:"exitCode,omitempty"`
	Reason      string          `json:"reason,omitempty"`
	Bindings    []Binding       `json:"bindings,omitempty"`
	GPUs        []string        `json:"gpus,omitempty"`
	Health      Health          `json:"healthStatus,omitempty"` // empty: nothing checks it
	StartedAt   time.Time       `json:"startedAt,omitzero"`
	StoppedAt   time.Time       `json:"stoppedAt,omitzero"`
}

// ContainerID is the last part of a container's ARN: a UUID made of its task's id and
// its name, so that whoever knows these names it the same.
func ContainerID(taskID, name string) string {
	sum := sha256.Sum256([]byte(taskID + "/" + name))
	sum[6], sum[8] = sum[6]&0x0f|0x80, sum[8]&0x3f|0x80 // version 8: of one's own making
	id := hex.EncodeToString(sum[:16])
	return strings.Join([]string{id[:8], id[8:12], id[12:16], id[16:20], id[20:]}, "-")
}

// MergeContainers is what is known of a task's containers after a report. A
// status only rises; what was unknown is filled in; a fact once known about a
// stopped container (its exit code, reason, times) is never overwritten.
// Containers are matched by name; a reported one nobody knows is dropped when
// known names any (T5), and taken when known is empty.
func MergeContainers(known, reported []Container) []Container {
	if len(known) == 0 {
		return append([]Container(nil), reported...)
	}
	out := append([]Container(nil), known...)
	for i := range out {
		for _, r := range reported {
			if r.Name == out[i].Name {
				out[i] = mergeContainer(out[i], r)
			}
		}
	}
	return out
}

func mergeContainer(k, r Container) Container {
	if r.Status.Rank() > k.Status.Rank() {
		k.Status = r.Status
	}
	fill(&k.RuntimeID, r.RuntimeID)
	fill(&k.Image, r.Image)
	fill(&k.ImageDigest, r.ImageDigest)
	if r.Status == ContainerStopped {
		if k.ExitCode == nil {
			k.ExitCode = r.ExitCode
		}
		fill(&k.Reason, r.Reason)
	}
	if len(k.Bindings) == 0 {
		k.Bindings = r.Bindings
	}
	if len(k.GPUs) == 0 {
		k.GPUs = r.GPUs
	}
	if k.StartedAt.IsZero() {
		k.StartedAt = r.StartedAt
	}
	if k.StoppedAt.IsZero() {
		k.StoppedAt = r.StoppedAt
	}
	return k
}

func fill(into *string, from string) {
	if *into == "" {
		*into = from
	}
}

// StopContainers is containers with every one STOPPED, for a task whose end
// somebody other than its agent decided. Clients rely on a STOPPED task having
// no other containers.
func StopContainers(all []Container, reason string, at time.Time) []Container {
	out := append([]Container(nil), all...)
	for i := range out {
		if out[i].Status != ContainerStopped {
			out[i].Status = ContainerStopped
			fill(&out[i].Reason, reason)
			if out[i].StoppedAt.IsZero() {
				out[i].StoppedAt = at
			}
		}
	}
	return out
}
