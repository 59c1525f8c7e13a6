package ecsapi

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/lambdas/control"
)

// This file answers what an agent of ECS's own asks. Ours speaks by queues, so
// nothing that is said here gets work or moves a task.

type discoverIn struct {
	ContainerInstance string `json:"containerInstance"`
	Cluster           string `json:"cluster"`
}

type discoverOut struct {
	Endpoint          string `json:"endpoint"`
	TelemetryEndpoint string `json:"telemetryEndpoint"`
}

// discoverPollEndpoint names this very endpoint: there is no other.
func discoverPollEndpoint(ctx context.Context, h *Handler, in *discoverIn) (*discoverOut, error) {
	if _, err := h.clusterName("cluster", in.Cluster); err != nil {
		return nil, err
	}
	at := callOf(ctx).endpoint
	return &discoverOut{at, at}, nil
}

type resourceIn struct {
	Name    string          `json:"name" need:"true"`
	Type    string          `json:"type"`
	Integer *int            `json:"integerValue"`
	Long    *int            `json:"longValue"`
	Double  json.RawMessage `json:"doubleValue"`
	Set     []string        `json:"stringSetValue"`
}

type versionIn struct {
	AgentVersion  string `json:"agentVersion"`
	AgentHash     string `json:"agentHash"`
	DockerVersion string `json:"dockerVersion"`
}

type ownAttributeIn struct {
	Name       string          `json:"name" need:"true"`
	Value      string          `json:"value"`
	TargetType json.RawMessage `json:"targetType" refuse:"attributes of a registration are the instance's own"`
	TargetID   json.RawMessage `json:"targetId" refuse:"attributes of a registration are the instance's own"`
}

type deviceIn struct {
	ID   string `json:"id" need:"true"`
	Type string `json:"type" need:"true" one:"GPU" others:"Longshore gives out GPUs alone"`
}

type registerInstanceIn struct {
	Cluster              string           `json:"cluster"`
	IdentityDocument     string           `json:"instanceIdentityDocument"`
	Signature            string           `json:"instanceIdentityDocumentSignature"`
	TotalResources       []resourceIn     `json:"totalResources"`
	VersionInfo          versionIn        `json:"versionInfo"`
	ContainerInstanceARN string           `json:"containerInstanceArn"`
	Attributes           []ownAttributeIn `json:"attributes"`
	PlatformDevices      []deviceIn       `json:"platformDevices"`
	Tags                 []tag            `json:"tags"`
}

// registerContainerInstance lists an instance that has no agent of ours. What its
// identity document says is shown and trusted with nothing, so its signature is
// not looked at.
func registerContainerInstance(ctx context.Context, h *Handler, in *registerInstanceIn) (*instanceOut, error) {
	var r control.ForeignRequest
	var err error
	if r.Cluster, err = h.clusterName("cluster", in.Cluster); err != nil {
		return nil, err
	}
	if in.ContainerInstanceARN != "" {
		if r.ID, err = h.id("containerInstanceArn", instanceTarget, r.Cluster, in.ContainerInstanceARN); err != nil {
			return nil, err
		}
	}
	if in.IdentityDocument != "" {
		var doc struct{ InstanceID, AvailabilityZone string }
		if err := json.Unmarshal([]byte(in.IdentityDocument), &doc); err != nil {
			return nil, parameter("instanceIdentityDocument", "is not JSON")
		}
		r.EC2InstanceID, r.Zone = doc.InstanceID, doc.AvailabilityZone
	}
	if r.Registered, err = registered(in); err != nil {
		return nil, err
	}
	r.AgentVersion, r.AgentHash, r.DockerVersion = in.VersionInfo.AgentVersion, in.VersionInfo.AgentHash, in.VersionInfo.DockerVersion
	r.Attributes = map[string]string{}
	for _, a := range in.Attributes {
		r.Attributes[a.Name] = a.Value
	}
	if r.Tags, err = tagMap(in.Tags); err != nil {
		return nil, err
	}
	v, err := h.control.RegisterForeign(ctx, r)
	if err != nil {
		return nil, err
	}
	return &instanceOut{h.showInstance(v, true)}, nil
}

// registered reads what an instance has to give, in ECS's names.
func registered(in *registerInstanceIn) (held control.Held, err error) {
	for _, r := range in.TotalResources {
		switch r.Name {
		case "CPU":
			held.CPU = wholeOf(r)
		case "MEMORY":
			held.MemoryMiB = wholeOf(r)
		case "PORTS":
			held.TCP, err = portsOf(r)
		case "PORTS_UDP":
			held.UDP, err = portsOf(r)
		case "GPU":
			held.GPUs = r.Set
		default:
			err = parameter("totalResources", "names %.60q; CPU, MEMORY, PORTS, PORTS_UDP and GPU are allowed", r.Name)
		}
		if err != nil {
			return held, err
		}
	}
	for _, d := range in.PlatformDevices {
		held.GPUs = append(held.GPUs, d.ID)
	}
	slices.Sort(held.GPUs)
	held.GPUs = slices.Compact(held.GPUs)
	return held, nil
}

