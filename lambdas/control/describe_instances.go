package control

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// InstanceView is a container instance as it is described.
type InstanceView struct {
	Instance
	Ledger Ledger
	Lease  Lease
	Tasks  TaskCount
	// DrainDeadline is when what is left on a DRAINING instance is stopped; zero
	// for never.
	DrainDeadline time.Time
	// Flapping: it was LOST again and again, the last time within a day.
	Flapping bool
}

// Lost says whether the instance was reaped and has not come back: nothing of
// it remains to be given.
func (v *InstanceView) Lost() bool {
	return v.Lease.Stage == StageLost && v.Ledger.Status != Inactive
}

// StatusReason says what keeps the instance from taking work, or "", how many tasks
// a lost one keeps, and of one that is drained how far that is.
func (v *InstanceView) StatusReason() string {
	var all []string
	for _, what := range []string{v.unfit(), v.full(), v.keeps(), v.flaps(), v.drainProgress()} {
		if what != "" {
			all = append(all, what)
		}
	}
	return strings.Join(all, "; ")
}

func (v *InstanceView) flaps() string {
	if !v.Flapping {
		return ""
	}
	return fmt.Sprintf("flapping: LOST %d times, the last at %s", v.Lease.Losses, v.Lease.LostAt.UTC().Format(time.RFC3339))
}

// keeps says how many tasks of a LOST instance are kept for its return.
func (v *InstanceView) keeps() string {
	if v.Lost() && v.Ledger.kept() > 0 {
		return fmt.Sprintf("%d tasks are kept for its return", v.Ledger.kept())
	}
	return ""
}

// full says why the host has no room for a task more, as its agent says.
func (v *InstanceView) full() string {
	if v.Lease.NoRoom.IsZero() || v.Lost() || v.Ledger.Status == Inactive {
		return ""
	}
	return because("NO_ROOM since "+v.Lease.NoRoom.UTC().Format(time.RFC3339), v.Lease.NoRoomWhy)
}

func (v *InstanceView) unfit() string {
	switch stage := v.Lease.Stage; {
	case v.Ledger.Status == Inactive:
		return ""
	case v.Foreign:
		return "registered through the API, without longshore-agent: it is given no work"
	case stage != "" && stage != StageConnected:
		why := strings.TrimPrefix(v.Lease.StageReason, string(stage)+": ") // said already
		return because(fmt.Sprintf("%s since %s", stage, v.Lease.StageSince.UTC().Format(time.RFC3339)), why)
	case !v.Lease.Impaired.IsZero():
		return because("IMPAIRED since "+v.Lease.Impaired.UTC().Format(time.RFC3339), v.Lease.ImpairedWhy)
	case v.Ledger.Stale > 0:
		return fmt.Sprintf("%d tasks of an earlier life of this instance are being closed", v.Ledger.Stale)
	}
	return ""
}

func because(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

// Attributes are the instance's attributes as placement sees them.
func (v *InstanceView) ShownAttributes() map[string]string { return attributesOf(&v.Instance) }

// DescribeContainerInstances describes instances by id, INACTIVE ones too while
// they are remembered; those a cluster does not have are missing.
func (c *Control) DescribeContainerInstances(ctx context.Context, cluster string, ids []string) (found []InstanceView, missing []string, err error) {
	if len(ids) == 0 || len(ids) > DescribeAtOnce {
		return nil, nil, invalid("containerInstances", "has %d entries; 1 to %d are allowed", len(ids), DescribeAtOnce)
	}
	ids = unique(ids)
	k := &Cluster{Name: cluster}
	views := make([]InstanceView, len(ids))
	records := []Record{k}
	for i, id := range ids {
		v := &views[i]
		v.Instance.ID, v.Ledger.ID, v.Lease.ID = id, id, id
		records = append(records, &v.Instance, &v.Ledger, &v.Lease)
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, nil, fmt.Errorf("describe container instances: %w", err)
	}
	if k.Version == 0 {
		return nil, nil, clusterNotFound()
	}
	var ledgers []*Ledger
	for _, v := range views {
		if v.Instance.Version == 0 || v.Ledger.Version == 0 || v.Cluster != cluster || expired(v.ExpiresAt, c.Now()) {
			missing = append(missing, v.ID)
			continue
		}
		found = append(found, v)
		ledgers = append(ledgers, &v.Ledger)
	}
	counts, err := c.countTasks(ctx, ledgers)
	if err != nil {
		return nil, nil, fmt.Errorf("describe container instances: %w", err)
	}
	for i := range found {
		found[i].DrainDeadline = c.drainDeadline(&found[i].Ledger, &found[i].Instance, k)
		found[i].Tasks = counts[found[i].ID]
		found[i].Flapping = found[i].Lease.flaps(c.Now())
	}
	return found, missing, nil
}
