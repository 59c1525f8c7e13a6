package metric_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/lambdas/internal/metric"
	"github.com/longshore-run/longshore/shared/measure"
)

// What alarms and dashboards are made of is what the functions' code writes: each
// name stands in it. That nothing else is written, and with which dimensions,
// every test with a control plane in memory checks as it counts.
func TestMeasure_EveryMetricIsWrittenBySomeFunction(t *testing.T) {
	if metric.Namespace != measure.Namespace || metric.StackDimension != measure.Stack {
		t.Errorf("%s %s", metric.Namespace, metric.StackDimension)
	}
	var source strings.Builder
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "controltest") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range measure.All() {
		if !regexp.MustCompile(`"` + m.Name + `"|\bmeasure\.` + m.Name + `\b`).MatchString(source.String()) {
			t.Errorf("no function writes %s", m.Name)
		}
	}
}
