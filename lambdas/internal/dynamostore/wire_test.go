package dynamostore_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/dynamostore"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schema"
	"github.com/longshore-run/longshore/shared/task"
)

// These tests play DynamoDB's answers that no emulator gives: throttling,
// transactions in the way, keys left out, answers lost.

// call is one request that DynamoDB would have received.
type call struct {
	operation string
	body      map[string]any
}

// answer is one answer: a status and a body; a negative status cuts the connection.
type answer struct {
	status int
	body   string
}

func ok(body string) answer { return answer{200, body} }

func failure(code string, more ...string) answer {
	extra := ""
	for _, m := range more {
		extra += "," + m
	}
	return answer{400, fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"no"%s}`, code, extra)}
}

func reasons(codes ...string) answer {
	var all []string
	for _, c := range codes {
		all = append(all, fmt.Sprintf(`{"Code":%q,"Message":"m"}`, c))
	}
	return failure("TransactionCanceledException", `"CancellationReasons":[`+strings.Join(all, ",")+`]`)
}

// played is a store whose DynamoDB gives these answers in turn, the last again
// and again.
type played struct {
	*dynamostore.Store
	mu    sync.Mutex
	calls []call
}

func play(t *testing.T, answers ...answer) *played {
	t.Helper()
	p := &played{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		c := call{operation: strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "DynamoDB_20120810.")}
		if err := json.NewDecoder(r.Body).Decode(&c.body); err != nil {
			t.Errorf("request body: %v", err)
		}
		p.calls = append(p.calls, c)
		a := answers[min(len(p.calls), len(answers))-1]
		if a.status < 0 {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return
		}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(a.body))
	}))
	t.Cleanup(server.Close)
	p.Store = dynamostore.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient: transport.Client{HTTP: http.DefaultClient},
	}, map[string]string{schema.Tasks: "t-tasks", schema.Instances: "t-instances", schema.Leases: "t-leases", schema.Catalog: "t-catalog"},
		func() time.Time { return time.Unix(2_000_000_000, 0) })
	return p
}

// operations are those called, in turn.
func (p *played) operations() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []string
	for _, c := range p.calls {
		out = append(out, c.operation)
	}
	return out
}

func twoTasks() []control.Write {
	return []control.Write{control.Put(&control.Task{ID: "a", Cluster: "c", LastStatus: task.Provisioning}), control.Check(&control.Ledger{ID: "i", Version: 3})}
}

func TestCommit_TellsWhatBecameOfATransaction(t *testing.T) {
	for name, test := range map[string]struct {
		answers []answer
		kind    fault.Kind
		calls   int
	}{
		"a condition failed":                        {[]answer{reasons("None", "ConditionalCheckFailed")}, fault.Conflict, 1},
		"another transaction was in the way":        {[]answer{reasons("TransactionConflict", "None")}, fault.Conflict, 1},
		"conflict weighs more than throttling":      {[]answer{reasons("ThrottlingError", "TransactionConflict")}, fault.Conflict, 1},
		"a part can never be":                       {[]answer{reasons("ConditionalCheckFailed", "ValidationError")}, fault.Invalid, 1},
		"an unknown reason":                         {[]answer{reasons("None", "SomethingNew")}, fault.Internal, 1},
		"no reason":                                 {[]answer{failure("TransactionCanceledException")}, fault.Unavailable, 1},
		"throttled, then done":                      {[]answer{reasons("ProvisionedThroughputExceeded", "None"), reasons("None", "ThrottlingError"), ok("{}")}, "", 3},
		"throttled for good":                        {[]answer{reasons("ThrottlingError", "None")}, fault.Unavailable, 3},
		"throttled as a whole, then done":           {[]answer{failure("ProvisionedThroughputExceededException"), ok("{}")}, "", 2},
		"the same call still in progress":           {[]answer{failure("TransactionInProgressException")}, fault.Unavailable, 3},
		"too big":                                   {[]answer{failure("ValidationException")}, fault.Invalid, 1},
		"not allowed":                               {[]answer{failure("AccessDeniedException")}, fault.Internal, 1},
		"no such table":                             {[]answer{failure("ResourceNotFoundException")}, fault.Internal, 1},
		"the server failed, then done":              {[]answer{{500, `{"__type":"InternalServerError"}`}, ok("{}")}, "", 2},
		"the answer was lost, then done":            {[]answer{{-1, ""}, ok("{}")}, "", 2},
		"the server failed for good":                {[]answer{{503, `{}`}}, fault.Unavailable, 3},
		"parameters differ under one client token":  {[]answer{failure("IdempotentParameterMismatchException")}, fault.Internal, 1},
		"request rate of the account, then allowed": {[]answer{failure("RequestLimitExceeded"), ok("{}")}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, writes := play(t, test.answers...), twoTasks()
			err := p.Commit(t.Context(), writes...)
			if fault.Of(err) != test.kind {
				t.Errorf("gave kind %q, want %q: %v", fault.Of(err), test.kind, err)
			}
			if got := p.operations(); len(got) != test.calls || got[0] != "TransactWriteItems" {
				t.Errorf("calls are %v, want %d", got, test.calls)
			}
			want := int64(0)
			if test.kind == "" {
				want = 1
			}
			if got := *writes[0].Record.Revision(); got != want {
				t.Errorf("version is %d, want %d", got, want)
			}
		})
	}
}

func TestCommit_UsesOneClientTokenForACallAndAnotherForTheNext(t *testing.T) {
	p := play(t, answer{-1, ""}, ok("{}"), reasons("ThrottlingError", "None"), ok("{}"))
	for range 2 {
		if err := p.Commit(t.Context(), twoTasks()...); err != nil {
			t.Fatal(err)
		}
	}
	var tokens []string
	for _, c := range p.calls {
		tokens = append(tokens, fmt.Sprint(c.body["ClientRequestToken"]))
	}
	if len(tokens) != 4 || tokens[0] != tokens[1] || tokens[0] == "" || tokens[1] == tokens[2] || tokens[2] == tokens[3] {
		t.Fatalf("tokens are %v", tokens)
	}
}

func TestCommit_OfOneWriteIsNeverRepeatedWhenItMayHaveBeenMade(t *testing.T) {
	for name, test := range map[string]struct {
		answers []answer
		kind    fault.Kind
		calls   int
	}{
		"made":                               {[]answer{ok("{}")}, "", 1},
		"its condition failed":               {[]answer{failure("ConditionalCheckFailedException")}, fault.Conflict, 1},
		"a transaction was in the way":       {[]answer{failure("TransactionConflictException")}, fault.Conflict, 1},
		"its answer was lost":                {[]answer{{-1, ""}, failure("ConditionalCheckFailedException")}, fault.Unavailable, 1},
		"the server failed":                  {[]answer{{500, `{"__type":"InternalServerError"}`}, failure("ConditionalCheckFailedException")}, fault.Unavailable, 1},
		"throttled, so surely not made":      {[]answer{failure("ProvisionedThroughputExceededException"), ok("{}")}, "", 2},
		"throttled by the account, then not": {[]answer{failure("ThrottlingException"), ok("{}")}, "", 2},
		"throttled for good":                 {[]answer{failure("ThrottlingException")}, fault.Unavailable, 3},
		"done, in an answer cut short":       {[]answer{{200, `{"Attr`}, ok("{}")}, fault.Unavailable, 1},
		"refused, in an answer cut short":    {[]answer{{400, `{"__ty`}, ok("{}")}, "", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, w := range []struct {
				write     control.Write
				operation string
			}{
				{control.Put(&control.Task{ID: "a"}), "PutItem"},
				{control.Put(&control.Task{ID: "a", Version: 4}), "UpdateItem"},
				{control.Delete(&control.Task{ID: "a", Version: 4}), "DeleteItem"},
			} {
				p := play(t, test.answers...)
				err := p.Commit(t.Context(), w.write)
				if fault.Of(err) != test.kind {
					t.Errorf("%s gave kind %q, want %q: %v", w.operation, fault.Of(err), test.kind, err)
				}
				if got := p.operations(); len(got) != test.calls || got[0] != w.operation {
					t.Errorf("calls are %v, want %d of %s", got, test.calls, w.operation)
				}
			}
		})
	}
}

