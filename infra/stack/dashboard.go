package stack

import (
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/alarm"
	"github.com/longshore-run/longshore/infra/construct/dashboard"
	"github.com/longshore-run/longshore/shared/measure"
	"github.com/longshore-run/longshore/shared/schema"
)

// addDashboard shows in one place what the runbooks ask for.
func (s *Stack) addDashboard(alarms []awscloudwatch.IAlarm) {
	dashboard.New(s.Stack, "Dashboard", s.option.Name, []dashboard.Row{
		{Heading: "Alarms", Graphs: []dashboard.Graph{{Title: "What to do: " + s.option.Runbooks + "README.md", Columns: dashboard.Width, Alarms: alarms}}},
		{Heading: "Work that waits", Graphs: s.waitingGraphs()},
		{Heading: "Instances", Graphs: s.instanceGraphs()},
		{Heading: "Messages", Graphs: s.messageGraphs()},
		{Heading: "Functions and tables", Graphs: s.engineGraphs()},
	})
}

const minute = time.Minute

// own draws a metric of ours for the whole installation.
func (s *Stack) own(names ...string) []awscloudwatch.IMetric {
	var out []awscloudwatch.IMetric
	for _, m := range measure.All() {
		for _, name := range names {
			if m.Name == name && m.Whole {
				out = append(out, s.drawn(m)...)
			}
		}
	}
	return out
}

func (s *Stack) drawn(m measure.Metric) []awscloudwatch.IMetric {
	switch m.Kind {
	case measure.Count:
		return []awscloudwatch.IMetric{alarm.Own(s.option.Name, m.Name, "Sum", 5*minute)}
	case measure.Time:
		return []awscloudwatch.IMetric{
			alarm.Own(s.option.Name, m.Name, "p50", 5*minute), alarm.Own(s.option.Name, m.Name, "p99", 5*minute), alarm.Own(s.option.Name, m.Name, "Maximum", 5*minute),
		}
	case measure.State:
	}
	return []awscloudwatch.IMetric{alarm.Own(s.option.Name, m.Name, "Maximum", minute)}
}

// byCluster draws a line for each cluster.
func (s *Stack) byCluster(name string) awscloudwatch.IMetric {
	return dashboard.Search(measure.Namespace, measure.Stack, s.option.Name, measure.Cluster, name, "Maximum", minute)
}

func (s *Stack) waitingGraphs() []dashboard.Graph {
	return []dashboard.Graph{
		{Title: "Tasks that wait for room, by cluster", Columns: 6, Metrics: []awscloudwatch.IMetric{s.byCluster(measure.WaitingTasks)}},
		{Title: "The oldest of them, seconds", Columns: 6, Metrics: s.own(measure.OldestWaitingSeconds)},
		{Title: "Waited until admitted, and one pass, seconds", Columns: 6, Metrics: s.own(measure.AdmissionWaitSeconds, measure.AdmissionPassSeconds)},
		{Title: "What is asked for, by shape", Columns: 6, Logs: []string{*s.functions[admission].Log.LogGroupName()}, Query: []string{
			`filter msg = "waiting demand"`,
			"stats latest(count) as tasks, latest(reason) as why, max(@timestamp) as seen by cluster, shape",
			"sort tasks desc",
			"limit 20",
		}},
		{Title: "Memory that waiting tasks ask for, MiB", Columns: 6, Metrics: []awscloudwatch.IMetric{s.byCluster(measure.WaitingMemoryMiB)}},
		{Title: "Processor that waiting tasks ask for, units", Columns: 6, Metrics: []awscloudwatch.IMetric{s.byCluster(measure.WaitingCPU)}},
		{Title: "Tasks admitted", Columns: 6, Metrics: s.own(measure.AdmittedTasks)},
		{Title: "Scheduled runs missed", Columns: 6, Metrics: s.own(measure.MissedScheduledRuns)},
	}
}

