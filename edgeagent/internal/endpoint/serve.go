package endpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	// lookEvery is how often it is looked whether the address is still this machine's,
	// and whether one that something else has is free: of several agents on a machine
	// the first has it.
	lookEvery = time.Minute
	// connections of one address, and of all.
	mostOfOne = 64
	mostOfAll = 512
)

// Serve serves until ctx ends. changed is called whenever what is served is not what
// it was at the last look.
func (s *Server) Serve(ctx context.Context, changed func()) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if s.Look() {
			changed()
		}
		select {
		case <-ctx.Done():
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.server != nil {
				_ = s.server.Close() // who asks is not waited for
			}
			return
		case <-tick.C:
		}
	}
}

// Look begins to serve where that can be done, and sees whether it still can. It says
// whether anything has changed. Serve calls it; called before, it has the first
// container of an agent find the endpoint.
func (s *Server) Look() (changed bool) {
	s.mu.Lock()
	server := s.server
	s.mu.Unlock()
	why := ""
	if server == nil {
		if server, why = s.open(); server != nil {
			s.mu.Lock()
			s.server = server
			s.mu.Unlock()
		}
	} else if !s.hasAddress() {
		why = errNoAddress(s.Address).Error()
	}
	if changed = s.setHealth(why); changed && why == "" {
		s.Log.Info("task roles and metadata are served", "address", s.Address)
	} else if changed {
		s.Log.Warn("task roles and metadata are not served", "address", s.Address, logkey.Reason, why)
	}
	return changed
}

// open listens, or says why it does not.
func (s *Server) open() (*http.Server, string) {
	if !s.hasAddress() {
		return nil, errNoAddress(s.Address).Error()
	}
	at, err := net.Listen("tcp4", s.Address)
	if err != nil {
		return nil, err.Error()
	}
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 45 * time.Second,
		IdleTimeout: time.Minute, MaxHeaderBytes: 8 << 10,
		// What it would log of a broken request can have an id in it.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	go func() {
		if err := server.Serve(crowded(at, mostOfOne, mostOfAll)); !errors.Is(err, http.ErrServerClosed) {
			s.Log.Error("task roles and metadata are not served any more", logkey.Error, err)
			s.mu.Lock()
			defer s.mu.Unlock()
			s.server = nil // the next look tries again
		}
	}()
	return server, ""
}

func (s *Server) hasAddress() bool {
	at, err := netip.ParseAddrPort(s.Address)
	return err == nil && s.Own(at.Addr())
}

func errNoAddress(address string) error {
	return fmt.Errorf("%s is not an address of this machine; mend: longshore-agent prepare-host", address)
}

// Own says whether an address is one of this machine's.
func Own(a netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, one := range all {
		if n, ok := one.(*net.IPNet); ok {
			if own, ok := netip.AddrFromSlice(n.IP); ok && own.Unmap() == a.Unmap() {
				return true
			}
		}
	}
	return a.IsLoopback() // all of 127.0.0.0/8 is
}
