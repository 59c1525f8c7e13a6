package control

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	defaultCluster = "default"
	noZone         = "edge"
	// silentBeats is for how many intervals an incarnation must have been silent
	// before another may take its place.
	silentBeats = 3
)

// errRefused ends a registration that is not welcomed; the agent asks again.
var errRefused = errors.New("registration refused")

// registration is one register on its way: what it says and what it meets.
type registration struct {
	c       *Control
	sender  Sender
	m       *wire.Register
	now     time.Time
	cluster *Cluster
	in      *Instance
	ledger  *Ledger
	lease   *Lease
	refused string // why it is not welcomed
	fence   bool   // and the agent is told
	late    bool   // only late, which is nobody's fault
}

// IngestRegister takes an instance in, any number of times, and welcomes it. A
// register sent before the last accepted one, or by an instance that may not
// register, changes nothing.
func (c *Control) IngestRegister(ctx context.Context, s Sender, m *wire.Register) error {
	if !c.vouched(ctx, s, m.Instance) {
		return nil
	}
	if !c.mayRegister(s, m.Cluster) {
		c.Metrics.Count(countRefusedSenders, 1)
		c.Log.WarnContext(ctx, "registration dropped: the sender's role may not register in this cluster", logkey.Instance, m.Instance, logkey.Cluster, m.Cluster, logkey.Sender, s.Identity)
		return nil
	}
	r := &registration{c: c, sender: s, m: m, now: c.Now()}
	err := c.decide(ctx, "register instance "+m.Instance, func() ([]Write, error) {
		r.cluster, r.in = &Cluster{Name: m.Cluster}, &Instance{ID: m.Instance}
		r.ledger, r.lease = &Ledger{ID: m.Instance}, &Lease{ID: m.Instance}
		if err := c.Store.Load(ctx, r.cluster, r.in, r.ledger, r.lease); err != nil {
			return nil, err
		}
		return r.decide()
	})
	if errors.Is(err, errRefused) {
		r.refuse(ctx)
		return nil
	}
	if err != nil {
		return err
	}
	return r.welcome(ctx)
}

// decide is the whole transaction; what has not changed is only checked.
func (r *registration) decide() ([]Write, error) {
	r.refused, r.fence, r.late = "", false, false
	w := &changes{}
	if err := r.place(w); err != nil {
		return nil, err
	}
	if r.in.Version > 0 && (r.sender.SentAt.Before(r.lease.RegisterSent) || !r.in.GoneAt.IsZero() && r.sender.SentAt.Before(r.in.GoneAt)) {
		r.refused, r.late = "it was sent before the last one that was accepted", true
		return nil, errRefused
	}
	before := struct {
		in     Instance
		ledger Ledger
	}{*r.in, *r.ledger}
	if err := r.life(w); err != nil {
		return nil, err
	}
	if r.refused != "" { // the newcomer is noted, for people to see
		return w.all(), nil
	}
	r.describe()
	r.renew()
	w.put(r.lease)
	w.putIf(!reflect.DeepEqual(before.in, *r.in), r.in)
	w.putIf(!reflect.DeepEqual(before.ledger, *r.ledger), r.ledger)
	return w.all(), nil
}

// place finds the cluster: one that exists, or "default", which is made by the
// first instance that asks for it, as ECS does. An instance leaves its cluster
// only by being deregistered.
func (r *registration) place(w *changes) error {
	switch {
	case r.cluster.Version == 0 && r.cluster.Name == defaultCluster:
		r.cluster.Status, r.cluster.CreatedAt = ClusterActive, r.now
		w.put(r.cluster)
	case r.cluster.Version == 0:
		r.refused = "cluster " + r.cluster.Name + " does not exist"
	case r.cluster.Status != ClusterActive:
		r.refused = "cluster " + r.cluster.Name + " is " + r.cluster.Status
	case r.ledger.Version > 0 && r.ledger.Status != Inactive && r.ledger.Cluster != r.cluster.Name:
		r.refused = "the instance is registered in cluster " + r.ledger.Cluster + "; deregister it there first"
	default:
		w.check(r.cluster)
	}
	if r.refused != "" {
		return errRefused
	}
	return nil
}

