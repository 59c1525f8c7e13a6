package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestMeasured_RatiosAreOfTheSameRound(t *testing.T) {
	var m measured
	// The machine gets ten times slower; the agent is always a tenth over.
	for _, d := range []time.Duration{100, 1000, 100, 1000, 1000} {
		m.add(map[string]time.Duration{byBare: d, byAgent: d * 11 / 10, bySwarm: d * 2})
	}
	if r := m.ratio(byBare); r < 1.099 || r > 1.101 {
		t.Errorf("over the bare loop: %.3f", r)
	}
	if r := m.ratio(bySwarm); r < 0.549 || r > 0.551 {
		t.Errorf("over Swarm: %.3f", r)
	}
}

func TestMedian_OfAnEvenNumberIsBetweenTheTwo(t *testing.T) {
	if m := median([]float64{3, 1, 2, 10}); m != 2.5 {
		t.Errorf("%v", m)
	}
	if m := median([]time.Duration{5, 1, 3}); m != 3 {
		t.Errorf("%v", m)
	}
}

func TestShow_MarksWhatIsBeyondItsBound(t *testing.T) {
	m := measured{Mode: "host", Size: 10}
	m.add(map[string]time.Duration{byBare: time.Second, byAgent: 1200 * time.Millisecond})
	var out bytes.Buffer
	show(&out, []measured{m}, []figure{{"resident", 24.9, 25, "MiB"}, {"program", 20.1, 20, "MB"}, {"peak", 30, 0, "MB"}})
	for _, want := range []string{"1.20 (!)", "resident: 24.9 MiB of 25\n", "program: 20.1 MB of 20 (!)", "peak: 30.0 MB\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
}

func TestKilobytes_OfAProcess(t *testing.T) {
	if kb := kilobytes("VmPeak:\t 1270 kB\nVmRSS:\t   17612 kB\n", "VmRSS"); kb != 17612 {
		t.Errorf("read %d kB", kb)
	}
	if kb := kilobytes("nothing", "VmRSS"); kb != 0 {
		t.Errorf("read %d kB of nothing", kb)
	}
}

func TestParse_NamesWhatIsAllowed(t *testing.T) {
	for _, bad := range []struct{ args, want string }{
		{"", "-agent"},
		{"-agent x -sizes 0", "1 to 200"},
		{"-agent x -modes none", "bridge and host"},
		{"-agent x -rounds 0", "1 to 100"},
		{"-agent x more", "nothing follows"},
	} {
		if _, err := parse(strings.Fields(bad.args)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: %v", bad.args, err)
		}
	}
	o, err := parse(strings.Fields("-agent x -sizes 1,50 -modes host"))
	if err != nil || len(o.sizes) != 2 || o.modes[0] != "host" || o.often(50) != 2 || o.often(1) != 15 {
		t.Errorf("%+v, %v", o, err)
	}
}
