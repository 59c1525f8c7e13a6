//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/internal/meter"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/test/local"
)

// What our programs may call and write for one task that ends by itself (docs/design/cost.md).
const (
	mostCallsAlone = 20
	mostCallsMany  = 10
	mostWriteUnits = 35
)

// Programs that a task's life is in the hands of; what else runs meanwhile (the
// reaper each minute, the events, the test's own reading) is told, and not counted.
const (
	programAgent  = "agent"
	programReaper = "reaper"
)

var taskPrograms = []string{"api", "admission", "statechange", programAgent}

// The calls are counted by what watches every AWS client of every program, and
// logs them at level debug.
func TestCost_OfATaskStaysWithinItsBounds(t *testing.T) {
	// No beat and no judgement of the reaper's falls into the counting.
	s := up(t, local.Options{Agents: 1, HeartbeatEvery: 10 * time.Minute, SuspectAfter: 40 * time.Minute, ReapAfter: 50 * time.Minute})
	s.reads = ecs.NewFromConfig(s.Config(), func(o *ecs.Options) { o.BaseEndpoint = aws.String(s.ReadAPI()) })
	def := s.register("cost", func(_ *ecs.RegisterTaskDefinitionInput, c *types.ContainerDefinition) {
		c.Command = []string{"sleep", "1"}
	})
	s.countedRuns(def, 1) // warms everything up
	for _, c := range []struct {
		what  string
		tasks int
		most  float64
	}{{"alone", 1, mostCallsAlone}, {"of many at once", 60, mostCallsMany}} {
		all := s.countedRuns(def, c.tasks)
		for try := 1; all.requests() > c.most*float64(c.tasks) && try < 6; try++ {
			t.Logf("counted again, for a poll of the agent may have ended meanwhile:\n%s", all.table(c.tasks))
			all = s.countedRuns(def, c.tasks)
		}
		t.Logf("a task %s:\n%s", c.what, all.table(c.tasks))
		for _, program := range taskPrograms {
			if len(all[program]) == 0 {
				t.Errorf("nothing is counted of %s", program)
			}
		}
		calls, units := all.sum()
		if calls == 0 || calls/float64(c.tasks) > c.most {
			t.Errorf("a task %s took %.1f calls; %.0f are allowed", c.what, calls/float64(c.tasks), c.most)
		}
		if units == 0 || units/float64(c.tasks) > mostWriteUnits {
			t.Errorf("a task %s took %.1f write units; %d are allowed", c.what, units/float64(c.tasks), mostWriteUnits)
		}
	}
}

// bill is calls by program and operation.
type bill map[string]map[string]*calls

type calls struct{ requests, readUnits, writeUnits float64 }

// sum adds up what the programs did that a task's life is in the hands of.
func (b bill) sum() (requests, writeUnits float64) {
	for _, program := range taskPrograms {
		for _, c := range b[program] {
			requests, writeUnits = requests+c.requests, writeUnits+c.writeUnits
		}
	}
	return requests, writeUnits
}

func (b bill) requests() float64 { n, _ := b.sum(); return n }

func (b bill) table(tasks int) string {
	var out strings.Builder
	for _, program := range slices.Sorted(maps.Keys(b)) {
		for _, operation := range slices.Sorted(maps.Keys(b[program])) {
			c := b[program][operation]
			fmt.Fprintf(&out, "%-12s %-30s %6.2f calls %6.1f write units a task\n", program, operation, c.requests/float64(tasks), c.writeUnits/float64(tasks))
		}
	}
	requests, units := b.sum()
	fmt.Fprintf(&out, "%-43s %6.2f calls %6.1f write units a task", strings.Join(taskPrograms, ", "), requests/float64(tasks), units/float64(tasks))
	return out.String()
}

