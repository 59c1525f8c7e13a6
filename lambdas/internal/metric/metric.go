// Package metric is control.Metrics as lines of CloudWatch's embedded metric
// format on a function's log: no call is made and nothing is paid but the line.
// The alarms in infra read these metrics by name. It keeps nothing. Only mains
// import it, through internal/boot.
package metric

import (
	"encoding/json"
	"io"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/longshore-run/longshore/shared/measure"
)

// Namespace holds all of our metrics.
const Namespace = measure.Namespace

// StackDimension is the dimension that every metric has.
const StackDimension = measure.Stack

// Log writes metrics to a log. It is safe for concurrent use.
type Log struct {
	mu    sync.Mutex
	w     io.Writer
	stack string
	now   func() time.Time
}

// New writes to w, which CloudWatch Logs must receive line by line: a function's
// standard output.
func New(w io.Writer, stack string, now func() time.Time) *Log {
	return &Log{w: w, stack: stack, now: now}
}

// Count implements control.Metrics. The metric has the dimension Stack and those
// given as name and value in turn; an empty value and its name are left out,
// because CloudWatch refuses it. A value that is not a number is not written.
func (l *Log) Count(name string, value float64, dimensions ...string) {
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return
	}
	line := map[string]any{StackDimension: l.stack}
	set := []string{StackDimension}
	for i := 0; i+1 < len(dimensions); i += 2 {
		if _, twice := line[dimensions[i]]; twice || dimensions[i+1] == "" || dimensions[i] == name {
			continue
		}
		set = append(set, dimensions[i])
		line[dimensions[i]] = dimensions[i+1]
	}
	line[name] = value
	line["_aws"] = map[string]any{
		"Timestamp": l.now().UnixMilli(),
		"CloudWatchMetrics": []any{map[string]any{
			"Namespace":  Namespace,
			"Dimensions": [][]string{set},
			"Metrics":    []any{map[string]string{"Name": name, "Unit": unit(name)}},
		}},
	}
	b, err := json.Marshal(line)
	if err != nil {
		return // of strings and a number: cannot be
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	// A metric that cannot be written has nobody to be told about.
	_, _ = l.w.Write(append(b, '\n'))
}

// unit is said by the end of a metric's name.
func unit(name string) string {
	if strings.HasSuffix(name, "Seconds") {
		return "Seconds"
	}
	if strings.HasSuffix(name, "MiB") {
		return "None"
	}
	return "Count"
}
