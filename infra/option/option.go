// Package option reads the context of the CDK app (`cdk deploy -c key=value`,
// or "context" in cdk.json) into typed options, and refuses what it does not
// understand by name. It knows neither the CDK nor any file. infra's main and
// stack import it.
package option

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/setting"
)

// Prefix starts every context key of ours; the CDK's own start with "@aws-cdk/".
const Prefix = "longshore:"

// Architectures of a function, as Lambda calls them.
const (
	ARM64  = "arm64"
	X86_64 = "x86_64"
)

// Options is what one deployment is made with.
type Options struct {
	// Name is the stack's name, and the dimension of its metrics.
	Name string
	// Local is a deployment into an emulator: nothing of it outlives the stack,
	// plain http is allowed, and messages may say who sent them.
	Local bool
	// Architecture is ARM64 or X86_64.
	Architecture string
	// Dist is the folder that holds lambda/<GOARCH>/<function>/bootstrap.
	Dist string
	// Build says that the app compiles the functions into Dist itself.
	Build bool
	// EnforceSSL denies plain http on the queues and the topic.
	EnforceSSL bool
	// Retain keeps tables and logs when the stack is deleted.
	Retain bool
	// LogDays is how long the functions' logs are kept.
	LogDays int
	// WaitingAlarm is the age of a waiting task that raises an alarm.
	WaitingAlarm time.Duration
	// Dashboard adds one; the first three of an account are free.
	Dashboard bool
	// Runbooks is where the alarms' pages are, with a slash at its end.
	Runbooks string
	// FailedTasks adds the example rule: a queue of the tasks that failed.
	FailedTasks bool
	// Schedules are scheduled tasks that are deployed with the stack.
	Schedules []schedule.Rule
	// AgentPolicies are ARNs of managed policies that the agent's role gets as
	// well, for instance to be managed by SSM.
	AgentPolicies []string
	// Image says whether machine images are made, and how.
	Image Image
	// Control holds the tunable settings of the functions and their defaults;
	// what names a resource is filled in by the stack.
	Control setting.Control
}

// GOARCH is what Go calls the architecture.
func (o Options) GOARCH() string {
	if o.Architecture == X86_64 {
		return "amd64"
	}
	return ARM64
}

// CommandQueueStart is what the names of the instances' command queues start
// with: two stacks in one account never touch each other's queues.
func (o Options) CommandQueueStart() string { return strings.ToLower(o.Name) + "-cmd-" }

// defaultRunbooks are this repository's, from its root.
const defaultRunbooks = "docs/runbooks/"

// Read makes options of the app's context. hostArch is this machine's GOARCH,
// which functions are built for when they run on it. The error lists every
// fault, each naming its key.
func Read(context map[string]any, hostArch string) (Options, error) {
	r := reader{context: context}
	o := Options{
		Name:  r.text("name", "Longshore"),
		Local: r.flag("local", false),
		Dist:  r.text("dist", "dist"),
		Build: r.flag("build", true),
	}
	o.Architecture = r.oneOf("architecture", defaultArchitecture(o.Local, hostArch), ARM64, X86_64)
	o.EnforceSSL = r.flag("enforceSSL", !o.Local)
	o.Retain = r.oneOf("removal", removal(!o.Local), removal(true), removal(false)) == removal(true)
	o.LogDays = r.days("logDays", 30)
	o.WaitingAlarm = r.duration("waitingAlarm", 15*time.Minute, time.Minute, 24*time.Hour)
	o.Dashboard = r.flag("dashboard", !o.Local)
	if o.Runbooks = r.text("runbooks", defaultRunbooks); !strings.HasSuffix(o.Runbooks, "/") {
		o.Runbooks += "/"
	}
	o.FailedTasks = r.flag("failedTasks", false)
	o.Schedules = r.schedules("schedules", o.Name)
	o.AgentPolicies = r.list("agentPolicies")
	o.Image = r.image(o.Local)
	if !validName(o.Name) {
		r.fault("name", "must start with a letter and have at most 40 letters, digits and hyphens")
	}
	for _, arn := range o.AgentPolicies {
		if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":policy/") {
			r.fault("agentPolicies", "must be ARNs of managed policies, separated by commas")
			break
		}
	}
	o.Control = r.control(o.Local)
	r.unknown()
	return o, errors.Join(r.faults...)
}

func defaultArchitecture(local bool, hostArch string) string {
	if local && hostArch == "amd64" {
		return X86_64
	}
	return ARM64
}

func removal(retain bool) string {
	if retain {
		return "retain"
	}
	return "destroy"
}

