package ecsapi

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// defaultRollouts is how many ListServiceDeployments lists if it is not told.
const defaultRollouts = 20

type createdIn struct {
	After  json.RawMessage `json:"after"`
	Before json.RawMessage `json:"before"`
}

type listServiceDeploymentsIn struct {
	Service    string     `json:"service" need:"true"`
	Cluster    string     `json:"cluster"`
	Status     []string   `json:"status" one:"PENDING|SUCCESSFUL|STOPPED|STOP_REQUESTED|IN_PROGRESS|ROLLBACK_REQUESTED|ROLLBACK_IN_PROGRESS|ROLLBACK_SUCCESSFUL|ROLLBACK_FAILED"`
	CreatedAt  *createdIn `json:"createdAt"`
	MaxResults *int       `json:"maxResults"`
	NextToken  string     `json:"nextToken"`
}

type rolloutBrief struct {
	ServiceDeploymentARN string          `json:"serviceDeploymentArn"`
	ServiceARN           string          `json:"serviceArn"`
	ClusterARN           string          `json:"clusterArn"`
	TargetARN            string          `json:"targetServiceRevisionArn"`
	Status               string          `json:"status"`
	StatusReason         string          `json:"statusReason,omitempty"`
	CreatedAt            taskdef.Instant `json:"createdAt"`
	StartedAt            taskdef.Instant `json:"startedAt,omitzero"`
	FinishedAt           taskdef.Instant `json:"finishedAt,omitzero"`
}

type listServiceDeploymentsOut struct {
	ServiceDeployments []rolloutBrief `json:"serviceDeployments"`
	NextToken          string         `json:"nextToken,omitempty"`
}

