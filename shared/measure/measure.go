// Package measure lists the metrics that our functions write, so that alarms and
// dashboards are made of what is really written. It is data: infra builds on it,
// and the tests of the functions hold what they write against it.
package measure

// Namespace holds all of our metrics.
const Namespace = "Longshore"

// Dimensions. Every metric has Stack; it is the installation's name.
const (
	Stack   = "Stack"
	Cluster = "Cluster"
)

// Names of the metrics.
const (
	OldestWaitingSeconds = "OldestWaitingSeconds"
	WaitingTasks         = "WaitingTasks"
	WaitingCPU           = "WaitingCPU"
	WaitingMemoryMiB     = "WaitingMemoryMiB"
	WaitingGPUs          = "WaitingGPUs"
	AdmittedTasks        = "AdmittedTasks"
	AdmissionWaitSeconds = "AdmissionWaitSeconds" // the longest wait of tasks that were admitted together
	AdmissionPassSeconds = "AdmissionPassSeconds"

	ConnectedInstances = "ConnectedInstances"
	SuspectInstances   = "SuspectInstances"
	LostInstances      = "LostInstances"
	FencedInstances    = "FencedInstances"
	ReapedInstances    = "ReapedInstances"
	FlappingInstances  = "FlappingInstances" // LOST again and again within a day
	FullInstances      = "FullInstances"     // without room for a task more, as their disks are full
	BrakeEngaged       = "BrakeEngaged"
	GuardBlackout      = "GuardBlackout"
	LostProbes         = "LostProbes"

	RefusedSenders       = "RefusedSenders"
	RefusedRegistrations = "RefusedRegistrations"
	DuplicateIdentities  = "DuplicateIdentities"
	UnknownSenders       = "UnknownSenders"
	UnknownContainers    = "UnknownContainers"
	UndecodableMessages  = "UndecodableMessages"
	UnpublishedEvents    = "UnpublishedEvents"
	MissedScheduledRuns  = "MissedScheduledRuns"
	AutoScalingFaults    = "AutoScalingFaults"

	LedgerDifferences = "LedgerDifferences"
	LedgersAudited    = "LedgersAudited"
	LedgersNotAudited = "LedgersNotAudited"
)

// Kind says how values of a metric go together.
type Kind string

const (
	State Kind = "state" // how things stand: the newest counts, or the greatest
	Count Kind = "count" // what happened: a sum
	Time  Kind = "time"  // how long something took: percentiles
)

// Metric is one metric as it is written.
type Metric struct {
	Name string
	Kind Kind
	// ByCluster is written with the dimensions Stack and Cluster, Whole with Stack alone.
	Whole, ByCluster bool
}

// All lists every metric.
func All() []Metric {
	return []Metric{
		{OldestWaitingSeconds, State, true, true},
		{WaitingTasks, State, false, true},
		{WaitingCPU, State, false, true},
		{WaitingMemoryMiB, State, false, true},
		{WaitingGPUs, State, false, true},
		{AdmittedTasks, Count, true, true},
		{AdmissionWaitSeconds, Time, true, true},
		{AdmissionPassSeconds, Time, true, true},
		{ConnectedInstances, State, true, false},
		{SuspectInstances, State, true, false},
		{LostInstances, State, true, false},
		{FencedInstances, State, true, false},
		{ReapedInstances, Count, true, false},
		{FlappingInstances, State, true, false},
		{FullInstances, State, true, false},
		{BrakeEngaged, State, true, false},
		{GuardBlackout, State, true, false},
		{LostProbes, State, true, false},
		{RefusedSenders, Count, true, false},
		{RefusedRegistrations, Count, true, false},
		{DuplicateIdentities, Count, true, false},
		{UnknownSenders, Count, true, false},
		{UnknownContainers, State, true, false},
		{UndecodableMessages, Count, true, false},
		{UnpublishedEvents, Count, true, false},
		{MissedScheduledRuns, Count, true, false},
		{AutoScalingFaults, Count, true, false},
		{LedgerDifferences, Count, true, false},
		{LedgersAudited, Count, true, false},
		{LedgersNotAudited, Count, true, false},
	}
}

// Written says whether a metric is written with exactly these dimensions beside Stack.
func Written(name string, dimensions ...string) bool {
	for _, m := range All() {
		if m.Name == name {
			return m.Whole && len(dimensions) == 0 || m.ByCluster && len(dimensions) == 1 && dimensions[0] == Cluster
		}
	}
	return false
}
