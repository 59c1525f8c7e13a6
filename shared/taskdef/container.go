package taskdef

// ContainerDefinition is one container of a task.
type ContainerDefinition struct {
	Name                   string                 `json:"name"`
	Image                  string                 `json:"image"`
	RepositoryCredentials  *RepositoryCredentials `json:"repositoryCredentials,omitzero"`
	CPU                    *int                   `json:"cpu,omitzero"`               // CPU units
	Memory                 *int                   `json:"memory,omitzero"`            // MiB, hard limit
	MemoryReservation      *int                   `json:"memoryReservation,omitzero"` // MiB, what is reserved
	Links                  []string               `json:"links,omitzero"`
	PortMappings           []PortMapping          `json:"portMappings,omitzero"`
	Essential              *bool                  `json:"essential,omitzero"`
	RestartPolicy          *RestartPolicy         `json:"restartPolicy,omitzero"`
	EntryPoint             []string               `json:"entryPoint,omitzero"`
	Command                []string               `json:"command,omitzero"`
	Environment            []KeyValuePair         `json:"environment,omitzero"`
	EnvironmentFiles       []EnvironmentFile      `json:"environmentFiles,omitzero"`
	MountPoints            []MountPoint           `json:"mountPoints,omitzero"`
	VolumesFrom            []VolumeFrom           `json:"volumesFrom,omitzero"`
	LinuxParameters        *LinuxParameters       `json:"linuxParameters,omitzero"`
	Secrets                []Secret               `json:"secrets,omitzero"`
	DependsOn              []Dependency           `json:"dependsOn,omitzero"`
	StartTimeout           *int                   `json:"startTimeout,omitzero"` // seconds
	StopTimeout            *int                   `json:"stopTimeout,omitzero"`  // seconds
	VersionConsistency     string                 `json:"versionConsistency,omitzero"`
	Hostname               string                 `json:"hostname,omitzero"`
	User                   string                 `json:"user,omitzero"`
	WorkingDirectory       string                 `json:"workingDirectory,omitzero"`
	DisableNetworking      *bool                  `json:"disableNetworking,omitzero"`
	Privileged             *bool                  `json:"privileged,omitzero"`
	ReadonlyRootFilesystem *bool                  `json:"readonlyRootFilesystem,omitzero"`
	DNSServers             []string               `json:"dnsServers,omitzero"`
	DNSSearchDomains       []string               `json:"dnsSearchDomains,omitzero"`
	ExtraHosts             []HostEntry            `json:"extraHosts,omitzero"`
	DockerSecurityOptions  []string               `json:"dockerSecurityOptions,omitzero"`
	Interactive            *bool                  `json:"interactive,omitzero"`
	PseudoTerminal         *bool                  `json:"pseudoTerminal,omitzero"`
	DockerLabels           map[string]string      `json:"dockerLabels,omitzero"`
	Ulimits                []Ulimit               `json:"ulimits,omitzero"`
	LogConfiguration       *LogConfiguration      `json:"logConfiguration,omitzero"`
	HealthCheck            *HealthCheck           `json:"healthCheck,omitzero"`
	SystemControls         []SystemControl        `json:"systemControls,omitzero"`
	ResourceRequirements   []ResourceRequirement  `json:"resourceRequirements,omitzero"`
	FirelensConfiguration  *FirelensConfiguration `json:"firelensConfiguration,omitzero"`
	CredentialSpecs        []string               `json:"credentialSpecs,omitzero"`
}

// IsEssential says whether the task ends when this container does: yes where nothing is said.
func (c ContainerDefinition) IsEssential() bool { return c.Essential == nil || *c.Essential }

// ReservedMemory is what the container takes from an instance, in MiB: its reservation, else its limit, else nothing.
func (c ContainerDefinition) ReservedMemory() int {
	if r := value(c.MemoryReservation); r > 0 {
		return r
	}
	return value(c.Memory)
}

// RepositoryCredentials names the secret with the name and password for a private registry.
type RepositoryCredentials struct {
	CredentialsParameter string `json:"credentialsParameter,omitzero"`
}

// PortMapping publishes a port. Without a host port (or with 0) the engine picks one, except in host mode.
type PortMapping struct {
	ContainerPort      *int   `json:"containerPort,omitzero"`
	HostPort           *int   `json:"hostPort,omitzero"`
	Protocol           string `json:"protocol,omitzero"`
	Name               string `json:"name,omitzero"`
	AppProtocol        string `json:"appProtocol,omitzero"`
	ContainerPortRange string `json:"containerPortRange,omitzero"`
}

// RestartPolicy lets a container be restarted without ending its task.
type RestartPolicy struct {
	Enabled              *bool `json:"enabled,omitzero"`
	IgnoredExitCodes     []int `json:"ignoredExitCodes,omitzero"`
	RestartAttemptPeriod *int  `json:"restartAttemptPeriod,omitzero"` // seconds
}

// KeyValuePair is an environment variable or a property.
type KeyValuePair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// EnvironmentFile is a file of environment variables in S3.
type EnvironmentFile struct {
	Value string `json:"value,omitzero"`
	Type  string `json:"type,omitzero"`
}

