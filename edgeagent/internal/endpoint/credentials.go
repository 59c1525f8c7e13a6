package endpoint

import (
	"context"
	"net/http"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// assumeWait is how long a request waits for STS.
const assumeWait = 15 * time.Second

// ecsCredentials are in the shape that SDKs read.
type ecsCredentials struct {
	RoleArn         string
	AccessKeyId     string //nolint:revive // ECS's name
	SecretAccessKey string
	Token           string
	Expiration      time.Time
}

func (s *Server) credentials(w http.ResponseWriter, r *http.Request) {
	b, no := s.know(r, credentialsIDs)
	if no != nil {
		refuse(w, no)
		return
	}
	role := b.detail.TaskRole
	if b.task.Definition != nil {
		role = b.task.Definition.TaskRoleArn
	}
	if role == "" || s.Assume == nil || b.detail.HostNetwork && !s.HostNetwork {
		refuse(w, errNoRole)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), assumeWait)
	defer cancel()
	got, err := s.Assume(ctx, role, b.id.Task)
	if err != nil {
		if r.Context().Err() == nil {
			s.Log.Warn("a task's role cannot be assumed", logkey.Task, b.id.Task, logkey.Container, b.id.Container, "role", role, logkey.Error, err)
		}
		refuse(w, unassumed(role, err))
		return
	}
	answer(w, http.StatusOK, ecsCredentials{
		RoleArn: role, AccessKeyId: got.AccessKeyID, SecretAccessKey: got.SecretAccessKey, Token: got.SessionToken,
		Expiration: got.Expires.UTC().Truncate(time.Second),
	})
}

// unassumed says what a container can do about it, and nothing of what AWS said:
// that names the machine's own identity.
func unassumed(role string, err error) *refusal {
	if fault.Is(err, fault.Denied) || fault.Is(err, fault.Invalid) {
		return &refusal{http.StatusForbidden, "AccessDenied", "this machine may not assume " + role + "; see the agent's log and longshore doctor"}
	}
	return &refusal{http.StatusServiceUnavailable, "CredentialsUnavailable", "AWS STS does not give credentials of " + role + " now; try again"}
}