func TestLoad_AsksAgainForKeysLeftOut(t *testing.T) {
	item := func(id string) string {
		return fmt.Sprintf(`{"id":{"S":%q},"version":{"N":"2"},"cluster":{"S":"c-%s"}}`, id, id)
	}
	left := `"UnprocessedKeys":{"t-tasks":{"ConsistentRead":true,"Keys":[{"id":{"S":"b"}}]}}`
	p := play(t, ok(`{"Responses":{"t-tasks":[`+item("a")+`]},`+left+`}`), ok(`{"Responses":{},`+left+`}`), ok(`{"Responses":{"t-tasks":[`+item("b")+`]}}`))
	a, b := &control.Task{ID: "a"}, &control.Task{ID: "b"}
	if err := p.Load(t.Context(), a, b); err != nil {
		t.Fatal(err)
	}
	if a.Cluster != "c-a" || b.Cluster != "c-b" || b.Version != 2 {
		t.Fatalf("loaded %+v, %+v", a, b)
	}
	if got := p.operations(); !slices.Equal(got, []string{"BatchGetItem", "BatchGetItem", "BatchGetItem"}) {
		t.Fatalf("calls are %v", got)
	}
	for i, c := range p.calls {
		ask := c.body["RequestItems"].(map[string]any)["t-tasks"].(map[string]any)
		if ask["ConsistentRead"] != true || len(ask["Keys"].([]any)) != []int{2, 1, 1}[i] {
			t.Errorf("call %d asks %v", i, ask)
		}
	}
}

