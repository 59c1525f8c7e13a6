package control

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

const (
	reasonReturned  = "RETURNED: to echo its epoch"
	reasonDuplicate = wire.DuplicateIdentity + ": two sessions of one incarnation send heartbeats in turn"
	// everyTenth beat is looked at even if nothing in it seems to have changed.
	everyTenth = 10
	// Two returns of an older session are clones; a single one may be a beat that
	// was long on its way. That many intervals without another end it.
	clonesReturn    = 2
	clonesForgotten = 5
	sessionsKept    = 4
)

// Beat is a heartbeat, and who sent it. Of one that can not be read Message is
// nil, and Instance what its header said.
type Beat struct {
	Sender   Sender
	Instance string
	Message  *wire.Heartbeat
}

// beating is whose lease the beat renews: the sender's, which the queue vouches
// for, whatever the body says; "" for nobody's. Only the local stack goes by the
// body, of which nothing else was checked here: an id that is none could name
// another item of the table.
func (c *Control) beating(b Beat) string {
	switch {
	case c.Setting.SenderFromBody && wire.IsInstanceID(b.Instance):
		return b.Instance
	case c.Setting.SenderFromBody, b.Sender.Identity == "":
		return ""
	}
	return wire.InstanceID(b.Sender.Identity)
}

// Heartbeats takes in a batch of beats. Every lease is renewed before any body
// is looked at, also for a body that can not be read; then each body is judged
// by itself. The errors are those of the beats at the same place: what has one
// is to be delivered again.
func (c *Control) Heartbeats(ctx context.Context, batch []Beat) []error {
	errs := make([]error, len(batch))
	leases := make([]*Lease, len(batch))
	order := make([]int, len(batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return batch[a].Sender.SentAt.Compare(batch[b].Sender.SentAt) })
	newest := map[string]*Lease{}
	for _, i := range order {
		if leases[i], errs[i] = c.renew(ctx, batch[i]); leases[i] != nil {
			newest[leases[i].ID] = leases[i]
		}
	}
	for _, i := range order {
		if outOfTime(ctx) { // the leases are renewed; later beats say the rest again
			c.Log.WarnContext(ctx, "heartbeats not looked at for want of time", logkey.Count, len(batch))
			break
		}
		if errs[i] == nil && leases[i] != nil && batch[i].Message != nil {
			// Of many beats of one instance all but the last are old by now.
			errs[i] = c.attendSafely(ctx, batch[i], newest[leases[i].ID])
		}
	}
	return errs
}

// renew renews a lease, first and alone. No lease and no error: the beat counts
// for nothing.
func (c *Control) renew(ctx context.Context, b Beat) (*Lease, error) {
	id := c.beating(b)
	if id == "" || b.Message != nil && !c.vouched(ctx, b.Sender, b.Message.Instance) {
		return nil, nil
	}
	r := Renewal{ID: id, Sent: b.Sender.SentAt}
	if b.Message != nil {
		r.Incarnation, r.Session = b.Message.Incarnation, b.Message.Session
	} else {
		known := &Lease{ID: id}
		if err := c.Store.Load(ctx, known); err != nil {
			return nil, fmt.Errorf("load the lease of instance %s: %w", id, err)
		}
		r.Incarnation, r.Session = known.Incarnation, known.Session
	}
	lease, _, err := c.Store.Renew(ctx, r)
	if fault.Is(err, fault.NotFound) {
		c.unknown(ctx, id)
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("renew the lease of instance %s: %w", id, err)
	}
	return lease, nil
}

// unknown tells a sender without a lease to register: an empty resync asks for
// everything again. It reaches only an agent whose inbox still exists; to one
// whose inbox is gone its absence says the same.
func (c *Control) unknown(ctx context.Context, instance string) {
	c.Metrics.Count(countUnknownSenders, 1)
	c.Log.WarnContext(ctx, "heartbeat of an instance that has no lease; it is told to register", logkey.Instance, instance)
	c.send(ctx, &wire.Resync{Header: wire.Header{Instance: instance}, Tasks: []string{}})
}