// MountPoint mounts a volume of the task.
type MountPoint struct {
	SourceVolume  string `json:"sourceVolume,omitzero"`
	ContainerPath string `json:"containerPath,omitzero"`
	ReadOnly      *bool  `json:"readOnly,omitzero"`
}

// VolumeFrom mounts what another container mounts.
type VolumeFrom struct {
	SourceContainer string `json:"sourceContainer,omitzero"`
	ReadOnly        *bool  `json:"readOnly,omitzero"`
}

// Secret is an environment variable or a log option whose value is kept elsewhere.
type Secret struct {
	Name      string `json:"name,omitzero"`
	ValueFrom string `json:"valueFrom,omitzero"`
}

// The conditions of a Dependency.
const (
	ConditionStart    = "START"
	ConditionComplete = "COMPLETE"
	ConditionSuccess  = "SUCCESS"
	ConditionHealthy  = "HEALTHY"
)

// Dependency holds a container back until another one has come so far.
type Dependency struct {
	ContainerName string `json:"containerName,omitzero"`
	Condition     string `json:"condition,omitzero"`
}

// HostEntry is a line of /etc/hosts.
type HostEntry struct {
	Hostname  string `json:"hostname,omitzero"`
	IPAddress string `json:"ipAddress,omitzero"`
}

// Ulimit is a resource limit of processes; -1 is unlimited.
type Ulimit struct {
	Name      string `json:"name,omitzero"`
	SoftLimit *int   `json:"softLimit,omitzero"`
	HardLimit *int   `json:"hardLimit,omitzero"`
}

// LogConfiguration names Docker's log driver and its options.
type LogConfiguration struct {
	LogDriver     string            `json:"logDriver,omitzero"`
	Options       map[string]string `json:"options,omitzero"`
	SecretOptions []Secret          `json:"secretOptions,omitzero"`
}

// HealthCheck is a command that tells whether a container is well. Times are in seconds.
type HealthCheck struct {
	Command     []string `json:"command,omitzero"`
	Interval    *int     `json:"interval,omitzero"`
	Timeout     *int     `json:"timeout,omitzero"`
	Retries     *int     `json:"retries,omitzero"`
	StartPeriod *int     `json:"startPeriod,omitzero"`
}

// Checks says whether it checks anything: there is one, and it is not NONE.
func (h *HealthCheck) Checks() bool {
	return h != nil && len(h.Command) > 0 && h.Command[0] != "NONE"
}

// SystemControl is a namespaced kernel parameter.
type SystemControl struct {
	Namespace string `json:"namespace,omitzero"`
	Value     string `json:"value,omitzero"`
}

// ResourceGPU is the type of a ResourceRequirement for GPUs; its value is their number.
const ResourceGPU = "GPU"

// ResourceRequirement asks for devices.
type ResourceRequirement struct {
	Type            string           `json:"type,omitzero"`
	Value           string           `json:"value,omitzero"`
	SharingStrategy *SharingStrategy `json:"sharingStrategy,omitzero"`
}

// SharingStrategy says how a GPU is shared.
type SharingStrategy struct {
	NvidiaMps *NvidiaMpsAllocation `json:"nvidiaMps,omitzero"`
}

// NvidiaMpsAllocation is a share of a GPU under NVIDIA's Multi-Process Service.
type NvidiaMpsAllocation struct {
	Memory            *int `json:"memory,omitzero"` // MiB
	MaxComputePercent *int `json:"maxComputePercent,omitzero"`
}

// FirelensConfiguration makes a container a log router; it is held, and refused.
type FirelensConfiguration struct {
	Type    string            `json:"type,omitzero"`
	Options map[string]string `json:"options,omitzero"`
}

// LinuxParameters are the settings only Linux has.
type LinuxParameters struct {
	Capabilities       *KernelCapabilities `json:"capabilities,omitzero"`
	Devices            []Device            `json:"devices,omitzero"`
	InitProcessEnabled *bool               `json:"initProcessEnabled,omitzero"`
	SharedMemorySize   *int                `json:"sharedMemorySize,omitzero"` // MiB
	Tmpfs              []Tmpfs             `json:"tmpfs,omitzero"`
	MaxSwap            *int                `json:"maxSwap,omitzero"` // MiB
	Swappiness         *int                `json:"swappiness,omitzero"`
}

// KernelCapabilities are added to or dropped from Docker's default set; named without CAP_.
type KernelCapabilities struct {
	Add  []string `json:"add,omitzero"`
	Drop []string `json:"drop,omitzero"`
}

// Device shows a device of the host to a container.
type Device struct {
	HostPath      string   `json:"hostPath,omitzero"`
	ContainerPath string   `json:"containerPath,omitzero"`
	Permissions   []string `json:"permissions,omitzero"`
}

// Tmpfs is a file system in memory.
type Tmpfs struct {
	ContainerPath string   `json:"containerPath,omitzero"`
	Size          *int     `json:"size,omitzero"` // MiB
	MountOptions  []string `json:"mountOptions,omitzero"`
}

// value is what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
