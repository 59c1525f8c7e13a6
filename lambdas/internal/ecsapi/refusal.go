package ecsapi

// Why operations of ECS are not done here, and what to do instead: callers are
// told so, and the docs list it.
const (
	noProviders = "instances register themselves, so there are no capacity providers; name instances by attributes and placement constraints"
	noTaskSets  = "services are rolled by Longshore itself; there is no external deployment controller"
	noExpress   = "there are no gateways and load balancers to make; use CreateService"
	noGateways  = "Longshore makes no network; reach containers by their instances' addresses and ports"
	noDaemons   = "use CreateService with schedulingStrategy DAEMON"
)

// refusals is every operation that is not done, with the reason.
var refusals = map[string]string{
	"AssociateGatewayWithCluster":    noGateways,
	"CreateGateway":                  noGateways,
	"DeleteGateway":                  noGateways,
	"DescribeGateway":                noGateways,
	"DescribeGatewayResources":       noGateways,
	"DescribeGatewayRoute":           noGateways,
	"DisassociateGatewayFromCluster": noGateways,
	"ListGatewayClusterAssociations": noGateways,
	"ListGatewayRoutes":              noGateways,
	"ListGateways":                   noGateways,
	"UpdateGateway":                  noGateways,

	"CreateCapacityProvider":      noProviders,
	"DeleteCapacityProvider":      noProviders,
	"DescribeCapacityProviders":   noProviders,
	"PutClusterCapacityProviders": noProviders,
	"UpdateCapacityProvider":      noProviders,

	"CreateDaemon":                 noDaemons,
	"DeleteDaemon":                 noDaemons,
	"DeleteDaemonTaskDefinition":   noDaemons,
	"DescribeDaemon":               noDaemons,
	"DescribeDaemonDeployments":    noDaemons,
	"DescribeDaemonRevisions":      noDaemons,
	"DescribeDaemonTaskDefinition": noDaemons,
	"ListDaemonDeployments":        noDaemons,
	"ListDaemonTaskDefinitions":    noDaemons,
	"ListDaemons":                  noDaemons,
	"RegisterDaemonTaskDefinition": noDaemons,
	"UpdateDaemon":                 noDaemons,

	"CreateExpressGatewayService":   noExpress,
	"DeleteExpressGatewayService":   noExpress,
	"DescribeExpressGatewayService": noExpress,
	"UpdateExpressGatewayService":   noExpress,

	"CreateTaskSet":               noTaskSets,
	"DeleteTaskSet":               noTaskSets,
	"DescribeTaskSets":            noTaskSets,
	"UpdateServicePrimaryTaskSet": noTaskSets,
	"UpdateTaskSet":               noTaskSets,

	"ContinueServiceDeployment": "deployments here have no lifecycle hooks to wait at; StopServiceDeployment ends one",
	"ExecuteCommand":            "there is no session into containers; on the instance, docker exec reaches them",
	"ListServicesByNamespace":   "there is no service discovery, so services belong to no namespace",
	"UpdateContainerAgent":      "longshore-agent is part of your machine image: install another version there and restart it; no task stops by that",
}
