package taskdef

// TaskOverride changes a definition for one task: the overrides of RunTask and StartTask.
type TaskOverride struct {
	ContainerOverrides            []ContainerOverride            `json:"containerOverrides,omitzero"`
	CPU                           string                         `json:"cpu,omitzero"`
	Memory                        string                         `json:"memory,omitzero"`
	TaskRoleArn                   string                         `json:"taskRoleArn,omitzero"`
	ExecutionRoleArn              string                         `json:"executionRoleArn,omitzero"`
	EphemeralStorage              *EphemeralStorage              `json:"ephemeralStorage,omitzero"`
	InferenceAcceleratorOverrides []InferenceAcceleratorOverride `json:"inferenceAcceleratorOverrides,omitzero"`
}

// ContainerOverride changes one container, named by Name.
type ContainerOverride struct {
	Name                 string                `json:"name,omitzero"`
	Command              []string              `json:"command,omitzero"`
	Environment          []KeyValuePair        `json:"environment,omitzero"`
	EnvironmentFiles     []EnvironmentFile     `json:"environmentFiles,omitzero"`
	CPU                  *int                  `json:"cpu,omitzero"`
	Memory               *int                  `json:"memory,omitzero"`
	MemoryReservation    *int                  `json:"memoryReservation,omitzero"`
	ResourceRequirements []ResourceRequirement `json:"resourceRequirements,omitzero"`
}

// InferenceAcceleratorOverride is held, and refused.
type InferenceAcceleratorOverride struct {
	DeviceName string `json:"deviceName,omitzero"`
	DeviceType string `json:"deviceType,omitzero"`
}
