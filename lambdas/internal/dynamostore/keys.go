package dynamostore

import (
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/task"
)

// This file is the only one that knows where a record lies and what is derived
// from it for the indexes.
//
//	table      record      partition key           sort key
//	tasks      task        <id>
//	instances  instance    <id>                    description
//	           ledger      <id>                    ledger
//	leases     lease       <instance id>
//	           probe       probe#<id>
//	           guard       guard
//	           brake       brake#<zone>
//	catalog    cluster     cluster                 <name>
//	           queuestate  queuestate              <cluster>
//	           settings    settings                <principal>
//	           family      family                  <name>
//	           definition  definition#<family>     <revision, ten digits>
//	           token       token#<scope>#<token>   token
//	           schedule    schedule                <name>
//	           live        live#<cluster>          <service>
//	           service     service#<cluster>       <name>
//	           …events     service-events#<cluster>               <service>
//	           …revision   service-revision#<cluster>#<service>   <id>
//	           …deployment service-deployment#<cluster>#<service> <id>

// Sort keys of the instances table.
const (
	itemDescription = "description"
	itemLedger      = "ledger"
)

// Partitions of the catalog, and beginnings of ids in the leases table.
const (
	clusterPartition    = "cluster"
	queueStatePartition = "queuestate"
	settingsPartition   = "settings"
	familyPartition     = "family"
	definitionStart     = "definition#"
	tokenStart          = "token#"
	tokenSort           = "token"
	liveStart           = "live#"
	serviceStart        = "service#"
	eventsStart         = schema.ServiceEvents
	revisionStart       = "service-revision#"
	deploymentStart     = "service-deployment#"
	probeStart          = "probe#"
	brakeStart          = "brake#"
	guardID             = "guard"
)

// version is the attribute that every condition is about.
const version = "version"

// place is where a record lies.
type place struct {
	role            string
	partition, sort string
}

func placeOf(r control.Record) place {
	switch r := r.(type) {
	case *control.Task:
		return place{schema.Tasks, r.ID, ""}
	case *control.Instance:
		return place{schema.Instances, r.ID, itemDescription}
	case *control.Ledger:
		return place{schema.Instances, r.ID, itemLedger}
	case *control.Lease:
		return place{schema.Leases, r.ID, ""}
	case *control.Probe:
		return place{schema.Leases, prefixed(probeStart, r.ID), ""}
	case *control.Guard:
		return place{schema.Leases, guardID, ""}
	case *control.Brake:
		return place{schema.Leases, prefixed(brakeStart, r.Zone), ""}
	case *control.Cluster:
		return place{schema.Catalog, clusterPartition, r.Name}
	case *control.QueueState:
		return place{schema.Catalog, queueStatePartition, r.Cluster}
	case *control.Settings:
		return place{schema.Catalog, settingsPartition, r.Principal}
	case *control.Family:
		return place{schema.Catalog, familyPartition, r.Name}
	case *control.Definition:
		return place{schema.Catalog, prefixed(definitionStart, r.Family), revisionKey(r.Number)}
	case *control.Token:
		return place{schema.Catalog, prefixed(tokenStart, r.Scope+"#"+r.Token), tokenSort}
	case *control.Schedule:
		return place{schema.Catalog, schema.SchedulesPartition, r.Name}
	case *control.Live:
		return place{schema.Catalog, prefixed(liveStart, r.Cluster), r.Service}
	case *control.Service:
		return place{schema.Catalog, prefixed(serviceStart, r.Cluster), r.Name}
	case *control.ServiceEvents:
		return place{schema.Catalog, prefixed(eventsStart, r.Cluster), r.Service}
	case *control.ServiceRevision:
		return place{schema.Catalog, ofService(revisionStart, r.Cluster, r.Service), r.ID}
	case *control.ServiceDeployment:
		return place{schema.Catalog, ofService(deploymentStart, r.Cluster, r.Service), r.ID}
	}
	panic(fmt.Sprintf("dynamostore: no place for %T", r))
}

// prefixed is "" without a name, so that a record without a key is seen to have none.
func prefixed(start, name string) string {
	if name == "" {
		return ""
	}
	return start + name
}

// ofService is a partition of one service's. Names hold no "#".
func ofService(start, cluster, service string) string {
	if cluster == "" || service == "" {
		return ""
	}
	return start + cluster + "#" + service
}

func revisionKey(n int) string { return fmt.Sprintf("%010d", n) }

// leaseRecord is the record that an id of the leases table names; nil for one of
// a kind that a newer version may have.
func leaseRecord(id string) control.Record {
	if name, ok := strings.CutPrefix(id, probeStart); ok {
		return &control.Probe{ID: name}
	}
	if name, ok := strings.CutPrefix(id, brakeStart); ok {
		return &control.Brake{Zone: name}
	}
	if id == guardID {
		return &control.Guard{}
	}
	if strings.Contains(id, "#") {
		return nil
	}
	return &control.Lease{ID: id}
}

