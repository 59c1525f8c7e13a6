package task

import "strings"

// StopCode is ECS's stopCode of a stopped task.
type StopCode string

const (
	TaskFailedToStart          StopCode = "TaskFailedToStart"
	EssentialContainerExited   StopCode = "EssentialContainerExited"
	UserInitiated              StopCode = "UserInitiated"
	ServiceSchedulerInitiated  StopCode = "ServiceSchedulerInitiated"
	SpotInterruption           StopCode = "SpotInterruption"
	TerminationNotice          StopCode = "TerminationNotice"
	InfrastructureHealth       StopCode = "InfrastructureHealth"
	NoCode                     StopCode = ""
	defaultUserStopReason               = "Task stopped by user"
	defaultServiceStopReason            = "Scaling activity initiated by deployment"
	defaultEssentialExitReason          = "Essential container in task exited"
)

// Cause is why a task ended.
type Cause string

const (
	ExitedCause      Cause = "exited"     // an essential container exited
	FailedCause      Cause = "failed"     // it could not be started
	UserCause        Cause = "user"       // StopTask
	ServiceCause     Cause = "service"    // its service
	LostCause        Cause = "lost"       // its instance was silent for too long
	VanishedCause    Cause = "vanished"   // its agent came back without it
	RefusedCause     Cause = "refused"    // refused, and not to wait
	FencedCause      Cause = "fenced"     // ended on an instance that had been fenced
	DeadlockCause    Cause = "deadlock"   // nothing in it could move
	MaxWaitCause     Cause = "max_wait"   // waited longer than it was to
	ForcedDrainCause Cause = "drain"      // deregistered by force, or drained past the deadline
	HostGoneCause    Cause = "host_gone"  // EC2 said the instance is terminated
	ClusterGoneCause Cause = "cluster"    // its cluster was deleted while it waited
	NoRoomCause      Cause = "no_room"    // not to wait, and there was no room
	ConfirmedOff     Cause = "confirmed"  // an operator said that the host is off
	UnreadableCause  Cause = "unreadable" // its assign can not be read by the agent
	UnhealthyCause   Cause = "unhealthy"  // its service, because its health checks failed
	HostStoppedCause Cause = "host_off"   // EC2 said the instance is stopped
	SpotCause        Cause = "spot"       // EC2 is about to take its Spot instance away
	TerminationCause Cause = "taken"      // its Auto Scaling group is about to terminate its instance
	KeptOutCause     Cause = "kept_out"   // kept on a lost instance for as long as it was to be
)

// End is how a cause is told to users: one row for every cause.
type End struct {
	Cause  Cause
	Code   StopCode
	Reason string
}

var ends = []End{
	{ExitedCause, EssentialContainerExited, defaultEssentialExitReason},
	{FailedCause, TaskFailedToStart, "Task failed to start"},
	{UserCause, UserInitiated, defaultUserStopReason},
	{ServiceCause, ServiceSchedulerInitiated, defaultServiceStopReason},
	{LostCause, InfrastructureHealth, "Container instance lost: no heartbeat was received for longer than the reap time"},
	{VanishedCause, InfrastructureHealth, "Task vanished: the agent on its container instance no longer has it"},
	{RefusedCause, TaskFailedToStart, "Task refused by its container instance"},
	{FencedCause, InfrastructureHealth, "Task ended on a fenced container instance"},
	{DeadlockCause, TaskFailedToStart, "Task stopped: none of its containers can make progress"},
	{MaxWaitCause, TaskFailedToStart, "Task waited for room longer than longshore:maxWait allows"},
	{ForcedDrainCause, ServiceSchedulerInitiated, "Container instance was deregistered by force"},
	{HostGoneCause, InfrastructureHealth, "Host EC2 (instance %s) terminated."},
	{ClusterGoneCause, UserInitiated, "Cluster was deleted while the task waited"},
	{NoRoomCause, TaskFailedToStart, "No container instance met all of the task's requirements"},
	{ConfirmedOff, InfrastructureHealth, "Container instance was confirmed to be off by an operator"},
	{UnreadableCause, TaskFailedToStart, "Task can not be read by the agent of its container instance"},
	{UnhealthyCause, ServiceSchedulerInitiated, "Task failed container health checks"},
	{HostStoppedCause, InfrastructureHealth, "Host EC2 (instance %s) stopped."},
	{SpotCause, SpotInterruption, "Host EC2 (instance %s) is interrupted: Spot interruption notice."},
	{TerminationCause, TerminationNotice, "Host EC2 (instance %s) is to be terminated by its Auto Scaling group."},
	{KeptOutCause, InfrastructureHealth, "Container instance lost: it did not return within the time that longshore:keepFor keeps its tasks"},
}

// Text is the reason as it is told; host, the EC2 instance's id, goes where the
// reason names it.
func (e End) Text(host string) string { return strings.Replace(e.Reason, "%s", host, 1) }

// Ends lists the row of every cause.
func Ends() []End { return append([]End(nil), ends...) }

// EndOf is the stop code and the default reason of a cause. An unknown cause
// has neither.
func EndOf(c Cause) End {
	for _, e := range ends {
		if e.Cause == c {
			return e
		}
	}
	return End{Cause: c}
}
