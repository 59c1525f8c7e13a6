package control

import (
	"math"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/deployment"
)

// ServiceRequest is a service to create.
type ServiceRequest struct {
	Cluster       string            `json:"cluster"`
	Name          string            `json:"name"`
	Definition    string            `json:"definition"` // family, family:revision or ARN
	Strategy      string            `json:"strategy"`   // "" for REPLICA
	Desired       *int              `json:"desired,omitempty"`
	Launch        string            `json:"launch,omitempty"`
	Deployment    DeploymentRules   `json:"deployment"`
	Constraints   []Placement       `json:"constraints,omitempty"`
	Placement     []Placement       `json:"placement,omitempty"`
	Tags          map[string]string `json:"tags,omitempty"`
	PropagateTags string            `json:"propagateTags,omitempty"`
	ManagedTags   bool              `json:"managedTags,omitempty"`
	HealthGrace   *int              `json:"healthGrace,omitempty"` // seconds
	Rebalancing   string            `json:"rebalancing,omitempty"`
	Token         string            `json:"-"` // makes the request idempotent, if not empty
	By            string            `json:"-"` // who asks
}

// DeploymentRules say how tasks are replaced; nil members say nothing.
type DeploymentRules struct {
	MaximumPercent *int  `json:"maximumPercent,omitempty"`
	MinimumPercent *int  `json:"minimumHealthyPercent,omitempty"`
	Breaker        *bool `json:"breaker,omitempty"`
	Rollback       *bool `json:"rollback,omitempty"`
}

const (
	maxDesired     = 5000 // tasks of a service, as in ECS
	mostPercent    = 200
	rebalancingOff = "DISABLED"
	graceMost      = math.MaxInt32
)

func (r *ServiceRequest) check() error {
	daemon := r.Strategy == deployment.Daemon
	switch {
	case !nameForm.MatchString(r.Name):
		return invalid("serviceName", "must be 1 to 255 letters, digits, hyphens and underscores")
	case r.Definition == "":
		return invalid("taskDefinition", "is required")
	case r.Strategy != "" && r.Strategy != deployment.Replica && !daemon:
		return invalid("schedulingStrategy", "is %q; REPLICA and DAEMON are allowed", r.Strategy)
	case daemon && r.Desired != nil && *r.Desired != 0:
		return invalid("desiredCount", "The daemon scheduling strategy does not support a desired count for services. Remove the desired count value and try again.")
	case daemon && len(r.Placement) > 0:
		return invalid("placementStrategy", "The daemon scheduling strategy does not support a task placement strategy.")
	case !daemon && r.Desired == nil:
		return invalid("desiredCount", "is required with the scheduling strategy REPLICA")
	case r.Launch != "" && r.Launch != LaunchEC2 && r.Launch != LaunchExternal:
		return invalid("launchType", "%s is not supported: tasks run on your own instances; EC2 and EXTERNAL are allowed", r.Launch)
	}
	if err := checkDesired(r.Desired); err != nil {
		return err
	}
	if err := checkGrace(r.HealthGrace); err != nil {
		return err
	}
	if err := checkToken(r.Token); err != nil {
		return err
	}
	if err := checkPlacement(r.Constraints, r.Placement); err != nil {
		return err
	}
	return checkTaskTags(r.Tags)
}

func checkDesired(n *int) error {
	if n != nil && (*n < 0 || *n > maxDesired) {
		return invalid("desiredCount", "is %d; 0 to %d are allowed", *n, maxDesired)
	}
	return nil
}

func checkGrace(seconds *int) error {
	if seconds != nil && *seconds < 0 {
		return invalid("healthCheckGracePeriodSeconds", "is %d; 0 to %d are allowed", *seconds, graceMost)
	}
	return nil
}

// service is the service as it is first stored, but for its deployment.
func (r *ServiceRequest) service(s *Service, now time.Time) error {
	strategy, launch := r.Strategy, r.Launch
	if strategy == "" {
		strategy = deployment.Replica
	}
	if launch == "" {
		launch = LaunchEC2
	}
	version := s.Version
	*s = Service{
		Cluster: r.Cluster, Name: r.Name, Version: version, Status: ServiceActive, Strategy: strategy, Launch: launch,
		MaximumPercent: 200, MinimumPercent: 100,
		Constraints: r.Constraints, Placement: r.Placement, Tags: r.Tags, PropagateTags: r.PropagateTags, ManagedTags: r.ManagedTags,
		Rebalancing: r.Rebalancing, CreatedAt: now, CreatedBy: r.By,
	}
	if s.Rebalancing == "" {
		s.Rebalancing = rebalancingOff
	}
	if strategy == deployment.Daemon {
		s.MaximumPercent, s.MinimumPercent = 100, 0
	}
	if r.Desired != nil {
		s.Desired = *r.Desired
	}
	s.grace(r.HealthGrace)
	return r.Deployment.apply(s)
}

func (r *Service) grace(seconds *int) {
	if seconds != nil {
		r.HealthGrace, r.HasHealthGrace = time.Duration(*seconds)*time.Second, true
	}
}

// apply puts the rules that are given into a service, and judges all of its rules.
func (r DeploymentRules) apply(s *Service) error {
	set(&s.MaximumPercent, r.MaximumPercent)
	set(&s.MinimumPercent, r.MinimumPercent)
	set(&s.Breaker, r.Breaker)
	set(&s.Rollback, r.Rollback)
	const at = "deploymentConfiguration"
	switch {
	case s.MinimumPercent < 0 || s.MinimumPercent > 100:
		return invalid(at+".minimumHealthyPercent", "is %d; 0 to 100 are allowed", s.MinimumPercent)
	case s.Strategy == deployment.Daemon && s.MaximumPercent != 100:
		return invalid(at+".maximumPercent", "is %d; a DAEMON service has one task on an instance: 100 is allowed", s.MaximumPercent)
	case s.MaximumPercent < 100 || s.MaximumPercent > mostPercent:
		return invalid(at+".maximumPercent", "is %d; 100 to %d are allowed", s.MaximumPercent, mostPercent)
	case s.MaximumPercent == 100 && s.MinimumPercent == 100:
		return invalid(at, "Both maximumPercent and minimumHealthyPercent cannot be 100 as this will block deployments.")
	}
	return nil
}

func set[T any](into, given *T) {
	if given != nil {
		*into = *given
	}
}
