package ecsconfig

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// row is one setting of ECS's agent.
type row struct {
	name    string
	becomes string // the setting of ours with this meaning; "" if there is none
	read    func(value string) (string, error)
	// why it is not obeyed, where there is none; values in same ask for what is so
	// anyway, and are not warned of.
	why  string
	same []string
}

// becomes is a setting that means the same here.
func becomes(name, own string, read func(string) (string, error)) row {
	return row{name: name, becomes: own, read: read}
}

// ignored is a setting without a counterpart.
func ignored(name, why string, same ...string) row { return row{name: name, why: why, same: same} }

const (
	noENI      = "awsvpc networking is not done here"
	noLogFiles = "the log goes to the journal of systemd, in JSON"
	noLogRole  = "the awslogs driver is the engine's, and goes by the machine's role"
	noWindows  = "Windows hosts are not served"
	always     = "it is always done"
)

var rows = []row{
	becomes("ECS_CLUSTER", "LONGSHORE_CLUSTER", asIs),
	becomes("ECS_RESERVED_MEMORY", "LONGSHORE_RESERVED_MEMORY", asIs),
	becomes("ECS_RESERVED_PORTS", "LONGSHORE_RESERVED_PORTS", ports),
	becomes("ECS_RESERVED_PORTS_UDP", "LONGSHORE_RESERVED_PORTS_UDP", ports),
	becomes("ECS_INSTANCE_ATTRIBUTES", "LONGSHORE_INSTANCE_ATTRIBUTES", attributes),
	becomes("ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION", "LONGSHORE_CLEANUP_WAIT", atLeast(time.Minute)),
	becomes("ECS_CONTAINER_STOP_TIMEOUT", "LONGSHORE_STOP_TIMEOUT", atLeast(time.Second)),
	becomes("ECS_CONTAINER_START_TIMEOUT", "LONGSHORE_START_TIMEOUT", atLeast(45*time.Second)),
	becomes("ECS_CONTAINER_CREATE_TIMEOUT", "LONGSHORE_CREATE_TIMEOUT", atLeast(time.Minute)),
	becomes("ECS_IMAGE_PULL_BEHAVIOR", "LONGSHORE_IMAGE_PULL_BEHAVIOR", asIs),
	becomes("ECS_IMAGE_PULL_TIMEOUT", "LONGSHORE_IMAGE_PULL_TIMEOUT", atLeast(time.Second)),
	becomes("ECS_IMAGE_PULL_INACTIVITY_TIMEOUT", "LONGSHORE_IMAGE_PULL_INACTIVITY_TIMEOUT", atLeast(time.Second)),
	becomes("ECS_DISABLE_IMAGE_CLEANUP", "LONGSHORE_IMAGE_CLEANUP", disabled),
	becomes("ECS_IMAGE_CLEANUP_INTERVAL", "LONGSHORE_IMAGE_CLEANUP_INTERVAL", atLeast(10*time.Minute)),
	becomes("ECS_IMAGE_MINIMUM_CLEANUP_AGE", "LONGSHORE_IMAGE_CLEANUP_AGE", atLeast(time.Minute)),
	becomes("NON_ECS_IMAGE_MINIMUM_CLEANUP_AGE", "LONGSHORE_IMAGE_CLEANUP_UNTRACKED_AGE", atLeast(time.Minute)),
	becomes("ECS_NUM_IMAGES_DELETE_PER_CYCLE", "LONGSHORE_IMAGE_CLEANUP_COUNT", asIs),
	becomes("ECS_ENABLE_UNTRACKED_IMAGE_CLEANUP", "LONGSHORE_IMAGE_CLEANUP_UNTRACKED", asIs),
	becomes("ECS_EXCLUDE_UNTRACKED_IMAGE", "LONGSHORE_IMAGE_CLEANUP_EXCLUDE", asIs),
	becomes("ECS_ENABLE_SPOT_INSTANCE_DRAINING", "LONGSHORE_NOTICES", notices),
	becomes("ECS_ENABLE_TASK_IAM_ROLE", "LONGSHORE_TASK_ROLES", asIs),
	becomes("ECS_ENABLE_TASK_IAM_ROLE_NETWORK_HOST", "LONGSHORE_TASK_ROLES_NETWORK_HOST", asIs),
	becomes("ECS_TASK_METADATA_RPS_LIMIT", "LONGSHORE_TASK_METADATA_RPS_LIMIT", asIs),
	becomes("ECS_ENGINE_AUTH_TYPE", "LONGSHORE_ENGINE_AUTH_TYPE", authType),
	becomes("ECS_ENGINE_AUTH_DATA", "LONGSHORE_ENGINE_AUTH_DATA", asIs),
	becomes("ECS_ENABLE_TASK_CPU_MEM_LIMIT", "LONGSHORE_TASK_CPU_MEM_LIMIT", yesOrNo),
	becomes("ECS_CGROUP_PATH", "LONGSHORE_CGROUP_PATH", asIs),
	becomes("ECS_CGROUP_CPU_PERIOD", "LONGSHORE_CGROUP_CPU_PERIOD", asIs),
	becomes("ECS_LOGLEVEL", "LONGSHORE_LOG_LEVEL", level),

	ignored("ECS_DATADIR", "the state of that agent is not ours; LONGSHORE_DATA_DIR says where ours is"),
	ignored("ECS_HOST_DATA_DIR", "this agent is no container"),
	ignored("ECS_CHECKPOINT", "the state is always kept", "true"),
	ignored("ECS_BACKEND_HOST", "LONGSHORE_REPORTS_QUEUE_URL and LONGSHORE_HEARTBEATS_QUEUE_URL say where the control plane is"),
	ignored("ECS_BACKEND_PORT", "LONGSHORE_REPORTS_QUEUE_URL says where the control plane is"),
	ignored("ECS_UPDATES_ENABLED", "the agent is upgraded by the machine's package manager", "false"),
	ignored("ECS_UPDATE_DOWNLOAD_DIR", "the agent is upgraded by the machine's package manager"),
	ignored("ECS_DISABLE_METRICS", "no container metrics are sent", "true"),
	ignored("ECS_POLL_METRICS", "no container metrics are sent", "false"),
	ignored("ECS_POLLING_METRICS_WAIT_DURATION", "no container metrics are sent"),
	ignored("ECS_AVAILABLE_LOGGING_DRIVERS", "all log drivers of the engine may be used; one that it lacks fails the task by name"),
	ignored("ECS_LOG_DRIVER", "it is for ECS's agent as a container"),
	ignored("ECS_LOG_OPTS", "it is for ECS's agent as a container"),
	ignored("ECS_DISABLE_PRIVILEGED", "privileged containers are not refused here", "false"),
	ignored("ECS_SELINUX_CAPABLE", "dockerSecurityOptions are given to the engine as they are", "true"),
	ignored("ECS_APPARMOR_CAPABLE", "dockerSecurityOptions are given to the engine as they are", "true"),
	ignored("ECS_ENABLE_CONTAINER_METADATA", "container metadata files are not written", "false"),
	ignored("ECS_ENABLE_AWSLOGS_EXECUTIONROLE_OVERRIDE", noLogRole, "false"),
	ignored("ECS_ALTERNATE_CREDENTIAL_PROFILE", "AWS_PROFILE of the AWS SDK says it"),
	ignored("ECS_DISABLE_DOCKER_HEALTH_CHECK", "health checks are part of a definition, and always done", "false"),
	ignored("ECS_SHARED_VOLUME_MATCH_FULL_CONFIG", "a volume of the name is used if its driver is the one that was asked for", "false"),
	ignored("ECS_CONTAINER_INSTANCE_PROPAGATE_TAGS_FROM", "tags of container instances are set with TagResource", "none"),
	ignored("ECS_CONTAINER_INSTANCE_TAGS", "tags of container instances are set with TagResource"),
	ignored("ECS_WARM_POOLS_CHECK", "with autoscaling in LONGSHORE_NOTICES a machine in a warm pool takes no work", "true", "false"),
	ignored("ECS_ENABLE_GPU_SUPPORT", "LONGSHORE_GPUS lists the GPUs that tasks may have"),
	ignored("ECS_NVIDIA_RUNTIME", "GPUs are asked for as device requests, which need no runtime of their own"),
	ignored("ECS_TASK_PIDS_LIMIT", "a limit of processes is part of a definition (ulimits)"),
	ignored("ECS_DYNAMIC_HOST_PORT_RANGE", "the engine chooses dynamic ports from net.ipv4.ip_local_port_range"),
	ignored("ECS_EXCLUDE_IPV6_PORTBINDING", "ports are shown once for both families", "true"),
	ignored("ECS_ALLOW_OFFHOST_INTROSPECTION_ACCESS", "introspection is on loopback alone", "false"),
	ignored("ECS_OFFHOST_INTROSPECTION_INTERFACE_NAME", "introspection is on loopback alone"),
	ignored("ECS_SKIP_LOCALHOST_TRAFFIC_FILTER", "no filter of loopback is set", "true"),
	ignored("ECS_ENABLE_RUNTIME_STATS", "profiles of the agent are not written", "false"),
	ignored("ECS_LOGFILE", noLogFiles),
	ignored("ECS_LOGLEVEL_ON_INSTANCE", noLogFiles),
	ignored("ECS_LOG_ROLLOVER_TYPE", noLogFiles),
	ignored("ECS_LOG_OUTPUT_FORMAT", noLogFiles, "json"),
	ignored("ECS_LOG_MAX_FILE_SIZE_MB", noLogFiles),
	ignored("ECS_LOG_MAX_ROLL_COUNT", noLogFiles),
	ignored("ECS_ENABLE_TASK_ENI", noENI, "false"),
	ignored("ECS_ENABLE_HIGH_DENSITY_ENI", noENI, "false"),
	ignored("ECS_CNI_PLUGINS_PATH", noENI),
	ignored("ECS_AWSVPC_BLOCK_IMDS", noENI+"; LONGSHORE_BLOCK_INSTANCE_METADATA is for bridges", "false"),
	ignored("ECS_AWSVPC_ADDITIONAL_LOCAL_ROUTES", noENI),
	ignored("ECS_EBSTA_SUPPORTED", "volumes of EBS are not attached to tasks", "false"),
	ignored("ECS_FSX_WINDOWS_FILE_SERVER_SUPPORTED", noWindows, "false"),
	ignored("ECS_ENABLE_CPU_UNBOUNDED_WINDOWS_WORKAROUND", noWindows, "false"),
	ignored("ECS_ENABLE_MEMORY_UNBOUNDED_WINDOWS_WORKAROUND", noWindows, "false"),
	ignored("ECS_EXTERNAL", always, "true", "false"),
	ignored("ECS_AGENT_LABELS", "it is for ECS's agent as a container"),
	ignored("ECS_AGENT_APPARMOR_PROFILE", "it is for ECS's agent as a container"),
	ignored("ECS_AGENT_PID_NAMESPACE_HOST", "it is for ECS's agent as a container", "true", "false"),
}

