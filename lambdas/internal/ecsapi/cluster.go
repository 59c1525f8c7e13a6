package ecsapi

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/taskdef"
)

type clusterSetting struct {
	Name  string `json:"name" need:"true" one:"containerInsights"`
	Value string `json:"value" need:"true" one:"enabled|disabled|enhanced"`
}

type pair struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type clusterShape struct {
	ClusterARN       string           `json:"clusterArn"`
	ClusterName      string           `json:"clusterName"`
	Status           string           `json:"status"`
	Instances        int              `json:"registeredContainerInstancesCount"`
	Running          int              `json:"runningTasksCount"`
	Pending          int              `json:"pendingTasksCount"`
	Services         int              `json:"activeServicesCount"`
	Statistics       []pair           `json:"statistics"`
	Tags             []taskdef.Tag    `json:"tags"`
	Settings         []clusterSetting `json:"settings"`
	Providers        []string         `json:"capacityProviders"`
	DefaultProviders []struct{}       `json:"defaultCapacityProviderStrategy"`
}

func (h *Handler) showCluster(v *control.ClusterView, include []string) *clusterShape {
	s := &clusterShape{
		ClusterARN: h.control.ClusterARN(v.Name), ClusterName: v.Name, Status: v.Status,
		Instances: v.Instances, Running: v.Tasks.Running, Pending: v.Tasks.Pending, Services: v.Services,
		Statistics: []pair{}, Settings: []clusterSetting{}, Providers: []string{}, DefaultProviders: []struct{}{},
		Tags: tagList(v.Tags, slices.Contains(include, "TAGS")),
	}
	if slices.Contains(include, "SETTINGS") {
		s.Settings = h.clusterSettings(v)
	}
	if slices.Contains(include, "STATISTICS") {
		s.Statistics = statistics(v)
	}
	return s
}

// clusterSettings are a cluster's settings: ECS shows the one there is, set or not.
func (h *Handler) clusterSettings(v *control.ClusterView) (all []clusterSetting) {
	if len(v.Settings) > 0 {
		if err := json.Unmarshal(v.Settings, &all); err != nil {
			h.log.Error("settings of a cluster can not be read", logkey.Cluster, v.Name, logkey.Error, err)
		}
	}
	if len(all) == 0 {
		all = []clusterSetting{{"containerInsights", "disabled"}}
	}
	return all
}

// settingsOf are settings as they are kept; of those that a request repeats the last counts.
func settingsOf(all []clusterSetting) (json.RawMessage, error) {
	if len(all) == 0 {
		return nil, nil
	}
	return json.Marshal(all[len(all)-1:]) // they are all of one name
}

// statistics are ECS's counts by launch type. Tasks count as EC2, whichever of
// the types that run here they were started with.
func statistics(v *control.ClusterView) []pair {
	counts := []struct {
		name string
		n    int
	}{
		{"runningEC2TasksCount", v.Tasks.Running}, {"runningFargateTasksCount", 0},
		{"pendingEC2TasksCount", v.Tasks.Pending}, {"pendingFargateTasksCount", 0},
		{"activeEC2ServiceCount", v.Services}, {"activeFargateServiceCount", 0},
		{"drainingEC2ServiceCount", v.Draining}, {"drainingFargateServiceCount", 0},
	}
	var out []pair
	for _, c := range counts {
		out = append(out, pair{c.name, strconv.Itoa(c.n)})
	}
	return out
}

type createClusterIn struct {
	ClusterName string           `json:"clusterName"`
	Tags        []tag            `json:"tags"`
	Settings    []clusterSetting `json:"settings"`

	Providers        json.RawMessage `json:"capacityProviders" refuse:"instances register themselves; there are no capacity providers"`
	DefaultProviders json.RawMessage `json:"defaultCapacityProviderStrategy" refuse:"there are no capacity providers"`
	Configuration    json.RawMessage `json:"configuration" refuse:"ExecuteCommand and managed storage are not done here"`
	ServiceConnect   json.RawMessage `json:"serviceConnectDefaults" refuse:"Service Connect is not done here"`
}

type clusterOut struct {
	Cluster *clusterShape `json:"cluster"`
}

func createCluster(ctx context.Context, h *Handler, in *createClusterIn) (*clusterOut, error) {
	req := control.ClusterRequest{Name: in.ClusterName}
	if req.Name == "" {
		req.Name = control.DefaultCluster
	}
	var err error
	if req.Tags, err = tagMap(in.Tags); err != nil {
		return nil, err
	}
	if len(in.Settings) == 0 { // as the account's settings say
		value, err := h.control.InsightsSetting(ctx, callOf(ctx).caller)
		if err != nil {
			return nil, err
		}
		in.Settings = []clusterSetting{{"containerInsights", value}}
	}
	if req.Settings, err = settingsOf(in.Settings); err != nil {
		return nil, err
	}
	k, err := h.control.CreateCluster(ctx, req)
	if err != nil {
		return nil, err
	}
	return &clusterOut{h.showCluster(&control.ClusterView{Cluster: *k}, []string{"TAGS", "SETTINGS"})}, nil
}

