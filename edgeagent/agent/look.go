package agent

import (
	"cmp"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Look is what the agent knows at one moment, for people and tools on its machine.
type Look struct {
	Instance             string        `json:"instance"`
	ContainerInstanceARN string        `json:"containerInstanceArn,omitempty"`
	Cluster              string        `json:"cluster"`
	Version              string        `json:"version"`
	Incarnation          string        `json:"incarnation"`
	Session              string        `json:"session"`
	Epoch                int64         `json:"epoch"`
	Registered           bool          `json:"registered"` // welcomed since this start
	Deregistered         bool          `json:"deregistered"`
	Docker               Health        `json:"docker"`
	Commands             Health        `json:"commands"` // the queue that they come from
	Heartbeats           Health        `json:"heartbeats"`
	HeartbeatEvery       time.Duration `json:"heartbeatEvery"`
	HeartbeatSent        time.Time     `json:"heartbeatSent,omitzero"`
	Notice               *wire.Notice  `json:"notice,omitempty"` // what is to come of the host
	// TaskEndpoint is whether containers find their task's metadata and credentials,
	// MetadataBlock whether they are kept from the instance metadata service; nil for
	// what is switched off. The agent's main fills them in.
	TaskEndpoint  *Health `json:"taskEndpoint,omitempty"`
	MetadataBlock *Health `json:"instanceMetadataBlock,omitempty"`
	// TaskLimits is whether a task's size holds for its containers together, wanted
	// whether that was asked for; nil if it is switched off. The agent's main fills it in.
	TaskLimits       *Health     `json:"taskLimits,omitempty"`
	TaskLimitsWanted bool        `json:"taskLimitsWanted,omitempty"`
	NoRoom           string      `json:"noRoom,omitempty"` // why this machine takes no more tasks
	Images           *ImagesLook `json:"images,omitempty"`
	// Held is how many commands cannot be judged yet, Tombstones how many tasks are
	// remembered by their end alone.
	Held       int        `json:"held"`
	Tombstones int        `json:"tombstones"`
	Tasks      []TaskLook `json:"tasks"`
}

// Health is whether something works, and if not, why.
type Health struct {
	OK  bool   `json:"ok"`
	Why string `json:"why,omitempty"`
}

// ImagesLook is what is known of the engine's images and the disk that they are on.
type ImagesLook struct {
	Cleanup      string    `json:"cleanup"` // when they are cleaned up
	Known        int       `json:"known"`
	Tracked      int       `json:"tracked"`            // pulled by this agent
	DiskUsed     float64   `json:"diskUsed"`           // percent
	DiskFreeMiB  int64     `json:"diskFree"`           // MiB
	DiskWhy      string    `json:"diskWhy,omitempty"`  // it is not known
	CleanedAt    time.Time `json:"cleanedAt,omitzero"` // the last clean-up that had something to do
	Removed      int       `json:"removed"`            // since this start
	FreedBytes   int64     `json:"freed"`              // by that, bytes
	PullsRunning int       `json:"pullsRunning"`
	PullsWaiting int       `json:"pullsWaiting"`
}

// TaskLook is one task on this machine that is not cleaned up.
type TaskLook struct {
	ID       string       `json:"id"`
	ARN      string       `json:"arn,omitempty"`
	Attempt  int          `json:"attempt"`
	Family   string       `json:"family,omitempty"`
	Revision int          `json:"revision,omitempty"`
	Status   task.Status  `json:"lastStatus"`
	Desired  task.Desired `json:"desiredStatus"`
	Health   task.Health  `json:"healthStatus,omitempty"`
	Reason   string       `json:"stoppedReason,omitempty"`
	Refused  string       `json:"refused,omitempty"`
	// Acknowledged says that the control plane knows the end; Abandoned that it did
	// not in time, and that everything is kept.
	Acknowledged bool             `json:"acknowledged,omitempty"`
	Abandoned    bool             `json:"abandoned,omitempty"`
	Containers   []task.Container `json:"containers"`
}

// Ended says whether the task is over here.
func (t *TaskLook) Ended() bool { return t.Status == task.Stopped || t.Refused != "" }

// Look shows what is known. It waits for no call: only for the journal, where a
// write is under way.
func (a *Agent) Look() Look {
	var l Look
	a.book.view(func(p *page) {
		l = Look{
			Instance: a.instance, ContainerInstanceARN: p.meta.InstanceARN, Cluster: a.Setting.Cluster, Version: a.Version,
			Incarnation: p.meta.Incarnation, Session: a.Session, Epoch: p.meta.Epoch, HeartbeatEvery: a.every(p.meta),
			Tombstones: len(p.book.tombs), Tasks: make([]TaskLook, 0, len(p.book.tasks)),
		}
		for r := range p.all {
			l.Tasks = append(l.Tasks, r.look())
		}
	})
	slices.SortFunc(l.Tasks, func(x, y TaskLook) int { return cmp.Compare(x.ID, y.ID) })
	l.NoRoom, l.Images = a.roomless(), a.imagesLook()
	a.mu.Lock()
	defer a.mu.Unlock()
	l.Registered, l.Deregistered, l.Held = a.welcomed, a.ending, len(a.held)
	l.Docker = Health{OK: a.impaired == "", Why: a.impaired}
	l.Commands, l.Heartbeats = healthOf(a.inbox), healthOf(a.unsent)
	l.HeartbeatSent, l.Notice = a.sent, a.notice
	return l
}

func (a *Agent) imagesLook() *ImagesLook {
	if a.Images == nil {
		return nil
	}
	a.room.mu.Lock()
	l := a.room.look
	a.room.mu.Unlock()
	l.PullsRunning, l.PullsWaiting = a.Images.Pulls()
	return &l
}

func healthOf(err error) Health {
	if err == nil {
		return Health{OK: true}
	}
	return Health{Why: err.Error()}
}

func (r *Record) look() TaskLook {
	s := &r.State
	l := TaskLook{
		ID: s.ID, ARN: r.TaskARN, Attempt: s.Attempt, Family: r.Family, Revision: r.Revision, Status: s.Status, Desired: s.Desired,
		Health: s.Health(), Reason: s.Reason, Acknowledged: r.Acked, Abandoned: r.Abandoned, Containers: make([]task.Container, 0, len(s.Containers)),
	}
	if s.Refusal != nil {
		l.Refused = s.Refusal.Reason
	}
	for _, c := range s.Containers {
		if c.Pause() {
			continue
		}
		c.Shown.Bindings, c.Shown.GPUs = slices.Clone(c.Shown.Bindings), slices.Clone(c.Shown.GPUs)
		l.Containers = append(l.Containers, c.Shown)
	}
	return l
}
