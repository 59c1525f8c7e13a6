package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/dockerengine"
	"github.com/longshore-run/longshore/edgeagent/internal/taskgroup"
	"github.com/longshore-run/longshore/shared/logkey"
)

// Values of LONGSHORE_TASK_CPU_MEM_LIMIT; the third is auto.
const (
	limitsOn  = "true"
	limitsOff = "false"
)

// taskLimits opens the control groups of tasks once the engine has said what it is,
// and tells whether there are any.
type taskLimits struct {
	settings settings
	instance string
	log      *slog.Logger

	mu   sync.Mutex
	seen bool
	why  string // there are none
}

var errElsewhere = errors.New("the engine may be another machine's: DOCKER_HOST is not unix://…")

// open is what the engine asks for groups.
func (t *taskLimits) open(ctx context.Context, driver, version string) dockerengine.Groups {
	var groups *taskgroup.Groups
	err := errElsewhere
	if c := t.settings; strings.HasPrefix(c.DockerHost, "unix://") {
		groups, err = taskgroup.Open(ctx, t.instance, driver, version, c.CgroupPath, c.CgroupPeriod, t.log)
	}
	why := ""
	if err != nil {
		why = err.Error()
	}
	t.mu.Lock()
	news := !t.seen || t.why != why
	t.seen, t.why = true, why
	t.mu.Unlock()
	if news && t.settings.TaskLimits != limitsOff {
		t.tell(why)
	}
	if err != nil {
		return nil
	}
	return groups
}

func (t *taskLimits) tell(why string) {
	const each = "the size of a task bounds each of its containers, not all together"
	switch {
	case why == "":
		t.log.Info("the size of a task holds for its containers together")
	case t.settings.TaskLimits == limitsOn:
		t.log.Error(each+", although LONGSHORE_TASK_CPU_MEM_LIMIT is true", logkey.Reason, why)
	default:
		t.log.Warn(each, logkey.Reason, why)
	}
}

// health is how it stands; nil if it is switched off, or the engine has not said what it is.
func (t *taskLimits) health() (h *agent.Health, wanted bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.settings.TaskLimits == limitsOff {
		return nil, false
	}
	wanted = t.settings.TaskLimits == limitsOn
	if !t.seen {
		return nil, wanted
	}
	return &agent.Health{OK: t.why == "", Why: t.why}, wanted
}