func (c *Control) attendSafely(ctx context.Context, b Beat, lease *Lease) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "judge a heartbeat of instance %s: %v", lease.ID, p)
			c.Log.ErrorContext(ctx, "heartbeat can not be judged", logkey.Instance, lease.ID, logkey.Error, p, "stack", string(debug.Stack()))
		}
	}()
	return c.attend(ctx, b, lease)
}

// attend looks at a beat whose lease has been renewed: does anything in it
// differ from what is known?
func (c *Control) attend(ctx context.Context, b Beat, lease *Lease) error {
	m := b.Message
	switch {
	case m.Incarnation != lease.Incarnation:
		c.stranger(ctx, b, lease)
		return nil
	case b.Sender.SentAt.Before(lease.Sent): // a later one is known
		return nil
	case !differs(m, lease) && lease.Beats%everyTenth != 0:
		return nil
	}
	v := &visit{c: c, beat: b, m: m, now: c.Now()}
	if err := v.settle(ctx); err != nil || v.over {
		return err
	}
	v.tell(ctx)
	if v.over {
		return nil
	}
	return v.judge(ctx)
}

// differs says whether a beat shows anything that its lease does not.
func differs(m *wire.Heartbeat, lease *Lease) bool {
	return m.Epoch != lease.Epoch || lease.Stage != StageConnected || (m.Docker == wire.DockerOK) != lease.Impaired.IsZero() || (m.NoRoom == "") != lease.NoRoom.IsZero() ||
		m.N <= lease.N || latest(lease.Sessions) != m.Session || noticeText(m.Notice) != lease.Notice || inventoryHash(m.Inventory) != lease.Inventory || m.UnknownLabels > 0
}

func latest(sessions []string) string {
	if len(sessions) == 0 {
		return ""
	}
	return sessions[len(sessions)-1]
}

