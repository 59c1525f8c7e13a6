package main

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/edgeagent/internal/awsprovider"
	"github.com/longshore-run/longshore/edgeagent/internal/ecsconfig"
	"github.com/longshore-run/longshore/edgeagent/internal/endpoint"
	"github.com/longshore-run/longshore/edgeagent/internal/eviction"
	"github.com/longshore-run/longshore/edgeagent/internal/hostnotice"
	"github.com/longshore-run/longshore/edgeagent/internal/introspect"
	"github.com/longshore-run/longshore/edgeagent/internal/taskgroup"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// settings is what the agent was told, and what was odd about them.
type settings struct {
	setting.Agent
	lookup   func(string) (string, bool)
	warnings []string
}

// readConfig reads the settings; the error names every fault. Of two files that
// set one thing the later counts, and the environment before both.
func readConfig(files []string, lookup func(string) (string, bool), environ []string) (settings, error) {
	c := settings{lookup: lookup}
	values := map[string]string{}
	for _, file := range files {
		read, err := readEnvFile(file)
		if err != nil {
			return c, unreadable{err}
		}
		maps.Copy(values, read)
	}
	for name, v := range values {
		if now, _ := lookup(name); now == "" && strings.HasPrefix(name, "AWS_") {
			if err := os.Setenv(name, v); err != nil { // the AWS SDK reads the environment itself
				return c, fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	for _, kv := range environ {
		if name, value, _ := strings.Cut(kv, "="); value != "" {
			values[name] = value
		}
	}
	given := func(name string) (string, bool) {
		if v, ok := lookup(name); ok && v != "" {
			return v, true
		}
		v, ok := values[name]
		return v, ok && v != ""
	}
	known := setting.Names(c.Agent)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if strings.HasPrefix(name, "LONGSHORE_") && values[name] != "" && !slices.Contains(known, name) {
			c.warnings = append(c.warnings, name+" is not a setting of the agent, and is ignored")
		}
	}
	ecs, warnings, ecsFaults := ecsconfig.Translate(values, func(name string) bool { _, ok := given(name); return ok })
	c.warnings = append(c.warnings, warnings...)
	c.lookup = func(name string) (string, bool) {
		if v, ok := given(name); ok {
			return v, true
		}
		v, ok := ecs[name]
		return v, ok
	}
	err := setting.FromEnv(&c.Agent, c.lookup)
	return c, plain(values, ecs, errors.Join(ecsFaults, err), c.check())
}

// unreadable is the fault of a file of settings: nothing is known then, not even the
// defaults.
type unreadable struct{ error }

func (u unreadable) Unwrap() error { return u.error }

// plain joins the faults of single values and those of what they say together. A fault
// names the setting of ECS's agent that it comes from, too, and what only follows from a
// value that could not be read is left out.
func plain(values, fromECS map[string]string, single, together error) error {
	theirs := map[string]string{} // by the name of ours
	for _, m := range ecsconfig.Meanings() {
		if m.Becomes != "" && strings.TrimSpace(values[m.Name]) != "" {
			theirs[m.Becomes] = m.Name
		}
	}
	var faults []error
	var misread []string
	add := func(text string) {
		name := words(text)[0]
		if _, ok := fromECS[name]; ok {
			text += " (it is what " + theirs[name] + " says)"
		}
		faults = append(faults, errors.New(text))
	}
	for _, text := range lines(single) {
		name := words(text)[0]
		for _, m := range ecsconfig.Meanings() {
			if m.Name == name {
				name = m.Becomes
			}
		}
		misread = append(misread, name)
		add(text)
	}
	for _, text := range lines(together) {
		if !slices.ContainsFunc(misread, func(name string) bool { return slices.Contains(words(text), name) }) {
			add(text)
		}
	}
	return errors.Join(faults...)
}

// words are a text's, without what stands between.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,:=", r) })
}

// readEnvFile reads lines of NAME=value, as systemd does: comments and quotes
// around a whole value are left out.
func readEnvFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	values := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s:%d: want NAME=value", path, n)
		}
		value = strings.TrimSpace(value)
		if len(value) >= 2 && (value[0] == '"' || value[0] == '\'') && value[len(value)-1] == value[0] {
			value = value[1 : len(value)-1]
		}
		values[strings.TrimSpace(name)] = value
	}
	return values, lines.Err()
}

// noNotices is LONGSHORE_NOTICES of an agent that does not ask its host.
const noNotices = "none"

