// Package schedule is what a scheduled task is: its rule's name and expression,
// what runs, and the message by which EventBridge asks for a run. The CLI, the
// stack and the function that runs it all read it here. Pure: it checks what can be
// checked without asking anybody. Anybody may import it.
package schedule

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// Version is the version of a run's message.
const Version = 1

// Overlap says what is done if a task of an earlier run has not STOPPED when a run
// is due.
type Overlap string

const (
	Allow   Overlap = "allow"   // it runs beside it
	Forbid  Overlap = "forbid"  // the run is missed
	Replace Overlap = "replace" // the earlier one is stopped; the run does not wait for its end
)

// Run is what a schedule runs each time it is due.
type Run struct {
	Version        int               `json:"version"`
	Schedule       string            `json:"schedule"` // its name
	Cluster        string            `json:"cluster"`
	TaskDefinition string            `json:"taskDefinition"` // family, family:revision or ARN
	Count          int               `json:"count"`
	Overrides      json.RawMessage   `json:"overrides,omitempty"`
	Group          string            `json:"group,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
	// PropagateTags gives the tasks their definition's tags, too.
	PropagateTags bool `json:"propagateTags,omitempty"`
	// StartingDeadline is how many seconds after its time a run may still begin:
	// then a task that waits for room ends, and the run is missed. 0 is for ever.
	StartingDeadline int     `json:"startingDeadline,omitempty"`
	Overlap          Overlap `json:"overlap"`
}

// Rule is a schedule: when, and what.
type Rule struct {
	// Expression is EventBridge's: rate(5 minutes) or cron(0 3 * * ? *), in UTC.
	Expression string `json:"expression"`
	Disabled   bool   `json:"disabled,omitempty"`
	Run
}

// Bounds of a schedule.
const (
	MaxCount    = 10
	MaxDeadline = 7 * 24 * 3600
	maxRuleName = 64
	// maxTemplate is what EventBridge takes of a target's template.
	maxTemplate = 8192
)

var (
	nameForm    = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	clusterForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
	rateForm    = regexp.MustCompile(`^rate\(([1-9][0-9]{0,5}) (minute|minutes|hour|hours|day|days)\)$`)
	cronField   = regexp.MustCompile(`^[0-9A-Z*?,/L#W-]+$`)
)

// Complete sets what was left out: one task, which may overlap, of cluster default.
func (r *Run) Complete() {
	r.Version = Version
	if r.Count == 0 {
		r.Count = 1
	}
	if r.Cluster == "" {
		r.Cluster = "default"
	}
	if r.Overlap == "" {
		r.Overlap = Allow
	}
}

// Deadline is StartingDeadline as a duration.
func (r *Run) Deadline() time.Duration { return time.Duration(r.StartingDeadline) * time.Second }

// Check lists every fault of a completed run.
func (r *Run) Check() error {
	var faults []error
	fail := func(field, format string, args ...any) {
		faults = append(faults, fault.Field(field, format, args...))
	}
	if r.Version != Version {
		fail("version", "is %d; %d is known", r.Version, Version)
	}
	if !nameForm.MatchString(r.Schedule) || len(r.Schedule) > maxRuleName {
		fail("schedule", "is %.70q; letters, digits, hyphens and underscores are allowed", r.Schedule)
	}
	if !clusterForm.MatchString(r.Cluster) {
		fail("cluster", "is %.60q; 1 to 255 letters, digits, hyphens and underscores are allowed", r.Cluster)
	}
	if r.TaskDefinition == "" || len(r.TaskDefinition) > 512 {
		fail("taskDefinition", "must be a family, family:revision or ARN")
	}
	if r.Count < 1 || r.Count > MaxCount {
		fail("count", "is %d; 1 to %d are allowed", r.Count, MaxCount)
	}
	if r.StartingDeadline < 0 || r.StartingDeadline > MaxDeadline {
		fail("startingDeadline", "is %d; 0 to %d seconds are allowed", r.StartingDeadline, MaxDeadline)
	}
	if r.Overlap != Allow && r.Overlap != Forbid && r.Overlap != Replace {
		fail("overlap", "is %.20q; allow, forbid and replace are allowed", r.Overlap)
	}
	if len(r.Overrides) > 0 && (!json.Valid(r.Overrides) || bytes.TrimSpace(r.Overrides)[0] != '{') {
		fail("overrides", "must be a JSON object")
	}
	return errors.Join(faults...)
}

// Check lists every fault of a completed rule of a stack.
func (r *Rule) Check(stack string) error {
	faults := []error{r.Run.Check(), CheckExpression(r.Expression)}
	if name := RuleName(stack, r.Schedule); len(name) > maxRuleName {
		faults = append(faults, fault.Field("schedule", "has %d characters; with the stack's name at most %d are allowed", len(r.Schedule), len(r.Schedule)-len(name)+maxRuleName))
	}
	if r.Run.Check() == nil {
		if t := r.Template(); len(t) > maxTemplate {
			faults = append(faults, fault.Field("overrides", "make a message of %d bytes; EventBridge takes %d", len(t), maxTemplate))
		}
	}
	return errors.Join(faults...)
}

// CheckExpression says what is wrong with a rate or cron expression, as far as
// can be said without EventBridge.
func CheckExpression(e string) error {
	if m := rateForm.FindStringSubmatch(e); m != nil {
		n, err := strconv.Atoi(m[1])
		if singular := !strings.HasSuffix(m[2], "s"); err != nil || (n == 1) != singular {
			return fault.Field("expression", "is %s; it is 1 minute, hour or day, and 2 minutes, hours or days", e)
		}
		return nil
	}
	body, ok := strings.CutPrefix(e, "cron(")
	body, closed := strings.CutSuffix(body, ")")
	if !ok || !closed {
		return fault.Field("expression", "is %.80q; rate(5 minutes) and cron(minutes hours day-of-month month day-of-week year) are allowed", e)
	}
	fields := strings.Fields(body)
	if len(fields) != 6 || strings.Join(fields, " ") != body {
		return fault.Field("expression", "has %d fields; cron has six, with one space between: minutes hours day-of-month month day-of-week year", len(fields))
	}
	for i, f := range fields {
		if !cronField.MatchString(f) {
			return fault.Field("expression", "has %q as field %d; that is not cron", f, i+1)
		}
	}
	if (fields[2] == "?") == (fields[4] == "?") {
		return fault.Field("expression", "must have ? as either day-of-month or day-of-week: the other one says the days")
	}
	return nil
}

// RuleStart begins the names of a stack's rules: the stack's function lets them,
// and no others, wake it.
func RuleStart(stack string) string { return strings.ToLower(stack) + "-schedule-" }

// RuleName is the name of a schedule's EventBridge rule.
func RuleName(stack, schedule string) string { return RuleStart(stack) + schedule }

// TimePath is where in EventBridge's own event the time is that a run was due: the
// template's variable.
func TimePath() map[string]string { return map[string]string{"time": "$.time"} }

// Template is the target's input template: the message of a run, with its time to
// be filled in. A "<" in it would begin a variable; JSON has another way to write it.
func (r *Run) Template() string {
	b, err := json.Marshal(r) // which writes < as \u003c
	if err != nil {
		panic("schedule: a checked run is no JSON: " + err.Error())
	}
	return `{"scheduledTime":<time>,"run":` + string(b) + `}`
}

// Due is a run that is due: the message that EventBridge makes of the template.
type Due struct {
	ScheduledTime time.Time `json:"scheduledTime"`
	Run           Run       `json:"run"`
}

// maxMessage bounds a message.
const maxMessage = 16 * 1024

// Decode reads the message of a run strictly.
func Decode(message []byte) (d Due, err error) {
	if len(message) > maxMessage {
		return d, fault.New(fault.Invalid, "message has %d bytes; at most %d are allowed", len(message), maxMessage)
	}
	decoder := json.NewDecoder(bytes.NewReader(message))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return d, fault.Malformed(err, "decode the message of a run")
	}
	if _, err := decoder.Token(); err != io.EOF {
		return d, fault.New(fault.Invalid, "decode the message of a run: something follows it")
	}
	if d.ScheduledTime.IsZero() {
		return d, fault.Field("scheduledTime", "must be set")
	}
	d.ScheduledTime = d.ScheduledTime.UTC()
	return d, d.Run.Check()
}

// DecodeTemplate reads the run back from a target's template.
func DecodeTemplate(template string) (Run, error) {
	d, err := Decode([]byte(strings.Replace(template, "<time>", `"2000-01-01T00:00:00Z"`, 1)))
	if err != nil {
		return d.Run, fmt.Errorf("read the rule's target: %w", err)
	}
	return d.Run, nil
}
