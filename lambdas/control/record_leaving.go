package control

import (
	"fmt"
	"time"
)

// LeavingCause is why a host is about to be taken away.
type LeavingCause string

const (
	SpotLeaving        LeavingCause = "spot"        // EC2 interrupts the Spot instance
	AutoScalingLeaving LeavingCause = "autoscaling" // its Auto Scaling group terminates it
	RebalanceLeaving   LeavingCause = "rebalance"   // EC2 says that an interruption is likely
)

// Leaving is what is known of the coming end of an instance's host. While it
// stands the instance is drained for it. It is no person's wish: it ends when
// what was said no longer holds, and a person's wish outlives it.
type Leaving struct {
	// Agent is what the instance's agent says of its host in each beat.
	Agent *Coming `json:"agent,omitempty"`
	// Event is what EC2 said once: it ends by itself, or with the host's return.
	Event *Coming `json:"event,omitempty"`
	// Hook is the termination that waits for the instance to be drained.
	Hook *Hook `json:"hook,omitempty"`
	// Asked says that a person wants the instance drained, too.
	Asked bool `json:"asked,omitempty"`
	// Overruled says that a person made it ACTIVE all the same.
	Overruled bool `json:"overruled,omitempty"`
}

// Coming is one word of the coming end of a host.
type Coming struct {
	Cause LeavingCause `json:"cause"`
	// At is when the host goes; zero where that was not said.
	At time.Time `json:"at,omitzero"`
	// Until is when the word of an event ends, if the host still beats.
	Until time.Time `json:"until,omitzero"`
}

// Hook is a termination that an Auto Scaling group holds until it is answered.
type Hook struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Token string `json:"token"`
	EC2   string `json:"ec2"`
	// At is when it began; of two the later is the one that waits.
	At time.Time `json:"at,omitzero"`
	// AnsweredAt is when it was answered, or was found to be over.
	AnsweredAt time.Time `json:"answeredAt,omitzero"`
}

// pending says whether the group still waits for an answer.
func (h *Hook) pending() bool { return h != nil && h.AnsweredAt.IsZero() }

// stands says whether anything is known of the host's end.
func (x *Leaving) stands() bool {
	return x != nil && (x.Agent != nil || x.Event != nil || x.Hook != nil)
}

// drains says whether the instance is drained for it.
func (x *Leaving) drains() bool { return x.stands() && !x.Overruled }

// foremost is the word that counts: the one with the earliest time, else of the
// causes the one that is most certain.
func (x *Leaving) foremost() (c Coming) {
	if x == nil {
		return c
	}
	if x.Hook != nil {
		c = Coming{Cause: AutoScalingLeaving}
	}
	for _, said := range []*Coming{x.Event, x.Agent} {
		if said != nil && said.before(c) {
			c = *said
		}
	}
	return c
}

func (r *Coming) before(c Coming) bool {
	if r.At.IsZero() || c.At.IsZero() {
		return !r.At.IsZero() || c.At.IsZero() && certainty(r.Cause) > certainty(c.Cause)
	}
	return r.At.Before(c.At)
}

func certainty(c LeavingCause) int {
	switch c {
	case RebalanceLeaving:
		return 1
	case AutoScalingLeaving:
		return 2
	case SpotLeaving:
		return 3
	}
	return 0
}

// String says it to people.
func (r Coming) String() string {
	var what string
	switch r.Cause {
	case SpotLeaving:
		what = "Spot interruption notice"
	case AutoScalingLeaving:
		what = "its Auto Scaling group terminates it"
	case RebalanceLeaving:
		what = "EC2 recommends to rebalance"
	}
	if r.At.IsZero() {
		return what
	}
	return fmt.Sprintf("%s for %s", what, r.At.UTC().Format(time.RFC3339))
}

// same says whether two words are alike.
func (r *Coming) same(o *Coming) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.Cause == o.Cause && r.At.Equal(o.At) && r.Until.Equal(o.Until)
}

func (h *Hook) same(o *Hook) bool {
	if h == nil || o == nil {
		return h == o
	}
	return h.At.Equal(o.At) && h.Group == o.Group && h.Name == o.Name && h.Token == o.Token && h.EC2 == o.EC2 && h.AnsweredAt.Equal(o.AnsweredAt)
}

func (x *Leaving) same(o *Leaving) bool {
	if x == nil || o == nil {
		return x == o
	}
	return x.Agent.same(o.Agent) && x.Event.same(o.Event) && x.Hook.same(o.Hook) && x.Asked == o.Asked && x.Overruled == o.Overruled
}
