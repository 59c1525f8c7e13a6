// Package schema describes the four DynamoDB tables: their keys, indexes and
// expiry attribute. It is data: infra makes tables of it, the DynamoDB adapter
// and its tests read it. What an item of a table means is the adapter's affair.
package schema

// TTL is the attribute, in unix seconds, after which DynamoDB may delete an item.
const TTL = "expiresAt"

// Attributes that are keys of a table or of an index.
const (
	ID          = "id"          // tasks, instances, leases: partition key
	Item        = "item"        // instances: sort key, ItemDescription or ItemLedger
	Cluster     = "cluster"     // instances, on descriptions
	PK          = "pk"          // catalog: partition key
	SK          = "sk"          // catalog: sort key
	ClusterHash = "clusterHash" // tasks: "<cluster>#<0..ClusterShards-1>"
	OnInstance  = "onInstance"  // tasks: the instance, while the task is open
	InGroup     = "inGroup"     // tasks: "<cluster>#<group>", "!<cluster>#<group>" of STOPPED ones
	Waiting     = "waiting"     // tasks: "<cluster>#<kind>", while the control plane waits
	Since       = "since"       // tasks: creation time and id, sorts oldest first
)

// Indexes of the tasks and instances tables.
const (
	TasksByCluster     = "byCluster"
	TasksByInstance    = "byInstance"
	TasksByGroup       = "byGroup"
	TasksWaiting       = "waiting"
	InstancesByCluster = "byCluster"
)

// ServiceEvents begins the catalog's partitions of what services tell: of the
// catalog's changes these are told on.
const ServiceEvents = "service-events#"

// SchedulesPartition is the catalog's partition of schedules, which are told on, too.
const SchedulesPartition = "schedule"

// ClusterShards spreads the tasks of one cluster over index partitions.
const ClusterShards = 4

// Key is a partition key and, if Sort is not empty, a sort key; all are strings.
type Key struct{ Partition, Sort string }

// Index is a global secondary index that projects keys only: whoever reads it
// goes on to a strong read of the item.
type Index struct {
	Name string
	Key  Key
}

// Table is one table, named by its role; a deployment gives it its full name.
type Table struct {
	Role    string
	Key     Key
	Indexes []Index
	// Streamed tables tell subscribers of their changes, with both images.
	Streamed bool
}

// Roles of the tables.
const (
	Tasks     = "tasks"
	Instances = "instances"
	Leases    = "leases"
	Catalog   = "catalog"
)

// Tables lists every table of an installation.
func Tables() []Table {
	return []Table{
		{Role: Tasks, Streamed: true, Key: Key{Partition: ID}, Indexes: []Index{
			{TasksByCluster, Key{ClusterHash, Since}},
			{TasksByInstance, Key{OnInstance, ID}},
			{TasksByGroup, Key{InGroup, Since}},
			{TasksWaiting, Key{Waiting, Since}},
		}},
		{Role: Instances, Streamed: true, Key: Key{Partition: ID, Sort: Item}, Indexes: []Index{
			{InstancesByCluster, Key{Cluster, ID}},
		}},
		{Role: Leases, Key: Key{Partition: ID}},
		{Role: Catalog, Streamed: true, Key: Key{Partition: PK, Sort: SK}},
	}
}
