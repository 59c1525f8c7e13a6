package taskdef

// Volume is a volume of a task. Exactly one configuration may be given; none at all means an empty host volume.
type Volume struct {
	Name                                    string                                   `json:"name,omitzero"`
	Host                                    *HostVolume                              `json:"host,omitzero"`
	DockerVolumeConfiguration               *DockerVolumeConfiguration               `json:"dockerVolumeConfiguration,omitzero"`
	EfsVolumeConfiguration                  *EfsVolumeConfiguration                  `json:"efsVolumeConfiguration,omitzero"`
	FsxWindowsFileServerVolumeConfiguration *FsxWindowsFileServerVolumeConfiguration `json:"fsxWindowsFileServerVolumeConfiguration,omitzero"`
	S3filesVolumeConfiguration              *S3filesVolumeConfiguration              `json:"s3filesVolumeConfiguration,omitzero"`
	ConfiguredAtLaunch                      *bool                                    `json:"configuredAtLaunch,omitzero"`
}

// HostVolume is a folder of the instance; without a path the engine makes one for this task alone.
type HostVolume struct {
	SourcePath string `json:"sourcePath,omitzero"`
}

// The scopes of a Docker volume. ScopeTask is the default: the volume lives and dies with its task.
const (
	ScopeTask   = "task"
	ScopeShared = "shared"
)

// DockerVolumeConfiguration is a volume that Docker manages.
type DockerVolumeConfiguration struct {
	Scope         string            `json:"scope,omitzero"`
	Autoprovision *bool             `json:"autoprovision,omitzero"`
	Driver        string            `json:"driver,omitzero"`
	DriverOpts    map[string]string `json:"driverOpts,omitzero"`
	Labels        map[string]string `json:"labels,omitzero"`
}

// EfsVolumeConfiguration is held, and refused.
type EfsVolumeConfiguration struct {
	FileSystemID          string                  `json:"fileSystemId,omitzero"`
	RootDirectory         string                  `json:"rootDirectory,omitzero"`
	TransitEncryption     string                  `json:"transitEncryption,omitzero"`
	TransitEncryptionPort *int                    `json:"transitEncryptionPort,omitzero"`
	AuthorizationConfig   *EfsAuthorizationConfig `json:"authorizationConfig,omitzero"`
}

// EfsAuthorizationConfig is held, and refused.
type EfsAuthorizationConfig struct {
	AccessPointID string `json:"accessPointId,omitzero"`
	Iam           string `json:"iam,omitzero"`
}

// FsxWindowsFileServerVolumeConfiguration is held, and refused.
type FsxWindowsFileServerVolumeConfiguration struct {
	FileSystemID        string                  `json:"fileSystemId,omitzero"`
	RootDirectory       string                  `json:"rootDirectory,omitzero"`
	AuthorizationConfig *FsxAuthorizationConfig `json:"authorizationConfig,omitzero"`
}

// FsxAuthorizationConfig is held, and refused.
type FsxAuthorizationConfig struct {
	CredentialsParameter string `json:"credentialsParameter,omitzero"`
	Domain               string `json:"domain,omitzero"`
}

// S3filesVolumeConfiguration is held, and refused.
type S3filesVolumeConfiguration struct {
	FileSystemArn         string `json:"fileSystemArn,omitzero"`
	AccessPointArn        string `json:"accessPointArn,omitzero"`
	RootDirectory         string `json:"rootDirectory,omitzero"`
	TransitEncryptionPort *int   `json:"transitEncryptionPort,omitzero"`
}
