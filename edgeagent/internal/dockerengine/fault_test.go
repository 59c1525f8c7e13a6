package dockerengine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"testing"

	cerrdefs "github.com/containerd/errdefs"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// TestPortTaken_ReadsWhatEnginesOfAllAgesSay has the words of Docker 20.10 to 29.
func TestPortTaken_ReadsWhatEnginesOfAllAgesSay(t *testing.T) {
	static := []hostPort{{53, "udp"}, {8080, "tcp"}}
	const driver = "driver failed programming external connectivity on endpoint longshore-f-1-main-0123456789ab-1 (0a1b2c3d): "
	for text, want := range map[string][]hostPort{
		driver + "Bind for 0.0.0.0:8080 failed: port is already allocated":                                                                       {{8080, "tcp"}},
		driver + "Bind for :::8080 failed: port is already allocated":                                                                            {{8080, "tcp"}},
		driver + "Error starting userland proxy: listen tcp4 0.0.0.0:8080: bind: address already in use":                                         {{8080, "tcp"}},
		driver + "Error starting userland proxy: listen tcp 0.0.0.0:8080: bind: address already in use":                                          {{8080, "tcp"}},
		driver + "Error starting userland proxy: listen udp4 0.0.0.0:53: bind: address already in use":                                           {{53, "udp"}},
		driver + "failed to bind port 0.0.0.0:8080/tcp: Error starting userland proxy: listen tcp4 0.0.0.0:8080: bind: address already in use":   {{8080, "tcp"}},
		"failed to set up container networking: " + driver + "failed to bind host port for 0.0.0.0:53:172.17.0.2:53/udp: address already in use": {{53, "udp"}},
		driver + "failed to bind host port 0.0.0.0:8080/tcp: address already in use":                                                             {{8080, "tcp"}},
		driver + "Bind for 0.0.0.0:53 failed: port is already allocated":                                                                         {{53, "udp"}},
		driver + "Error starting userland proxy: listen tcp6 [::]:9090: socket: address already in use":                                          {{9090, "tcp"}},
		"listen unix /run/x.sock: bind: address already in use":                                                                                  static,
		driver + "no chain/target/match by that name":                                                                                            nil,
	} {
		if got := portTaken(errors.New(text), static); !reflect.DeepEqual(got, want) {
			t.Errorf("%s:\n read as %v, want %v", text, got, want)
		}
	}
	if portTaken(nil, static) != nil {
		t.Error("no error is read as one about ports")
	}
}

func TestConflict_CarriesThePorts(t *testing.T) {
	err := conflict([]hostPort{{53, "udp"}, {8080, "tcp"}}, io.EOF)
	p, ok := errors.AsType[*agent.PortsTaken](err)
	if !ok || !reflect.DeepEqual(p.TCP, []int{8080}) || !reflect.DeepEqual(p.UDP, []int{53}) || !errors.Is(err, io.EOF) {
		t.Errorf("%#v", err)
	}
	if got := err.Error(); got != "CannotStartContainerError: port 53/udp, 8080/tcp of this host is taken: EOF" {
		t.Errorf("it reads %q", got)
	}
}

func TestRefuse_TellsWhatIsFinalFromWhatPasses(t *testing.T) {
	internal := func(text string) error { return fmt.Errorf("%s: %w", text, cerrdefs.ErrInternal) }
	for _, c := range []struct {
		err  error
		kind fault.Kind
		code wire.RefusalCode
	}{
		{internal("OCI runtime create failed: exec: no such file"), fault.Invalid, ""},
		{internal("could not select device driver \"\" with capabilities: [[gpu]]"), fault.Invalid, wire.RefusedGPU},
		{internal("fork/exec /usr/bin/runc: cannot allocate memory"), fault.Invalid, wire.RefusedMemory},
		{internal("connection error: desc = dial unix /run/containerd/containerd.sock"), fault.Unavailable, ""},
		{internal("context deadline exceeded"), fault.Unavailable, ""},
		{fmt.Errorf("no: %w", cerrdefs.ErrUnavailable), fault.Unavailable, ""},
		{fmt.Errorf("no: %w", cerrdefs.ErrInvalidArgument), fault.Invalid, ""},
		{fmt.Errorf("no: %w", cerrdefs.ErrNotFound), fault.NotFound, ""},
		{fmt.Errorf("no: %w", cerrdefs.ErrConflict), fault.Conflict, ""},
		{fmt.Errorf("no: %w", cerrdefs.ErrPermissionDenied), fault.Invalid, ""},
	} {
		err := refuse(t.Context(), "start", cannotStart, c.err)
		f, ok := errors.AsType[*fault.Error](err)
		if !ok || f.Kind != c.kind || f.Code != string(c.code) || f.Message != cannotStart || !errors.Is(err, c.err) {
			t.Errorf("%v: %#v, want kind %q and code %q", c.err, err, c.kind, c.code)
		}
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errQuiet)
	if got := refuse(ctx, "start", cannotStart, errQuiet); fault.Of(got) != fault.Internal || !fault.Is(classify(ctx, "start", got), fault.Unavailable) {
		t.Errorf("the cause of an ended context became %v", got)
	}
	for _, err := range []error{io.EOF, context.Canceled} {
		if got := refuse(t.Context(), "start", cannotStart, err); fault.Of(got) != fault.Internal || !errors.Is(got, err) {
			t.Errorf("%v became %v", err, got)
		}
	}
	if got := refuse(t.Context(), "start", cannotStart, nil); got != nil {
		t.Errorf("nothing became %v", got)
	}
}

func TestClassify_KeepsTheKindAnErrorHas(t *testing.T) {
	for _, kind := range []fault.Kind{fault.Conflict, fault.Invalid, fault.NotFound} {
		if got := fault.Of(classify(t.Context(), "x", fmt.Errorf("y: %w", fault.New(kind, "z")))); got != kind {
			t.Errorf("%s became %s", kind, got)
		}
	}
}

func TestClassify_SilenceIsUnavailableAndSaysWhy(t *testing.T) {
	cause := errors.New("no answer to list within 1s")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	err := classify(ctx, "list", ctx.Err())
	if !fault.Is(err, fault.Unavailable) || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