func validName(s string) bool {
	if s == "" || len(s) > 40 || !letter(s[0]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && c != '-' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

func letter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// Retentions are the numbers of days CloudWatch Logs accepts and we offer.
func Retentions() []int { return []int{1, 3, 5, 7, 14, 30, 60, 90, 180, 365, 731} }

// Tunables maps the context keys of the functions' settings to the variables
// they set. Settings that name a resource of the stack are not among them.
func Tunables() map[string]string {
	const start = "LONGSHORE_"
	out := map[string]string{}
	for _, name := range setting.Names(setting.Control{}) {
		if givenByStack(name) {
			continue
		}
		words := strings.Split(strings.ToLower(strings.TrimPrefix(name, start)), "_")
		for i, w := range words[1:] {
			words[i+1] = strings.ToUpper(w[:1]) + w[1:]
		}
		out[strings.Join(words, "")] = name
	}
	return out
}

const readOnly = "LONGSHORE_READ_ONLY"

func givenByStack(variable string) bool {
	switch variable {
	case "LONGSHORE_REGION", "LONGSHORE_ACCOUNT", "LONGSHORE_PARTITION",
		"LONGSHORE_STACK_NAME", "LONGSHORE_COMMAND_QUEUE_NAME_START", "LONGSHORE_EVENT_BUS_NAME", readOnly:
		return true
	}
	return strings.HasSuffix(variable, "_TABLE") || strings.HasSuffix(variable, "_URL")
}

// reader collects faults, so that the user sees all of them at once.
type reader struct {
	context map[string]any
	known   []string
	faults  []error
}

func (r *reader) fault(key, format string, args ...any) {
	r.faults = append(r.faults, fmt.Errorf("context %s%s=%q: %s", Prefix, key, r.raw(key), fmt.Sprintf(format, args...)))
}

// raw is the value as text: -c gives strings, cdk.json any JSON value.
func (r *reader) raw(key string) string {
	switch v := r.context[Prefix+key].(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		parts := make([]string, len(v))
		for i, p := range v {
			parts[i] = fmt.Sprint(p)
		}
		return strings.Join(parts, ",")
	default:
		return fmt.Sprint(v)
	}
}

func (r *reader) text(key, def string) string {
	r.known = append(r.known, key)
	if s := r.raw(key); s != "" {
		return s
	}
	return def
}

func (r *reader) flag(key string, def bool) bool {
	b, err := strconv.ParseBool(r.text(key, strconv.FormatBool(def)))
	if err != nil {
		r.fault(key, "must be true or false")
	}
	return b
}

func (r *reader) oneOf(key, def string, allowed ...string) string {
	s := r.text(key, def)
	if !slices.Contains(allowed, s) {
		r.fault(key, "must be one of %s", strings.Join(allowed, ", "))
	}
	return s
}

func (r *reader) days(key string, def int) int {
	n, err := strconv.Atoi(r.text(key, strconv.Itoa(def)))
	if err != nil || !slices.Contains(Retentions(), n) {
		r.fault(key, "must be one of %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(Retentions()), " ", ", "), "[]"))
	}
	return n
}

func (r *reader) number(key string, def, least, most int) int {
	n, err := strconv.Atoi(r.text(key, strconv.Itoa(def)))
	if err != nil || n < least || n > most {
		r.fault(key, "must be a number from %d to %d", least, most)
	}
	return n
}

func (r *reader) duration(key string, def, least, most time.Duration) time.Duration {
	d, err := time.ParseDuration(r.text(key, def.String()))
	switch {
	case err != nil:
		r.fault(key, "must be a duration such as 90s")
	case d < least || d > most:
		r.fault(key, "must be at least %s and at most %s", least, most)
	}
	return d
}

// schedules reads a list of scheduled tasks: JSON, or as text with -c.
func (r *reader) schedules(key, stack string) []schedule.Rule {
	r.known = append(r.known, key)
	var text []byte
	switch v := r.context[Prefix+key].(type) {
	case nil:
		return nil
	case string:
		text = []byte(v)
	default:
		var err error
		if text, err = json.Marshal(v); err != nil {
			r.fault(key, "%s", err)
			return nil
		}
	}
	var all []schedule.Rule
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&all); err != nil {
		r.fault(key, "must be a list of schedules: %s", err)
		return nil
	}
	names := map[string]bool{}
	for i := range all {
		all[i].Complete()
		if err := all[i].Check(stack); err != nil {
			r.fault(key, "schedule %d: %s", i+1, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
		if names[all[i].Schedule] {
			r.fault(key, "schedule %d: %s is there twice", i+1, all[i].Schedule)
		}
		names[all[i].Schedule] = true
	}
	return all
}

func (r *reader) list(key string) []string {
	var out []string
	for part := range strings.SplitSeq(r.text(key, ""), ",") {
		if part = strings.TrimSpace(part); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// control reads the tunable settings by the rules of shared/setting itself, one
// at a time, so that a fault can name the context key in place of the variable.
func (r *reader) control(local bool) setting.Control {
	values := map[string]string{}
	for _, name := range setting.Names(setting.Control{}) {
		if givenByStack(name) {
			values[name] = "given by the stack"
		}
	}
	delete(values, readOnly)                 // no text; its default stands until the stack gives it
	values["LONGSHORE_REGISTER_ROLES"] = "*" // functions have no default: one that is not told lets nobody in
	tunables := Tunables()
	for _, key := range slices.Sorted(maps.Keys(tunables)) {
		name, text := tunables[key], r.text(key, "")
		if text == "" {
			continue
		}
		err := setting.FromEnv(&setting.Control{}, lookup(values, name, text))
		if err != nil {
			r.fault(key, "%s", strings.TrimPrefix(err.Error(), fmt.Sprintf("%s=%q: ", name, text)))
			continue
		}
		values[name] = text
	}
	derive(values, local)
	var c setting.Control
	if err := setting.FromEnv(&c, lookup(values, "", "")); err != nil {
		r.faults = append(r.faults, err)
	}
	if len(c.RegisterRoles) == 0 {
		r.fault("registerRoles", "must list at least one")
	}
	for _, entry := range c.RegisterRoles {
		if !registerRole.MatchString(entry) {
			r.fault("registerRoles", "%.80q is neither * nor a role's or user's id (AROA…, AIDA…), alone or as cluster=id", entry)
			break
		}
	}
	for _, entry := range c.TaskRoles {
		if !setting.ValidTaskRole(entry) {
			r.fault("taskRoles", "%.80q is neither a role's ARN nor its name with its path before it, nor the start of one and a *, alone or as cluster=role; %q is no role", entry, setting.NoRole)
			break
		}
	}
	if c.SenderFromBody && !local {
		r.fault("senderFromBody", "is for emulators: on AWS it would let any instance speak for any other (needs %slocal=true)", Prefix)
	}
	r.groups(c)
	if c.SuspectAfter <= c.HeartbeatEvery {
		r.fault("suspectAfter", "%s must be longer than heartbeatEvery, %s", c.SuspectAfter, c.HeartbeatEvery)
	}
	if c.ReapAfter <= c.SuspectAfter {
		r.fault("reapAfter", "%s must be longer than suspectAfter, %s", c.ReapAfter, c.SuspectAfter)
	}
	return c
}

// registerRole is who may register: in any cluster, or in one.
var registerRole = regexp.MustCompile(`^([a-zA-Z0-9_-]{1,255}=)?(\*|[A-Z0-9]{6,128}(:[\w+=,.@-]{2,64})?)$`)

var (
	groupName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,254}\*?$`)
	hookName  = regexp.MustCompile(`^[A-Za-z0-9_/-]{1,255}$`)
)

// groups judges what is said of Auto Scaling groups.
func (r *reader) groups(c setting.Control) {
	for _, name := range c.AutoScalingGroups {
		if !groupName.MatchString(name) {
			r.fault("autoScalingGroups", "must be names of groups, or starts of names and a \"*\", separated by commas; each of letters, digits and . _ / -")
			break
		}
	}
	if !hookName.MatchString(c.LifecycleHook) {
		r.fault("lifecycleHook", "must be the name of a hook: 1 to 255 letters, digits and _ / -")
	}
	if c.SetInstanceHealth && len(c.AutoScalingGroups) == 0 {
		r.fault("setInstanceHealth", "needs %sautoScalingGroups: the groups that may be told", Prefix)
	}
}

// derive fills in what follows from the rest: three missed heartbeats make an
// instance suspect, and an emulator's messages must say who sent them.
func derive(values map[string]string, local bool) {
	const every, suspect, sender = "LONGSHORE_HEARTBEAT_EVERY", "LONGSHORE_SUSPECT_AFTER", "LONGSHORE_SENDER_FROM_BODY"
	if d, err := time.ParseDuration(values[every]); err == nil && values[suspect] == "" {
		values[suspect] = (3 * d).String()
	}
	if local && values[sender] == "" {
		values[sender] = "true"
	}
}

func lookup(values map[string]string, name, text string) func(string) (string, bool) {
	return func(n string) (string, bool) {
		if n == name {
			return text, true
		}
		v, ok := values[n]
		return v, ok
	}
}

// unknown refuses keys of ours that nothing reads: a misspelt setting must not
// be a silent default.
func (r *reader) unknown() {
	for _, full := range slices.Sorted(maps.Keys(r.context)) {
		key, ours := strings.CutPrefix(full, Prefix)
		if ours && !slices.Contains(r.known, key) {
			slices.Sort(r.known)
			r.fault(key, "is not known; known are %s", strings.Join(r.known, ", "))
		}
	}
}