// moment reads a timestamp of a request: seconds since 1970.
func moment(member string, raw json.RawMessage) (time.Time, error) {
	if len(raw) == 0 {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || seconds < 0 || seconds > 1e11 {
		return time.Time{}, parameter(member, "is %.60s; seconds since 1970 are allowed", raw)
	}
	return time.UnixMilli(int64(seconds * 1000)).UTC(), nil
}

func listServiceDeployments(ctx context.Context, h *Handler, in *listServiceDeploymentsIn) (*listServiceDeploymentsOut, error) {
	cluster, name, err := h.service(in.Cluster, in.Service)
	if err != nil {
		return nil, err
	}
	f := control.ServiceDeploymentFilter{Cluster: cluster, Service: name}
	for _, s := range in.Status {
		f.Status = append(f.Status, control.RolloutStatus(s))
	}
	if in.CreatedAt != nil {
		if f.After, err = moment("createdAt.after", in.CreatedAt.After); err != nil {
			return nil, err
		}
		if f.Before, err = moment("createdAt.before", in.CreatedAt.Before); err != nil {
			return nil, err
		}
	}
	l, err := newListing(in.NextToken, in.MaxResults, "ListServiceDeployments", f)
	if err != nil {
		return nil, err
	}
	if in.MaxResults == nil {
		l.limit = defaultRollouts
	}
	rows, next, err := h.control.ListServiceDeployments(ctx, f, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	out := &listServiceDeploymentsOut{ServiceDeployments: []rolloutBrief{}, NextToken: l.token(next)}
	for _, r := range rows {
		out.ServiceDeployments = append(out.ServiceDeployments, rolloutBrief{
			ServiceDeploymentARN: h.control.ServiceDeploymentARN(cluster, name, r.ID), ServiceARN: h.control.ServiceARN(cluster, name),
			ClusterARN: h.control.ClusterARN(cluster), TargetARN: h.control.ServiceRevisionARN(cluster, name, r.Target),
			Status: string(r.Status), StatusReason: r.Reason,
			CreatedAt: instant(r.CreatedAt), StartedAt: instant(r.StartedAt), FinishedAt: instant(r.FinishedAt),
		})
	}
	return out, nil
}

// serviceItem reads the ARN of something of a service: kind/cluster/service/id.
func (h *Handler) serviceItem(arn, kind string) (at control.ServiceItem, ok bool) {
	rest, ok := h.resource(arn, kind)
	parts := strings.Split(rest, "/")
	if !ok || len(parts) != 3 || !nameForm.MatchString(parts[0]) || !nameForm.MatchString(parts[1]) || !nameForm.MatchString(parts[2]) {
		return at, false
	}
	return control.ServiceItem{Cluster: parts[0], Service: parts[1], ID: parts[2]}, true
}

// serviceItems reads many; what is none of ours is missing.
func (h *Handler) serviceItems(arns []string, kind string) (items []control.ServiceItem, gone []failure) {
	for _, arn := range arns {
		if at, ok := h.serviceItem(arn, kind); ok {
			items = append(items, at)
		} else {
			gone = append(gone, missing(arn)...)
		}
	}
	return items, gone
}

type describeServiceDeploymentsIn struct {
	ARNs []string `json:"serviceDeploymentArns" need:"true"`
}

type monitorShape struct {
	Status    string `json:"status"`
	Failures  int    `json:"failureCount"`
	Threshold int    `json:"threshold"`
}

type rollbackShape struct {
	Reason      string          `json:"reason"`
	StartedAt   taskdef.Instant `json:"startedAt"`
	RevisionARN string          `json:"serviceRevisionArn"`
}

type rolloutShape struct {
	ServiceDeploymentARN string             `json:"serviceDeploymentArn"`
	ServiceARN           string             `json:"serviceArn"`
	ClusterARN           string             `json:"clusterArn"`
	Status               string             `json:"status"`
	StatusReason         string             `json:"statusReason,omitempty"`
	CreatedAt            taskdef.Instant    `json:"createdAt"`
	StartedAt            taskdef.Instant    `json:"startedAt,omitzero"`
	FinishedAt           taskdef.Instant    `json:"finishedAt,omitzero"`
	StoppedAt            taskdef.Instant    `json:"stoppedAt,omitzero"`
	UpdatedAt            taskdef.Instant    `json:"updatedAt,omitzero"`
	Sources              []revisionCount    `json:"sourceServiceRevisions"`
	Target               revisionCount      `json:"targetServiceRevision"`
	Configuration        configurationShape `json:"deploymentConfiguration"`
	Breaker              monitorShape       `json:"deploymentCircuitBreaker"`
	Rollback             *rollbackShape     `json:"rollback,omitempty"`
}

type describeServiceDeploymentsOut struct {
	ServiceDeployments []rolloutShape `json:"serviceDeployments"`
	Failures           []failure      `json:"failures"`
}

func describeServiceDeployments(ctx context.Context, h *Handler, in *describeServiceDeploymentsIn) (*describeServiceDeploymentsOut, error) {
	items, gone := h.serviceItems(in.ARNs, "service-deployment")
	found, lacks, err := h.control.DescribeServiceDeployments(ctx, items)
	if err != nil {
		return nil, err
	}
	out := &describeServiceDeploymentsOut{ServiceDeployments: []rolloutShape{}, Failures: append([]failure{}, gone...)}
	for _, v := range found {
		out.ServiceDeployments = append(out.ServiceDeployments, h.showRollout(&v))
	}
	for _, at := range lacks {
		out.Failures = append(out.Failures, missing(h.control.ServiceDeploymentARN(at.Cluster, at.Service, at.ID))...)
	}
	return out, nil
}

func (h *Handler) showRollout(v *control.ServiceDeploymentView) rolloutShape {
	of := func(revision string) revisionCount {
		return h.showRevisionCount(v.Cluster, v.Service, revision, v.Tasks[revision])
	}
	s := rolloutShape{
		ServiceDeploymentARN: h.control.ServiceDeploymentARN(v.Cluster, v.Service, v.ID), ServiceARN: h.control.ServiceARN(v.Cluster, v.Service),
		ClusterARN: h.control.ClusterARN(v.Cluster), Status: string(v.Status), StatusReason: v.Reason,
		CreatedAt: instant(v.CreatedAt), StartedAt: instant(v.StartedAt), FinishedAt: instant(v.FinishedAt), StoppedAt: instant(v.StoppedAt), UpdatedAt: instant(v.UpdatedAt),
		Sources: each(v.Sources, of), Target: of(v.Target),
		Configuration: configuration(v.MaximumPercent, v.MinimumPercent, v.Breaker, v.ServiceDeployment.Rollback),
		Breaker:       monitorShape{"DISABLED", v.Failures, v.Threshold},
	}
	if _, there := v.Tasks[v.Target]; !there {
		s.Target.Requested = v.Requested
	}
	switch {
	case v.Breaker && v.Tripped:
		s.Breaker.Status = "TRIGGERED"
	case v.Breaker && v.Status.Over():
		s.Breaker.Status = "MONITORING_COMPLETE"
	case v.Breaker:
		s.Breaker.Status = "MONITORING"
	}
	if v.RolledBackTo != "" {
		s.Rollback = &rollbackShape{v.RollbackReason, instant(v.RollbackAt), h.control.ServiceRevisionARN(v.Cluster, v.Service, v.RolledBackTo)}
	}
	return s
}

type describeServiceRevisionsIn struct {
	ARNs []string `json:"serviceRevisionArns" need:"true"`
}

type imageShape struct {
	ContainerName string `json:"containerName"`
	Image         string `json:"image"`
}

type revisionShape struct {
	ServiceRevisionARN string          `json:"serviceRevisionArn"`
	ServiceARN         string          `json:"serviceArn"`
	ClusterARN         string          `json:"clusterArn"`
	TaskDefinition     string          `json:"taskDefinition"`
	LaunchType         string          `json:"launchType"`
	ContainerImages    []imageShape    `json:"containerImages"`
	CreatedAt          taskdef.Instant `json:"createdAt"`
}

type describeServiceRevisionsOut struct {
	ServiceRevisions []revisionShape `json:"serviceRevisions"`
	Failures         []failure       `json:"failures"`
}

func describeServiceRevisions(ctx context.Context, h *Handler, in *describeServiceRevisionsIn) (*describeServiceRevisionsOut, error) {
	items, gone := h.serviceItems(in.ARNs, "service-revision")
	found, lacks, err := h.control.DescribeServiceRevisions(ctx, items)
	if err != nil {
		return nil, err
	}
	out := &describeServiceRevisionsOut{ServiceRevisions: []revisionShape{}, Failures: append([]failure{}, gone...)}
	for _, r := range found {
		s := revisionShape{
			ServiceRevisionARN: h.control.ServiceRevisionARN(r.Cluster, r.Service, r.ID), ServiceARN: h.control.ServiceARN(r.Cluster, r.Service),
			ClusterARN: h.control.ClusterARN(r.Cluster), TaskDefinition: h.control.DefinitionARN(r.Family, r.Number), LaunchType: r.Launch,
			ContainerImages: []imageShape{}, CreatedAt: instant(r.CreatedAt),
		}
		for _, name := range slices.Sorted(maps.Keys(r.Images)) {
			s.ContainerImages = append(s.ContainerImages, imageShape{name, r.Images[name]})
		}
		out.ServiceRevisions = append(out.ServiceRevisions, s)
	}
	for _, at := range lacks {
		out.Failures = append(out.Failures, missing(h.control.ServiceRevisionARN(at.Cluster, at.Service, at.ID))...)
	}
	return out, nil
}

type stopServiceDeploymentIn struct {
	ARN  string `json:"serviceDeploymentArn" need:"true"`
	Type string `json:"stopType" one:"ROLLBACK|ABORT"`
}

type stopServiceDeploymentOut struct {
	ARN string `json:"serviceDeploymentArn"`
}

func stopServiceDeployment(ctx context.Context, h *Handler, in *stopServiceDeploymentIn) (*stopServiceDeploymentOut, error) {
	at, ok := h.serviceItem(in.ARN, "service-deployment")
	if !ok {
		return nil, parameter("serviceDeploymentArn", "%.120q is no service deployment's ARN", in.ARN)
	}
	if err := h.control.StopServiceDeployment(ctx, at, in.Type != "ABORT"); err != nil {
		return nil, err
	}
	return &stopServiceDeploymentOut{in.ARN}, nil
}
