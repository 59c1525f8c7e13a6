package control

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// Tags that Longshore itself reads begin with this.
const ownTags = "longshore:"

// The tags of a task, or as a default of its cluster, that Longshore reads.
const (
	priorityTag   = "longshore:priority"
	maxWaitTag    = "longshore:maxWait"
	noCapacityTag = "longshore:onNoCapacity"
	disconnectTag = "longshore:onDisconnect"
	keepForTag    = "longshore:keepFor"
	// replaceAfterTag is of services, and of tasks.
	replaceAfterTag = "longshore:replaceAfter"
	drainTag        = "longshore:drainDeadline"
	reapAfterTag    = "longshore:reapAfter" // of clusters
)

// Values of tags.
const (
	onDisconnectReplace = "replace"
	onDisconnectKeep    = "keep"
	afterConfirmed      = "confirmed"
)

const defaultPriority = 50

// tagRule judges the value of one of our tags, and says what is allowed.
type tagRule struct {
	ok      func(value string) bool
	allowed string
}

var taskTags = map[string]tagRule{
	priorityTag: {func(v string) bool { n, err := strconv.Atoi(v); return err == nil && n >= 0 && n <= 100 }, "a whole number from 0 to 100"},
	maxWaitTag:  {func(v string) bool { d, err := time.ParseDuration(v); return err == nil && d > 0 }, "a duration above zero such as 90s or 12h"},

	noCapacityTag: oneOf("wait", "fail"),
	disconnectTag: oneOf(onDisconnectReplace, onDisconnectKeep),
	keepForTag:    within(time.Minute, 720*time.Hour),
	// A singleton's: the reaper keeps such a task until its end is confirmed.
	replaceAfterTag: oneOf(afterConfirmed),
}

// clusterTags are a cluster's own, and defaults of its tasks and instances.
var clusterTags = map[string]tagRule{
	noCapacityTag: taskTags[noCapacityTag],
	disconnectTag: taskTags[disconnectTag],
	keepForTag:    taskTags[keepForTag],
	drainTag:      instanceTags[drainTag],
}

// instanceTags are those of a container instance; its cluster's are the default.
var instanceTags = map[string]tagRule{
	drainTag: {func(v string) bool { _, ok := drainFor(v); return ok }, "a duration above zero such as 90s or 12h, or none"},
}

// within are durations from least to most.
func within(least, most time.Duration) tagRule {
	return tagRule{func(v string) bool { d, err := time.ParseDuration(v); return err == nil && d >= least && d <= most }, fmt.Sprintf("a duration from %s to %s", least, most)}
}

func oneOf(values ...string) tagRule {
	return tagRule{func(v string) bool { return slices.Contains(values, v) }, strings.Join(values, " or ")}
}

// checkTags judges tags by ECS's limits, and ours by rules. A tag of ours that
// rules do not name is refused: it would be dropped silently.
func checkTags(of string, tags map[string]string, rules map[string]tagRule) error {
	list := make([]taskdef.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		list = append(list, taskdef.Tag{Key: k, Value: tags[k]})
	}
	if err := taskdef.ValidateTags("tags", list); err != nil {
		return refusedBy(err, InvalidParameterException)
	}
	for _, t := range list {
		switch rule, known := rules[t.Key]; {
		case !known && strings.HasPrefix(t.Key, ownTags):
			return invalid("tags", "%s is not a tag that Longshore reads of %s; these are %s", t.Key, of, strings.Join(slices.Sorted(maps.Keys(rules)), ", "))
		case known && !rule.ok(t.Value):
			return invalid("tags", "%s is %q; allowed is %s", t.Key, t.Value, rule.allowed)
		}
	}
	return nil
}

func checkTaskTags(tags map[string]string) error { return checkTags("tasks", tags, taskTags) }

// obey sets what a task's tags say of it, and its cluster's where they say
// nothing. They have been judged.
func obey(t *Task, k *Cluster) {
	t.Priority, t.MaxWait = queueTags(t.Tags)
	t.NoWait = cmp.Or(t.Tags[noCapacityTag], k.Tags[noCapacityTag]) == "fail"
}

// queueTags are a task's place in the queue and how long it may wait there.
func queueTags(tags map[string]string) (priority int, maxWait time.Duration) {
	priority = defaultPriority
	if n, err := strconv.Atoi(tags[priorityTag]); err == nil {
		priority = n
	}
	if d, err := time.ParseDuration(tags[maxWaitTag]); err == nil {
		maxWait = d
	}
	return priority, maxWait
}

// checkClusterTags judges a cluster's tags. When its instances are given up can
// not be before they take no new work, which follows the heartbeat's interval.
func (c *Control) checkClusterTags(tags map[string]string) error {
	rules := maps.Clone(clusterTags)
	least := c.leastReapAfter()
	rules[reapAfterTag] = within(least, reapAfterMost)
	rules[reapAfterTag] = tagRule{rules[reapAfterTag].ok, fmt.Sprintf("%s (suspectAfter, %s, and one heartbeat, %s)", rules[reapAfterTag].allowed, c.Setting.SuspectAfter, c.Setting.HeartbeatEvery)}
	return checkTags("clusters", tags, rules)
}

// checkInstanceTags judges an instance's tags; attributes say where tasks may run.
func checkInstanceTags(tags map[string]string) error {
	return checkTags("container instances", tags, instanceTags)
}
