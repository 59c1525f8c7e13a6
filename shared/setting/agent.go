package setting

import "time"

// Agent is what an edge agent is told. Region and credentials come from the
// AWS SDK's own chain.
type Agent struct {
	Cluster string `env:"LONGSHORE_CLUSTER" def:"default"`
	DataDir string `env:"LONGSHORE_DATA_DIR" def:"/var/lib/longshore"`

	ReportsQueueURL       string `env:"LONGSHORE_REPORTS_QUEUE_URL" need:"true"`
	HeartbeatsQueueURL    string `env:"LONGSHORE_HEARTBEATS_QUEUE_URL" need:"true"`
	CommandQueueNameStart string `env:"LONGSHORE_COMMAND_QUEUE_NAME_START" def:"longshore-cmd-"`

	// CPU and MemoryMiB are what this host gives to tasks; 0 means all it has,
	// less what is reserved.
	CPU               int      `env:"LONGSHORE_CPU" def:"0" min:"0"`
	MemoryMiB         int      `env:"LONGSHORE_MEMORY" def:"0" min:"0"`
	ReservedMemoryMiB int      `env:"LONGSHORE_RESERVED_MEMORY" def:"0" min:"0"`
	ReservedTCP       []int    `env:"LONGSHORE_RESERVED_PORTS" def:"22,2375,2376,51678,51679"`
	ReservedUDP       []int    `env:"LONGSHORE_RESERVED_PORTS_UDP"`
	GPUs              []string `env:"LONGSHORE_GPUS"`
	Zone              string   `env:"LONGSHORE_ZONE"`
	// Attributes are name=value pairs for placement.
	Attributes []string `env:"LONGSHORE_INSTANCE_ATTRIBUTES"`
	// EC2InstanceID and Zone are read from the instance metadata service where
	// there is one and they are empty.
	EC2InstanceID string `env:"LONGSHORE_EC2_INSTANCE_ID"`
	// Notices are the kinds of notices of the host's end that are heeded on EC2; none
	// for none.
	Notices []string `env:"LONGSHORE_NOTICES" def:"spot,autoscaling"`

	DockerHost  string        `env:"DOCKER_HOST" def:"unix:///var/run/docker.sock"`
	CleanupWait time.Duration `env:"LONGSHORE_CLEANUP_WAIT" def:"3h" min:"1s"`
	ReportWait  time.Duration `env:"LONGSHORE_REPORT_WAIT" def:"72h" min:"1m"`
	// TaskLimits puts the containers of a task with a size into a control group; auto
	// where that can be done.
	TaskLimits   string        `env:"LONGSHORE_TASK_CPU_MEM_LIMIT" def:"auto" one:"auto|true|false"`
	CgroupPath   string        `env:"LONGSHORE_CGROUP_PATH" def:"/sys/fs/cgroup"`
	CgroupPeriod time.Duration `env:"LONGSHORE_CGROUP_CPU_PERIOD" def:"100ms" min:"8ms" max:"100ms"`

	StopTimeout time.Duration `env:"LONGSHORE_STOP_TIMEOUT" def:"30s" min:"1s"`
	// CreateTimeout and StartTimeout bound a call of the engine.
	CreateTimeout time.Duration `env:"LONGSHORE_CREATE_TIMEOUT" def:"4m" min:"1s"`
	StartTimeout  time.Duration `env:"LONGSHORE_START_TIMEOUT" def:"3m" min:"1s"`
	PullPolicy    string        `env:"LONGSHORE_IMAGE_PULL_BEHAVIOR" def:"default" one:"default|always|once|prefer-cached"`
	PullTimeout   time.Duration `env:"LONGSHORE_IMAGE_PULL_TIMEOUT" def:"2h" min:"1s"`
	PullSilence   time.Duration `env:"LONGSHORE_IMAGE_PULL_INACTIVITY_TIMEOUT" def:"1m" min:"1s"`
	// Pulls is how many go on at once: with one, whoever pulls something huge would
	// hold up all others.
	Pulls       int           `env:"LONGSHORE_IMAGE_PULLS" def:"4" min:"2" max:"64"`
	RecheckEach time.Duration `env:"LONGSHORE_RECHECK_EVERY" def:"5m" min:"1s"`

	// When images are cleaned up; the ceiling, floor and limit are percent of the disk
	// that they are on.
	Cleanup          string        `env:"LONGSHORE_IMAGE_CLEANUP" def:"disk" one:"disk|always|off"`
	CleanupCeiling   int           `env:"LONGSHORE_IMAGE_CLEANUP_CEILING" def:"85" min:"1" max:"99"`
	CleanupFloor     int           `env:"LONGSHORE_IMAGE_CLEANUP_FLOOR" def:"75" min:"0" max:"98"`
	CleanupEvery     time.Duration `env:"LONGSHORE_IMAGE_CLEANUP_INTERVAL" def:"30m" min:"1m"`
	CleanupAge       time.Duration `env:"LONGSHORE_IMAGE_CLEANUP_AGE" def:"1h" min:"1m"`
	CleanupMost      int           `env:"LONGSHORE_IMAGE_CLEANUP_COUNT" def:"5" min:"1" max:"1000"`
	CleanupExclude   []string      `env:"LONGSHORE_IMAGE_CLEANUP_EXCLUDE"`
	CleanupUntracked bool          `env:"LONGSHORE_IMAGE_CLEANUP_UNTRACKED" def:"false"`
	UntrackedAge     time.Duration `env:"LONGSHORE_IMAGE_CLEANUP_UNTRACKED_AGE" def:"1h" min:"1m"`
	NoRoom           int           `env:"LONGSHORE_IMAGE_NO_ROOM" def:"95" min:"10" max:"100"`
	// ReserveMiB is kept on the journal's disk for when that is full.
	ReserveMiB int `env:"LONGSHORE_JOURNAL_RESERVE" def:"16" min:"0" max:"1024"`

	// AuthType and AuthData are logins to registries, as ECS's agent has them.
	AuthType string `env:"LONGSHORE_ENGINE_AUTH_TYPE" one:"dockercfg|docker"`
	AuthData string `env:"LONGSHORE_ENGINE_AUTH_DATA" secret:"true"`

	// Introspection is where people and tools of this machine may look.
	Introspection string `env:"LONGSHORE_INTROSPECTION_ADDRESS" def:"127.0.0.1:51678"`

	// TaskEndpoint is where containers find their task's metadata and credentials.
	TaskEndpoint string `env:"LONGSHORE_TASK_ENDPOINT" def:"169.254.170.2:80"`
	// TaskRoles has tasks get their roles there, TaskRolesHost those on the host's
	// network, too.
	TaskRoles     bool `env:"LONGSHORE_TASK_ROLES" def:"true"`
	TaskRolesHost bool `env:"LONGSHORE_TASK_ROLES_NETWORK_HOST" def:"true"`
	// TaskRPS is how often a task may ask there: a second, and at once.
	TaskRPS []int `env:"LONGSHORE_TASK_METADATA_RPS_LIMIT" def:"40,60"`
	// BlockMetadata keeps containers on bridges from the instance metadata service.
	BlockMetadata bool `env:"LONGSHORE_BLOCK_INSTANCE_METADATA" def:"true"`

	LogLevel string `env:"LONGSHORE_LOG_LEVEL" def:"info" one:"debug|info|warn|error"`
}