func TestLoad_GivesUpWhenKeysAreLeftOutForGood(t *testing.T) {
	p := play(t, ok(`{"Responses":{},"UnprocessedKeys":{"t-tasks":{"Keys":[{"id":{"S":"a"}}]}}}`))
	a, b := &control.Task{ID: "a", Cluster: "mine"}, &control.Task{ID: "b"}
	if err := p.Load(t.Context(), a, b); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("gave %v", err)
	}
	if a.Cluster != "mine" {
		t.Fatal("a load that failed changed a record")
	}
}

func TestLoad_IsRepeatedWhateverWentWrong(t *testing.T) {
	for _, first := range []answer{{-1, ""}, {500, "{}"}, {200, `{"Item":{"id`}, failure("ThrottlingException")} {
		p := play(t, first, ok(`{"Item":{"id":{"S":"a"},"version":{"N":"7"}}}`))
		a := &control.Task{ID: "a"}
		if err := p.Load(t.Context(), a); err != nil || a.Version != 7 {
			t.Errorf("after %+v: version %d, %v", first, a.Version, err)
		}
	}
}

func TestLoad_OfAnAnswerCutShortIsUnavailable(t *testing.T) {
	p := play(t, ok(`{"Item":{"id`)) // each time
	if err := p.Load(t.Context(), &control.Task{ID: "a"}); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("gave %v", err)
	}
}

func TestLoad_SaysWhichAttributeItCanNotRead(t *testing.T) {
	p := play(t, ok(`{"Item":{"id":{"S":"a"},"version":{"N":"7"},"attempt":{"S":"two"}}}`))
	err := p.Load(t.Context(), &control.Task{ID: "a"})
	if err == nil || !strings.Contains(err.Error(), "attempt") || !strings.Contains(err.Error(), "task a") {
		t.Fatalf("gave %v", err)
	}
}

func TestRenew_TellsLostAnswersFromConditions(t *testing.T) {
	r := control.Renewal{ID: "i", Incarnation: "inc", Session: "s", Sent: time.Unix(100, 0)}
	item := `{"id":{"S":"i"},"version":{"N":"3"},"incarnation":{"S":"inc"},"session":{"S":"s"},"sent":{"S":"1970-01-01T00:01:40.000000000Z"}}`
	for name, test := range map[string]struct {
		answers []answer
		kind    fault.Kind
		renewed bool
	}{
		"renewed":                     {[]answer{ok(`{"Attributes":` + item + `}`)}, "", true},
		"not newer":                   {[]answer{failure("ConditionalCheckFailedException", `"Item":`+item)}, "", false},
		"missing":                     {[]answer{failure("ConditionalCheckFailedException")}, fault.NotFound, false},
		"answer lost":                 {[]answer{{-1, ""}}, fault.Unavailable, false},
		"throttled first":             {[]answer{failure("ThrottlingException"), ok(`{"Attributes":` + item + `}`)}, "", true},
		"in the way of a transaction": {[]answer{failure("TransactionConflictException"), ok(`{"Attributes":` + item + `}`)}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := play(t, test.answers...)
			lease, renewed, err := p.Renew(t.Context(), r)
			if fault.Of(err) != test.kind || renewed != test.renewed || err == nil && lease.Version != 3 {
				t.Fatalf("gave %+v, %v, %v", lease, renewed, err)
			}
		})
	}
}

