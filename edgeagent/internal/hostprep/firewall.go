package hostprep

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/longshore-run/longshore/shared/fault"
)

// The chain that Docker leaves to others, looks at before its own rules, and keeps
// when it starts. Where Docker has not been yet, it is made as Docker makes it.
const userChain = "DOCKER-USER"

// firewall is iptables for one family, and where the instance metadata service is in it.
type firewall struct {
	program, service, reject string
	six                      bool
}

var firewalls = []firewall{
	{program: "iptables", service: "169.254.169.254/32", reject: "icmp-port-unreachable"},
	{program: "ip6tables", service: "fd00:ec2::254/128", reject: "icmp6-port-unreachable", six: true},
}

// rule refuses what is forwarded to the service. What programs of the machine itself
// ask of it is not forwarded.
func (f firewall) rule() []string {
	return []string{"-d", f.service, "-j", "REJECT", "--reject-with", f.reject}
}

// call runs one command of the firewall, which waits for others that change it.
func (h Host) call(ctx context.Context, f firewall, args ...string) (string, error) {
	return h.Run(ctx, f.program, append([]string{"-w", "5"}, args...)...)
}

// block refuses containers the service, in both families.
func (h Host) block(ctx context.Context) error {
	var faults []error
	for _, f := range firewalls {
		if f.six && !h.IPv6 {
			continue
		}
		if err := h.ensure(ctx, f); err != nil {
			faults = append(faults, fault.Wrap(fault.Unavailable, err, "keep containers from the instance metadata service at %s", f.service))
		}
	}
	return errors.Join(faults...)
}

func (h Host) ensure(ctx context.Context, f firewall) error {
	rules, err := h.call(ctx, f, "-S", userChain)
	if err != nil {
		if _, err := h.call(ctx, f, "-N", userChain); err != nil {
			return err
		}
	}
	if _, err := h.call(ctx, f, "-C", "FORWARD", "-j", userChain); err != nil {
		if _, err := h.call(ctx, f, "-I", "FORWARD", "-j", userChain); err != nil {
			return err
		}
	}
	if _, err := h.call(ctx, f, append([]string{"-C", userChain}, f.rule()...)...); err == nil {
		if !f.overruled(rules) {
			return nil
		}
		if _, err := h.call(ctx, f, append([]string{"-D", userChain}, f.rule()...)...); err != nil {
			return err
		}
	}
	_, err = h.call(ctx, f, append([]string{"-I", userChain, "1"}, f.rule()...)...)
	return err
}

// overruled says whether a rule before ours may let packets through that ours refuses.
func (f firewall) overruled(rules string) bool {
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if len(words) < 2 || words[0] != "-A" {
			continue
		}
		if slices.Equal(words[2:], f.rule()) {
			return false
		}
		switch i := slices.Index(words, "-j"); {
		case i < 0 && !slices.Contains(words, "-g"): // it only counts
		case i >= 0 && i+1 < len(words) && (words[i+1] == "DROP" || words[i+1] == "REJECT" || words[i+1] == "LOG"):
		default:
			return true
		}
	}
	return false
}

// unblock removes our rule, as often as it is there. The chain is Docker's.
func (h Host) unblock(ctx context.Context) error {
	var faults []error
	for _, f := range firewalls {
		for range 8 {
			if _, err := h.call(ctx, f, append([]string{"-C", userChain}, f.rule()...)...); err != nil {
				break // it is not there, nor is the chain, nor maybe the program
			}
			if _, err := h.call(ctx, f, append([]string{"-D", userChain}, f.rule()...)...); err != nil {
				faults = append(faults, fault.Wrap(fault.Unavailable, err, "let containers reach %s again", f.service))
				break
			}
		}
	}
	return errors.Join(faults...)
}

func acceptRule(at netip.AddrPort) []string {
	return []string{"-d", at.Addr().String() + "/32", "-p", "tcp", "--dport", strconv.Itoa(int(at.Port())), "-j", "ACCEPT"}
}

// accept opens the endpoint where a firewall of the machine closes what it does not
// know; where none does, nothing is done.
func (h Host) accept(ctx context.Context, at netip.AddrPort) error {
	f := firewalls[0]
	rules, err := h.call(ctx, f, "-S", "INPUT")
	if err != nil || !closes(rules) {
		return nil // without a firewall nothing is closed
	}
	if _, err := h.call(ctx, f, append([]string{"-C", "INPUT"}, acceptRule(at)...)...); err == nil {
		return nil
	}
	_, err = h.call(ctx, f, append([]string{"-I", "INPUT", "1"}, acceptRule(at)...)...)
	return fault.Wrap(fault.Unavailable, err, "let containers reach %s", at)
}

func (h Host) unaccept(ctx context.Context, at netip.AddrPort) error {
	f := firewalls[0]
	if _, err := h.call(ctx, f, append([]string{"-C", "INPUT"}, acceptRule(at)...)...); err != nil {
		return nil // not there
	}
	_, err := h.call(ctx, f, append([]string{"-D", "INPUT"}, acceptRule(at)...)...)
	return fault.Wrap(fault.Unavailable, err, "close %s", at)
}

// closes says whether rules of INPUT may drop something, or lead to others that may.
func closes(rules string) bool {
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if slices.Equal(words, []string{"-P", "INPUT", "ACCEPT"}) || len(words) == 0 {
			continue
		}
		if target := words[len(words)-1]; target != "ACCEPT" || words[0] == "-P" {
			return true
		}
	}
	return false
}
