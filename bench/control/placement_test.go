package main

import "testing"

func TestFigure_ReadsWhatGoSaysOfABenchmark(t *testing.T) {
	const out = `BenchmarkPlan/instances=1000/tasks=1000/default-2         	      10	   6655844 ns/op	      1396 cpu-ns/placement	      6656 ns/placement	  839052 B/op
BenchmarkPlan/instances=10000/tasks=2000/default-2        	       2	 132555722 ns/op	     5060.5 cpu-ns/placement	     66278 ns/placement
BenchmarkScheduler1kNodes10kTasks-2   	       2	5672289492 ns/op
`
	for _, c := range []struct {
		name, unit string
		want       float64
	}{
		{"instances=1000/tasks=1000/", "ns/op", 6655844}, {"instances=1000/tasks=1000/", "cpu-ns/placement", 1396},
		{"instances=10000/tasks=2000/", "cpu-ns/placement", 5060.5}, {"1kNodes10kTasks", "ns/op", 5672289492},
	} {
		if got, err := figure(out, c.name, c.unit); err != nil || got != c.want {
			t.Errorf("%s %s: %v, %v", c.name, c.unit, got, err)
		}
	}
	if _, err := figure(out, "1kNodes1kTasks", "ns/op"); err == nil {
		t.Error("a benchmark that did not run has a figure")
	}
}
