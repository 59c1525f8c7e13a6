package supervise

import (
	"encoding/json"
	"time"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// KeptLabel is the label of a container that says what its supervision needs
// should the journal be lost. Nothing of a user's but the names of containers is
// in it, so no secret is.
const KeptLabel = "run.longshore.supervision"

// maxKept bounds what is read of a label, above what the longest definition makes.
const maxKept = 64 << 10

// maxKeptTime bounds the times in a label, so that no sum of them overflows.
const maxKeptTime = 1 << 20 // seconds

// kept is the label's content: what an adopted container lacks otherwise. Times
// are seconds.
type kept struct {
	StopTimeout  *int         `json:"stopTimeout,omitempty"` // nil: the agent's own
	StartTimeout int          `json:"startTimeout,omitempty"`
	Policy       *keptPolicy  `json:"restartPolicy,omitempty"`
	After        []Dependency `json:"dependsOn,omitempty"`
}

type keptPolicy struct {
	Ignored []int `json:"ignored,omitempty"`
	Period  int   `json:"period"`
}

// Kept is the label of a container of a definition, "" for one that needs none.
func Kept(def *taskdef.TaskDefinition, name string) string {
	t := New("", 0, def, 0)
	c := t.container(name)
	if c == nil {
		return ""
	}
	k := kept{After: c.After, StartTimeout: int(c.StartTimeout / time.Second)}
	if d, ok := def.Container(name); ok && d.StopTimeout != nil && *d.StopTimeout > 0 {
		k.StopTimeout = d.StopTimeout
	}
	if c.Pause() {
		k.StopTimeout = new(int(c.StopTimeout / time.Second))
	}
	if p := c.Policy; p != nil {
		k.Policy = &keptPolicy{Ignored: p.Ignored, Period: int(p.Period / time.Second)}
	}
	text, err := json.Marshal(k)
	if err != nil || string(text) == "{}" {
		return ""
	}
	return string(text)
}

// restore takes in a container's label. One that is not as Kept writes it says
// nothing: then it is as without one.
func (c *Container) restore(label string) {
	var k kept
	if label == "" || len(label) > maxKept || json.Unmarshal([]byte(label), &k) != nil || !k.sound() {
		return
	}
	if k.StopTimeout != nil {
		c.StopTimeout = seconds(*k.StopTimeout)
	}
	c.StartTimeout, c.After = seconds(k.StartTimeout), k.After
	if k.Policy != nil {
		c.Policy = &Policy{Ignored: k.Policy.Ignored, Period: seconds(k.Policy.Period)}
	}
}

func (k *kept) sound() bool {
	times := []int{k.StartTimeout}
	if k.StopTimeout != nil {
		times = append(times, *k.StopTimeout)
	}
	if k.Policy != nil {
		times = append(times, k.Policy.Period)
	}
	for _, s := range times {
		if s < 0 || s > maxKeptTime {
			return false
		}
	}
	for _, d := range k.After {
		switch d.On {
		case OnStart, OnComplete, OnSuccess, OnHealthy, OnLink, OnMade, OnNamespace:
		default:
			return false
		}
	}
	return true
}