func asIs(value string) (string, error) { return value, nil }

// ports are a JSON list, as ECS's agent wants it.
func ports(value string) (string, error) {
	var all []int
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return "", errors.New("must be a JSON list of ports, as in [22, 80]")
	}
	texts := make([]string, len(all))
	for i, p := range all {
		texts[i] = strconv.Itoa(p)
	}
	return strings.Join(texts, ","), nil
}

// attributes are a JSON object of texts.
func attributes(value string) (string, error) {
	var all map[string]string
	if err := json.Unmarshal([]byte(value), &all); err != nil {
		return "", errors.New(`must be a JSON object of texts, as in {"rack": "r1"}`)
	}
	var pairs []string
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.ContainsAny(name+all[name], ",=") {
			return "", fmt.Errorf("has %q: a name or a value must be without commas and equals signs", name+"="+all[name])
		}
		pairs = append(pairs, name+"="+all[name])
	}
	return strings.Join(pairs, ","), nil
}

// atLeast is a duration with ECS's lower bound, below which ECS's agent takes its
// default in silence.
func atLeast(least time.Duration) func(string) (string, error) {
	return func(value string) (string, error) {
		d, err := time.ParseDuration(value)
		if err != nil {
			return "", errors.New("must be a duration such as 90s")
		}
		if d < least {
			return "", fmt.Errorf("must be at least %s, as for ECS's agent", least)
		}
		return value, nil
	}
}

