package dynamostore

import (
	"encoding/json"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// FuzzChange: whatever a stream brings is a change of records with their keys, of
// nothing, or refused; what was read of an item is written so that it is read the same.
func FuzzChange(f *testing.F) {
	const key = `"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/x","dynamodb":{"Keys":{"id":{"S":"00000000000000000000000000000001"}},"NewImage":`
	for _, image := range []string{
		`{"id":{"S":"00000000000000000000000000000001"},"lastStatus":{"S":"RUNNING"},"attempt":{"N":"1"},"version":{"N":"3"},"held":{"M":{"cpu":{"N":"10"},"tcp":{"L":[{"N":"80"}]}}},"createdAt":{"S":"2026-01-02T03:04:05Z"}}`,
		`{"containers":{"L":[{"M":{"name":{"S":"main"},"exitCode":{"N":"7"}}}]},"expiresAt":{"N":"1767323045"},"attempt":{"S":"x"}}`,
		`{"tags":{"M":{"a":{"S":"b"}}},"overrides":{"S":"{}"},"x":{"SS":["a"]},"y":{"B":"AAA="},"held":{"NULL":true}}`,
	} {
		f.Add([]byte(`{"eventID":"1",` + key + image + `}}`))
	}
	f.Add([]byte(`{"eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/I/stream/x","dynamodb":{"Keys":{"id":{"S":"a"},"item":{"S":"ledger"}},"OldImage":{"open":{"N":"1"}}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var r events.DynamoDBEventRecord
		if json.Unmarshal(body, &r) != nil {
			return
		}
		c, err := streamStore.Change(r)
		if err != nil {
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("%s: %v", fault.Of(err), err)
			}
			return
		}
		for _, record := range []control.Record{c.Old, c.New} {
			if record == nil {
				continue
			}
			if record.Key() == "" {
				t.Fatalf("a %s without a key", record.Kind())
			}
			once := itemOf(record)
			again := announced(placeOf(record))
			if err := fill(again, once); err != nil {
				t.Fatalf("%v\n%+v", err, record)
			}
			if a, b := mustJSON(t, itemOf(again)), mustJSON(t, once); a != b {
				t.Fatalf("%s\n%s", a, b)
			}
		}
	})
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
