package hostprep

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// machine is a machine's ip and iptables in memory.
type machine struct {
	addresses []string
	chains    map[string]map[string][]string // program → chain → rules
	fails     string                         // a command that begins with it fails
	changes   []string
}

func newMachine(docker bool) *machine {
	m := &machine{chains: map[string]map[string][]string{}}
	for _, p := range []string{"iptables", "ip6tables"} {
		m.chains[p] = map[string][]string{"INPUT": nil, "FORWARD": nil}
		if docker {
			m.chains[p][userChain], m.chains[p]["FORWARD"] = []string{"-j RETURN"}, []string{"-j DOCKER-USER", "-j DOCKER-ISOLATION-STAGE-1"}
		}
	}
	return m
}

var errCommand = errors.New("exit status 1")

func (m *machine) run(_ context.Context, name string, args ...string) (string, error) {
	line := name + " " + strings.Join(args, " ")
	if m.fails != "" && strings.HasPrefix(line, m.fails) {
		return "", errCommand
	}
	if name == "ip" {
		m.changes = append(m.changes, line)
		if args[1] == "replace" {
			m.addresses = append(m.addresses, strings.TrimSuffix(args[2], "/32"))
		} else {
			m.addresses = slices.DeleteFunc(m.addresses, func(a string) bool { return a+"/32" == args[2] })
		}
		return "", nil
	}
	chains := m.chains[name]
	if chains == nil || args[0] != "-w" {
		return "", errCommand
	}
	verb, chain, rule := args[2], args[3], strings.Join(args[4:], " ")
	rules, there := chains[chain]
	if !there && verb != "-N" {
		return "", errCommand
	}
	at := slices.Index(rules, rule)
	if verb != "-S" && verb != "-C" {
		m.changes = append(m.changes, line)
	}
	switch {
	case verb == "-S":
		policy := "-P " + chain + " ACCEPT\n"
		for _, r := range rules {
			policy += "-A " + chain + " " + r + "\n"
		}
		return policy, nil
	case verb == "-N" && !there:
		chains[chain] = nil
	case verb == "-I":
		chains[chain] = slices.Insert(rules, 0, strings.TrimPrefix(rule, "1 "))
	case verb == "-D" && at >= 0:
		chains[chain] = slices.Delete(rules, at, at+1)
	case verb == "-C" && at >= 0:
	default:
		return "", errCommand
	}
	return "", nil
}

func (m *machine) host() Host {
	return Host{Run: m.run, IPv6: true, Own: func(a netip.Addr) bool { return slices.Contains(m.addresses, a.String()) }}
}

const (
	block4 = "-d 169.254.169.254/32 -j REJECT --reject-with icmp-port-unreachable"
	block6 = "-d fd00:ec2::254/128 -j REJECT --reject-with icmp6-port-unreachable"
)

var wanted = Want{Endpoint: netip.MustParseAddrPort("169.254.170.2:80"), Block: true}

func TestPrepare_MakesTheMachineAsWantedAndChangesNothingTheSecondTime(t *testing.T) {
	for name, docker := range map[string]bool{"before Docker's first start": false, "beside Docker": true} {
		m := newMachine(docker)
		if f, err := m.host().Prepare(t.Context(), wanted); err != nil || f.AddressFault+f.BlockFault != "" || f.Endpoint != "169.254.170.2:80" || !f.Block {
			t.Errorf("%s: %+v %v", name, f, err)
		}
		if !slices.Equal(m.addresses, []string{"169.254.170.2"}) {
			t.Errorf("%s: addresses %v", name, m.addresses)
		}
		for program, rule := range map[string]string{"iptables": block4, "ip6tables": block6} {
			if c := m.chains[program]; len(c[userChain]) == 0 || c[userChain][0] != rule || len(c["FORWARD"]) == 0 || c["FORWARD"][0] != "-j DOCKER-USER" || len(c["INPUT"]) > 0 {
				t.Errorf("%s: %s has %v", name, program, c)
			}
		}
		m.changes = nil
		if _, err := m.host().Prepare(t.Context(), wanted); err != nil || len(m.changes) > 0 {
			t.Errorf("%s, again: %v %v", name, m.changes, err)
		}
	}
}

