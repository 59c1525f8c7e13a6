package dockerengine

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/network"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// createRequest is all that is sent to make one container.
type createRequest struct {
	Name    string
	Config  *container.Config
	Host    *container.HostConfig
	Network *network.NetworkingConfig // nil: the one network of Host.NetworkMode
	Volumes []volumeRequest           // to be there before the container
	Rows    []taskdef.PortRow         // that are to get as many ports of the host, in a row
}

// The bounds of CPU shares. Below the first the kernel does not go, and 0 would
// be Docker's own default of 1024; the second is the kernel's.
const (
	minShares = 2
	maxShares = 262_144
)

const (
	unitsPerCPU = 1024
	cpuPeriod   = 100_000 // microseconds
	mib         = 1 << 20
)

// request makes of a spec what Docker is asked for. It is pure: the same spec
// gives the same request.
func request(instance string, spec agent.Spec) (createRequest, error) {
	if spec.Definition == nil {
		return createRequest{}, fault.New(fault.Invalid, "%s: the task has no definition", cannotCreate)
	}
	if spec.Container == agent.PauseContainer {
		return pauseRequest(instance, spec), nil
	}
	c, ok := spec.Definition.Container(spec.Container)
	if !ok {
		return createRequest{}, fault.New(fault.Invalid, "%s: definition %s has no container %q", cannotCreate, spec.Family, spec.Container)
	}
	if c.Image == "" {
		return createRequest{}, fault.New(fault.Invalid, "%s: container %s has no image", cannotCreate, c.Name)
	}
	r := createRequest{
		Name: nameOf(spec, c.Name),
		Config: &container.Config{
			Image:      c.Image,
			Entrypoint: some(c.EntryPoint),
			Cmd:        some(c.Command),
			Env:        environment(c.Environment, spec.Environment),
			User:       c.User,
			WorkingDir: c.WorkingDirectory,
			Hostname:   c.Hostname,
			Tty:        value(c.PseudoTerminal),
			OpenStdin:  value(c.Interactive),
			Labels:     containerLabels(instance, spec, c),
			// A daemon that shuts down keeps to it too.
			StopTimeout: orNone(c.StopTimeout),
			Healthcheck: healthCheck(c.HealthCheck),
		},
		Host: &container.HostConfig{
			LogConfig:      logConfig(spec, c.LogConfiguration),
			RestartPolicy:  container.RestartPolicy{Name: container.RestartPolicyDisabled},
			Privileged:     value(c.Privileged),
			ReadonlyRootfs: value(c.ReadonlyRootFilesystem),
			SecurityOpt:    securityOptions(c.DockerSecurityOptions),
			PidMode:        container.PidMode(joined(spec, spec.Definition.PidMode)),
			IpcMode:        container.IpcMode(joined(spec, spec.Definition.IpcMode)),
			Resources:      resources(spec, c),
		},
	}
	attach(&r, spec, c)
	confine(&r, c)
	if err := mount(&r, instance, spec, c); err != nil {
		return createRequest{}, err
	}
	return r, nil
}

// resources are the container's own sizes. Where it names none the task's hold
// as a ceiling: no container of a task may take more than the whole task.
func resources(spec agent.Spec, c taskdef.ContainerDefinition) container.Resources {
	whole := taskdef.Needs(*spec.Definition, taskdef.TaskOverride{})
	memory := value(c.Memory)
	if memory == 0 && spec.Definition.Memory != "" {
		memory = whole.MemoryMiB
	}
	r := container.Resources{
		CPUShares:         int64(min(max(value(c.CPU), minShares), maxShares)),
		Memory:            int64(memory) * mib,
		MemoryReservation: int64(value(c.MemoryReservation)) * mib,
		Ulimits:           ulimits(c.Ulimits),
	}
	if spec.Definition.CPU != "" && whole.CPU > 0 {
		r.CPUPeriod = cpuPeriod
		r.CPUQuota = int64(whole.CPU) * cpuPeriod / unitsPerCPU
	}
	if l := c.LinuxParameters; l != nil {
		r.Devices = devices(l.Devices)
		if l.MaxSwap != nil && memory > 0 {
			r.MemorySwap = int64(memory+*l.MaxSwap) * mib // Docker's is both together
			if l.Swappiness != nil {
				r.MemorySwappiness = new(int64(*l.Swappiness))
			}
		}
	}
	if len(spec.GPUs) > 0 {
		r.DeviceRequests = []container.DeviceRequest{{DeviceIDs: spec.GPUs, Capabilities: [][]string{{"gpu"}}}}
	}
	return r
}

// The values of ECS where a health check names none; Docker's own differ.
const (
	checkEvery   = 30
	checkTimeout = 5
	checkRetries = 3
)

// healthCheck is the definition's; nil leaves the image its own. NONE turns that
// off.
func healthCheck(h *taskdef.HealthCheck) *container.HealthConfig {
	if h == nil || len(h.Command) == 0 {
		return nil
	}
	if !h.Checks() {
		return &container.HealthConfig{Test: h.Command}
	}
	or := func(n *int, otherwise int) int {
		if n == nil {
			return otherwise
		}
		return *n
	}
	seconds := func(n int) time.Duration { return time.Duration(n) * time.Second }
	return &container.HealthConfig{
		Test: h.Command, Interval: seconds(or(h.Interval, checkEvery)), Timeout: seconds(or(h.Timeout, checkTimeout)),
		Retries: or(h.Retries, checkRetries), StartPeriod: seconds(value(h.StartPeriod)),
	}
}

// environment is the definition's variables, the agent's above them, in order
// of name.
func environment(own []taskdef.KeyValuePair, agents map[string]string) []string {
	all := make(map[string]string, len(own)+len(agents))
	for _, e := range own {
		all[e.Name] = e.Value
	}
	maps.Copy(all, agents)
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return some(list)
}

// logConfig passes a log driver on. The awslogs driver of Docker does not know
// ECS's stream prefix: ECS makes of it a stream's name, prefix/container/task.
func logConfig(spec agent.Spec, l *taskdef.LogConfiguration) container.LogConfig {
	if l == nil {
		return container.LogConfig{}
	}
	options := maps.Clone(l.Options)
	if len(spec.LogOptions) > 0 {
		if options == nil {
			options = map[string]string{}
		}
		maps.Copy(options, spec.LogOptions)
	}
	if prefix, ok := options["awslogs-stream-prefix"]; ok && l.LogDriver == "awslogs" {
		delete(options, "awslogs-stream-prefix")
		stream := prefix + "/" + spec.Container + "/" + spec.Task
		options["awslogs-stream"] = cmp.Or(options["awslogs-stream"], stream)
	}
	if _, ok := options["max-buffer-size"]; !ok && options["mode"] == "non-blocking" {
		options["max-buffer-size"] = "10m" // ECS's: Docker's own 1m loses lines that ECS's keeps
	}
	return container.LogConfig{Type: l.LogDriver, Config: options}
}

// orNone is a time-out, or none where it is 0: that is not to say anything, as in
// ECS, and not to kill at once.
func orNone(seconds *int) *int {
	if value(seconds) == 0 {
		return nil
	}
	return seconds
}

// some is the list, or nil where it is empty: an empty entry point would wipe
// out the image's, which in ECS it does not.
func some(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
