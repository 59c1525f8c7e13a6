// Package hostprep makes of the machine what the agent needs and has no right to do
// itself: the address of the task endpoint on the loopback interface, and the rules
// that keep containers on bridges from the instance metadata service. It calls the
// machine's ip and iptables, changes nothing that is so already, and writes down what
// it found, for the agent to read. The agent's main imports it.
package hostprep

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// Run runs a command of the machine and returns what it printed.
type Run func(ctx context.Context, name string, args ...string) (string, error)

// Want is what the machine is to be.
type Want struct {
	// Endpoint is the address that containers find their task's metadata and
	// credentials at; the zero value is none.
	Endpoint netip.AddrPort
	// Block keeps containers on bridges from the instance metadata service.
	Block bool
}

// Found is how the machine is after Prepare, and why, where it is not as wanted.
type Found struct {
	At       time.Time `json:"at"`
	Boot     string    `json:"boot"` // the machine's, in which this is so
	Endpoint string    `json:"endpoint,omitempty"`
	Block    bool      `json:"block"`
	// AddressFault and BlockFault are "" where all is well.
	AddressFault string `json:"addressFault,omitempty"`
	BlockFault   string `json:"blockFault,omitempty"`
}

// Host is the machine.
type Host struct {
	Run Run
	// Own says whether an address is one of the machine's.
	Own func(netip.Addr) bool
	// IPv6 says whether the machine speaks it.
	IPv6 bool
}

// Prepare makes the machine as it is wanted. What fails keeps nothing else from being
// done; the error names all of it.
func (h Host) Prepare(ctx context.Context, w Want) (Found, error) {
	f := Found{Block: w.Block}
	var faults []error
	if w.Endpoint.IsValid() {
		f.Endpoint = w.Endpoint.String()
		if err := errors.Join(h.address(ctx, w.Endpoint.Addr()), h.accept(ctx, w.Endpoint)); err != nil {
			f.AddressFault = err.Error()
			faults = append(faults, err)
		}
	}
	if w.Block {
		if err := h.block(ctx); err != nil {
			f.BlockFault = err.Error()
			faults = append(faults, err)
		}
	} else if err := h.unblock(ctx); err != nil {
		faults = append(faults, err)
	}
	return f, errors.Join(faults...)
}

// Undo takes away what Prepare may have made.
func (h Host) Undo(ctx context.Context, w Want) error {
	faults := []error{h.unblock(ctx)}
	if w.Endpoint.IsValid() {
		faults = append(faults, h.unaccept(ctx, w.Endpoint))
		if a := w.Endpoint.Addr(); a.IsLinkLocalUnicast() && h.Own(a) {
			if _, err := h.Run(ctx, "ip", "address", "del", a.String()+"/32", "dev", "lo"); err != nil {
				faults = append(faults, fault.Wrap(fault.Unavailable, err, "take %s from the loopback interface", a))
			}
		}
	}
	return errors.Join(faults...)
}

// address gives the machine the endpoint's address. On the loopback interface it is
// reached from each bridge by the container's default route, and the container's own
// address stays what the endpoint sees.
func (h Host) address(ctx context.Context, a netip.Addr) error {
	if h.Own(a) {
		return nil
	}
	if !a.Is4() || !a.IsLinkLocalUnicast() {
		return fault.New(fault.Invalid, "%s is not an address of this machine, and only one of 169.254.0.0/16 is given to it", a)
	}
	_, err := h.Run(ctx, "ip", "address", "replace", a.String()+"/32", "dev", "lo", "scope", "host")
	return fault.Wrap(fault.Unavailable, err, "give the loopback interface %s", a)
}