func TestPrepare_MendsWhatWasTakenAway(t *testing.T) {
	m := newMachine(true)
	if _, err := m.host().Prepare(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	m.addresses, m.chains["iptables"][userChain], m.chains["ip6tables"]["FORWARD"] = nil, []string{"-j ACCEPT"}, nil
	if _, err := m.host().Prepare(t.Context(), wanted); err != nil || len(m.addresses) != 1 || m.chains["iptables"][userChain][0] != block4 || m.chains["ip6tables"]["FORWARD"][0] != "-j DOCKER-USER" {
		t.Errorf("%v %v, %v", m.addresses, m.chains, err)
	}
}

// What somebody puts before our rule opens the service again, though the rule is there.
func TestPrepare_PutsItsRuleBeforeWhatLetsThrough(t *testing.T) {
	for before, moves := range map[string]bool{
		"-j ACCEPT": true, "-s 172.17.0.0/16 -j RETURN": true, "-j another-chain": true, "-g another-chain": true,
		"-s 10.0.0.0/8 -j DROP": false, "-d 10.0.0.1/32 -j REJECT --reject-with icmp-port-unreachable": false, "-s 10.0.0.0/8": false,
	} {
		m := newMachine(true)
		if _, err := m.host().Prepare(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
		rules := m.chains["iptables"]
		rules[userChain] = slices.Insert(rules[userChain], 0, before)
		want := []string{before, block4, "-j RETURN"}
		if moves {
			want = []string{block4, before, "-j RETURN"}
		}
		for range 2 {
			if _, err := m.host().Prepare(t.Context(), wanted); err != nil || !slices.Equal(rules[userChain], want) {
				t.Errorf("%v: %v, want %v", err, rules[userChain], want)
			}
		}
	}
}

// A machine whose own firewall drops what it does not know lets containers in, and
// only to the endpoint.
func TestPrepare_OpensTheEndpointWhereAFirewallIsClosed(t *testing.T) {
	const accept = "-d 169.254.170.2/32 -p tcp --dport 80 -j ACCEPT"
	for rule, closed := range map[string]bool{"-i lo -j ACCEPT": false, "-j ufw-before-input": true, "-j DROP": true} {
		m := newMachine(true)
		m.chains["iptables"]["INPUT"] = []string{rule}
		for range 2 {
			if _, err := m.host().Prepare(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
		}
		want := []string{rule}
		if closed {
			want = []string{accept, rule}
		}
		if got := m.chains["iptables"]["INPUT"]; !slices.Equal(got, want) {
			t.Errorf("with %q: %v", rule, got)
		}
	}
}

func TestUndo_LeavesTheMachineAsItWas(t *testing.T) {
	m, before := newMachine(true), newMachine(true)
	m.chains["iptables"]["INPUT"], before.chains["iptables"]["INPUT"] = []string{"-j DROP"}, []string{"-j DROP"}
	for range 2 { // also where nothing is to be taken away
		if _, err := m.host().Prepare(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := m.host().Undo(t.Context(), wanted); err != nil {
				t.Fatal(err)
			}
		}
		for program, chains := range before.chains {
			if !maps.EqualFunc(m.chains[program], chains, slices.Equal) || len(m.addresses) > 0 {
				t.Errorf("%s: %v, want %v; addresses %v", program, m.chains[program], chains, m.addresses)
			}
		}
	}
	bare := newMachine(false)
	bare.chains = nil // no firewall at all
	if err := bare.host().Undo(t.Context(), wanted); err != nil {
		t.Error(err)
	}
}

func TestPrepare_TakesTheRuleAwayWhereItIsNotWantedAnyMore(t *testing.T) {
	m := newMachine(true)
	if _, err := m.host().Prepare(t.Context(), wanted); err != nil {
		t.Fatal(err)
	}
	open := wanted
	open.Block = false
	if f, err := m.host().Prepare(t.Context(), open); err != nil || f.Block || slices.Contains(m.chains["iptables"][userChain], block4) {
		t.Errorf("%+v %v: %v", f, err, m.chains)
	}
}

func TestPrepare_WhatFailsIsNamedAndKeepsNothingElseFromBeingDone(t *testing.T) {
	m := newMachine(true)
	m.fails = "ip address"
	f, err := m.host().Prepare(t.Context(), wanted)
	if err == nil || !strings.Contains(f.AddressFault, "169.254.170.2") || f.BlockFault != "" || m.chains["iptables"][userChain][0] != block4 {
		t.Errorf("%+v %v", f, err)
	}
	m = newMachine(true)
	m.fails = "iptables -w 5 -I"
	f, err = m.host().Prepare(t.Context(), wanted)
	if err == nil || !strings.Contains(f.BlockFault, "169.254.169.254") || f.AddressFault != "" || m.chains["ip6tables"][userChain][0] != block6 {
		t.Errorf("%+v %v", f, err)
	}
	f, err = newMachine(true).host().Prepare(t.Context(), Want{Endpoint: netip.MustParseAddrPort("10.1.2.3:80")})
	if err == nil || !strings.Contains(f.AddressFault, "169.254.0.0/16") {
		t.Errorf("another's address: %+v %v", f, err)
	}
	six := newMachine(true)
	six.fails = "ip6tables"
	h := six.host()
	h.IPv6 = false
	if f, err := h.Prepare(t.Context(), wanted); err != nil {
		t.Errorf("a machine without IPv6: %+v %v", f, err)
	}
}

func TestBlocked_IsWhatWasFoundLatelySinceTheMachineStarted(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	check := func(at time.Time, want string) {
		t.Helper()
		got := Blocked(dir, at)
		if want == "" && got != "" || want != "" && !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	check(now, "nobody has looked; mend: longshore-agent prepare-host")
	if err := Write(dir, Found{Block: true}, now); err != nil {
		t.Fatal(err)
	}
	check(now.Add(time.Minute), "")
	check(now.Add(6*time.Minute), "nobody has looked for 6m0s")
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := Write(dir, Found{Block: true, BlockFault: "iptables is not there"}, now); err != nil {
		t.Fatal(err)
	}
	check(now, "iptables is not there")
	if err := Write(dir, Found{}, now); err != nil {
		t.Fatal(err)
	}
	check(now, "was told not to")
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(`{"at":"`+now.Format(time.RFC3339)+`","boot":"another","block":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	check(now, "since the machine started")
	if err := os.WriteFile(filepath.Join(dir, fileName), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	check(now, "cannot be read")
	for range 2 {
		if err := Forget(dir); err != nil {
			t.Error(err)
		}
	}
}
