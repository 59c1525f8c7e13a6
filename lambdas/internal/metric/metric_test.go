package metric_test

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/metric"
)

var _ control.Metrics = (*metric.Log)(nil)

func lines(t *testing.T, write func(*metric.Log)) []map[string]any {
	t.Helper()
	var out bytes.Buffer
	write(metric.New(&out, "Longshore-test", func() time.Time { return time.UnixMilli(1_700_000_000_123) }))
	var all []map[string]any
	for line := range strings.Lines(out.String()) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func TestCount_WritesOneLineOfEmbeddedMetricFormat(t *testing.T) {
	got := lines(t, func(l *metric.Log) { l.Count("ReapedInstances", 3) })
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"_aws": {"Timestamp": 1700000000123, "CloudWatchMetrics": [
			{"Namespace": "Longshore", "Dimensions": [["Stack"]], "Metrics": [{"Name": "ReapedInstances", "Unit": "Count"}]}]},
		"Stack": "Longshore-test", "ReapedInstances": 3}`), &want); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func TestCount_AddsDimensionsAndSaysTheUnit(t *testing.T) {
	got := lines(t, func(l *metric.Log) { l.Count("OldestWaitingSeconds", 1.5, "Cluster", "default", "Empty", "", "Odd") })
	directive := got[0]["_aws"].(map[string]any)["CloudWatchMetrics"].([]any)[0].(map[string]any)
	if !reflect.DeepEqual(directive["Dimensions"], []any{[]any{"Stack", "Cluster"}}) || got[0]["Cluster"] != "default" || got[0]["OldestWaitingSeconds"] != 1.5 {
		t.Fatalf("got %v", got[0])
	}
	if unit := directive["Metrics"].([]any)[0].(map[string]any)["Unit"]; unit != "Seconds" {
		t.Fatalf("unit is %v", unit)
	}
	if _, ok := got[0]["Empty"]; ok {
		t.Fatal("an empty dimension was written, which CloudWatch refuses")
	}
}

func TestCount_WritesNothingThatIsNoNumber(t *testing.T) {
	if got := lines(t, func(l *metric.Log) { l.Count("A", math.NaN()); l.Count("B", math.Inf(1)) }); len(got) != 0 {
		t.Fatalf("got %v", got)
	}
}

func TestCount_ByManyAtOnceKeepsLinesWhole(t *testing.T) {
	got := lines(t, func(l *metric.Log) {
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { l.Count("A", 1, "Cluster", strings.Repeat("c", 100)) })
		}
		wg.Wait()
	})
	if len(got) != 50 {
		t.Fatalf("%d lines", len(got))
	}
}
