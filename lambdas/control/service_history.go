package control

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

// historyFor is how long a service's past is kept, as in ECS.
const historyFor = 90 * 24 * time.Hour

// deploymentPrefix begins the ids of deployments; what follows is also the id of
// the revision that the deployment is of.
const deploymentPrefix = "ecs-svc/"

// revisionOf is the revision of a deployment.
func revisionOf(deployment string) string { return strings.TrimPrefix(deployment, deploymentPrefix) }

// Revision is the id of the revision that a deployment is of.
func (d *DeploymentView) Revision() string { return revisionOf(d.ID) }

// newDeploymentID makes an id of ECS's form from a random one.
func (c *Control) newDeploymentID() string {
	n, err := strconv.ParseUint(c.NewID()[16:], 16, 64)
	if err != nil {
		panic("control: ids are 32 hex digits: " + err.Error())
	}
	return fmt.Sprintf("%s%019d", deploymentPrefix, n&(1<<63-1))
}

// newRolloutID makes an id that sorts before those made earlier.
func (c *Control) newRolloutID(now time.Time) string {
	return fmt.Sprintf("%012x%s", 1<<47-now.UnixMilli(), c.NewID()[24:])
}

// record brings the history up to what was decided: the rollout that is under way
// has come to its end, or goes back.
func (c *Control) record(ctx context.Context, x *situation, w *changes) error {
	r := x.service
	if r.Rollout == "" || len(r.Deployments) == 0 {
		return nil
	}
	p := r.Deployments[0]
	if p.State == deployment.InProgress && !p.RollingBack {
		return nil
	}
	row := &ServiceDeployment{Cluster: r.Cluster, Service: r.Name, ID: r.Rollout}
	if err := c.Store.Load(ctx, row); err != nil {
		return err
	}
	if row.Version == 0 || row.Status.Over() { // expired: it took longer than its history lasts
		r.Rollout = ""
		return nil
	}
	back := row.Deployment != p.ID
	if back || p.State == deployment.Failed {
		row.Tripped, row.Failures, row.Threshold = true, x.failures(row.Deployment), deployment.Threshold(r.Desired)
	}
	if back { // where all that it goes back to still runs, it is there at once
		row.goBack(p.ID, "Service deployment rolled back because the circuit breaker threshold was exceeded.", x.now)
	}
	switch p.State {
	case deployment.Completed:
		row.end(RolloutSuccessful, "", x.now)
	case deployment.Failed:
		row.end(RolloutStopped, "Service deployment stopped because the circuit breaker threshold was exceeded.", x.now)
	case deployment.InProgress:
		if !back {
			return nil
		}
	}
	if row.Status.Over() {
		r.Rollout = ""
	}
	w.put(row)
	return nil
}

// failures is how many tasks of a deployment had failed when it was decided on.
func (x *situation) failures(id string) int {
	for _, d := range x.in.Deployments {
		if d.ID == id {
			return d.Failures
		}
	}
	return 0
}

// goBack notes that a rollout goes back to a deployment.
func (r *ServiceDeployment) goBack(to, why string, now time.Time) {
	r.Status, r.Reason, r.Deployment = RolloutRollbackInProgress, why, to
	r.RolledBackTo, r.RollbackReason, r.RollbackAt, r.UpdatedAt = revisionOf(to), why, now, now
}

// end notes that a rollout is over: one that went back, with that.
func (r *ServiceDeployment) end(status RolloutStatus, why string, now time.Time) {
	switch {
	case r.RolledBackTo != "" && status == RolloutSuccessful:
		r.Status = RolloutRollbackSuccessful
	case r.RolledBackTo != "":
		r.Status, r.Reason = RolloutRollbackFailed, why
	default:
		r.Status, r.Reason = status, why
	}
	if status == RolloutStopped {
		r.StoppedAt = now
	}
	r.FinishedAt, r.UpdatedAt = now, now
}