// disabled says whether images are cleaned up at all.
func disabled(value string) (string, error) {
	off, err := strconv.ParseBool(value)
	switch {
	case err != nil:
		return "", errors.New("must be true or false")
	case off:
		return "off", nil
	}
	return "disk", nil
}

// yesOrNo is a truth in any of the ways that ECS's agent reads one.
func yesOrNo(value string) (string, error) {
	yes, err := strconv.ParseBool(value)
	if err != nil {
		return "", errors.New("must be true or false")
	}
	return strconv.FormatBool(yes), nil
}

// notices are those of Spot, too, or not.
func notices(value string) (string, error) {
	spot, err := strconv.ParseBool(value)
	switch {
	case err != nil:
		return "", errors.New("must be true or false")
	case spot:
		return "spot,autoscaling", nil
	}
	return "autoscaling", nil
}

func authType(value string) (string, error) {
	if value != "dockercfg" && value != "docker" {
		return "", errors.New("must be one of dockercfg, docker")
	}
	return value, nil
}

func level(value string) (string, error) {
	switch strings.ToLower(value) {
	case "debug", "info", "warn", "error":
		return strings.ToLower(value), nil
	case "crit", "none":
		return "error", nil
	}
	return "", errors.New("must be one of debug, info, warn, error, crit, none")
}