// countedRuns runs so many tasks to their acknowledged ends and returns what was
// called meanwhile: again, where the reaper's minute fell into it.
func (s *stack) countedRuns(definition string, tasks int) bill {
	s.t.Helper()
	for try := 1; ; try++ {
		begun := time.Now()
		var wg sync.WaitGroup
		arns := make([]string, tasks)
		slots := make(chan struct{}, 8)
		for i := range arns {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				arns[i] = s.run(definition)
			})
		}
		wg.Wait()
		for chunk := range slices.Chunk(arns, 100) {
			s.eventually("STOPPED is every task", func() bool {
				out, err := s.reads.DescribeTasks(s.t.Context(), &ecs.DescribeTasksInput{Cluster: aws.String(local.Cluster), Tasks: chunk})
				if err != nil {
					s.t.Fatal(err)
				}
				return !slices.ContainsFunc(out.Tasks, func(k types.Task) bool { return aws.ToString(k.LastStatus) != "STOPPED" })
			})
		}
		all := s.quiet(begun, tasks)
		if len(all[programReaper]) == 0 || try == 4 && tasks > 1 {
			return all
		}
		s.t.Logf("the reaper ran meanwhile: counted again")
	}
}

// quiet waits until the agent has dropped the acknowledgements, and nothing is
// called any more.
func (s *stack) quiet(begun time.Time, tasks int) (all bill) {
	s.t.Helper()
	last, since, looked := -1.0, time.Now(), time.Time{}
	s.eventually("quiet", func() bool {
		if time.Since(looked) < 500*time.Millisecond { // a look is many calls
			return false
		}
		all, looked = s.calledSince(begun), time.Now()
		n, _ := all.sum()
		if n != last {
			last, since = n, time.Now()
		}
		deletes := all[programAgent]["SQS.DeleteMessageBatch"]
		return deletes != nil && (tasks > 1 || deletes.requests >= 2) && time.Since(since) > 2*time.Second
	})
	return all
}

// calledSince adds up the calls that were logged since then, by the functions and
// by the agent.
func (s *stack) calledSince(begun time.Time) bill {
	s.t.Helper()
	all := bill{}
	logs := cloudwatchlogs.NewFromConfig(s.Config())
	for _, program := range []string{"api", "admission", "statechange", programReaper, "services", "events"} {
		group := s.Outputs[strings.ToUpper(program[:1])+program[1:]+"LogGroupName"]
		if group == "" {
			s.t.Fatalf("no output names the log group of %s: %v", program, s.Outputs)
		}
		pages := cloudwatchlogs.NewFilterLogEventsPaginator(logs, &cloudwatchlogs.FilterLogEventsInput{LogGroupName: &group, StartTime: aws.Int64(begun.UnixMilli())})
		for pages.HasMorePages() {
			page, err := pages.NextPage(s.t.Context())
			if err != nil {
				s.t.Fatal(err)
			}
			for _, e := range page.Events {
				all.add(program, aws.ToString(e.Message), begun)
			}
		}
	}
	agents, err := filepath.Glob(filepath.Join(s.Options.Dir, "agents", "*", "log"))
	if err != nil || len(agents) == 0 {
		s.t.Fatalf("the agents' logs: %v, %v", agents, err)
	}
	for _, file := range agents {
		text, err := os.ReadFile(file)
		if err != nil {
			s.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			all.add(programAgent, line, begun)
		}
	}
	return all
}

// add takes in a line of a program's log, if it tells of a call since then.
func (b bill) add(program, line string, begun time.Time) {
	at := strings.IndexByte(line, '{')
	var entry map[string]any
	if at < 0 || json.NewDecoder(strings.NewReader(line[at:])).Decode(&entry) != nil || entry["msg"] != meter.Message {
		return
	}
	if when, err := time.Parse(time.RFC3339Nano, fmt.Sprint(entry["time"])); err != nil || when.Before(begun) {
		return
	}
	if b[program] == nil {
		b[program] = map[string]*calls{}
	}
	operation := fmt.Sprint(entry[logkey.Operation])
	c := b[program][operation]
	if c == nil {
		c = &calls{}
		b[program][operation] = c
	}
	number := func(key string) float64 { n, _ := entry[key].(float64); return n }
	c.requests += number(logkey.Count)
	c.readUnits += number(logkey.ReadUnits)
	c.writeUnits += number(logkey.WriteUnits)
}