// life decides which life of the instance this is: its first, the same one, the
// one of a new incarnation, or a new one after it was INACTIVE.
func (r *registration) life(w *changes) error {
	in, l, m := r.in, r.ledger, r.m
	switch {
	case l.Version == 0:
		r.begin()
	case l.Status == Inactive && l.Open > 0:
		r.refused = "its last life is not closed yet"
		return errRefused
	case l.Status == Inactive:
		outrun(l, r.lease, m.Epoch, "REGISTERED again: to echo its epoch", r.now)
		l.Status, l.EndCause, l.ExpiresAt = Active, "", time.Time{}
		if l.forgetHost(r.lease); l.holdsHook() {
			l.drain(r.lease, true, r.now)
		}
		in.GoneAt, in.ExpiresAt = time.Time{}, time.Time{}
		r.incarnate()
	case in.Incarnation != m.Incarnation && r.sender.SentAt.Sub(r.lease.Sent) < silentBeats*r.every():
		return r.duplicate(w)
	case in.Incarnation != m.Incarnation:
		if r.lease.Stage == StageLost {
			l.returned(r.lease, r.now)
		}
		outrun(l, r.lease, m.Epoch, "REGISTERED with a new journal: to echo its epoch", r.now)
		l.EndCause = ""
		r.incarnate()
	case m.Epoch > l.Epoch:
		restore(l, r.lease, m.Epoch, r.now)
	case r.lease.Version == 0: // its lease was lost: it begins again, as the same one
		l.Connected = false
		setStage(r.lease, StageFenced, "REGISTERED: to echo its epoch", r.now)
	case r.lease.Stage == StageLost && r.lease.Impaired.IsZero():
		setStage(r.lease, StageFenced, reasonReturned, r.now)
		l.returned(r.lease, r.now)
	}
	return nil
}

// outrun raises an instance's epoch for its inventory to decide, above the last
// one its agent knew: an agent takes none below. Where that is a later one than we
// know the tables are older than the agent is, so what it runs may have no item.
func outrun(l *Ledger, lease *Lease, known int64, reason string, now time.Time) {
	ahead := known > l.Epoch
	l.Epoch = max(l.Epoch, known)
	raise(l, lease, IncarnationCause, StageFenced, reason, now)
	if ahead {
		l.SinceEpoch = l.Epoch
	}
}

// restore raises the epoch of an instance that knows a later one than we do.
func restore(l *Ledger, lease *Lease, known int64, now time.Time) {
	outrun(l, lease, known, "RESTORED: it knew a later epoch; to echo its own", now)
	l.EndCause = ""
}

func (r *registration) begin() {
	l := r.ledger
	l.drain(r.lease, false, r.now)
	l.Status, l.Epoch = Active, max(l.Epoch+1, r.m.Epoch+1, r.now.Unix())
	l.SinceEpoch = l.Epoch
	r.lease.Epoch = l.Epoch
	setStage(r.lease, StageFenced, "REGISTERED: to echo its epoch", r.now)
	r.incarnate()
}

// incarnate begins the lease of a new incarnation: nothing known of the one
// before it holds.
func (r *registration) incarnate() {
	r.in.Incarnation, r.in.Replacing, r.in.RegisteredAt = r.m.Incarnation, "", r.now
	l := r.lease
	l.Incarnation, l.N, l.Inventory = r.m.Incarnation, 0, ""
	l.Session, l.PrevSession, l.Sessions = r.m.Session, "", []string{r.m.Session}
	l.Alternations, l.AlternatedAt = 0, time.Time{}
	r.ledger.NoRoom, l.NoRoom, l.NoRoomWhy = false, time.Time{}, ""
	l.Impaired, l.ImpairedWhy, l.ExpiresAt, l.CordonedUntil = time.Time{}, "", time.Time{}, time.Time{}
}

// duplicate keeps a newer incarnation waiting while the one we know is heard.
func (r *registration) duplicate(w *changes) error {
	r.refused, r.fence = fmt.Sprintf("%s: incarnation %s was heard %s before this register", wire.DuplicateIdentity, r.in.Incarnation, r.sender.SentAt.Sub(r.lease.Sent).Round(time.Second)), true
	if r.in.Replacing == r.m.Incarnation {
		return errRefused
	}
	r.in.Replacing = r.m.Incarnation
	w.put(r.in)
	return nil
}

// describe takes over what the agent says of its host. What it has given away
// is not the agent's to say: a shrinking host may be over for a while.
func (r *registration) describe() {
	in, l, m := r.in, r.ledger, r.m
	in.Cluster, in.Identity, in.EC2InstanceID = m.Cluster, m.Identity, r.host()
	in.Zone = m.Zone
	if in.Zone == "" {
		in.Zone = noZone
	}
	in.WireVersions = m.WireVersions
	in.AgentVersion, in.AgentHash, in.DockerVersion = m.AgentVersion, m.AgentHash, m.DockerVersion
	in.Attributes = attributesFrom(m.Attributes)
	in.Replacing, in.Foreign = "", false
	l.Cluster = m.Cluster
	l.Registered = Held{
		CPU: m.CPU, MemoryMiB: m.MemoryMiB, GPUs: sorted(slices.Clone(m.GPUs)),
		TCP: distinct(m.ReservedTCP), UDP: distinct(m.ReservedUDP),
	}
}

