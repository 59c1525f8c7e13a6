package setting

import "time"

// Control is what every function of the control plane is told. A role decides
// what a function may do with it.
type Control struct {
	Region    string `env:"LONGSHORE_REGION" need:"true"`
	Account   string `env:"LONGSHORE_ACCOUNT" need:"true"`
	Partition string `env:"LONGSHORE_PARTITION" def:"aws"`
	// StackName is the value of the metrics' one dimension, "Stack".
	StackName string `env:"LONGSHORE_STACK_NAME" def:"Longshore"`

	TasksTable     string `env:"LONGSHORE_TASKS_TABLE" need:"true"`
	InstancesTable string `env:"LONGSHORE_INSTANCES_TABLE" need:"true"`
	LeasesTable    string `env:"LONGSHORE_LEASES_TABLE" need:"true"`
	CatalogTable   string `env:"LONGSHORE_CATALOG_TABLE" need:"true"`

	AdmissionQueueURL     string `env:"LONGSHORE_ADMISSION_QUEUE_URL" need:"true"`
	AdmissionDeadQueueURL string `env:"LONGSHORE_ADMISSION_DEAD_QUEUE_URL" need:"true"`
	ReportsQueueURL       string `env:"LONGSHORE_REPORTS_QUEUE_URL" need:"true"`
	ReportsDeadQueueURL   string `env:"LONGSHORE_REPORTS_DEAD_QUEUE_URL" need:"true"`
	HeartbeatsQueueURL    string `env:"LONGSHORE_HEARTBEATS_QUEUE_URL" need:"true"`
	HeartbeatsDeadQueue   string `env:"LONGSHORE_HEARTBEATS_DEAD_QUEUE_URL" need:"true"`
	ServicesQueueURL      string `env:"LONGSHORE_SERVICES_QUEUE_URL" need:"true"`
	ServicesDeadQueueURL  string `env:"LONGSHORE_SERVICES_DEAD_QUEUE_URL" need:"true"`
	EventsDeadQueueURL    string `env:"LONGSHORE_EVENTS_DEAD_QUEUE_URL" need:"true"`
	EventBusName          string `env:"LONGSHORE_EVENT_BUS_NAME" def:"Longshore"`
	CommandQueueNameStart string `env:"LONGSHORE_COMMAND_QUEUE_NAME_START" def:"longshore-cmd-"`

	HeartbeatEvery  time.Duration `env:"LONGSHORE_HEARTBEAT_EVERY" def:"60s" min:"1s" max:"10m"`
	SuspectAfter    time.Duration `env:"LONGSHORE_SUSPECT_AFTER" def:"180s" min:"2s" max:"1h"`
	ReapAfter       time.Duration `env:"LONGSHORE_REAP_AFTER" def:"10m" min:"5s" max:"168h"`
	BlackoutMax     time.Duration `env:"LONGSHORE_BLACKOUT_MAX" def:"1h" min:"1m" max:"24h"`
	StarvationAge   time.Duration `env:"LONGSHORE_STARVATION_AGE" def:"2m" min:"1s" max:"24h"`
	EarmarkFor      time.Duration `env:"LONGSHORE_EARMARK_FOR" def:"10m" min:"1s" max:"24h"`
	RefusalMemory   time.Duration `env:"LONGSHORE_REFUSAL_MEMORY" def:"5m" min:"1s" max:"24h"`
	StoppedTasksFor time.Duration `env:"LONGSHORE_STOPPED_TASKS_FOR" def:"24h" min:"1h" max:"720h"`
	KeepFor         time.Duration `env:"LONGSHORE_KEEP_FOR" def:"24h" min:"1m" max:"720h"`
	DrainDeadline   time.Duration `env:"LONGSHORE_DRAIN_DEADLINE" def:"24h" min:"1s" max:"720h"`

	// RegisterRoles lists the ids of the roles (AROA…), or of IAM users, whose
	// sessions may register instances: what SQS shows of a sender is an id, not a
	// name. "*" lets any sender that IAM let through register. An entry cluster=role
	// is of that cluster, for which the entries without a cluster then do not count.
	// Without any nobody may.
	RegisterRoles []string `env:"LONGSHORE_REGISTER_ROLES"`
	// TaskRoles lists the roles that tasks may have, as task or as execution role: each
	// by its ARN, or by its name with its path before it, or by the start of one and a
	// "*". An entry cluster=role is of that cluster, for which the entries without a
	// cluster then do not count. "none" is no role.
	TaskRoles []string `env:"LONGSHORE_TASK_ROLES" def:"longshore/*"`
	// SenderFromBody believes the identity a message claims. Emulators give
	// every message the same SenderId; nothing but the local stack sets it.
	SenderFromBody bool `env:"LONGSHORE_SENDER_FROM_BODY" def:"false"`

	// AutoScalingGroups lists the groups whose instances are ours, by name, or by
	// the start of names and a "*". Without any nothing is told to Auto Scaling.
	AutoScalingGroups []string `env:"LONGSHORE_AUTO_SCALING_GROUPS"`
	// LifecycleHook is the name of their hooks on termination that are answered
	// once the instance is drained; hooks of other names are left alone.
	LifecycleHook string `env:"LONGSHORE_LIFECYCLE_HOOK" def:"longshore"`
	// SetInstanceHealth has groups told that the host of an instance that is LOST is
	// unhealthy: they end it, and replace it.
	SetInstanceHealth bool `env:"LONGSHORE_SET_INSTANCE_HEALTH" def:"false"`

	// AuditRepairs lets the nightly audit write what an instance's tasks add up to
	// into a ledger that says otherwise; without it the difference is only told.
	AuditRepairs bool `env:"LONGSHORE_AUDIT_REPAIRS" def:"false"`

	// ReadOnly makes the API refuse every operation that changes something.
	ReadOnly bool `env:"LONGSHORE_READ_ONLY" def:"false"`

	LogLevel string `env:"LONGSHORE_LOG_LEVEL" def:"info" one:"debug|info|warn|error"`
}
