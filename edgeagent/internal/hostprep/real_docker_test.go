//go:build docker

package hostprep

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strings"
	"testing"
)

// TestPrepare_OnARealNetwork calls the machine's own ip and iptables in a network of
// its own, which nothing else is in.
func TestPrepare_OnARealNetwork(t *testing.T) {
	ns := fmt.Sprintf("ls-hostprep-%d", os.Getpid())
	run := func(ctx context.Context, name string, args ...string) (string, error) {
		return Command(ctx, "ip", append([]string{"netns", "exec", ns, name}, args...)...)
	}
	must := func(name string, args ...string) string {
		t.Helper()
		if strings.HasSuffix(name, "tables") { // their lock is the machine's, whatever the network
			args = append([]string{"-w", "60"}, args...)
		}
		out, err := run(context.Background(), name, args...)
		if err != nil {
			t.Fatalf("%v (this test needs to be root, and iproute2 and iptables)", err)
		}
		return out
	}
	if _, err := Command(t.Context(), "ip", "netns", "add", ns); err != nil {
		t.Fatalf("%v (this test needs to be root, and iproute2)", err)
	}
	t.Cleanup(func() {
		if _, err := Command(context.Background(), "ip", "netns", "del", ns); err != nil {
			t.Error(err)
		}
	})
	h := Host{Run: run, IPv6: true, Own: func(a netip.Addr) bool {
		return strings.Contains(must("ip", "-o", "address", "show", "dev", "lo"), " "+a.String()+"/32 ")
	}}
	rules := func() string { return must("iptables", "-S") + must("ip6tables", "-S") }
	before := rules()
	for range 2 {
		if f, err := h.Prepare(t.Context(), wanted); err != nil || f.AddressFault+f.BlockFault != "" {
			t.Fatalf("%+v %v", f, err)
		}
		got := rules()
		for _, rule := range []string{block4, block6} {
			if strings.Count(got, "-A DOCKER-USER "+rule+"\n") != 1 {
				t.Errorf("not once %q:\n%s", rule, got)
			}
		}
		if strings.Count(got, "-A FORWARD -j DOCKER-USER\n") != 2 || strings.Contains(got, "-A INPUT") || !h.Own(wanted.Endpoint.Addr()) {
			t.Errorf("%s", got)
		}
	}
	must("iptables", "-I", userChain, "1", "-i", "docker0", "-j", "ACCEPT")
	for range 2 {
		if _, err := h.Prepare(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := must("iptables", "-S", userChain), "-N DOCKER-USER\n-A DOCKER-USER "+block4+"\n-A DOCKER-USER -i docker0 -j ACCEPT\n"; got != want {
		t.Errorf("what lets through comes first:\n%s", got)
	}
	must("iptables", "-D", userChain, "-i", "docker0", "-j", "ACCEPT")
	must("iptables", "-P", "INPUT", "DROP")
	for range 2 {
		if _, err := h.Prepare(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	if got := rules(); strings.Count(got, "-A INPUT -d 169.254.170.2/32 -p tcp -m tcp --dport 80 -j ACCEPT\n") != 1 {
		t.Errorf("a closed INPUT is not opened once:\n%s", got)
	}
	must("iptables", "-P", "INPUT", "ACCEPT")
	for range 2 {
		if err := h.Undo(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
	// The chain, which Docker makes too, stays.
	after := strings.NewReplacer("-N DOCKER-USER\n", "", "-A FORWARD -j DOCKER-USER\n", "").Replace(rules())
	if after != before || h.Own(wanted.Endpoint.Addr()) {
		t.Errorf("after it all:\n%s\nbefore:\n%s", after, before)
	}
}
