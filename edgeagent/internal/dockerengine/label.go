package dockerengine

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"

	"github.com/docker/docker/api/types/filters"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// ours opens the labels that only Longshore writes; what users put there is
// left out.
const ours = "run.longshore."

// Our labels. What is not there of a lost journal is rebuilt from them.
const (
	labelInstance   = ours + "instance"
	labelTask       = ours + "task"
	labelAttempt    = ours + "attempt"
	labelContainer  = ours + "container"
	labelCluster    = ours + "cluster"
	labelDefinition = ours + "definition" // family:revision
	labelEpoch      = ours + "epoch"
	labelTaskARN    = ours + "task-arn"
	labelGPUs       = ours + "gpus"        // ids, with commas
	labelPorts      = ours + "ports"       // network mode host: 80/tcp,53/udp
	labelRows       = ours + "port-ranges" // 7000-7009/udp
	labelEssential  = ours + "essential"   // false, or nothing
	labelHealth     = ours + "health"      // checked: the definition has a health check, or nothing
	labelVolume     = ours + "volume"
	labelScope      = ours + "scope"
	labelSize       = ours + "task-size" // of a task with a control group of its own: cpu=512,memory=256
	labelTaskRole   = ours + "task-role" // the ARN of the task's role, or nothing
)

// The labels of the ECS agent, which log shippers and monitors read.
const (
	ecsCluster   = "com.amazonaws.ecs.cluster"
	ecsContainer = "com.amazonaws.ecs.container-name"
	ecsTaskARN   = "com.amazonaws.ecs.task-arn"
	ecsFamily    = "com.amazonaws.ecs.task-definition-family"
	ecsVersion   = "com.amazonaws.ecs.task-definition-version"
)

// sometimes are our labels that not every container needs. They are set all the
// same, to nothing: Docker puts an image's labels under those of its container, so
// that one which is left out would be the image's to say.
var sometimes = []string{labelGPUs, labelPorts, labelRows, labelEssential, labelHealth, labelVolume, labelScope, agent.LabelSupervision, labelSize, labelTaskRole}

// containerLabels are the user's labels under ours and ECS's.
func containerLabels(instance string, spec agent.Spec, c taskdef.ContainerDefinition) map[string]string {
	labels := userLabels(c.DockerLabels)
	for _, name := range sometimes {
		labels[name] = ""
	}
	maps.Copy(labels, map[string]string{
		labelInstance: instance, labelTask: spec.Task, labelAttempt: strconv.Itoa(spec.Attempt), labelContainer: spec.Container,
		labelCluster: spec.Cluster, labelDefinition: fmt.Sprintf("%s:%d", spec.Family, spec.Revision),
		labelEpoch: strconv.FormatInt(spec.Epoch, 10), labelTaskARN: spec.TaskARN,
		ecsCluster: spec.Cluster, ecsContainer: spec.Container, ecsTaskARN: spec.TaskARN,
		ecsFamily: spec.Family, ecsVersion: strconv.Itoa(spec.Revision),
	})
	maps.Copy(labels, spec.Labels)
	if !c.IsEssential() {
		labels[labelEssential] = "false"
	}
	if c.HealthCheck.Checks() {
		labels[labelHealth] = "checked"
	}
	if spec.Definition != nil && spec.Definition.TaskRoleArn != "" {
		labels[labelTaskRole] = spec.Definition.TaskRoleArn
	}
	if len(spec.GPUs) > 0 {
		labels[labelGPUs] = strings.Join(spec.GPUs, ",")
	}
	return labels
}

// volumeLabels are those of a volume that lives and dies with its task.
func volumeLabels(instance string, spec agent.Spec, volume string, user map[string]string) map[string]string {
	labels := userLabels(user)
	maps.Copy(labels, map[string]string{
		labelInstance: instance, labelTask: spec.Task, labelAttempt: strconv.Itoa(spec.Attempt), labelVolume: volume,
		labelCluster: spec.Cluster, labelTaskARN: spec.TaskARN, labelScope: "task",
	})
	return labels
}

func userLabels(user map[string]string) map[string]string {
	labels := make(map[string]string, len(user)+16)
	for k, v := range user {
		if !strings.HasPrefix(k, ours) {
			labels[k] = v
		}
	}
	return labels
}

// identity reads from labels which container it is, and its epoch.
func identity(labels map[string]string) (agent.ContainerID, int64) {
	attempt, _ := strconv.Atoi(labels[labelAttempt])
	epoch, _ := strconv.ParseInt(labels[labelEpoch], 10, 64)
	return agent.ContainerID{Task: labels[labelTask], Attempt: attempt, Container: labels[labelContainer]}, epoch
}

// definition reads family and revision from labels.
func definition(labels map[string]string) (family string, revision int) {
	at := strings.LastIndexByte(labels[labelDefinition], ':')
	if at < 0 {
		return "", 0
	}
	revision, _ = strconv.Atoi(labels[labelDefinition][at+1:])
	return labels[labelDefinition][:at], revision
}

// only is the filter for what is this instance's, narrowed by pairs of label
// and value.
func (e *Engine) only(pairs ...string) filters.Args {
	args := filters.NewArgs(filters.Arg("label", labelInstance+"="+e.instance))
	for i := 0; i+1 < len(pairs); i += 2 {
		args.Add("label", pairs[i]+"="+pairs[i+1])
	}
	return args
}

var odd = regexp.MustCompile(`[^a-zA-Z0-9_.-]`)

// shortTask is how much of a task's id stands in names: enough to be the only
// one, short enough to be read. Should two tasks ever share it, the second one's
// create is a Conflict, not a mix-up: labels hold the whole id.
const shortTask = 12

// Name is what the engine calls a container.
func Name(family string, revision int, id agent.ContainerID) string {
	return nameOf(agent.Spec{ContainerID: id, Family: family, Revision: revision}, id.Container)
}

// nameOf is the one name of a container, or volume, of an attempt of a task.
func nameOf(spec agent.Spec, part string) string {
	task := spec.Task
	if len(task) > shortTask {
		task = task[:shortTask]
	}
	part = strings.ReplaceAll(part, "~", ".") // what users cannot have in a name, nor gets in its way
	return odd.ReplaceAllString(fmt.Sprintf("longshore-%s-%d-%s-%s-%d", spec.Family, spec.Revision, part, task, spec.Attempt), "-")
}
