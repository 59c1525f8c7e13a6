package introspect

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
)

// Off is the address that is none.
const Off = "off"

// again is when an address that something has is tried again: of several agents on
// one machine the first has it.
const again = time.Minute

// Serve answers on a socket of this machine's file system, which only its owner may
// open, and on an address of loopback, until ctx ends. What cannot be listened on is
// said in the log; an agent runs without.
func Serve(ctx context.Context, handler http.Handler, socket, address string, log *slog.Logger) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	go func() {
		<-ctx.Done()
		_ = server.Close() // whoever reads is not waited for
	}()
	done := make(chan struct{})
	go func() {
		defer close(done)
		listen(ctx, server, address, log)
	}()
	_ = os.Remove(socket) // of an agent that was killed; the journal is locked by this one
	if at, err := net.Listen("unix", socket); err != nil {
		log.Warn("longshore-agent status cannot be served", logkey.Error, err)
	} else if err = os.Chmod(socket, 0o600); err != nil {
		log.Warn("longshore-agent status cannot be served", logkey.Error, errors.Join(err, at.Close()))
	} else if err := server.Serve(at); !errors.Is(err, http.ErrServerClosed) {
		log.Warn("longshore-agent status is not served any more", logkey.Error, err)
	}
	<-done
}

func listen(ctx context.Context, server *http.Server, address string, log *slog.Logger) {
	if address == Off {
		return
	}
	said := false
	for {
		at, err := net.Listen("tcp", address)
		if err == nil {
			log.Info("introspection", "address", at.Addr().String())
			if err = server.Serve(at); errors.Is(err, http.ErrServerClosed) {
				return
			}
		}
		if !said {
			log.Warn("introspection is not served yet: its address cannot be had", "address", address, logkey.Error, err)
			said = true
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
	}
}

// IsLoopback says whether a host, with or without a port, is this machine to itself.
func IsLoopback(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}
