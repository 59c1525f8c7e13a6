package control

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Sender is what the queue itself says about a message: who sent it and when.
// Nothing an agent writes can change it.
type Sender struct {
	Identity  string    // SenderId: for a role session its aws:userid
	SentAt    time.Time // SentTimestamp
	MessageID string
}

// Counts this side of the protocol makes.
const (
	countRefusedSenders       = "RefusedSenders"
	countRefusedRegistrations = "RefusedRegistrations"
	countDuplicateIdentities  = "DuplicateIdentities"
	countUnknownSenders       = "UnknownSenders"
	countUnknownContainers    = "UnknownContainers"
)

// vouched says whether a message that names an instance was sent by it: the id
// is the hash of the sender's identity. A wrong sender is dropped and counted.
func (c *Control) vouched(ctx context.Context, s Sender, instance string) bool {
	if c.Setting.SenderFromBody || s.Identity != "" && wire.InstanceID(s.Identity) == instance {
		return true
	}
	c.Metrics.Count(countRefusedSenders, 1)
	c.Log.WarnContext(ctx, "message dropped: its sender is not the instance it speaks for",
		logkey.Instance, instance, logkey.Sender, s.Identity, logkey.Message, s.MessageID)
	return false
}

// mayRegister says whether sessions of the sender's role may register instances
// in a cluster. An identity is the id of a user or of a role, then a colon and the
// session.
func (c *Control) mayRegister(s Sender, cluster string) bool {
	role, _, _ := strings.Cut(s.Identity, ":")
	return slices.ContainsFunc(setting.OfCluster(c.Setting.RegisterRoles, cluster), func(allowed string) bool {
		return allowed == "*" || s.Identity != "" && (allowed == role || allowed == s.Identity)
	})
}
