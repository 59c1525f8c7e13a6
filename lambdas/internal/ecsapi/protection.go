package ecsapi

import (
	"context"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type protectedTask struct {
	TaskARN           string          `json:"taskArn"`
	ProtectionEnabled bool            `json:"protectionEnabled"`
	ExpirationDate    taskdef.Instant `json:"expirationDate,omitzero"`
}

type protectionOut struct {
	ProtectedTasks []protectedTask `json:"protectedTasks"`
	Failures       []failure       `json:"failures"`
}

func (h *Handler) showProtection(cluster string, found []control.Protection, failures []control.Failure) *protectionOut {
	out := &protectionOut{ProtectedTasks: []protectedTask{}, Failures: failuresOf(failures)}
	for _, p := range found {
		out.ProtectedTasks = append(out.ProtectedTasks, protectedTask{h.control.TaskARN(cluster, p.Task), !p.Until.IsZero(), instant(p.Until)})
	}
	return out
}

type getTaskProtectionIn struct {
	Cluster string   `json:"cluster" need:"true"`
	Tasks   []string `json:"tasks"`
}

func getTaskProtection(ctx context.Context, h *Handler, in *getTaskProtectionIn) (*protectionOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	ids, _, err := h.ids("tasks", "task", cluster, in.Tasks)
	if err != nil {
		return nil, err
	}
	found, failures, err := h.control.TaskProtection(ctx, cluster, ids)
	if err != nil {
		return nil, err
	}
	return h.showProtection(cluster, found, failures), nil
}

type updateTaskProtectionIn struct {
	Cluster           string   `json:"cluster" need:"true"`
	Tasks             []string `json:"tasks" need:"true"`
	ProtectionEnabled *bool    `json:"protectionEnabled" need:"true"`
	ExpiresInMinutes  *int     `json:"expiresInMinutes"`
}

func updateTaskProtection(ctx context.Context, h *Handler, in *updateTaskProtectionIn) (*protectionOut, error) {
	cluster, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	ids, _, err := h.ids("tasks", "task", cluster, in.Tasks)
	if err != nil {
		return nil, err
	}
	var lasting time.Duration
	if in.ExpiresInMinutes != nil {
		if *in.ExpiresInMinutes < 1 || *in.ExpiresInMinutes > 2880 { // before it could overflow
			return nil, parameter("expiresInMinutes", "is %d; 1 to 2880 are allowed", *in.ExpiresInMinutes)
		}
		lasting = time.Duration(*in.ExpiresInMinutes) * time.Minute
	}
	found, failures, err := h.control.ProtectTasks(ctx, cluster, ids, *in.ProtectionEnabled, lasting)
	if err != nil {
		return nil, err
	}
	return h.showProtection(cluster, found, failures), nil
}