var (
	clusterName    = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,255}$`)
	queueNameStart = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

// check names the faults that a type does not show.
func (c *settings) check() error {
	var faults []error
	bad := func(name, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s "+format, append([]any{name}, args...)...))
	}
	for name, text := range map[string]string{"LONGSHORE_REPORTS_QUEUE_URL": c.ReportsQueueURL, "LONGSHORE_HEARTBEATS_QUEUE_URL": c.HeartbeatsQueueURL} {
		if u, err := url.Parse(text); text != "" && (err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http") {
			bad(name, "is %q: it must be the URL of a queue", text)
		}
	}
	if u, err := url.Parse(c.DockerHost); err != nil || !slices.Contains([]string{"unix", "tcp", "http", "https"}, u.Scheme) {
		bad("DOCKER_HOST", "is %q: it must begin with unix://, tcp://, http:// or https://", c.DockerHost)
	}
	if host, _, err := net.SplitHostPort(c.Introspection); c.Introspection != introspect.Off && (err != nil || !introspect.IsLoopback(host)) {
		bad("LONGSHORE_INTROSPECTION_ADDRESS", "is %q: it must be off, or an address of loopback with a port, as in 127.0.0.1:51678", c.Introspection)
	}
	if !filepath.IsAbs(c.CgroupPath) {
		bad("LONGSHORE_CGROUP_PATH", "is %q: it must be the absolute path of a folder, as in %s", c.CgroupPath, taskgroup.Root)
	}
	faults = append(faults, c.checkEndpoint()...)
	if _, err := awsprovider.ParseAuth(c.AuthType, c.AuthData); err != nil {
		bad("LONGSHORE_ENGINE_AUTH_DATA", "cannot be used, with LONGSHORE_ENGINE_AUTH_TYPE %q: %w", c.AuthType, err)
	}
	if c.CleanupFloor >= c.CleanupCeiling {
		bad("LONGSHORE_IMAGE_CLEANUP_FLOOR", "is %d: it must be less than LONGSHORE_IMAGE_CLEANUP_CEILING, which is %d", c.CleanupFloor, c.CleanupCeiling)
	}
	if c.NoRoom <= c.CleanupCeiling {
		bad("LONGSHORE_IMAGE_NO_ROOM", "is %d: it must be more than LONGSHORE_IMAGE_CLEANUP_CEILING, which is %d", c.NoRoom, c.CleanupCeiling)
	}
	for _, pattern := range c.CleanupExclude {
		if err := eviction.CheckPattern(pattern); err != nil {
			bad("LONGSHORE_IMAGE_CLEANUP_EXCLUDE", "has %s", err.Error())
		}
	}
	if !filepath.IsAbs(c.DataDir) {
		bad("LONGSHORE_DATA_DIR", "is %q: it must be an absolute path, as in /var/lib/longshore", c.DataDir)
	}
	if !queueNameStart.MatchString(c.CommandQueueNameStart) {
		bad("LONGSHORE_COMMAND_QUEUE_NAME_START", "is %q: it must be letters, digits, underscores and hyphens, as in the stack's output CommandQueueNameStart", c.CommandQueueNameStart)
	}
	if !clusterName.MatchString(c.Cluster) {
		bad("LONGSHORE_CLUSTER", "is %q: it must be 1 to 255 letters, digits, underscores and hyphens", c.Cluster)
	}
	if !wire.IsAttribute("zone", c.Zone) {
		bad("LONGSHORE_ZONE", "is %q: up to 128 letters, digits, - _ . / \\ @ : and blanks are allowed", c.Zone)
	}
	for _, pair := range c.Attributes {
		name, value, ok := strings.Cut(pair, "=")
		switch {
		case !ok || !wire.IsAttribute(name, value):
			bad("LONGSHORE_INSTANCE_ATTRIBUTES", "has %q: it must be name=value; %s", pair, wire.AttributeForm)
		case strings.HasPrefix(name, "longshore."):
			bad("LONGSHORE_INSTANCE_ATTRIBUTES", "has %q: names under longshore. are set by operators only", pair)
		}
	}
	for _, kind := range c.Notices {
		if !slices.Contains(hostnotice.Kinds(), kind) && !(kind == noNotices && len(c.Notices) == 1) {
			bad("LONGSHORE_NOTICES", "has %q: it must be none, or some of %s", kind, strings.Join(hostnotice.Kinds(), ", "))
		}
	}
	for name, ports := range map[string][]int{"LONGSHORE_RESERVED_PORTS": c.ReservedTCP, "LONGSHORE_RESERVED_PORTS_UDP": c.ReservedUDP} {
		for _, p := range ports {
			if p < 1 || p > 65535 {
				bad(name, "has %d: it must be a port, 1 to 65535", p)
			}
		}
	}
	slices.SortFunc(faults, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return errors.Join(faults...)
}

// checkEndpoint names what is wrong with the task endpoint.
func (c *settings) checkEndpoint() (faults []error) {
	at, err := netip.ParseAddrPort(c.TaskEndpoint)
	if c.TaskEndpoint != endpoint.Off && (err != nil || !at.Addr().Is4() || at.Addr().IsUnspecified() || at.Port() == 0) {
		faults = append(faults, fmt.Errorf("LONGSHORE_TASK_ENDPOINT is %q: it must be off, or an IPv4 address with a port, as in %s", c.TaskEndpoint, endpoint.Standard))
	}
	if len(c.TaskRPS) != 2 || c.TaskRPS[0] < 1 || c.TaskRPS[1] < c.TaskRPS[0] {
		faults = append(faults, fmt.Errorf("LONGSHORE_TASK_METADATA_RPS_LIMIT is %v: it must be how many a second, and no fewer at once, as in 40,60", c.TaskRPS))
	}
	return faults
}

func (c *settings) level() slog.Level {
	var l slog.Level
	if err := l.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return l
}
