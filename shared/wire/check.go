package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"github.com/longshore-run/longshore/shared/fault"
)

// Bounds of what messages may hold.
const (
	MaxInventory  = 2000
	MaxContainers = 32
	MaxReason     = 4096
	MaxAttributes = 100
	MaxPorts      = 200
	MaxGPUs       = 64
	MaxText       = 512
	MaxRange      = 16 // of ports, as text
	MaxAddress    = 46 // of an interface
	MaxGPUID      = 128
	// What an instance may say it has: more than any machine there is, and few
	// enough that sums over a fleet stay numbers.
	MaxCPU       = 4096 * 1024 // units: 4096 processors
	MaxMemoryMiB = 64 << 20    // 64 TiB
)

var (
	hex32    = regexp.MustCompile(`^[0-9a-f]{32}$`)
	name     = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
	opaqueID = regexp.MustCompile(`^[0-9a-zA-Z-]{1,64}$`)

	attributeName  = regexp.MustCompile(`^[A-Za-z0-9_./\\-]{1,128}$`)
	attributeValue = regexp.MustCompile(`^[A-Za-z0-9_.@:/\\ -]{0,128}$`)
)

// InstanceID is the container instance's id of an IAM identity (aws:userid).
func InstanceID(identity string) string {
	sum := sha256.Sum256([]byte(identity))
	return hex.EncodeToString(sum[:])[:32]
}

// IsInstanceID says whether a text has the form of an instance's id.
func IsInstanceID(text string) bool { return hex32.MatchString(text) }

// IsContainerName says whether a report can name a container so.
func IsContainerName(text string) bool { return name.MatchString(text) }

// AttributeForm says what IsAttribute allows.
const AttributeForm = "a name of 1 to 128 letters, digits and - _ . / \\, and a value of at most 128 of these, @ : and blanks, are allowed"

// IsAttribute says whether name and value have the form that ECS gives attributes
// of a container instance.
func IsAttribute(name, value string) bool {
	return attributeName.MatchString(name) && attributeValue.MatchString(value)
}

// checker collects the first fault of a message.
type checker struct{ err error }

func (c *checker) that(ok bool, field, format string, args ...any) {
	if !ok && c.err == nil {
		c.err = fault.Field(field, format, args...)
	}
}

func (c *checker) id(field, v string) {
	c.that(hex32.MatchString(v), field, "must be 32 lower-case hex digits, not %.64q", v)
}

func (c *checker) text(field, v string, most int) {
	c.that(len(v) <= most, field, "has %d bytes; at most %d are allowed", len(v), most)
}

func (c *checker) origin(o Origin) {
	c.that(opaqueID.MatchString(o.Incarnation), "incarnation", "must be 1 to 64 letters, digits and hyphens")
	c.that(o.N >= 0 && o.N < 1<<53, "n", "must be from 0 to 2^53, not %d", o.N)
}

func (c *checker) attempt(t string, attempt int) {
	c.id("task", t)
	c.that(attempt >= 1 && attempt < 1<<30, "attempt", "must be 1 or more, not %d", attempt)
}

// epoch is bounded, so that one that follows it is a number too.
func (c *checker) epoch(e int64) {
	c.that(e >= 0 && e < 1<<53, "epoch", "must be from 0 to 2^53, not %d", e)
}

func (c *checker) ports(field string, ports []int) {
	c.that(len(ports) <= MaxPorts, field, "has %d ports; at most %d are allowed", len(ports), MaxPorts)
	for _, p := range ports {
		c.that(p >= 1 && p <= 65535, field, "port %d is not between 1 and 65535", p)
	}
}

func (c *checker) gpus(field string, ids []string) {
	c.that(len(ids) <= MaxGPUs, field, "has %d ids; at most %d are allowed", len(ids), MaxGPUs)
	seen := map[string]bool{}
	for _, g := range ids {
		c.that(g != "" && len(g) <= MaxGPUID, field, "an id must have 1 to %d bytes", MaxGPUID)
		c.that(!seen[g], field, "%q is listed twice", g)
		seen[g] = true
	}
}

