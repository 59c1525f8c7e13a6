package ecsapi

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// Names of errors that only this package gives.
const (
	serverException      = "ServerException"
	accessDenied         = control.AccessDeniedException
	throttling           = "ThrottlingException" // every SDK sends the same again after a while
	unsupportedFeature   = "UnsupportedFeatureException"
	unknownOperationType = "UnknownOperationException"
)

// exception is an error in ECS's shape.
type exception struct {
	status      int
	Type        string   `json:"__type"`
	Message     string   `json:"message"`
	ResourceIDs []string `json:"resourceIds,omitempty"`
}

func (x *exception) Error() string { return x.Type + ": " + x.Message }

func unknownOperation(format string, args ...any) error {
	return &exception{status: http.StatusBadRequest, Type: unknownOperationType, Message: fmt.Sprintf(format, args...)}
}

// notDone refuses an operation that ECS has and Longshore does not: under the
// exception that ECS's model has for it, where it has one.
func notDone(name string) error {
	x := &exception{status: http.StatusBadRequest, Type: unknownOperationType, Message: name + " is not supported by Longshore"}
	if why := refusals[name]; why != "" {
		x.Message += ": " + why
	}
	if slices.Contains(modelsUnsupported, name) {
		x.Type = unsupportedFeature
	}
	return x
}

// exceptionOf is an error as callers see it. What went wrong inside is not
// theirs to read: it is logged under the request's id.
func exceptionOf(err error) *exception {
	if x, ok := errors.AsType[*exception](err); ok {
		return x
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return &exception{status: http.StatusInternalServerError, Type: serverException, Message: "internal error"}
	}
	x := &exception{status: http.StatusBadRequest, Type: f.Code, Message: f.Error()}
	if reuse, ok := errors.AsType[*control.TokenReuse](err); ok {
		x.ResourceIDs = reuse.ARNs
	}
	if x.Type != "" {
		return x
	}
	switch f.Kind {
	case fault.NotFound, fault.Invalid, fault.Unsupported:
		x.Type = control.InvalidParameterException
	case fault.Denied:
		x.Type = accessDenied
	case fault.Conflict:
		x.Type, x.Message = throttling, "Throttling: others changed the same at the same time; try again"
	case fault.Unavailable:
		x.status, x.Type, x.Message = http.StatusInternalServerError, serverException, "the service is not available; try again"
	case fault.Internal:
		x.status, x.Type, x.Message = http.StatusInternalServerError, serverException, "internal error"
	}
	return x
}