func TestTaskIDs_ReadOnWhileAnswersAreCutShort(t *testing.T) {
	row := func(n int) string {
		return fmt.Sprintf(`{"id":{"S":"t%d"},"since":{"S":"%d"},"waiting":{"S":"c#room"}}`, n, n)
	}
	p := play(t,
		ok(`{"Items":[`+row(1)+`],"LastEvaluatedKey":`+row(1)+`}`),
		ok(`{"Items":[],"LastEvaluatedKey":`+row(1)+`}`),
		ok(`{"Items":[`+row(2)+`,`+row(3)+`],"LastEvaluatedKey":`+row(3)+`}`))
	ids, next, err := p.TaskIDs(t.Context(), control.TaskQuery{Cluster: "c", Waiting: control.ForRoom}, control.Page{Limit: 2})
	if err != nil || !slices.Equal(ids, []string{"t1", "t2"}) || next == "" {
		t.Fatalf("gave %v, %q, %v", ids, next, err)
	}
	for i, want := range []float64{3, 2, 2} {
		if got := p.calls[i].body["Limit"]; got != want {
			t.Errorf("call %d asks for %v rows, want %v", i, got, want)
		}
	}
}

func TestLeases_ScanEveryPageStronglyAndPassOverWhatIsUnknown(t *testing.T) {
	p := play(t,
		ok(`{"Items":[{"id":{"S":"b"},"version":{"N":"1"}},{"id":{"S":"newkind#x"},"version":{"N":"1"},"beats":{"S":"odd"}}],"LastEvaluatedKey":{"id":{"S":"b"}}}`),
		ok(`{"Items":[{"id":{"S":"a"},"version":{"N":"1"}},{"id":{"S":"probe#p"},"version":{"N":"1"}}]}`))
	scan, err := p.Leases(t.Context())
	if err != nil || len(scan.Leases) != 2 || scan.Leases[0].ID != "a" || len(scan.Probes) != 1 || scan.Probes[0].ID != "p" {
		t.Fatalf("gave %+v, %v", scan, err)
	}
	for _, c := range p.calls {
		if c.body["ConsistentRead"] != true {
			t.Errorf("a scan was not strong: %v", c.body)
		}
	}
	if p.calls[1].body["ExclusiveStartKey"] == nil {
		t.Error("the second page does not start after the first")
	}
}

// An index has no strong reads and DynamoDB refuses to be asked; everything else
// is decided on and must be.
func TestReads_AreStrongWhereThereIsNoIndex(t *testing.T) {
	p := play(t, ok("{}"))
	for name, read := range map[string]func() error{
		"GetItem":   func() error { return p.Load(t.Context(), &control.Task{ID: "a"}) },
		"clusters":  func() error { _, _, err := p.Clusters(t.Context(), control.Page{}); return err },
		"families":  func() error { _, _, err := p.Families(t.Context(), "f", control.Page{}); return err },
		"revisions": func() error { _, _, err := p.Revisions(t.Context(), "f", true, control.Page{}); return err },
		"tasks": func() error {
			_, _, err := p.TaskIDs(t.Context(), control.TaskQuery{Cluster: "c"}, control.Page{})
			return err
		},
		"instances": func() error { _, _, err := p.InstanceIDs(t.Context(), "c", control.Page{}); return err },
	} {
		p.calls = nil
		if err := read(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, c := range p.calls {
			_, indexed := c.body["IndexName"]
			if strong := c.body["ConsistentRead"] == true; strong == indexed {
				t.Errorf("%s: of an index %v, strong %v", name, indexed, strong)
			}
		}
		if want := map[bool]int{true: schema.ClusterShards, false: 1}[name == "tasks"]; len(p.calls) != want {
			t.Errorf("%s: %d calls, want %d", name, len(p.calls), want)
		}
	}
}
