package stack

import (
	"fmt"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"github.com/longshore-run/longshore/infra/construct/alarm"
	"github.com/longshore-run/longshore/infra/construct/queue"
)

// eventsBehind is how late a state change may be told.
const eventsBehind = 5 * time.Minute

// alarms lists every alarm. docs/runbooks has a page for each, and
// infra/testdata/alarms.txt their names.
func (s *Stack) alarms() []alarm.Alarm {
	var out []alarm.Alarm
	for _, q := range []struct {
		name  string
		queue queue.Queue
		age   time.Duration // of the oldest message, that is too much
	}{
		{admission, s.admission, 3 * time.Minute},
		{"reports", s.reports, 5 * time.Minute},
		{"heartbeats", s.heartbeats, 3 * time.Minute},
		{services, s.services, 5 * time.Minute},
	} {
		out = append(out, s.queueAlarms(q.name, q.queue, q.age)...)
	}
	out = append(out, deadLetters(events, s.eventsDead), deadLetters(scheduled, s.scheduleDead))
	for _, name := range Functions() {
		out = append(out, s.functionAlarms(name)...)
	}
	return append(out, s.ownAlarms()...)
}

func (s *Stack) queueAlarms(name string, q queue.Queue, age time.Duration) []alarm.Alarm {
	return []alarm.Alarm{deadLetters(name, q.Dead), {
		Name:      name + "-queue-age",
		Says:      fmt.Sprintf("Messages wait in the %s queue for %s or longer.", name, age),
		Metric:    q.MetricApproximateAgeOfOldestMessage(most(time.Minute)),
		Threshold: age.Seconds(), Of: 3, Periods: 3,
	}}
}

func most(period time.Duration) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: jsii.String("Maximum"), Period: alarm.Period(period)}
}

func deadLetters(name string, dead awssqs.IQueue) alarm.Alarm {
	return alarm.Alarm{
		Name:      name + "-dead-letters",
		Says:      fmt.Sprintf("Messages of the %s queue could not be processed and were put aside.", name),
		Metric:    dead.MetricApproximateNumberOfMessagesVisible(most(5 * time.Minute)),
		Threshold: 1, Of: 1, Periods: 1,
	}
}

func (s *Stack) functionAlarms(name string) []alarm.Alarm {
	f := s.functions[name]
	sum := &awscloudwatch.MetricOptions{Statistic: jsii.String("Sum"), Period: alarm.Period(5 * time.Minute)}
	out := []alarm.Alarm{{
		Name:      name + "-errors",
		Says:      fmt.Sprintf("Calls of the function %s failed: it crashed, ran out of time or gave up.", name),
		Metric:    f.MetricErrors(sum),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      name + "-throttles",
		Says:      fmt.Sprintf("The function %s could not be started: the account's concurrency is used up.", name),
		Metric:    f.MetricThrottles(sum),
		Threshold: 1, Of: 2, Periods: 3,
	}}
	switch name {
	case api, readapi:
		out = append(out, alarm.Alarm{
			Name:      name + "-server-faults",
			Says:      fmt.Sprintf("Callers of %s got answers of 500 and above.", name),
			Metric:    f.Metric(jsii.String("Url5xxCount"), sum),
			Threshold: 1, Of: 1, Periods: 1,
		})
	case events:
		out = append(out, alarm.Alarm{
			Name:      "events-behind",
			Says:      fmt.Sprintf("State changes are told %s late or later.", eventsBehind),
			Metric:    f.Metric(jsii.String("IteratorAge"), most(time.Minute)),
			Threshold: float64(eventsBehind.Milliseconds()), Of: 3, Periods: 3,
		})
	case reaper:
		out = append(out, alarm.Alarm{
			Name:      "reaper-silent",
			Says:      "The reaper has not run for five minutes: nothing is swept, nothing lost is noticed.",
			Metric:    f.MetricInvocations(sum),
			Threshold: 1, Below: true, Of: 1, Periods: 1, Silence: true,
		})
	}
	return out
}

// ownAlarms watch what our functions themselves measure. The state metrics are
// written by each run of the reaper, the counts when something happens.
func (s *Stack) ownAlarms() []alarm.Alarm {
	state := func(metric string) awscloudwatch.IMetric {
		return alarm.Own(s.option.Name, metric, "Maximum", time.Minute)
	}
	count := func(metric string) awscloudwatch.IMetric {
		return alarm.Own(s.option.Name, metric, "Sum", 5*time.Minute)
	}
	return []alarm.Alarm{{
		Name:      "tasks-waiting",
		Says:      fmt.Sprintf("A task has waited for room for %s or longer.", s.option.WaitingAlarm),
		Metric:    state("OldestWaitingSeconds"),
		Threshold: s.option.WaitingAlarm.Seconds(), Of: 3, Periods: 3,
	}, {
		Name:      "brake-engaged",
		Says:      "So many instances are late at once that reaping is slowed down or stopped.",
		Metric:    state("BrakeEngaged"),
		Threshold: 1, Of: 2, Periods: 3,
	}, {
		Name:      "guard-blackout",
		Says:      "Nothing is reaped, because heartbeats are not known to get through.",
		Metric:    state("GuardBlackout"),
		Threshold: 1, Of: 3, Periods: 5,
	}, {
		Name:      "probes-lost",
		Says:      "A probe that the reaper sent through the heartbeat queue has not come out for fifteen minutes.",
		Metric:    state("LostProbes"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "instances-late",
		Says:      "An instance has not been heard for longer than it may be: it gets no work, and is reaped if it stays silent.",
		Metric:    state("SuspectInstances"),
		Threshold: 1, Of: 3, Periods: 5,
	}, {
		Name:      "instances-fenced",
		Says:      "An instance has been fenced for fifteen minutes and gets no work.",
		Metric:    state("FencedInstances"),
		Threshold: 1, Of: 15, Periods: 15,
	}, {
		Name:      "instances-full",
		Says:      "The disk of an instance has been full for fifteen minutes: it gets no work.",
		Metric:    state("FullInstances"),
		Threshold: 1, Of: 15, Periods: 15,
	}, {
		Name:      "containers-unknown",
		Says:      "An instance runs a container that nobody here knows; it is left running and keeps its instance fenced.",
		Metric:    state("UnknownContainers"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "identities-duplicate",
		Says:      "Two machines, or two agents on one, claim to be the same instance.",
		Metric:    count("DuplicateIdentities"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "senders-refused",
		Says:      "A message claimed to come from an instance that did not send it, or from a role that may not register.",
		Metric:    count("RefusedSenders"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "registrations-refused",
		Says:      "For fifteen minutes an instance has asked to register and was refused.",
		Metric:    count("RefusedRegistrations"),
		Threshold: 1, Of: 3, Periods: 3,
	}, {
		Name:      "autoscaling-faults",
		Says:      "For fifteen minutes Auto Scaling could not be told that a host is lost, or drained.",
		Metric:    count("AutoScalingFaults"),
		Threshold: 1, Of: 3, Periods: 3,
	}, {
		Name:      "ledger-differences",
		Says:      "A ledger, or a service's count, is not what its tasks add up to.",
		Metric:    count("LedgerDifferences"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "schedules-missed",
		Says:      "A run of a scheduled task was missed.",
		Metric:    count("MissedScheduledRuns"),
		Threshold: 1, Of: 1, Periods: 1,
	}, {
		Name:      "messages-undecodable",
		Says:      "A message could not be understood and was put aside.",
		Metric:    count("UndecodableMessages"),
		Threshold: 1, Of: 1, Periods: 1,
	}}
}
