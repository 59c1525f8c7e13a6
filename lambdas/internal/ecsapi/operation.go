package ecsapi

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/longshore-run/longshore/lambdas/control"
)

// operation reads a call's body, does what it asks and returns what to answer.
// Its types are what ECS's model is compared with.
type operation struct {
	in, out reflect.Type // in is nil for a request that somebody else decodes
	do      func(ctx context.Context, h *Handler, q *call) (any, error)
}

// of makes an operation of one that takes its decoded request and gives its answer.
func of[In, Out any](do func(ctx context.Context, h *Handler, in *In) (Out, error)) *operation {
	return &operation{reflect.TypeFor[In](), reflect.TypeFor[Out](), func(ctx context.Context, h *Handler, q *call) (any, error) {
		var in In
		if err := decode(q.body, &in); err != nil {
			return nil, err
		}
		return do(contextOf(ctx, q), h, &in)
	}}
}

// reads says whether an operation changes nothing.
func reads(name string) bool {
	return strings.HasPrefix(name, "Describe") || strings.HasPrefix(name, "List") || strings.HasPrefix(name, "Get")
}

// operations is every operation of ECS. Those that are nil are refused by name.
var operations = map[string]*operation{
	"AssociateGatewayWithCluster":    nil,
	"ContinueServiceDeployment":      nil,
	"CreateCapacityProvider":         nil,
	"CreateCluster":                  of(createCluster),
	"CreateDaemon":                   nil,
	"CreateExpressGatewayService":    nil,
	"CreateGateway":                  nil,
	"CreateService":                  of(createService),
	"CreateTaskSet":                  nil,
	"DeleteAccountSetting":           of(deleteAccountSetting),
	"DeleteAttributes":               of(deleteAttributes),
	"DeleteCapacityProvider":         nil,
	"DeleteCluster":                  of(deleteCluster),
	"DeleteDaemon":                   nil,
	"DeleteDaemonTaskDefinition":     nil,
	"DeleteExpressGatewayService":    nil,
	"DeleteGateway":                  nil,
	"DeleteService":                  of(deleteService),
	"DeleteTaskDefinitions":          of(deleteTaskDefinitions),
	"DeleteTaskSet":                  nil,
	"DeregisterContainerInstance":    of(deregisterContainerInstance),
	"DeregisterTaskDefinition":       of(deregisterTaskDefinition),
	"DescribeCapacityProviders":      nil,
	"DescribeClusters":               of(describeClusters),
	"DescribeContainerInstances":     of(describeContainerInstances),
	"DescribeDaemon":                 nil,
	"DescribeDaemonDeployments":      nil,
	"DescribeDaemonRevisions":        nil,
	"DescribeDaemonTaskDefinition":   nil,
	"DescribeExpressGatewayService":  nil,
	"DescribeGateway":                nil,
	"DescribeGatewayResources":       nil,
	"DescribeGatewayRoute":           nil,
	"DescribeServiceDeployments":     of(describeServiceDeployments),
	"DescribeServiceRevisions":       of(describeServiceRevisions),
	"DescribeServices":               of(describeServices),
	"DescribeTaskDefinition":         of(describeTaskDefinition),
	"DescribeTaskSets":               nil,
	"DescribeTasks":                  of(describeTasks),
	"DisassociateGatewayFromCluster": nil,
	"DiscoverPollEndpoint":           of(discoverPollEndpoint),
	"ExecuteCommand":                 nil,
	"GetTaskProtection":              of(getTaskProtection),
	"ListAccountSettings":            of(listAccountSettings),
	"ListAttributes":                 of(listAttributes),
	"ListClusters":                   of(listClusters),
	"ListContainerInstances":         of(listContainerInstances),
	"ListDaemonDeployments":          nil,
	"ListDaemonTaskDefinitions":      nil,
	"ListDaemons":                    nil,
	"ListGatewayClusterAssociations": nil,
	"ListGatewayRoutes":              nil,
	"ListGateways":                   nil,
	"ListServiceDeployments":         of(listServiceDeployments),
	"ListServices":                   of(listServices),
	"ListServicesByNamespace":        nil,
	"ListTagsForResource":            of(listTagsForResource),
	"ListTaskDefinitionFamilies":     of(listTaskDefinitionFamilies),
	"ListTaskDefinitions":            of(listTaskDefinitions),
	"ListTasks":                      of(listTasks),
	"PutAccountSetting":              of(putAccountSetting),
	"PutAccountSettingDefault":       of(putAccountSettingDefault),
	"PutAttributes":                  of(putAttributes),
	"PutClusterCapacityProviders":    nil,
	"RegisterContainerInstance":      of(registerContainerInstance),
	"RegisterDaemonTaskDefinition":   nil,
	"RegisterTaskDefinition":         {nil, reflect.TypeFor[definitionOut](), registerTaskDefinition},
	"RunTask":                        of(runTask),
	"StartTask":                      of(startTask),
	"StopServiceDeployment":          of(stopServiceDeployment),
	"StopTask":                       of(stopTask),
	"SubmitAttachmentStateChanges":   of(submitAttachmentStateChanges),
	"SubmitContainerStateChange":     of(submitContainerStateChange),
	"SubmitTaskStateChange":          of(submitTaskStateChange),
	"TagResource":                    of(tagResource),
	"UntagResource":                  of(untagResource),
	"UpdateCapacityProvider":         nil,
	"UpdateCluster":                  of(updateCluster),
	"UpdateClusterSettings":          of(updateClusterSettings),
	"UpdateContainerAgent":           nil,
	"UpdateContainerInstancesState":  of(updateContainerInstancesState),
	"UpdateDaemon":                   nil,
	"UpdateExpressGatewayService":    nil,
	"UpdateGateway":                  nil,
	"UpdateService":                  of(updateService),
	"UpdateServicePrimaryTaskSet":    nil,
	"UpdateTaskProtection":           of(updateTaskProtection),
	"UpdateTaskSet":                  nil,
}

// modelsUnsupported are the operations not done here whose model has an
// UnsupportedFeatureException.
var modelsUnsupported = []string{
	"ContinueServiceDeployment",
	"CreateCapacityProvider",
	"CreateDaemon",
	"CreateExpressGatewayService",
	"CreateTaskSet",
	"DeleteCapacityProvider",
	"DeleteDaemon",
	"DeleteExpressGatewayService",
	"DeleteTaskSet",
	"DescribeCapacityProviders",
	"DescribeDaemon",
	"DescribeDaemonDeployments",
	"DescribeDaemonRevisions",
	"DescribeExpressGatewayService",
	"DescribeTaskSets",
	"ListDaemonDeployments",
	"ListDaemons",
	"UpdateCapacityProvider",
	"UpdateDaemon",
	"UpdateExpressGatewayService",
	"UpdateServicePrimaryTaskSet",
	"UpdateTaskSet",
}

// failure is one thing of many that a call could not do.
type failure struct {
	ARN    string `json:"arn,omitempty"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"`
}

func failuresOf(all []control.Failure) []failure {
	out := []failure{}
	for _, f := range all {
		out = append(out, failure(f))
	}
	return out
}

func missing(arns ...string) []failure {
	out := []failure{}
	for _, arn := range arns {
		out = append(out, failure{ARN: arn, Reason: "MISSING"})
	}
	return out
}

// Operations lists every operation of ECS, done or not, sorted.
func Operations() []string { return slices.Sorted(maps.Keys(operations)) }

// Done says whether an operation is done here; the others are refused by name.
func Done(name string) bool { return operations[name] != nil }
