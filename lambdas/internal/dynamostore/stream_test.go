package dynamostore

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schema"
)

var streamStore = &Store{tables: map[string]string{schema.Tasks: "T", schema.Instances: "I", schema.Leases: "L", schema.Catalog: "C"}}

// inJSON is an item as streams have it.
func inJSON(t *testing.T, item attributes) map[string]any {
	t.Helper()
	out := map[string]any{}
	for name, a := range item {
		out[name] = valueInJSON(t, a)
	}
	return out
}

func valueInJSON(t *testing.T, a types.AttributeValue) any {
	t.Helper()
	switch a := a.(type) {
	case *types.AttributeValueMemberS:
		return map[string]any{"S": a.Value}
	case *types.AttributeValueMemberN:
		return map[string]any{"N": a.Value}
	case *types.AttributeValueMemberBOOL:
		return map[string]any{"BOOL": a.Value}
	case *types.AttributeValueMemberNULL:
		return map[string]any{"NULL": true}
	case *types.AttributeValueMemberM:
		return map[string]any{"M": inJSON(t, a.Value)}
	case *types.AttributeValueMemberL:
		list := []any{}
		for _, e := range a.Value {
			list = append(list, valueInJSON(t, e))
		}
		return map[string]any{"L": list}
	}
	t.Fatalf("an item holds no %T", a)
	return nil
}

// recordOf is a record of a stream as Lambda hands it over, read from JSON.
func recordOf(t *testing.T, table string, keys, old, now attributes) events.DynamoDBEventRecord {
	t.Helper()
	change := map[string]any{"ApproximateCreationDateTime": 1_700_000_000.5, "SequenceNumber": "1", "Keys": inJSON(t, keys)}
	if old != nil {
		change["OldImage"] = inJSON(t, old)
	}
	if now != nil {
		change["NewImage"] = inJSON(t, now)
	}
	b, err := json.Marshal(map[string]any{"eventSourceARN": "arn:aws:dynamodb:r:1:table/" + table + "/stream/2026", "dynamodb": change})
	if err != nil {
		t.Fatal(err)
	}
	var r events.DynamoDBEventRecord
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func whole(r control.Record) attributes {
	item := itemOf(r)
	maps.Copy(item, placeOf(r).key())
	item[version] = number(*r.Revision())
	return item
}

func TestChange_ReadsBothImagesOfWhatIsAnnounced(t *testing.T) {
	announcedKinds := map[control.Kind]bool{control.TaskKind: true, control.InstanceKind: true, control.LedgerKind: true, control.ServiceEventsKind: true, control.ScheduleKind: true}
	for _, r := range controltest.Filled() {
		*r.Revision() = 12
		p := placeOf(r)
		c, err := streamStore.Change(recordOf(t, streamStore.tables[p.role], p.key(), whole(r), whole(r)))
		if err != nil {
			t.Errorf("%s: %v", r.Kind(), err)
			continue
		}
		if !announcedKinds[r.Kind()] {
			if c.New != nil || c.Old != nil {
				t.Errorf("a change of %s is read", r.Kind())
			}
			continue
		}
		if !reflect.DeepEqual(c.New, r) || !reflect.DeepEqual(c.Old, r) {
			t.Errorf("%s is read as %+v\nwant %+v", r.Kind(), c.New, r)
		}
		if want := time.UnixMilli(1_700_000_000_500).UTC(); !c.At.Equal(want) || c.Expired {
			t.Errorf("%s: at %s, expired %v", r.Kind(), c.At, c.Expired)
		}
	}
}

func TestChange_KnowsNewGoneAndExpired(t *testing.T) {
	r := &control.Task{ID: "a", Version: 1}
	made, err := streamStore.Change(recordOf(t, "T", placeOf(r).key(), nil, whole(r)))
	if err != nil || made.Old != nil || made.New == nil {
		t.Errorf("a new task: %+v (%v)", made, err)
	}
	raw := recordOf(t, "T", placeOf(r).key(), whole(r), nil)
	raw.UserIdentity = &events.DynamoDBUserIdentity{Type: "Service", PrincipalID: "dynamodb.amazonaws.com"}
	gone, err := streamStore.Change(raw)
	if err != nil || gone.Old == nil || gone.New != nil || !gone.Expired {
		t.Errorf("an expired task: %+v (%v)", gone, err)
	}
}

func TestChange_WhatANewerVersionWroteIsNoPoison(t *testing.T) {
	r := &control.Task{ID: "a", Version: 1, Cluster: "c"}
	raw := recordOf(t, "T", placeOf(r).key(), nil, whole(r))
	raw.Change.NewImage["later"] = events.NewStringSetAttribute([]string{"x"})
	raw.Change.NewImage["blob"] = events.NewBinaryAttribute([]byte("x"))
	if c, err := streamStore.Change(raw); err != nil || c.New.(*control.Task).Cluster != "c" {
		t.Errorf("%+v (%v)", c, err)
	}
	other := attributes{schema.PK: text("later#x"), schema.SK: text("y")}
	if c, err := streamStore.Change(recordOf(t, "C", other, nil, other)); err != nil || c.New != nil {
		t.Errorf("an unknown kind: %+v (%v)", c, err)
	}
}

func TestChange_WhatCanNotBeReadIsInvalid(t *testing.T) {
	r := &control.Task{ID: "a", Version: 1}
	good := whole(r)
	bad := whole(r)
	bad["createdAt"] = number(7)
	for name, raw := range map[string]events.DynamoDBEventRecord{
		"another table":     recordOf(t, "X", placeOf(r).key(), nil, good),
		"no key":            recordOf(t, "T", nil, nil, good),
		"a member's type":   recordOf(t, "T", placeOf(r).key(), nil, bad),
		"the old one's, to": recordOf(t, "T", placeOf(r).key(), bad, good),
	} {
		if _, err := streamStore.Change(raw); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