func wholeOf(r resourceIn) int {
	switch {
	case r.Integer != nil:
		return *r.Integer
	case r.Long != nil:
		return *r.Long
	}
	return 0
}

func portsOf(r resourceIn) (ports []int, err error) {
	for _, s := range r.Set {
		port, err := strconv.Atoi(s)
		if err != nil || port < 1 || port > 65535 {
			return nil, parameter("totalResources", "%s holds %.20q; ports from 1 to 65535 are allowed", r.Name, s)
		}
		ports = append(ports, port)
	}
	return ports, nil
}

type bindingIn struct {
	BindIP             string `json:"bindIP"`
	ContainerPort      *int   `json:"containerPort"`
	HostPort           *int   `json:"hostPort"`
	Protocol           string `json:"protocol" one:"tcp|udp"`
	ContainerPortRange string `json:"containerPortRange"`
	HostPortRange      string `json:"hostPortRange"`
}

type containerStateIn struct {
	ContainerName   string      `json:"containerName"`
	ImageDigest     string      `json:"imageDigest"`
	RuntimeID       string      `json:"runtimeId"`
	ExitCode        *int        `json:"exitCode"`
	NetworkBindings []bindingIn `json:"networkBindings"`
	Reason          string      `json:"reason"`
	Status          string      `json:"status"`
}

type attachmentStateIn struct {
	AttachmentARN string `json:"attachmentArn" need:"true"`
	Status        string `json:"status" need:"true"`
}

type managedAgentIn struct {
	ContainerName string `json:"containerName" need:"true"`
	Name          string `json:"managedAgentName" need:"true" one:"ExecuteCommandAgent"`
	Status        string `json:"status" need:"true"`
	Reason        string `json:"reason"`
}

// seconds is a time in a request, which nothing here looks at.
type seconds float64

type submitTaskIn struct {
	Cluster            string              `json:"cluster"`
	Task               string              `json:"task"`
	Status             string              `json:"status"`
	Reason             string              `json:"reason"`
	Containers         []containerStateIn  `json:"containers"`
	Attachments        []attachmentStateIn `json:"attachments"`
	ManagedAgents      []managedAgentIn    `json:"managedAgents"`
	PullStartedAt      seconds             `json:"pullStartedAt"`
	PullStoppedAt      seconds             `json:"pullStoppedAt"`
	ExecutionStoppedAt seconds             `json:"executionStoppedAt"`
}

type acknowledgedOut struct {
	Acknowledgment string `json:"acknowledgment"`
}

// acknowledge hears of a task what its own agent does not say.
func (h *Handler) acknowledge(ctx context.Context, in, task string) (*acknowledgedOut, error) {
	cluster, err := h.clusterName("cluster", in)
	if err != nil {
		return nil, err
	}
	var tasks []string
	if task != "" {
		id, err := h.id("task", "task", cluster, task)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, id)
	}
	if err := h.control.SubmitState(ctx, cluster, tasks...); err != nil {
		return nil, err
	}
	return &acknowledgedOut{callOf(ctx).id}, nil
}

func submitTaskStateChange(ctx context.Context, h *Handler, in *submitTaskIn) (*acknowledgedOut, error) {
	return h.acknowledge(ctx, in.Cluster, in.Task)
}

type submitContainerIn struct {
	Cluster         string      `json:"cluster"`
	Task            string      `json:"task"`
	ContainerName   string      `json:"containerName"`
	RuntimeID       string      `json:"runtimeId"`
	Status          string      `json:"status"`
	ExitCode        *int        `json:"exitCode"`
	Reason          string      `json:"reason"`
	NetworkBindings []bindingIn `json:"networkBindings"`
}

func submitContainerStateChange(ctx context.Context, h *Handler, in *submitContainerIn) (*acknowledgedOut, error) {
	return h.acknowledge(ctx, in.Cluster, in.Task)
}

type submitAttachmentsIn struct {
	Cluster     string              `json:"cluster"`
	Attachments []attachmentStateIn `json:"attachments" need:"true"`
}

func submitAttachmentStateChanges(ctx context.Context, h *Handler, in *submitAttachmentsIn) (*acknowledgedOut, error) {
	return h.acknowledge(ctx, in.Cluster, "")
}