// announced is the empty record of a place whose changes are told to subscribers;
// nil for every other.
func announced(p place) control.Record {
	switch {
	case p.role == schema.Tasks:
		return &control.Task{ID: p.partition}
	case p.role == schema.Instances && p.sort == itemDescription:
		return &control.Instance{ID: p.partition}
	case p.role == schema.Instances && p.sort == itemLedger:
		return &control.Ledger{ID: p.partition}
	case p.role == schema.Catalog:
		if p.partition == schema.SchedulesPartition {
			return &control.Schedule{Name: p.sort}
		}
		if cluster, ok := strings.CutPrefix(p.partition, eventsStart); ok {
			return &control.ServiceEvents{Cluster: cluster, Service: p.sort}
		}
	}
	return nil
}

// key is the place as the key attributes of its table.
func (p place) key() attributes {
	k := keyOf(p.role)
	out := attributes{k.Partition: text(p.partition)}
	if k.Sort != "" {
		out[k.Sort] = text(p.sort)
	}
	return out
}

// complete says whether DynamoDB would take the key: neither part empty, at
// most 2048 and 1024 bytes.
func (p place) complete() bool {
	sorted := keyOf(p.role).Sort != ""
	return p.partition != "" && len(p.partition) <= 2048 && (p.sort != "") == sorted && len(p.sort) <= 1024
}

func keyOf(role string) schema.Key {
	for _, t := range schema.Tables() {
		if t.Role == role {
			return t.Key
		}
	}
	panic("dynamostore: no table " + role)
}

// placeIn reads an item's place back.
func placeIn(role string, item attributes) place {
	k := keyOf(role)
	return place{role, textOf(item[k.Partition]), textOf(item[k.Sort])}
}

func textOf(a types.AttributeValue) string {
	if s, ok := a.(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}

// renamed holds the members that are stored under another name, because theirs
// is an index's key that the record must stay out of.
var renamed = map[control.Kind]map[string]string{
	control.LedgerKind: {schema.Cluster: "ofCluster"},
}

// derived lists the attributes that the indexes need of a kind; itemOf sets
// those that a record is to be found by, and writes remove the others.
func derived(kind control.Kind) []string {
	if kind != control.TaskKind {
		return nil
	}
	return []string{schema.ClusterHash, schema.Since, schema.InGroup, schema.OnInstance, schema.Waiting}
}

// itemOf is a record as it is stored, without its key.
func itemOf(r control.Record) attributes {
	item := encode(r)
	for from, to := range renamed[r.Kind()] {
		if a, ok := item[from]; ok {
			item[to] = a
			delete(item, from)
		}
	}
	for name := range placeOf(r).key() {
		delete(item, name)
	}
	if t, ok := r.(*control.Task); ok {
		index(t, item)
	}
	return item
}

// index adds what the tasks table's indexes find a task by.
func index(t *control.Task, item attributes) {
	if t.Cluster != "" {
		item[schema.ClusterHash] = text(clusterShard(t.Cluster, shardOf(t.ID)))
	}
	item[schema.Since] = text(sinceKey(t.CreatedAt, t.ID))
	if t.Cluster != "" && t.Group != "" {
		item[schema.InGroup] = text(groupKey(t.Cluster, t.Group, t.LastStatus == task.Stopped))
	}
	if t.LastStatus.Open() && t.Instance != "" {
		item[schema.OnInstance] = text(t.Instance)
	}
	if w := t.WaitingFor(); w != control.NotWaiting && t.Cluster != "" {
		item[schema.Waiting] = text(waitingKey(t.Cluster, w))
	}
}

func shardOf(id string) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % schema.ClusterShards)
}

func clusterShard(cluster string, shard int) string { return cluster + "#" + strconv.Itoa(shard) }

// groupKey is where a group's tasks lie. Those that are STOPPED lie elsewhere: no
// cluster's name begins with "!".
func groupKey(cluster, group string, stopped bool) string {
	if stopped {
		cluster = "!" + cluster
	}
	return cluster + "#" + group
}

func waitingKey(cluster string, w control.Waiting) string { return cluster + "#" + string(w) }

// sinceKey sorts oldest first; equally old tasks by id.
func sinceKey(created time.Time, id string) string {
	return fmt.Sprintf("%020d#%s", max(created.UnixNano(), 0), id)
}

// fill makes r what an item of its place says. The record's key stays.
func fill(r control.Record, item attributes) error {
	control.Blank(r)
	item = without(item, r)
	return decode(item, r)
}

// without is an item less its table's key, with renamed members named again.
func without(item attributes, r control.Record) attributes {
	out := maps.Clone(item)
	for from, to := range renamed[r.Kind()] {
		if a, ok := out[to]; ok {
			out[from] = a
		}
	}
	for name := range placeOf(r).key() {
		delete(out, name)
	}
	return out
}

// stored lists every attribute that a write of the record decides about: it
// sets those that itemOf gives and removes the rest.
func stored(r control.Record) []string {
	key := placeOf(r).key()
	var out []string
	for _, name := range names(r) {
		if to, ok := renamed[r.Kind()][name]; ok {
			name = to
		}
		if _, isKey := key[name]; !isKey {
			out = append(out, name)
		}
	}
	return append(out, derived(r.Kind())...)
}