func check(m Message) error {
	c := &checker{}
	if TypeOf(m) != ProbeType {
		c.id("instance", m.header().Instance)
	}
	switch m := m.(type) {
	case *Register:
		c.register(m)
	case *Report:
		c.origin(m.Origin)
		c.snapshot(&m.Snapshot)
	case *Refused:
		c.origin(m.Origin)
		c.attempt(m.Task, m.Attempt)
		c.epoch(m.Epoch)
		c.that(m.Code != "", "code", "must be set")
		c.text("code", string(m.Code), MaxText)
		c.text("reason", m.Reason, MaxReason)
		c.ports("tcp", m.TCP)
		c.ports("udp", m.UDP)
	case *Heartbeat:
		c.heartbeat(m)
	case *Probe:
		c.that(opaqueID.MatchString(m.ID), "id", "must be 1 to 64 letters, digits and hyphens")
	case *Assign:
		c.attempt(m.Task, m.Attempt)
		c.epoch(m.Epoch)
		c.that(len(m.Definition) > 0, "definition", "must be set")
		c.gpus("gpus", m.GPUs)
	case *Stop:
		c.attempt(m.Task, m.Attempt)
		c.text("reason", m.Reason, MaxReason)
	case *Ack:
		c.attempt(m.Task, m.Attempt)
	case *Welcome:
		c.that(opaqueID.MatchString(m.Incarnation), "incarnation", "must be 1 to 64 letters, digits and hyphens")
		c.that(m.Epoch >= 1, "epoch", "must be 1 or more")
		c.that(m.HeartbeatEveryS >= 1, "heartbeatEvery", "must be 1 or more seconds")
	case *Fence:
		c.that(opaqueID.MatchString(m.Incarnation), "incarnation", "must be 1 to 64 letters, digits and hyphens")
		c.that(m.Epoch >= 1, "epoch", "must be 1 or more")
		for _, a := range m.Closed {
			c.attempt(a.Task, a.Attempt)
		}
	case *Resync:
		c.that(len(m.Tasks) <= MaxInventory, "tasks", "has %d entries; at most %d are allowed", len(m.Tasks), MaxInventory)
		for _, t := range m.Tasks {
			c.id("tasks", t)
		}
	}
	return c.err
}

func (c *checker) register(m *Register) {
	c.origin(m.Origin)
	c.that(m.Identity != "", "identity", "must be set")
	c.text("identity", m.Identity, MaxText)
	c.that(InstanceID(m.Identity) == m.Instance, "instance", "is not the id of identity %.128q", m.Identity)
	c.that(opaqueID.MatchString(m.Session), "session", "must be 1 to 64 letters, digits and hyphens")
	c.that(name.MatchString(m.Cluster), "cluster", "must be 1 to 255 letters, digits, underscores and hyphens")
	c.epoch(m.Epoch)
	c.that(len(m.WireVersions) >= 1 && len(m.WireVersions) <= 20, "wireVersions", "must list 1 to 20 versions")
	c.that(m.CPU >= 1 && m.CPU <= MaxCPU, "cpu", "must be 1 to %d units", MaxCPU)
	c.that(m.MemoryMiB >= 1 && m.MemoryMiB <= MaxMemoryMiB, "memory", "must be 1 to %d MiB", MaxMemoryMiB)
	c.ports("reservedTcp", m.ReservedTCP)
	c.ports("reservedUdp", m.ReservedUDP)
	c.gpus("gpus", m.GPUs)
	c.that(len(m.Attributes) <= MaxAttributes, "attributes", "has %d entries; at most %d are allowed", len(m.Attributes), MaxAttributes)
	for k, v := range m.Attributes {
		c.that(IsAttribute(k, v), "attributes", "%.140q is %.140q; %s", k, v, AttributeForm)
	}
	c.that(IsAttribute("zone", m.Zone), "zone", "is %.140q; %s", m.Zone, AttributeForm)
	for f, v := range map[string]string{"agentVersion": m.AgentVersion, "agentHash": m.AgentHash, "dockerVersion": m.DockerVersion, "ec2InstanceId": m.EC2InstanceID} {
		c.text(f, v, MaxText)
	}
}

