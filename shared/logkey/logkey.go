// Package logkey holds the attribute keys of our structured logs, so that one
// thing has one name in every program. Anybody may import it.
package logkey

const (
	Task        = "task"
	Attempt     = "attempt"
	Container   = "container"
	Cluster     = "cluster"
	Instance    = "instance"
	Incarnation = "incarnation"
	Epoch       = "epoch"
	Status      = "status"
	Desired     = "desired"
	Reason      = "reason"
	Definition  = "definition"
	Service     = "service"
	Schedule    = "schedule"
	Operation   = "operation"
	Caller      = "caller"
	Result      = "result"
	RequestID   = "requestId"
	Message     = "message"
	Queue       = "queue"
	Sender      = "sender"
	Count       = "count"
	Stage       = "stage"
	Zone        = "zone"
	Port        = "port"
	Image       = "image"
	Duration    = "duration"
	Error       = "error"
)
