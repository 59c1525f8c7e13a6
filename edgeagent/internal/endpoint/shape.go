package endpoint

import "time"

// What follows are the shapes of ECS's task metadata, version 4.

type ecsTask struct {
	Cluster          string
	TaskARN          string
	Family           string
	Revision         string
	ServiceName      string `json:",omitempty"`
	DesiredStatus    string
	KnownStatus      string
	Limits           *ecsTaskLimits `json:",omitempty"`
	PullStartedAt    time.Time      `json:",omitzero"`
	PullStoppedAt    time.Time      `json:",omitzero"`
	AvailabilityZone string         `json:",omitempty"`
	LaunchType       string
	Containers       []ecsContainer
	Errors           []ecsError `json:",omitempty"`
}

// ecsTaskLimits are in vCPU and MiB.
type ecsTaskLimits struct {
	CPU    float64 `json:",omitempty"`
	Memory int     `json:",omitempty"`
}

type ecsContainer struct {
	DockerID      string `json:"DockerId"`
	Name          string
	DockerName    string
	Image         string
	ImageID       string
	Ports         []ecsPort         `json:",omitempty"`
	Labels        map[string]string `json:",omitempty"`
	DesiredStatus string
	KnownStatus   string
	ExitCode      *int         `json:",omitempty"`
	Limits        *ecsLimits   `json:",omitempty"`
	CreatedAt     time.Time    `json:",omitzero"`
	StartedAt     time.Time    `json:",omitzero"`
	FinishedAt    time.Time    `json:",omitzero"`
	Type          string       // NORMAL: all are a definition's
	Health        *ecsHealth   `json:",omitempty"`
	Volumes       []ecsVolume  `json:",omitempty"`
	LogDriver     string       `json:",omitempty"`
	LogOptions    logOptions   `json:",omitempty"`
	ContainerARN  string       `json:",omitempty"`
	Networks      []ecsNetwork `json:",omitempty"`
	RestartCount  *int         `json:",omitempty"`
}

type logOptions map[string]string

// ecsLimits are a container's CPU units and MiB.
type ecsLimits struct {
	CPU    int
	Memory int `json:",omitempty"`
}

type ecsPort struct {
	ContainerPort int
	Protocol      string
	HostPort      int    `json:",omitempty"`
	HostIP        string `json:"HostIp,omitempty"`
}

type ecsHealth struct {
	Status   string    `json:"status,omitempty"`
	Since    time.Time `json:"statusSince,omitzero"`
	ExitCode int       `json:"exitCode,omitempty"`
	Output   string    `json:"output,omitempty"`
}

type ecsVolume struct {
	DockerName  string `json:",omitempty"`
	Source      string `json:",omitempty"`
	Destination string `json:",omitempty"`
}

type ecsNetwork struct {
	NetworkMode string
	IPv4        []string `json:"IPv4Addresses,omitempty"`
	IPv6        []string `json:"IPv6Addresses,omitempty"`
}

type ecsError struct {
	ErrorField   string
	ErrorCode    string
	ErrorMessage string
	StatusCode   int
	ResourceARN  string
}