func (c *checker) snapshot(s *Snapshot) {
	c.attempt(s.Task, s.Attempt)
	c.epoch(s.Epoch)
	c.that(s.Status.Open() || s.Status.Terminal(), "status", "%.32q is not PENDING, RUNNING, STOPPING or STOPPED", s.Status)
	c.text("reason", s.Reason, MaxReason)
	c.text("cause", string(s.Cause), 64)
	c.that(s.Health.Known(), "healthStatus", "%.32q is not HEALTHY, UNHEALTHY or UNKNOWN", s.Health)
	c.that(len(s.Containers) <= MaxContainers, "containers", "has %d entries; at most %d are allowed", len(s.Containers), MaxContainers)
	for _, k := range s.Containers {
		c.that(name.MatchString(k.Name), "containers.name", "must be 1 to 255 letters, digits, underscores and hyphens")
		c.that(k.Status.Known(), "containers.status", "%.32q is not PENDING, RUNNING or STOPPED", k.Status)
		c.that(k.Health.Known(), "containers.healthStatus", "%.32q is not HEALTHY, UNHEALTHY or UNKNOWN", k.Health)
		c.text("containers.reason", k.Reason, MaxReason)
		c.text("containers.image", k.Image, 2048)
		c.text("containers.imageDigest", k.ImageDigest, MaxText)
		c.text("containers.runtimeId", k.RuntimeID, 255)
		for _, b := range k.Bindings {
			c.that(b.ContainerPort >= 0 && b.ContainerPort <= 65535 && b.HostPort >= 0 && b.HostPort <= 65535, "containers.bindings", "a port is not between 0 and 65535")
			c.that(b.Protocol == "" || b.Protocol == "tcp" || b.Protocol == "udp", "containers.bindings.protocol", "%.16q is not tcp or udp", b.Protocol)
			c.text("containers.bindings.bindIP", b.BindIP, MaxAddress)
			c.text("containers.bindings.containerPortRange", b.ContainerPortRange, MaxRange)
			c.text("containers.bindings.hostPortRange", b.HostPortRange, MaxRange)
		}
		c.that(len(k.Bindings) <= MaxPorts, "containers.bindings", "has %d entries; at most %d are allowed", len(k.Bindings), MaxPorts)
		c.gpus("gpus", k.GPUs)
	}
}

func (c *checker) heartbeat(m *Heartbeat) {
	c.origin(m.Origin)
	c.that(opaqueID.MatchString(m.Session), "session", "must be 1 to 64 letters, digits and hyphens")
	c.epoch(m.Epoch)
	c.that(m.Docker == DockerOK || m.Docker == DockerImpaired, "docker", "%.32q is not OK or IMPAIRED", m.Docker)
	c.text("dockerReason", m.DockerReason, MaxReason)
	c.text("noRoom", m.NoRoom, MaxReason)
	c.that(m.UnknownLabels >= 0 && m.UnknownLabels < 1<<30, "unknown", "must not be negative")
	if n := m.Notice; n != nil {
		c.that(n.Kind == NoticeSpot || n.Kind == NoticeAutoScaling || n.Kind == NoticeRebalance, "notice.kind", "%.32q is not spot, autoscaling or rebalance", n.Kind)
		c.text("notice.action", n.Action, 64)
		year := n.At.UTC().Year()
		c.that(n.At.IsZero() || year >= 2000 && year < 3000, "notice.at", "must be in the years 2000 to 2999, not %d", year)
	}
	c.that(len(m.Inventory) <= MaxInventory, "inventory", "has %d entries; at most %d are allowed", len(m.Inventory), MaxInventory)
	for _, e := range m.Inventory {
		c.attempt(e.Task, e.Attempt)
		c.epoch(e.Epoch)
		c.that(e.Phase == PhasePending || e.Phase == PhaseRunning || e.Phase == PhaseEnded, "inventory.phase", "%.32q is not pending, running or ended", e.Phase)
		c.gpus("inventory.gpus", e.GPUs)
	}
}