// host is the EC2 instance that the agent runs on. On EC2 a role's session is
// named after it, and IAM vouches for that; what an agent says beyond it counts for
// nothing, or one could have another's host taken for its own: what EC2 and
// placement say of that host would be said of this instance.
func (r *registration) host() string {
	_, session, _ := strings.Cut(r.m.Identity, ":")
	if said := r.m.EC2InstanceID; said == session || r.c.Setting.SenderFromBody {
		return said
	}
	return ""
}

// attributesFrom are the attributes that an agent may say of itself.
func attributesFrom(said map[string]string) map[string]string {
	out := maps.Clone(said)
	maps.DeleteFunc(out, func(k, _ string) bool { return strings.HasPrefix(k, operatorPrefix) })
	if len(out) == 0 {
		return nil
	}
	return out
}

func distinct(ports []int) []int { return slices.Compact(sorted(slices.Clone(ports))) }

// renew writes the lease as a beat does.
func (r *registration) renew() {
	l := r.lease
	l.Cluster, l.Zone, l.EC2 = r.in.Cluster, r.in.Zone, r.in.EC2InstanceID
	l.Incarnation, l.Epoch = r.in.Incarnation, r.ledger.Epoch
	l.RegisterSent = r.sender.SentAt
	if r.sender.SentAt.After(l.Sent) {
		l.Sent = r.sender.SentAt
	}
	l.Every = r.c.Setting.HeartbeatEvery
}

// every is the interval the instance was told.
func (r *registration) every() time.Duration {
	if r.lease.Every > 0 {
		return r.lease.Every
	}
	return r.c.Setting.HeartbeatEvery
}

// refuse tells people, and where it is of use the agent, why there is no welcome.
func (r *registration) refuse(ctx context.Context) {
	if r.late {
		r.c.Log.InfoContext(ctx, "registration dropped", logkey.Instance, r.m.Instance, logkey.Reason, r.refused)
		return
	}
	count := countRefusedRegistrations
	if r.fence {
		count = countDuplicateIdentities
	}
	r.c.Metrics.Count(count, 1)
	r.c.Log.WarnContext(ctx, "registration refused", logkey.Instance, r.m.Instance, logkey.Cluster, r.m.Cluster, logkey.Incarnation, r.m.Incarnation, logkey.Reason, r.refused)
	if r.fence {
		// Never with our epoch: who has that is one of the fleet.
		r.c.send(ctx, &wire.Fence{Header: wire.Header{Instance: r.m.Instance}, Incarnation: r.m.Incarnation, Epoch: max(1, r.m.Epoch), Reason: wire.DuplicateIdentity})
	}
}

// welcome makes the instance's inbox and puts the welcome there. Without the
// inbox the register is not done, and is delivered again.
func (r *registration) welcome(ctx context.Context) error {
	if r.refused != "" {
		r.refuse(ctx)
		return nil
	}
	if err := r.c.Queue.EnsureInbox(ctx, r.in.ID, r.in.Identity); err != nil {
		return fmt.Errorf("make the inbox of instance %s: %w", r.in.ID, err)
	}
	if r.in.EC2InstanceID != r.m.EC2InstanceID {
		r.c.Log.WarnContext(ctx, "the EC2 instance that an agent says it is on is not the one its session is named after: it is taken for none", logkey.Instance, r.in.ID, logkey.Sender, r.in.Identity, logkey.Reason, r.m.EC2InstanceID)
	}
	r.c.Log.InfoContext(ctx, "instance registered", logkey.Instance, r.in.ID, logkey.Cluster, r.in.Cluster, logkey.Incarnation, r.in.Incarnation, logkey.Epoch, r.ledger.Epoch, logkey.Stage, r.lease.Stage)
	r.c.send(ctx, r.c.welcomeMessage(r.in, r.ledger, r.lease))
	return nil
}

func (c *Control) welcomeMessage(in *Instance, l *Ledger, lease *Lease) *wire.Welcome {
	return &wire.Welcome{
		Header:               wire.Header{Instance: in.ID},
		Incarnation:          in.Incarnation,
		ContainerInstanceARN: c.InstanceARN(in.Cluster, in.ID),
		Cluster:              in.Cluster,
		Epoch:                l.Epoch,
		N:                    lease.N,
		HeartbeatEveryS:      max(1, int(lease.Every/time.Second)),
	}
}
