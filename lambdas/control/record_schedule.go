package control

import (
	"slices"
	"time"
)

const ScheduleKind Kind = "schedule"

// Schedule is what a scheduled task's runs came to. What runs, and when, is its
// EventBridge rule's.
type Schedule struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// Runs are its last ones, newest first, at most maxRuns.
	Runs []ScheduledRun `json:"runs"`
	// Forgotten is the time of the last run that Runs has no room for any more.
	Forgotten time.Time `json:"forgotten,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"` // long after its last run
}

const (
	maxRuns = 20
	// scheduleKept is for how long a schedule is remembered that runs no more; the
	// rarest runs once a year.
	scheduleKept = 400 * 24 * time.Hour
)

// Outcome is what became of a run.
type Outcome string

const (
	OutcomeStarted Outcome = "STARTED" // its tasks were made: they run, ran, or wait within the deadline
	OutcomeMissed  Outcome = "MISSED"
)

// MissedReason is why a run was missed, for programs.
type MissedReason string

const (
	MissedLate    MissedReason = "LATE"    // it was asked for after its deadline
	MissedOverlap MissedReason = "OVERLAP" // an earlier run had not ended
	MissedNoRoom  MissedReason = "NO_ROOM" // a task of it waited for room until the deadline
	MissedRefused MissedReason = "REFUSED" // what it is to run can not be run
	// MissedReplaced: a task of it waited for room when the next run took its place,
	// or that one was started before it was even asked for.
	MissedReplaced MissedReason = "REPLACED"
)

// ScheduledRun is one run of a schedule.
type ScheduledRun struct {
	At      time.Time    `json:"at"` // the scheduled time
	Cluster string       `json:"cluster"`
	Tasks   []string     `json:"tasks,omitempty"` // ids
	Outcome Outcome      `json:"outcome"`
	Reason  MissedReason `json:"reason,omitempty"`
	Detail  string       `json:"detail,omitempty"` // for people
	// Decided is when the outcome was known.
	Decided time.Time `json:"decided"`
}

func (r *Schedule) Kind() Kind       { return ScheduleKind }
func (r *Schedule) Key() string      { return r.Name }
func (r *Schedule) Revision() *int64 { return &r.Version }

// run is the run of a time, or nil.
func (r *Schedule) run(at time.Time) *ScheduledRun {
	for i := range r.Runs {
		if r.Runs[i].At.Equal(at) {
			return &r.Runs[i]
		}
	}
	return nil
}

// before says that a time is older than what is remembered, if anything is
// forgotten.
func (r *Schedule) before(at time.Time) bool {
	return !r.Forgotten.IsZero() && (!at.After(r.Forgotten) || len(r.Runs) == maxRuns && at.Before(r.Runs[maxRuns-1].At))
}

// add puts a run in its place, and forgets the oldest of which no task is among
// unfinished: what still runs stands in the way of the next, however many were
// missed since it began.
func (r *Schedule) add(run ScheduledRun, now time.Time, unfinished map[string]bool) {
	i := 0
	for i < len(r.Runs) && r.Runs[i].At.After(run.At) {
		i++
	}
	r.Runs = slices.Insert(slices.Clone(r.Runs), i, run)
	r.ExpiresAt = now.Add(scheduleKept)
	if len(r.Runs) <= maxRuns {
		return
	}
	gone := maxRuns
	for i := maxRuns; i >= 0; i-- {
		busy := slices.ContainsFunc(r.Runs[i].Tasks, func(id string) bool { return unfinished[id] })
		if !busy && !r.Runs[i].At.Equal(run.At) {
			gone = i
			break
		}
	}
	if at := r.Runs[gone].At; at.After(r.Forgotten) {
		r.Forgotten = at
	}
	r.Runs = slices.Delete(r.Runs, gone, gone+1)
}
