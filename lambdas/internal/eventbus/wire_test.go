package eventbus_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/eventbus"
	"github.com/longshore-run/longshore/shared/fault"
)

// entry is one event as EventBridge receives it.
type entry struct {
	EventBusName, Source, DetailType, Detail string
	Resources                                []string
	Time                                     float64
}

// bridge is an EventBridge that answers as a test wants: for the nth call and its
// entries, an error of the call or one code an entry.
type bridge struct {
	*eventbus.Bus
	calls  [][]entry
	pauses int
}

func play(t *testing.T, judge func(call int, entries []entry) (codes []string, refusal string)) *bridge {
	t.Helper()
	b := &bridge{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Entries []entry }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || r.Header.Get("X-Amz-Target") != "AWSEvents.PutEvents" {
			t.Errorf("request %s: %v", r.Header.Get("X-Amz-Target"), err)
		}
		b.calls = append(b.calls, in.Entries)
		codes, refusal := judge(len(b.calls), in.Entries)
		w.Header().Set("Content-Type", "application/x-amz-json-1.1")
		if refusal != "" {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"__type":%q,"message":"no"}`, refusal)
			return
		}
		var out struct {
			FailedEntryCount int
			Entries          []map[string]string
		}
		for i := range in.Entries {
			if i < len(codes) && codes[i] != "" {
				out.FailedEntryCount++
				out.Entries = append(out.Entries, map[string]string{"ErrorCode": codes[i], "ErrorMessage": "no"})
			} else {
				out.Entries = append(out.Entries, map[string]string{"EventId": "e"})
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	}))
	t.Cleanup(server.Close)
	b.Bus = eventbus.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient: transport.Client{HTTP: http.DefaultClient},
	}, "harbor", func(context.Context, int) { b.pauses++ })
	return b
}

func all(int, []entry) ([]string, string) { return nil, "" }

// about makes events of resources, numbered in their detail.
func about(resources ...string) []control.Event {
	var out []control.Event
	for i, r := range resources {
		out = append(out, control.Event{Type: "T", Resources: []string{r}, At: time.Unix(1_700_000_000, 0), Detail: fmt.Appendf(nil, `{"n":%d}`, i)})
	}
	return out
}

// sent is what each call brought, as resources and numbers.
func (b *bridge) sent() []string {
	var out []string
	for _, c := range b.calls {
		var names []string
		for _, e := range c {
			names = append(names, e.Resources[0]+strings.TrimSuffix(strings.TrimPrefix(e.Detail, `{"n":`), "}"))
		}
		out = append(out, strings.Join(names, " "))
	}
	return out
}

func kinds(errs []error) []fault.Kind {
	var out []fault.Kind
	for _, err := range errs {
		out = append(out, fault.Of(err))
	}
	return out
}

func TestPublish_SendsAllOfAnEvent(t *testing.T) {
	b := play(t, all)
	errs := b.Publish(t.Context(), []control.Event{{Type: "ECS Task State Change", Resources: []string{"arn:a"}, At: time.Unix(1_700_000_000, 0), Detail: []byte(`{"version":3}`)}})
	got := b.calls[0][0]
	want := entry{EventBusName: "harbor", Source: "longshore", DetailType: "ECS Task State Change", Resources: []string{"arn:a"}, Time: 1_700_000_000, Detail: `{"version":3}`}
	if errs[0] != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("sent %+v, error %v", got, errs[0])
	}
}

func TestPublish_NeverPutsTwoOfAResourceIntoOneCallNorMoreThanTen(t *testing.T) {
	b := play(t, all)
	errs := b.Publish(t.Context(), about("a", "b", "a", "c", "d", "e", "f", "g", "h", "i", "j", "k", "a"))
	want := []string{"a0 b1 c3 d4 e5 f6 g7 h8 i9 j10", "a2 k11", "a12"}
	if !slices.Equal(b.sent(), want) {
		t.Errorf("sent %q\nwant %q", b.sent(), want)
	}
	for i, err := range errs {
		if err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
}

func TestPublish_RepeatsOnlyWhatFailedBeforeWhatFollowsIt(t *testing.T) {
	b := play(t, func(call int, _ []entry) ([]string, string) {
		if call <= 2 {
			return []string{"InternalFailure"}, "" // the first of each call
		}
		return nil, ""
	})
	errs := b.Publish(t.Context(), about("a", "b", "a", "b"))
	if want := []string{"a0 b1", "a0 b3", "a0", "a2"}; !slices.Equal(b.sent(), want) {
		t.Errorf("sent %q\nwant %q", b.sent(), want)
	}
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		t.Error(errs)
	}
}

func TestPublish_GivesUpOnWhatIsNeverTakenAndSendsNothingThatFollowsIt(t *testing.T) {
	b := play(t, func(_ int, entries []entry) ([]string, string) {
		codes := make([]string, len(entries))
		for i, e := range entries {
			if e.Resources[0] == "a" {
				codes[i] = "ThrottlingException"
			}
		}
		return codes, ""
	})
	errs := b.Publish(t.Context(), about("a", "b", "a"))
	if want := []fault.Kind{fault.Unavailable, "", fault.Unavailable}; !slices.Equal(kinds(errs), want) {
		t.Errorf("errors %v", errs)
	}
	if len(b.calls) != 7 || b.pauses != 5 || slices.Contains(b.sent(), "a2") {
		t.Errorf("%d pauses, sent %q", b.pauses, b.sent())
	}
}

func TestPublish_WhatCanNeverBeTakenHoldsUpNothing(t *testing.T) {
	for name, judge := range map[string]func(int, []entry) ([]string, string){
		"as one entry": func(_ int, entries []entry) ([]string, string) {
			codes := make([]string, len(entries))
			for i, e := range entries {
				if e.Detail == `{"n":0}` {
					codes[i] = "MalformedDetail"
				}
			}
			return codes, ""
		},
		"as the whole call": func(_ int, entries []entry) ([]string, string) {
			for _, e := range entries {
				if e.Detail == `{"n":0}` {
					return nil, "ValidationException"
				}
			}
			return nil, ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := play(t, judge)
			errs := b.Publish(t.Context(), about("a", "b", "a"))
			if want := []fault.Kind{fault.Invalid, "", ""}; !slices.Equal(kinds(errs), want) {
				t.Errorf("errors %v, sent %q", errs, b.sent())
			}
		})
	}
}

func TestPublish_AMissingRightIsWorthWaiting(t *testing.T) {
	b := play(t, func(int, []entry) ([]string, string) { return nil, "AccessDeniedException" })
	errs := b.Publish(t.Context(), about("a"))
	if !fault.Is(errs[0], fault.Internal) {
		t.Errorf("error %v", errs[0])
	}
}

func TestPublish_ACallAndAnEntryStayBelowTheBound(t *testing.T) {
	b := play(t, all)
	big := func(resource string, bytes int) control.Event {
		detail, _ := json.Marshal(map[string]any{"lastStatus": "STOPPED", "version": 9, "overrides": strings.Repeat("o", bytes), "tags": "kept"})
		return control.Event{Type: "T", Resources: []string{resource}, Detail: detail}
	}
	errs := b.Publish(t.Context(), []control.Event{big("a", 150_000), big("b", 150_000), big("c", 300_000)})
	if slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		t.Fatal(errs)
	}
	for i, c := range b.calls {
		sum := 0
		for _, e := range c {
			sum += len(e.Detail) + len(e.DetailType) + len(e.Source) + len(e.Resources[0]) + 14
		}
		if sum > 256*1024 {
			t.Errorf("call %d has %d bytes", i, sum)
		}
	}
	last := b.calls[len(b.calls)-1]
	if got := last[len(last)-1].Detail; got != `{"lastStatus":"STOPPED","omitted":["overrides"],"tags":"kept","version":9}` {
		t.Errorf("shortened to %.200s", got)
	}
}

func TestPublish_WhatCanNotBeShortenedIsInvalid(t *testing.T) {
	b := play(t, all)
	detail, _ := json.Marshal(map[string]string{"reason": strings.Repeat("r", 300_000)})
	errs := b.Publish(t.Context(), append([]control.Event{{Type: "T", Resources: []string{"a"}, Detail: detail}}, about("a")...))
	if !fault.Is(errs[0], fault.Invalid) || errs[1] != nil || len(b.calls) != 1 {
		t.Errorf("errors %v after %d calls", errs, len(b.calls))
	}
}

// hurry is a call that has a second left whenever it looks, however slow the machine is.
type hurry struct{ context.Context }

// Deadline implements context.Context.
func (hurry) Deadline() (time.Time, bool) { return time.Now().Add(time.Second), true }

func TestPublish_EndsInTimeToTell(t *testing.T) {
	b := play(t, all)
	errs := b.Publish(hurry{t.Context()}, about("a"))
	if !fault.Is(errs[0], fault.Unavailable) || len(b.calls) != 0 {
		t.Errorf("error %v after %d calls", errs[0], len(b.calls))
	}
}
