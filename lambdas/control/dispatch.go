package control

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// assignments makes the assign of each task, which must hold an instance.
// Definitions that are not known are read, and known then. A task whose assign can not be made is left
// out and named in the error; the others' are returned beside it.
func (c *Control) assignments(ctx context.Context, known map[string]*Definition, tasks ...*Task) ([]wire.Message, error) {
	var missing []*Definition
	added := map[string]*Definition{}
	for _, t := range tasks {
		name := DefinitionName(t.Family, t.Number)
		if known[name] == nil && added[name] == nil {
			added[name] = &Definition{Family: t.Family, Number: t.Number}
			missing = append(missing, added[name])
		}
	}
	if err := load(ctx, c.Store, missing); err != nil {
		return nil, fmt.Errorf("load definitions to assign: %w", err)
	}
	maps.Copy(known, added)
	var out []wire.Message
	var errs []error
	for _, t := range tasks {
		m, err := c.assignment(t, known[DefinitionName(t.Family, t.Number)])
		if err != nil {
			errs = append(errs, fmt.Errorf("assign task %s: %w", t.ID, err))
			continue
		}
		out = append(out, m)
	}
	return out, errors.Join(errs...)
}

// assignment is a task's assign: its definition with the overrides applied, and
// what was charged to the ledger by identity.
func (c *Control) assignment(t *Task, d *Definition) (*wire.Assign, error) {
	if t.Held == nil {
		return nil, errors.New("it holds no instance")
	}
	if d.Version == 0 {
		return nil, fmt.Errorf("definition %s does not exist", d.Key())
	}
	def, err := taskdef.ParseStored(d.Definition)
	if err != nil {
		return nil, fmt.Errorf("parse definition %s: %w", d.Key(), err)
	}
	if len(t.Overrides) > 0 {
		over, err := taskdef.DecodeOverride(t.Overrides)
		if err != nil {
			return nil, fmt.Errorf("decode overrides: %w", err)
		}
		if def, err = taskdef.Apply(def, over); err != nil {
			return nil, fmt.Errorf("apply overrides: %w", err)
		}
	}
	return &wire.Assign{
		Header:      wire.Header{Instance: t.Instance},
		Epoch:       t.Epoch,
		Task:        t.ID,
		Attempt:     t.Attempt,
		TaskARN:     c.TaskARN(t.Cluster, t.ID),
		Cluster:     t.Cluster,
		Family:      t.Family,
		Revision:    t.Number,
		Definition:  taskdef.Canonical(def),
		GPUs:        t.Held.GPUs,
		Group:       t.Group,
		StartedBy:   t.StartedBy,
		ServiceName: t.Service,
	}, nil
}

// stopMessage is the stop of a task's open attempt.
func stopMessage(t *Task) *wire.Stop {
	return &wire.Stop{Header: wire.Header{Instance: t.Instance}, Task: t.ID, Attempt: t.Attempt, Reason: t.StoppedReason}
}

// ackMessage says to an instance that an attempt's end is known.
func ackMessage(instance, task string, attempt int) *wire.Ack {
	return &wire.Ack{Header: wire.Header{Instance: instance}, Task: task, Attempt: attempt}
}
