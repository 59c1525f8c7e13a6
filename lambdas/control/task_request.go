package control

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/taskdef/query"
)

// Launch types that run here: instances are your own either way.
const (
	LaunchEC2      = "EC2"
	LaunchExternal = "EXTERNAL"
)

// attributeProcessor is the attribute by which an instance tells its processor.
const attributeProcessor = "ecs.cpu-architecture"

const (
	maxConstraints = 10
	maxStrategies  = 5
	maxStartedBy   = 128
	maxGroup       = 255
	maxTags        = 50
	servicePrefix  = "service:"
)

// TaskRequest is what RunTask and StartTask have in common.
type TaskRequest struct {
	Cluster       string            `json:"cluster"`
	Definition    string            `json:"definition"` // family, family:revision or ARN
	Overrides     json.RawMessage   `json:"overrides,omitempty"`
	Group         string            `json:"group,omitempty"`
	StartedBy     string            `json:"startedBy,omitempty"`
	Launch        string            `json:"launch,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	PropagateTags bool              `json:"propagateTags,omitempty"` // the definition's tags, too
	ManagedTags   bool              `json:"managedTags,omitempty"`
	Constraints   []Placement       `json:"constraints,omitempty"`
	Strategy      []Placement       `json:"strategy,omitempty"`
}

// check judges what can be judged without the definition.
func (r *TaskRequest) check() error {
	switch {
	case utf8.RuneCountInString(r.StartedBy) > maxStartedBy:
		return invalid("startedBy", "has %d characters; at most %d are allowed", utf8.RuneCountInString(r.StartedBy), maxStartedBy)
	case utf8.RuneCountInString(r.Group) > maxGroup:
		return invalid("group", "has %d characters; at most %d are allowed", utf8.RuneCountInString(r.Group), maxGroup)
	case strings.HasPrefix(r.Group, servicePrefix):
		return invalid("group", "begins with %s, which is kept for services", servicePrefix)
	case r.Launch != "" && r.Launch != LaunchEC2 && r.Launch != LaunchExternal:
		return invalid("launchType", "%s is not supported: tasks run on your own instances; EC2 and EXTERNAL are allowed", r.Launch)
	}
	if err := checkPlacement(r.Constraints, r.Strategy); err != nil {
		return err
	}
	return checkTaskTags(r.Tags)
}

var (
	spreadField  = regexp.MustCompile(`^(instanceId|host|attribute:[A-Za-z0-9_./\\-]{1,128})$`)
	binpackField = regexp.MustCompile(`^(?i:cpu|memory)$`)
)

func checkPlacement(constraints, strategy []Placement) error {
	if len(constraints) > maxConstraints {
		return invalid("placementConstraints", "has %d entries; at most %d are allowed", len(constraints), maxConstraints)
	}
	if len(strategy) > maxStrategies {
		return invalid("placementStrategy", "has %d entries; at most %d are allowed", len(strategy), maxStrategies)
	}
	for i, p := range constraints {
		at := at("placementConstraints", i)
		switch p.Type {
		case "distinctInstance":
			if p.Expression != "" {
				return invalid(at+".expression", "is not allowed with distinctInstance")
			}
		case "memberOf":
			if _, err := query.Parse(p.Expression); err != nil {
				return invalid(at+".expression", "can not be used: %s", err)
			}
		default:
			return invalid(at+".type", "is %q; distinctInstance and memberOf are allowed", p.Type)
		}
	}
	for i, p := range strategy {
		at := at("placementStrategy", i)
		switch {
		case p.Type == "random" && p.Field == "":
		case p.Type == "random":
			return invalid(at+".field", "is not allowed with random")
		case p.Type == "binpack" && !binpackField.MatchString(p.Field):
			return invalid(at+".field", "is %q; binpack takes cpu or memory", p.Field)
		case p.Type == "spread" && !spreadField.MatchString(p.Field):
			return invalid(at+".field", "is %q; spread takes instanceId, host or attribute:NAME", p.Field)
		case p.Type != "binpack" && p.Type != "spread":
			return invalid(at+".type", "is %q; binpack, spread and random are allowed", p.Type)
		}
	}
	return nil
}

func at(list string, i int) string { return list + "[" + strconv.Itoa(i) + "]" }

// origin is what tasks of one request are made from.
type origin struct {
	def  taskdef.TaskDefinition
	over taskdef.TaskOverride
	task Task // but for its id
}

// originOf reads the cluster and the definition of a request, and its client
// token, in as few calls as can be. A token that already stands for the request
// is the whole answer: then there is no origin, however the rest may be by now.
func (c *Control) originOf(ctx context.Context, r *TaskRequest, token *Token, hash string) (*origin, error) {
	ref, err := c.reference(r.Definition)
	if err != nil {
		return nil, err
	}
	k, family, d := &Cluster{Name: r.Cluster}, &Family{Name: ref.Family}, &Definition{Family: ref.Family, Number: ref.Revision}
	records := []Record{k}
	if ref.Revision == 0 {
		records = append(records, family)
	} else {
		records = append(records, d)
	}
	if token != nil {
		records = append(records, token)
	}
	if err := c.Store.Load(ctx, records...); err != nil {
		return nil, err
	}
	if token != nil {
		if known, err := c.known(token, hash); known || err != nil {
			return nil, err
		}
	}
	if err := k.mustBeActive(); err != nil {
		return nil, err
	}
	if ref.Revision == 0 {
		if d, err = c.latest(ctx, family); err != nil {
			return nil, err
		}
	}
	switch {
	case d == nil || d.Version == 0 || d.Status == DefinitionDeleted:
		return nil, client("TaskDefinition not found.")
	case d.Status != taskdef.StatusActive:
		return nil, client("TaskDefinition is inactive")
	}
	return c.makeOrigin(r, d, k)
}

func (c *Control) makeOrigin(r *TaskRequest, d *Definition, k *Cluster) (*origin, error) {
	o := &origin{}
	var err error
	if o.def, err = taskdef.ParseStored(d.Definition); err != nil {
		return nil, err
	}
	merged := o.def // what the tasks really run
	if len(r.Overrides) > 0 {
		if o.over, err = taskdef.DecodeOverride(r.Overrides); err == nil {
			merged, err = taskdef.Apply(o.def, o.over)
		}
		if err != nil {
			return nil, refusedBy(err, InvalidParameterException)
		}
	}
	if err := c.mayHaveRoles(r.Cluster, DefinitionName(d.Family, d.Number), &merged, &o.over); err != nil {
		return nil, err
	}
	tags := map[string]string{}
	if r.PropagateTags {
		maps.Copy(tags, d.Tags)
	}
	maps.Copy(tags, r.Tags)
	if len(tags) > maxTags {
		return nil, invalid("tags", "are %d with those of the task definition; at most %d are allowed", len(tags), maxTags)
	}
	if r.ManagedTags {
		tags["aws:ecs:clusterName"] = r.Cluster
	}
	constraints := append([]Placement(nil), r.Constraints...)
	for _, p := range o.def.PlacementConstraints {
		constraints = append(constraints, Placement{Type: p.Type, Expression: p.Expression})
	}
	for _, a := range merged.RequiresAttributes {
		switch { // those of ECS's that our agents tell
		case a.Name == attributeProcessor:
			constraints = append(constraints, Placement{Type: "memberOf", Expression: "attribute:" + a.Name + " == " + a.Value})
		case taskdef.PlacedBy(a.Name):
			constraints = append(constraints, Placement{Type: "memberOf", Expression: "attribute:" + a.Name + " exists"})
		}
	}
	now := c.Now()
	o.task = Task{
		Cluster: r.Cluster, LastStatus: task.Provisioning, DesiredStatus: task.DesiredRunning, Attempt: 1,
		Family: d.Family, Number: d.Number, Overrides: r.Overrides, Needs: taskdef.Needs(o.def, o.over),
		Group: r.Group, StartedBy: r.StartedBy, Launch: r.Launch, Tags: tags,
		Constraints: constraints, Strategy: r.Strategy, CreatedAt: now,
	}
	if o.task.Group == "" {
		o.task.Group = "family:" + d.Family
	}
	if o.task.Launch == "" {
		o.task.Launch = LaunchEC2
	}
	obey(&o.task, k)
	return o, nil
}

// with makes the task of an id.
func (o *origin) with(id string) *Task {
	t := o.task
	t.ID = id
	t.Tags = maps.Clone(o.task.Tags)
	return &t
}

// expired says whether a record's time has come; the store deletes late.
func expired(at, now time.Time) bool { return !at.IsZero() && !at.After(now) }