// inventoryHash names an inventory, whatever its order.
func inventoryHash(inventory []wire.Entry) string {
	lines := make([]string, len(inventory))
	for i, e := range inventory {
		lines[i] = fmt.Sprintf("%s/%d/%d/%s", e.Task, e.Attempt, e.Epoch, e.Phase)
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
	return hex.EncodeToString(sum[:8])
}

// stranger is a beat of an incarnation that is not the one we know: an old one
// on its way since before the new one registered is nothing; later than that,
// two agents live. If the one we know has been silent for so long that another
// may take its place, the tables are older than this one's welcome (a restore):
// it believes itself registered, so it is told to register again.
func (c *Control) stranger(ctx context.Context, b Beat, lease *Lease) {
	if !b.Sender.SentAt.After(lease.RegisterSent) {
		return
	}
	if b.Sender.SentAt.Sub(lease.Sent) >= silentBeats*cmp.Or(lease.Every, c.Setting.HeartbeatEvery) {
		c.Metrics.Count(countUnknownSenders, 1)
		c.Log.WarnContext(ctx, "heartbeat of an incarnation that is not registered, and no other is heard; it is told to register", logkey.Instance, lease.ID, logkey.Incarnation, b.Message.Incarnation)
		c.send(ctx, &wire.Resync{Header: wire.Header{Instance: lease.ID}, Tasks: []string{}})
		return
	}
	c.Metrics.Count(countDuplicateIdentities, 1)
	c.Log.WarnContext(ctx, "heartbeat of another incarnation than the registered one", logkey.Instance, lease.ID, logkey.Incarnation, b.Message.Incarnation, logkey.Reason, wire.DuplicateIdentity)
}

// visit is one beat that has something to say, and what it meets.
type visit struct {
	c      *Control
	beat   Beat
	m      *wire.Heartbeat
	now    time.Time
	in     *Instance
	ledger *Ledger
	lease  *Lease
	over   bool // nothing of the body is to be judged
	woken  bool // it takes work again
	before Ledger
	clone  bool
}

func (v *visit) load(ctx context.Context) error {
	id := v.m.Instance
	v.in, v.ledger, v.lease = &Instance{ID: id}, &Ledger{ID: id}, &Lease{ID: id}
	return v.c.Store.Load(ctx, v.in, v.ledger, v.lease)
}

// settle brings stage, Docker's health and sessions up to date with the beat, in
// one transaction conditional on all it was decided on.
func (v *visit) settle(ctx context.Context) error {
	return v.c.decide(ctx, "settle instance "+v.m.Instance, func() ([]Write, error) {
		v.over, v.woken, v.clone = false, false, false
		if err := v.load(ctx); err != nil {
			return nil, err
		}
		if v.lease.Version == 0 || v.ledger.Version == 0 || v.in.Incarnation != v.m.Incarnation || v.beat.Sender.SentAt.Before(v.lease.Sent) {
			v.over = true
			return nil, errGiveUp
		}
		lease, ledger := *v.lease, *v.ledger
		v.before = ledger
		v.change()
		w := &changes{}
		if changedLease(lease, *v.lease) {
			w.put(v.lease)
		}
		if ledger.Connected != v.ledger.Connected || ledger.Epoch != v.ledger.Epoch || ledger.Cause != v.ledger.Cause || ledger.EndCause != v.ledger.EndCause || ledger.Leaving != v.ledger.Leaving || ledger.NoRoom != v.ledger.NoRoom {
			w.put(v.ledger)
		}
		if len(w.order) == 0 {
			return nil, errGiveUp
		}
		w.check(v.in, v.lease, v.ledger)
		return w.all(), nil
	})
}

func changedLease(a, b Lease) bool {
	return a.Stage != b.Stage || a.StageReason != b.StageReason || a.Epoch != b.Epoch || !a.Impaired.Equal(b.Impaired) || a.ImpairedWhy != b.ImpairedWhy ||
		a.Every != b.Every || a.Alternations != b.Alternations || !a.AlternatedAt.Equal(b.AlternatedAt) || a.Notice != b.Notice || !a.NoRoom.Equal(b.NoRoom) || a.NoRoomWhy != b.NoRoomWhy || a.Draining != b.Draining || !slices.Equal(a.Sessions, b.Sessions)
}

// change is what the beat does to lease and ledger before its inventory is read.
func (v *visit) change() {
	m, l, lease := v.m, v.ledger, v.lease
	v.sessions()
	switch {
	case l.Status == Inactive: // it is told so by the fence
	case m.Epoch > l.Epoch:
		restore(l, lease, m.Epoch, v.now)
	case lease.Stage == StageLost && m.Docker == wire.DockerOK: // with a broken engine it has not returned
		setStage(lease, StageFenced, reasonReturned, v.now)
		l.returned(lease, v.now)
	}
	v.notice()
	v.room()
	if m.Docker != wire.DockerOK && lease.Impaired.IsZero() {
		lease.Impaired, lease.ImpairedWhy = v.beat.Sender.SentAt, cut(m.DockerReason, 128)
	}
	if m.Docker == wire.DockerOK {
		lease.Impaired, lease.ImpairedWhy = time.Time{}, ""
	}
	switch {
	case v.clone:
		v.disconnect(reasonDuplicate)
	case !lease.Impaired.IsZero():
		v.disconnect("IMPAIRED: container engine: " + lease.ImpairedWhy)
	case lease.cordoned(v.now):
	case lease.Stage == StageSuspect && l.Stale == 0 && m.Epoch == l.Epoch && l.Status != Inactive:
		setStage(lease, StageConnected, "", v.now)
		l.Connected, v.woken = true, true
	}
}

// room takes in whether the host has room. One without is given nothing; it stays
// connected, and its tasks count: that its disk is full ends nothing.
func (v *visit) room() {
	why, l, lease := v.m.NoRoom, v.ledger, v.lease
	switch {
	case why == "":
		v.woken = v.woken || l.NoRoom && l.serves()
		lease.NoRoom, lease.NoRoomWhy = time.Time{}, ""
	case lease.NoRoom.IsZero():
		lease.NoRoom, lease.NoRoomWhy = v.beat.Sender.SentAt, cut(why, 256)
	}
	l.NoRoom = why != ""
}

// disconnect takes an instance out of placement until an inventory finds it
// clean. LOST stays LOST, and SUSPECT becomes FENCED: it is heard.
func (v *visit) disconnect(reason string) {
	v.ledger.Connected = false
	if v.lease.Stage != StageLost && v.lease.StageReason != reason {
		setStage(v.lease, StageFenced, reason, v.now)
	}
}

// sessions notes which of an incarnation's sessions beats, and finds clones: a
// session that comes back after another had taken its place, again and again.
func (v *visit) sessions() {
	lease, sent := v.lease, v.beat.Sender.SentAt
	every := lease.Every
	if every <= 0 {
		every = v.c.Setting.HeartbeatEvery
	}
	if lease.Alternations > 0 && sent.Sub(lease.AlternatedAt) > clonesForgotten*every {
		lease.Alternations, lease.AlternatedAt = 0, time.Time{}
	}
	if at := slices.Index(lease.Sessions, v.m.Session); at < 0 || at < len(lease.Sessions)-1 {
		all := slices.Clone(lease.Sessions)
		if at >= 0 {
			all = slices.Delete(all, at, at+1)
			lease.Alternations, lease.AlternatedAt = lease.Alternations+1, sent
		}
		all = append(all, v.m.Session)
		lease.Sessions = all[max(0, len(all)-sessionsKept):]
	}
	v.clone = lease.Alternations >= clonesReturn
}

// tell answers what can be answered before the inventory is judged.
func (v *visit) tell(ctx context.Context) {
	v.c.tellMoved(ctx, &v.before, v.ledger)
	if v.woken {
		v.c.kick(ctx, Kick{Cluster: v.ledger.Cluster, Instance: v.in.ID})
	}
	if v.lease.Every != v.c.Setting.HeartbeatEvery {
		v.retime(ctx)
	}
	switch {
	case v.clone:
		v.over = true
		v.c.Metrics.Count(countDuplicateIdentities, 1)
		v.c.Log.WarnContext(ctx, "clones of one machine: nothing is repaired from either", logkey.Instance, v.in.ID, logkey.Incarnation, v.m.Incarnation, logkey.Reason, reasonDuplicate)
	case v.ledger.Status == Inactive && v.m.Epoch == v.ledger.Epoch && v.ledger.Open > 0:
		v.over = true // it was fenced, and is told to end once all that it had is closed
	case v.m.Epoch != v.ledger.Epoch || v.ledger.Status == Inactive:
		v.over = true
		v.fence(ctx)
	case v.m.N == v.lease.N && v.beat.Sender.SentAt.Equal(v.lease.Sent) && v.applied():
		v.over = true // the same beat, delivered again after it was judged
	case v.m.N <= v.lease.N: // its journal went back: it goes on above what we know
		v.over = true
		v.c.send(ctx, v.c.welcomeMessage(v.in, v.ledger, v.lease))
	}
}

// applied says whether the lease's last inventory is this beat's.
func (v *visit) applied() bool {
	return v.lease.Inventory == "" || v.lease.Inventory == inventoryHash(v.m.Inventory)
}

// retime tells an instance an interval that was set after it registered; that it
// was told is written after it was.
func (v *visit) retime(ctx context.Context) {
	v.lease.Every = v.c.Setting.HeartbeatEvery
	err := v.c.Queue.Commands(ctx, v.c.welcomeMessage(v.in, v.ledger, v.lease))
	if err == nil {
		err = v.c.Store.Commit(ctx, Put(v.lease))
	}
	if err != nil {
		v.c.Log.InfoContext(ctx, "interval not told; a later beat does", logkey.Instance, v.in.ID, logkey.Error, err)
	}
}
