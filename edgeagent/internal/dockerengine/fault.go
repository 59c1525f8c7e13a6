package dockerengine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// The names under which ECS shows what went wrong with a container; they open
// the message, as workflow engines match them.
const (
	cannotPull   = "CannotPullContainerError"
	cannotCreate = "CannotCreateContainerError"
	cannotStart  = "CannotStartContainerError"
	cannotVolume = "CannotCreateVolumeError"
)

// classify gives an error of the client its kind. One that has a kind keeps it.
// An engine that answered 5xx is alive: whether that is final depends on the
// verb, so it is Unavailable here and refined by refuse.
func classify(ctx context.Context, verb string, err error) error {
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	switch {
	case silent(ctx, err):
		if cause := context.Cause(ctx); cause != nil && ctx.Err() != nil && !errors.Is(cause, ctx.Err()) {
			err = errors.Join(cause, ctx.Err())
		}
		return fault.Wrap(fault.Unavailable, err, "%s: the Docker engine does not answer", verb)
	case isVersionError(err):
		return fault.Wrap(fault.Unavailable, err, "%s: the Docker engine has changed its version", verb)
	case cerrdefs.IsNotFound(err):
		return fault.Wrap(fault.NotFound, err, "%s", verb)
	case cerrdefs.IsConflict(err):
		return fault.Wrap(fault.Conflict, err, "%s", verb)
	case cerrdefs.IsInvalidArgument(err), cerrdefs.IsNotImplemented(err), cerrdefs.IsPermissionDenied(err):
		return fault.Wrap(fault.Invalid, err, "%s", verb)
	}
	return fault.Wrap(fault.Unavailable, err, "%s", verb)
}

// silent says whether err means that no answer came, rather than a bad one; what
// cannot be read is none. Once
// ctx has ended its cause, which may be anything, is the error of whatever was
// being waited for.
func silent(ctx context.Context, err error) bool {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || client.IsErrConnectionFailed(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errMute) {
		return true
	}
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return true
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	_, ok := errors.AsType[*url.Error](err)
	return ok
}

func isVersionError(err error) bool {
	text := err.Error()
	return cerrdefs.IsInvalidArgument(err) && strings.Contains(text, "client version") && strings.Contains(text, "too ")
}

// passing are signs in an engine's 5xx that the same may work later.
var passing = []string{
	"context deadline exceeded", "context canceled", "containerd.sock", "shutting down", "connection refused", "transport is closing",
	"did not receive an exit event", "resource temporarily unavailable",
	"Bad Gateway", // of something between the engine and us
}

// refuse makes the error of a verb that the engine answered with no under ECS's
// name for it: final, unless it was silent or the text says that it passes.
func refuse(ctx context.Context, verb, name string, err error) error {
	if err == nil || silent(ctx, err) || isVersionError(err) {
		return err
	}
	kind := fault.Of(classify(ctx, verb, err))
	if kind == fault.Unavailable && !cerrdefs.IsUnavailable(err) &&
		!slices.ContainsFunc(passing, func(sign string) bool { return strings.Contains(err.Error(), sign) }) {
		kind = fault.Invalid
	}
	return &fault.Error{Kind: kind, Code: lack(err), Message: name, Cause: full(err)}
}

// full marks an error that says that a disk is full.
func full(err error) error {
	text := strings.ToLower(err.Error())
	if strings.Contains(text, "no space left on device") || strings.Contains(text, "disk quota exceeded") {
		return &agent.NoRoom{Cause: err}
	}
	return err
}

// lacking are signs that the host lacks what the control plane thought it has,
// with the code under which an agent refuses a task for that.
var lacking = []struct {
	sign string
	code wire.RefusalCode
}{
	{"could not select device driver", wire.RefusedGPU},
	{"nvidia-container-cli", wire.RefusedGPU},
	{"unknown device", wire.RefusedGPU},
	{"cannot allocate memory", wire.RefusedMemory},
	{"not enough memory", wire.RefusedMemory},
}

func lack(err error) string {
	for _, l := range lacking {
		if strings.Contains(err.Error(), l.sign) {
			return string(l.code)
		}
	}
	return ""
}

// What engines of all ages say when a port of the host is taken: by another
// container ("Bind for 0.0.0.0:80 failed: port is already allocated"), or by a
// process ("listen tcp4 0.0.0.0:80: bind: address already in use").
var (
	taken     = regexp.MustCompile(`port is already allocated|address already in use|failed to bind (?:host )?port`)
	takenPort = regexp.MustCompile(`(?:(tcp|udp)[46]? )?(?:\d+\.\d+\.\d+\.\d+|\[[0-9a-fA-F:]*\]|::):(\d+)(?:/(tcp|udp))?`)
)

// portTaken reads which ports an error of start is about; nil if it is not
// about ports. static are the ports the container names itself.
func portTaken(err error, static []hostPort) []hostPort {
	if err == nil || !taken.MatchString(err.Error()) {
		return nil
	}
	var found []hostPort
	for _, m := range takenPort.FindAllStringSubmatch(err.Error(), -1) {
		n, _ := strconv.Atoi(m[2])
		if n == 0 {
			continue
		}
		p := hostPort{Port: n, Protocol: m[3]}
		if p.Protocol == "" {
			p.Protocol = m[1]
		}
		if p.Protocol == "" {
			p.Protocol = "tcp"
			if slices.Contains(static, hostPort{n, "udp"}) && !slices.Contains(static, hostPort{n, "tcp"}) {
				p.Protocol = "udp"
			}
		}
		if !slices.Contains(found, p) {
			found = append(found, p)
		}
	}
	if len(found) == 0 {
		return static
	}
	return found
}

// portsOf is what a conflict is about.
func portsOf(p *agent.PortsTaken) []hostPort {
	var all []hostPort
	for _, n := range p.TCP {
		all = append(all, hostPort{n, "tcp"})
	}
	for _, n := range p.UDP {
		all = append(all, hostPort{n, "udp"})
	}
	return all
}

type hostPort struct {
	Port     int
	Protocol string
}

// conflict is the error about ports that somebody else has.
func conflict(ports []hostPort, err error) error {
	p := &agent.PortsTaken{Cause: err}
	var names []string
	for _, port := range ports {
		names = append(names, fmt.Sprintf("%d/%s", port.Port, port.Protocol))
		if port.Protocol == "udp" {
			p.UDP = append(p.UDP, port.Port)
		} else {
			p.TCP = append(p.TCP, port.Port)
		}
	}
	return fault.Wrap(fault.Conflict, p, "%s: port %s of this host is taken", cannotStart, strings.Join(names, ", "))
}
