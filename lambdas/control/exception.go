package control

import (
	"fmt"
	"regexp"

	"github.com/longshore-run/longshore/shared/fault"
)

// ECS's names of the errors that callers tell apart.
const (
	ClientException           = "ClientException"
	InvalidParameterException = "InvalidParameterException"
	ClusterNotFoundException  = "ClusterNotFoundException"
	ConflictException         = "ConflictException"
	ServiceNotFoundException  = "ServiceNotFoundException"
	ServiceNotActiveException = "ServiceNotActiveException"

	ServiceDeploymentNotFoundException = "ServiceDeploymentNotFoundException"
	SerializationException             = "SerializationException"
)

// nameForm is what clusters, families and groups may be called.
var nameForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)

func client(format string, args ...any) error {
	return fault.New(fault.Invalid, format, args...).WithCode(ClientException)
}

func invalid(field, format string, args ...any) error {
	return fault.Field(field, format, args...).WithCode(InvalidParameterException)
}

func clusterNotFound() error {
	return fault.New(fault.NotFound, "Cluster not found.").WithCode(ClusterNotFoundException)
}

func clusterInactive() error {
	return fault.New(fault.NotFound, "The referenced cluster was inactive.").WithCode(ClusterNotFoundException)
}

func taskNotFound() error {
	return fault.New(fault.NotFound, "The referenced task was not found.").WithCode(InvalidParameterException)
}

func instanceNotFound() error {
	return fault.New(fault.NotFound, "The referenced container instance was not found.").WithCode(InvalidParameterException)
}

// TokenReuse is the cause of a ConflictException: the client token belongs to
// another request, which made these.
type TokenReuse struct{ ARNs []string }

func (e *TokenReuse) Error() string { return fmt.Sprintf("it made the %d in resourceIds", len(e.ARNs)) }

func tokenReused(arns []string) error {
	return &fault.Error{
		Kind: fault.Invalid, Code: ConflictException, Field: "clientToken", Cause: &TokenReuse{arns},
		Message: "clientToken: belongs to a request with other parameters",
	}
}