type describeClustersIn struct {
	Clusters []string `json:"clusters"`
	Include  []string `json:"include" one:"ATTACHMENTS|CONFIGURATIONS|SETTINGS|STATISTICS|TAGS"`
}

type describeClustersOut struct {
	Clusters []*clusterShape `json:"clusters"`
	Failures []failure       `json:"failures"`
}

func describeClusters(ctx context.Context, h *Handler, in *describeClustersIn) (*describeClustersOut, error) {
	if len(in.Clusters) == 0 {
		in.Clusters = []string{control.DefaultCluster}
	}
	var names []string
	for _, s := range in.Clusters {
		name, err := h.clusterName("clusters", s)
		if err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	found, gone, err := h.control.DescribeClusters(ctx, names)
	if err != nil {
		return nil, err
	}
	out := describeClustersOut{Clusters: []*clusterShape{}, Failures: []failure{}}
	for _, v := range found {
		out.Clusters = append(out.Clusters, h.showCluster(&v, in.Include))
	}
	for _, name := range gone {
		out.Failures = append(out.Failures, missing(h.control.ClusterARN(name))...)
	}
	return &out, nil
}

type listClustersIn struct {
	MaxResults *int   `json:"maxResults"`
	NextToken  string `json:"nextToken"`
}

type listClustersOut struct {
	ClusterARNs []string `json:"clusterArns"`
	NextToken   string   `json:"nextToken,omitempty"`
}

func listClusters(ctx context.Context, h *Handler, in *listClustersIn) (*listClustersOut, error) {
	l, err := newListing(in.NextToken, in.MaxResults, "ListClusters")
	if err != nil {
		return nil, err
	}
	names, next, err := h.control.ListClusters(ctx, l.cursor, l.limit)
	if err != nil {
		return nil, err
	}
	return &listClustersOut{each(names, h.control.ClusterARN), l.token(next)}, nil
}

type deleteClusterIn struct {
	Cluster string `json:"cluster" need:"true"`
}

func deleteCluster(ctx context.Context, h *Handler, in *deleteClusterIn) (*clusterOut, error) {
	name, err := h.clusterName("cluster", in.Cluster)
	if err != nil {
		return nil, err
	}
	k, err := h.control.DeleteCluster(ctx, name)
	if err != nil {
		return nil, err
	}
	return &clusterOut{h.showCluster(&control.ClusterView{Cluster: *k}, []string{"TAGS", "SETTINGS"})}, nil
}

type updateClusterIn struct {
	Cluster  string           `json:"cluster" need:"true"`
	Settings []clusterSetting `json:"settings"`

	Configuration  json.RawMessage `json:"configuration" refuse:"ExecuteCommand and managed storage are not done here"`
	ServiceConnect json.RawMessage `json:"serviceConnectDefaults" refuse:"Service Connect is not done here"`
}

func updateCluster(ctx context.Context, h *Handler, in *updateClusterIn) (*clusterOut, error) {
	return h.updateCluster(ctx, in.Cluster, in.Settings)
}

type updateClusterSettingsIn struct {
	Cluster  string           `json:"cluster" need:"true"`
	Settings []clusterSetting `json:"settings" need:"true"`
}

func updateClusterSettings(ctx context.Context, h *Handler, in *updateClusterSettingsIn) (*clusterOut, error) {
	return h.updateCluster(ctx, in.Cluster, in.Settings)
}

func (h *Handler) updateCluster(ctx context.Context, cluster string, settings []clusterSetting) (*clusterOut, error) {
	name, err := h.clusterName("cluster", cluster)
	if err != nil {
		return nil, err
	}
	kept, err := settingsOf(settings)
	if err != nil {
		return nil, err
	}
	if _, err := h.control.UpdateCluster(ctx, name, kept); err != nil {
		return nil, err
	}
	found, _, err := h.control.DescribeClusters(ctx, []string{name})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fault.New(fault.NotFound, "Cluster not found.").WithCode(control.ClusterNotFoundException)
	}
	return &clusterOut{h.showCluster(&found[0], []string{"TAGS", "SETTINGS", "STATISTICS"})}, nil
}

// each is f of every one, and never nil.
func each[A, B any](all []A, f func(A) B) []B {
	out := make([]B, 0, len(all))
	for _, x := range all {
		out = append(out, f(x))
	}
	return out
}
