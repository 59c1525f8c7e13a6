package dockerengine

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/shared/fault"
)

// stays says no, as Unavailable, while the engine is shutting down. It then takes
// no new connection, but answers on those it has for as long as its containers need
// to stop: with errors of every kind, or it starts what it is about to kill.
func (e *Engine) stays(ctx context.Context, verb string) error {
	where, err := client.ParseHostURL(e.host)
	if err != nil {
		return nil // the client, which reads the same, has its own say
	}
	dialer := net.Dialer{Timeout: 2 * time.Second}
	conn, err := dialer.DialContext(ctx, where.Scheme, where.Host)
	if err == nil {
		_ = conn.Close() // nothing was asked on it
		return nil
	}
	if errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, os.ErrNotExist) {
		return fault.Wrap(fault.Unavailable, err, "%s: the Docker engine is shutting down", verb)
	}
	return nil
}
