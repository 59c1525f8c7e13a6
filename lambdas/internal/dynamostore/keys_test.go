package dynamostore

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/task"
)

var update = flag.Bool("update", false, "write testdata/item anew")

// What lies in tables outlives the program that wrote it. A change of what these
// files hold is a migration; what a newer record adds to them is not, and comes
// in with -update some time.
func TestItem_IsStoredAsItAlwaysWas(t *testing.T) {
	for _, r := range controltest.Filled() {
		file := filepath.Join("testdata", "item", string(r.Kind())+".json")
		if *update {
			if err := os.WriteFile(file, itemJSON(t, r), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if lacks := missing("", parsed(t, want), parsed(t, itemJSON(t, r))); lacks != "" {
			t.Errorf("%s is not stored as %s says: %s", r.Kind(), file, lacks)
		}
		old, err := attributevalue.UnmarshalMapJSON(want)
		if err != nil {
			t.Fatal(err)
		}
		if err := fill(r, old); err != nil {
			t.Fatal(err)
		}
		if got := itemJSON(t, r); !bytes.Equal(got, want) {
			t.Errorf("%s was read and written again as\n%s", file, got)
		}
	}
}

// itemJSON is a stored record with its key, in DynamoDB's JSON, in order.
func itemJSON(t *testing.T, r control.Record) []byte {
	t.Helper()
	item := itemOf(r)
	maps.Copy(item, placeOf(r).key())
	raw, err := attributevalue.MarshalMapJSON(item)
	if err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(parsed(t, raw), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(out, '\n')
}

func parsed(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// missing says where got lacks something of want or has something else.
func missing(path string, want, got any) string {
	w, isMap := want.(map[string]any)
	g, both := got.(map[string]any)
	if !isMap || !both {
		a, aIsList := want.([]any)
		b, bIsList := got.([]any)
		if !aIsList || !bIsList || len(a) != len(b) {
			if !reflect.DeepEqual(want, got) {
				return fmt.Sprintf("%s is %v, not %v", path, got, want)
			}
			return ""
		}
		for i := range a {
			if lacks := missing(fmt.Sprintf("%s[%d]", path, i), a[i], b[i]); lacks != "" {
				return lacks
			}
		}
		return ""
	}
	for name := range w {
		if lacks := missing(path+"."+name, w[name], g[name]); lacks != "" {
			return lacks
		}
	}
	return ""
}

func TestPlaces_AreCompleteAndNoTwoRecordsShareOne(t *testing.T) {
	seen := map[place]control.Kind{}
	for _, r := range controltest.Every() {
		p := placeOf(r)
		if !p.complete() || seen[p] != "" {
			t.Errorf("%s lies at %+v, where %q lies", r.Kind(), p, seen[p])
		}
		seen[p] = r.Kind()
		if got := placeIn(p.role, p.key()); got != p {
			t.Errorf("place %+v is read back as %+v", p, got)
		}
		if p.role == schema.Leases {
			if back := leaseRecord(p.partition); back == nil || back.Kind() != r.Kind() || back.Key() != r.Key() {
				t.Errorf("the scan takes %s for %+v", p.partition, back)
			}
		}
	}
}

// An attribute of one meaning must not be overwritten by another's.
func TestAttributes_OfMembersKeysAndIndexesDoNotClash(t *testing.T) {
	for _, r := range controltest.Every() {
		all := stored(r)
		slices.Sort(all)
		if len(slices.Compact(slices.Clone(all))) != len(all) {
			t.Errorf("%s stores an attribute twice: %v", r.Kind(), all)
		}
		for name := range placeOf(r).key() {
			if slices.Contains(all, name) {
				t.Errorf("%s stores its key %s as a member", r.Kind(), name)
			}
		}
		if !slices.Contains(all, version) {
			t.Errorf("%s has no version", r.Kind())
		}
		in := control.ExpiresAt(r) != nil
		if slices.Contains(all, schema.TTL) != in {
			t.Errorf("%s: DynamoDB would read %s, control reads it: %v", r.Kind(), schema.TTL, in)
		}
		for _, index := range tableOf(t, placeOf(r).role).Indexes {
			if _, isInstance := r.(*control.Ledger); isInstance && slices.Contains(all, index.Key.Partition) {
				t.Errorf("a ledger is found by index %s", index.Name)
			}
		}
	}
	for _, index := range tableOf(t, schema.Tasks).Indexes {
		for _, name := range []string{index.Key.Partition, index.Key.Sort} {
			if name != schema.ID && !slices.Contains(derived(control.TaskKind), name) {
				t.Errorf("nothing writes %s of index %s", name, index.Name)
			}
		}
	}
}

func tableOf(t *testing.T, role string) schema.Table {
	t.Helper()
	for _, table := range schema.Tables() {
		if table.Role == role {
			return table
		}
	}
	t.Fatalf("no table %s", role)
	return schema.Table{}
}

func TestIndex_HoldsNothingThatDynamoDBRefusesAsAKey(t *testing.T) {
	for _, one := range []*control.Task{
		{ID: "a"},
		{ID: "a", LastStatus: task.Running},
		{ID: "a", LastStatus: task.Provisioning},
		{ID: "a", Group: "g", CreatedAt: time.Unix(0, -1)},
	} {
		item := itemOf(one)
		for _, name := range derived(control.TaskKind) {
			if a, ok := item[name]; ok && (textOf(a) == "" || strings.HasPrefix(textOf(a), "#")) {
				t.Errorf("%+v: index key %s is %q", one, name, textOf(a))
			}
		}
		if textOf(item[schema.Since]) == "" || len(textOf(item[schema.Since])) != 22 {
			t.Errorf("%+v: since is %q", one, textOf(item[schema.Since]))
		}
	}
}

func TestShards_SpreadTasksEvenly(t *testing.T) {
	count := map[int]int{}
	for range 4000 {
		count[shardOf(controltest.Every()[0].Key())]++
	}
	for shard := range schema.ClusterShards {
		if count[shard] < 800 || count[shard] > 1200 {
			t.Errorf("of 4000 tasks shard %d has %d", shard, count[shard])
		}
	}
}