func (s *Stack) instanceGraphs() []dashboard.Graph {
	return []dashboard.Graph{
		{Title: "Instances by stage", Columns: 8, Stacked: true, Metrics: s.own(measure.ConnectedInstances, measure.SuspectInstances, measure.FencedInstances, measure.LostInstances)},
		{Title: "Late, reaped, flapping, and full", Columns: 8, Metrics: s.own(measure.SuspectInstances, measure.ReapedInstances, measure.FlappingInstances, measure.FullInstances)},
		{Title: "What holds reaping back", Columns: 8, Metrics: s.own(measure.BrakeEngaged, measure.GuardBlackout, measure.LostProbes)},
		{Title: "Refused, and not what they say they are", Columns: 8, Metrics: s.own(measure.RefusedSenders, measure.RefusedRegistrations, measure.DuplicateIdentities, measure.UnknownSenders)},
		{Title: "Containers that nobody knows, and what Auto Scaling did not take", Columns: 8, Metrics: s.own(measure.UnknownContainers, measure.AutoScalingFaults)},
		{Title: "The nightly audit", Columns: 8, Metrics: s.own(measure.LedgerDifferences, measure.LedgersAudited, measure.LedgersNotAudited)},
	}
}

func (s *Stack) messageGraphs() []dashboard.Graph {
	var ages, dead []awscloudwatch.IMetric
	for _, q := range s.queues() {
		ages = append(ages, q.queue.MetricApproximateAgeOfOldestMessage(labelled(q.name, "Maximum", minute)))
		dead = append(dead, q.queue.Dead.MetricApproximateNumberOfMessagesVisible(labelled(q.name, "Maximum", minute)))
	}
	dead = append(dead, s.eventsDead.MetricApproximateNumberOfMessagesVisible(labelled(events, "Maximum", minute)),
		s.scheduleDead.MetricApproximateNumberOfMessagesVisible(labelled(scheduled, "Maximum", minute)))
	return []dashboard.Graph{
		{Title: "Oldest message of each queue, seconds", Columns: 8, Metrics: ages},
		{Title: "Dead letters", Columns: 8, Metrics: dead},
		{Title: "Could not be read, or told", Columns: 8, Metrics: s.own(measure.UndecodableMessages, measure.UnpublishedEvents)},
	}
}

func (s *Stack) engineGraphs() []dashboard.Graph {
	var errors, throttles, durations, reads, writes, refused []awscloudwatch.IMetric
	for _, name := range Functions() {
		f := s.functions[name]
		errors = append(errors, f.MetricErrors(labelled(name, "Sum", 5*minute)))
		throttles = append(throttles, f.MetricThrottles(labelled(name, "Sum", 5*minute)))
		durations = append(durations, f.MetricDuration(labelled(name, "p99", 5*minute)))
	}
	for _, t := range schema.Tables() {
		of := s.tables[t.Role]
		reads = append(reads, of.MetricConsumedReadCapacityUnits(labelled(t.Role, "Sum", minute)))
		writes = append(writes, of.MetricConsumedWriteCapacityUnits(labelled(t.Role, "Sum", minute)))
		for _, kind := range []string{"ReadThrottleEvents", "WriteThrottleEvents"} {
			refused = append(refused, of.Metric(jsii.String(kind), labelled(t.Role+" "+kind, "Sum", 5*minute)))
		}
	}
	return []dashboard.Graph{
		{Title: "Failed calls of functions", Columns: 8, Metrics: errors},
		{Title: "Calls that were not started", Columns: 8, Metrics: throttles},
		{Title: "Duration, p99, milliseconds", Columns: 8, Metrics: durations},
		{Title: "Read units of tables a minute", Columns: 8, Metrics: reads},
		{Title: "Write units of tables a minute", Columns: 8, Metrics: writes},
		{Title: "Throttled by tables", Columns: 8, Metrics: refused},
	}
}

func labelled(label, statistic string, period time.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &statistic, Period: alarm.Period(period), Label: &label}
}
