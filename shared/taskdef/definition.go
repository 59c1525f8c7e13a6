package taskdef

// Spec is what a user registers and what is described again: the members that an Input and a TaskDefinition share.
type Spec struct {
	Family                        string                         `json:"family"`
	TaskRoleArn                   string                         `json:"taskRoleArn,omitzero"`
	ExecutionRoleArn              string                         `json:"executionRoleArn,omitzero"`
	NetworkMode                   string                         `json:"networkMode,omitzero"`
	ContainerDefinitions          []ContainerDefinition          `json:"containerDefinitions"`
	Volumes                       []Volume                       `json:"volumes,omitzero"`
	PlacementConstraints          []PlacementConstraint          `json:"placementConstraints,omitzero"`
	RequiresCompatibilities       []string                       `json:"requiresCompatibilities,omitzero"`
	CPU                           string                         `json:"cpu,omitzero"`    // CPU units, 1024 to a core
	Memory                        string                         `json:"memory,omitzero"` // MiB
	PidMode                       string                         `json:"pidMode,omitzero"`
	IpcMode                       string                         `json:"ipcMode,omitzero"`
	ProxyConfiguration            *ProxyConfiguration            `json:"proxyConfiguration,omitzero"`
	InferenceAccelerators         []InferenceAccelerator         `json:"inferenceAccelerators,omitzero"`
	EphemeralStorage              *EphemeralStorage              `json:"ephemeralStorage,omitzero"`
	RuntimePlatform               *RuntimePlatform               `json:"runtimePlatform,omitzero"`
	EnableFaultInjection          *bool                          `json:"enableFaultInjection,omitzero"`
	TrustedExecutionConfiguration *TrustedExecutionConfiguration `json:"trustedExecutionConfiguration,omitzero"`
}

// Input is the body of RegisterTaskDefinition.
type Input struct {
	Spec
	Tags []Tag `json:"tags,omitzero"`
}

// TaskDefinition is a registered definition: what is stored, and what DescribeTaskDefinition answers (its tags stand
// beside it, not in it).
type TaskDefinition struct {
	TaskDefinitionArn string `json:"taskDefinitionArn"`
	Spec
	Revision           int         `json:"revision"`
	Status             string      `json:"status"` // StatusActive, StatusInactive or StatusDeleteInProgress
	RequiresAttributes []Attribute `json:"requiresAttributes"`
	Compatibilities    []string    `json:"compatibilities"`
	RegisteredAt       Instant     `json:"registeredAt,omitzero"`
	RegisteredBy       string      `json:"registeredBy,omitzero"`
	DeregisteredAt     Instant     `json:"deregisteredAt,omitzero"`
	DeleteRequestedAt  Instant     `json:"deleteRequestedAt,omitzero"`
}

// The statuses of a registered definition.
const (
	StatusActive           = "ACTIVE"
	StatusInactive         = "INACTIVE"
	StatusDeleteInProgress = "DELETE_IN_PROGRESS"
)

// The network modes of ECS.
const (
	NetworkBridge = "bridge"
	NetworkHost   = "host"
	NetworkNone   = "none"
	NetworkAwsvpc = "awsvpc"
)

// The PID and IPC modes of ECS. Without one each container has namespaces of its own.
const (
	NamespaceHost = "host"
	NamespaceTask = "task"
	NamespaceNone = "none"
)

// Network is the network mode that holds: bridge where none was named.
func (s Spec) Network() string {
	if s.NetworkMode == "" {
		return NetworkBridge
	}
	return s.NetworkMode
}

// Container finds a container by its name.
func (s Spec) Container(name string) (ContainerDefinition, bool) {
	for _, c := range s.ContainerDefinitions {
		if c.Name == name {
			return c, true
		}
	}
	return ContainerDefinition{}, false
}

// PlacementConstraint is a constraint of a definition; its type is always memberOf.
type PlacementConstraint struct {
	Type       string `json:"type,omitzero"`
	Expression string `json:"expression,omitzero"`
}

// RuntimePlatform names the operating system and the processor a task is built for.
type RuntimePlatform struct {
	CPUArchitecture       string `json:"cpuArchitecture,omitzero"`
	OperatingSystemFamily string `json:"operatingSystemFamily,omitzero"`
}

// Attribute is a name with an optional value, as instances have them and definitions require them.
type Attribute struct {
	Name       string `json:"name"`
	Value      string `json:"value,omitzero"`
	TargetType string `json:"targetType,omitzero"`
	TargetID   string `json:"targetId,omitzero"`
}

// Tag is a tag of any resource.
type Tag struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// ProxyConfiguration is App Mesh's; it is held, and refused.
type ProxyConfiguration struct {
	Type          string         `json:"type,omitzero"`
	ContainerName string         `json:"containerName,omitzero"`
	Properties    []KeyValuePair `json:"properties,omitzero"`
}

// InferenceAccelerator is Elastic Inference's; it is held, and refused.
type InferenceAccelerator struct {
	DeviceName string `json:"deviceName,omitzero"`
	DeviceType string `json:"deviceType,omitzero"`
}

// EphemeralStorage is Fargate's; it is held, and refused.
type EphemeralStorage struct {
	SizeInGiB *int `json:"sizeInGiB,omitzero"`
}

// TrustedExecutionConfiguration is that of ECS Managed Instances; it is held, and refused.
type TrustedExecutionConfiguration struct {
	IsolationMode     string `json:"isolationMode,omitzero"`
	AttestationPolicy string `json:"attestationPolicy,omitzero"`
}
