package ecsapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// The detail types of events, which are ECS's.
const (
	taskEvent     = "ECS Task State Change"
	instanceEvent = "ECS Container Instance State Change"
	actionEvent   = "ECS Service Action"
	rolloutEvent  = "ECS Deployment State Change"
	missedEvent   = "Longshore Scheduled Task Missed" // ECS has none
)

// eventTime is a time as events have it: text, where the API has a number.
type eventTime taskdef.Instant

// MarshalJSON writes ISO 8601 with milliseconds.
func (t eventTime) MarshalJSON() ([]byte, error) {
	return json.Marshal(taskdef.Instant(t).Time().Format("2006-01-02T15:04:05.000Z07:00"))
}

func timeOf(t time.Time) eventTime { return eventTime(instant(t)) }

// taskDetail is a described task with its times as events have them: a member of
// the same name in here hides the one that is described.
type taskDetail struct {
	taskShape
	ConnectivityAt     eventTime `json:"connectivityAt,omitzero"`
	CreatedAt          eventTime `json:"createdAt"`
	PullStartedAt      eventTime `json:"pullStartedAt,omitzero"`
	PullStoppedAt      eventTime `json:"pullStoppedAt,omitzero"`
	StartedAt          eventTime `json:"startedAt,omitzero"`
	StoppingAt         eventTime `json:"stoppingAt,omitzero"`
	ExecutionStoppedAt eventTime `json:"executionStoppedAt,omitzero"`
	StoppedAt          eventTime `json:"stoppedAt,omitzero"`
	UpdatedAt          eventTime `json:"updatedAt"`
}

// instanceDetail is a described container instance, but for the counts of its
// tasks: they are counted when asked for, and tell nothing at another time.
type instanceDetail struct {
	instanceShape
	ClusterARN        string    `json:"clusterArn"`
	RunningTasksCount *int      `json:"runningTasksCount,omitempty"`
	PendingTasksCount *int      `json:"pendingTasksCount,omitempty"`
	RegisteredAt      eventTime `json:"registeredAt,omitzero"`
	UpdatedAt         eventTime `json:"updatedAt"`
}

// actionDetail is what a service told, in the two forms that ECS has for it.
type actionDetail struct {
	EventType    string    `json:"eventType"`
	EventName    string    `json:"eventName"`
	ClusterARN   string    `json:"clusterArn"`
	DeploymentID string    `json:"deploymentId,omitempty"`
	CreatedAt    eventTime `json:"createdAt,omitzero"` // of an action
	UpdatedAt    eventTime `json:"updatedAt,omitzero"` // of a deployment
	Reason       string    `json:"reason,omitempty"`
	Version      int64     `json:"version"`
}

// rolloutNames begin so; they are told of a deployment.
const rolloutNames = "SERVICE_DEPLOYMENT_"

// Types of what a service tells; what is not here is INFO.
var eventTypes = map[string]string{
	"SERVICE_TASK_START_IMPAIRED":                  "WARN",
	"SERVICE_DEPLOYMENT_FAILED":                    "ERROR",
	"SERVICE_TASK_PLACEMENT_FAILURE":               "ERROR",
	"SERVICE_TASK_CONFIGURATION_FAILURE":           "ERROR",
	"SERVICE_DAEMON_PLACEMENT_CONSTRAINT_VIOLATED": "ERROR",
	"ECS_OPERATION_THROTTLED":                      "ERROR",
	"SERVICE_HEALTH_UNKNOWN":                       "ERROR",
}

func (h *Handler) serviceEvent(n *control.ServiceNotice) (control.Event, error) {
	e := n.Event
	d := actionDetail{
		EventType: cmp.Or(eventTypes[e.Name], "INFO"), EventName: e.Name, ClusterARN: h.control.ClusterARN(n.Cluster),
		DeploymentID: e.Deployment, Reason: e.Message, Version: n.Version,
	}
	kind := actionEvent
	if d.CreatedAt = timeOf(e.At); strings.HasPrefix(e.Name, rolloutNames) {
		kind, d.CreatedAt, d.UpdatedAt = rolloutEvent, 0, timeOf(e.At)
	}
	return event(kind, e.At, d, h.control.ServiceARN(n.Cluster, n.Service))
}

// missedDetail is a run of a schedule that was missed: ECS has no event for it.
type missedDetail struct {
	Schedule      string    `json:"schedule"`
	ScheduledTime eventTime `json:"scheduledTime"`
	Reason        string    `json:"reason"`
	Detail        string    `json:"detail,omitempty"`
	ClusterARN    string    `json:"clusterArn"`
	TaskARNs      []string  `json:"taskArns"`
	UpdatedAt     eventTime `json:"updatedAt"`
	Version       int64     `json:"version"`
}

func (h *Handler) missedEvent(n *control.MissedNotice) (control.Event, error) {
	run := n.Run
	return event(missedEvent, run.Decided, missedDetail{
		Schedule: n.Schedule, ScheduledTime: timeOf(run.At), Reason: string(run.Reason), Detail: run.Detail, ClusterARN: h.control.ClusterARN(run.Cluster),
		TaskARNs:  each(run.Tasks, func(id string) string { return h.control.TaskARN(run.Cluster, id) }),
		UpdatedAt: timeOf(run.Decided), Version: n.Version,
	}, h.control.RuleARN(n.Schedule))
}

// Event is a notice in ECS's form: its detail is what Describe answers.
func (h *Handler) Event(n control.Notice) (control.Event, error) {
	switch {
	case n.Task != nil:
		s := h.showTask(n.Task, true)
		return event(taskEvent, n.At, taskDetail{
			taskShape: s, ConnectivityAt: eventTime(s.ConnectivityAt), CreatedAt: eventTime(s.CreatedAt),
			PullStartedAt: eventTime(s.PullStartedAt), PullStoppedAt: eventTime(s.PullStoppedAt), StartedAt: eventTime(s.StartedAt),
			StoppingAt: eventTime(s.StoppingAt), ExecutionStoppedAt: eventTime(s.ExecutionStoppedAt), StoppedAt: eventTime(s.StoppedAt),
			UpdatedAt: timeOf(n.At),
		}, s.TaskARN)
	case n.Instance != nil:
		s := h.showInstance(n.Instance, true)
		return event(instanceEvent, n.At, instanceDetail{
			instanceShape: s, ClusterARN: h.control.ClusterARN(n.Instance.Cluster), RegisteredAt: eventTime(s.RegisteredAt), UpdatedAt: timeOf(n.At),
		}, s.ContainerInstanceARN)
	case n.Service != nil:
		return h.serviceEvent(n.Service)
	case n.Missed != nil:
		return h.missedEvent(n.Missed)
	}
	return control.Event{}, fmt.Errorf("a notice about nothing")
}

func event(kind string, at time.Time, detail any, resources ...string) (control.Event, error) {
	b, err := json.Marshal(detail)
	return control.Event{Type: kind, Resources: resources, At: at, Detail: b}, err
}
