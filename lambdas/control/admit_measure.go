package control

import (
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/placement"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/measure"
)

// measureAdmitted tells how long the longest of tasks that were admitted together
// had waited: a line a transaction, not a task.
func (c *Control) measureAdmitted(cluster string, admitted []*Task) {
	longest := time.Duration(0)
	for _, t := range admitted {
		longest = max(longest, t.AdmittedAt.Sub(t.CreatedAt))
	}
	c.countBoth(measure.AdmissionWaitSeconds, longest.Seconds(), cluster)
	c.countBoth(measure.AdmittedTasks, float64(len(admitted)), cluster)
}

// countBoth counts for the cluster and for the installation.
func (c *Control) countBoth(name string, value float64, cluster string) {
	c.Metrics.Count(name, value, measure.Cluster, cluster)
	c.Metrics.Count(name, value)
}

// measureQueue tells waiting demand, for alarms and Auto Scaling.
func (c *Control) measureQueue(p *pass, demand []placement.Demand) {
	oldest, cpu, memory, gpus, count := time.Duration(0), 0, 0, 0, 0
	for _, d := range demand {
		oldest = max(oldest, p.now.Sub(d.Oldest))
		cpu += d.Count * d.Needs.CPU
		memory += d.Count * d.Needs.MemoryMiB
		gpus += d.Count * d.Needs.GPUs
		count += d.Count
		c.Log.Info("waiting demand", logkey.Cluster, p.state.Cluster, "shape", d.Shape, logkey.Count, d.Count, logkey.Reason, d.Reason)
	}
	for name, v := range map[string]float64{"OldestWaitingSeconds": oldest.Seconds(), "WaitingTasks": float64(count), "WaitingCPU": float64(cpu), "WaitingMemoryMiB": float64(memory), "WaitingGPUs": float64(gpus)} {
		c.Metrics.Count(name, v, "Cluster", p.state.Cluster)
	}
	c.Metrics.Count("OldestWaitingSeconds", oldest.Seconds())
}
