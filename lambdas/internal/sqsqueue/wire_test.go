package sqsqueue_test

import (
	"crypto/md5"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/sqsqueue"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// These tests play SQS's answers that no emulator gives: parts of a batch that
// fail, throttling, a queue's name refused after its deletion.

// server is an SQS that answers by a function of operation and request body.
type server struct {
	*sqsqueue.Queue
	mu    sync.Mutex
	calls []string
}

func serve(t *testing.T, answer func(call int, operation string, body map[string]any) (int, string)) *server {
	t.Helper()
	s := &server{}
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		operation := strings.TrimPrefix(r.Header.Get("X-Amz-Target"), "AmazonSQS.")
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Errorf("request body: %v", err)
		}
		s.mu.Lock()
		s.calls = append(s.calls, operation)
		n := len(s.calls)
		s.mu.Unlock()
		status, out := answer(n, operation, body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(out))
	}))
	t.Cleanup(h.Close)
	s.Queue = sqsqueue.New(aws.Config{
		Region: "us-east-1", BaseEndpoint: aws.String(h.URL), Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient: transport.Client{HTTP: http.DefaultClient},
	}, setting.Control{
		ReportsQueueURL: "https://sqs/1/reports", HeartbeatsQueueURL: "https://sqs/1/heartbeats", AdmissionQueueURL: "https://sqs/1/a.fifo",
		CommandQueueNameStart: "cmd-",
	})
	return s
}

func failed(code string) string {
	return fmt.Sprintf(`{"__type":"com.amazonaws.sqs#%s","message":"no"}`, code)
}

func stops(n int) (all []wire.Message) {
	for i := range n {
		all = append(all, &wire.Stop{Header: wire.Header{Instance: strings.Repeat("a", 32)}, Task: fmt.Sprintf("%032x", i), Attempt: 1})
	}
	return all
}

// taken answers a batch: entries of the given ids fail, the others are taken.
func taken(body map[string]any, senderFault bool, failing ...string) string {
	var good, bad []string
	for _, e := range body["Entries"].([]any) {
		id := e.(map[string]any)["Id"].(string)
		if slices.Contains(failing, id) {
			bad = append(bad, fmt.Sprintf(`{"Id":%q,"Code":"InternalError","SenderFault":%v}`, id, senderFault))
		} else {
			sum := md5.Sum([]byte(e.(map[string]any)["MessageBody"].(string)))
			good = append(good, fmt.Sprintf(`{"Id":%q,"MessageId":"m","MD5OfMessageBody":"%x"}`, id, sum))
		}
	}
	return `{"Successful":[` + strings.Join(good, ",") + `],"Failed":[` + strings.Join(bad, ",") + `]}`
}

func TestCommands_SendAgainWhatOfABatchFailed(t *testing.T) {
	var entries []int
	s := serve(t, func(n int, _ string, body map[string]any) (int, string) {
		entries = append(entries, len(body["Entries"].([]any)))
		if n == 1 {
			return 200, taken(body, false, "1", "3")
		}
		return 200, taken(body, false)
	})
	if err := s.Commands(t.Context(), stops(5)...); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(entries, []int{5, 2}) {
		t.Fatalf("batches of %v", entries)
	}
}

func TestCommands_SayThatSomeWereNotTaken(t *testing.T) {
	for senderFault, want := range map[bool]fault.Kind{false: fault.Unavailable, true: fault.Invalid} {
		s := serve(t, func(_ int, _ string, body map[string]any) (int, string) { return 200, taken(body, senderFault, "1") })
		if err := s.Commands(t.Context(), stops(3)...); !fault.Is(err, want) {
			t.Errorf("sender's fault %v gave %v", senderFault, err)
		}
		if want := map[bool]int{false: 3, true: 1}[senderFault]; len(s.calls) != want {
			t.Errorf("%d calls, want %d", len(s.calls), want)
		}
	}
}

func TestErrors_HaveTheirKinds(t *testing.T) {
	for code, want := range map[string]fault.Kind{
		"QueueDoesNotExist": fault.NotFound, "AWS.SimpleQueueService.NonExistentQueue": fault.NotFound, "QueueDeletedRecently": fault.Unavailable,
		"RequestThrottled": fault.Unavailable, "ThrottlingException": fault.Unavailable, "AccessDeniedException": fault.Denied,
		"InvalidMessageContents": fault.Invalid, "BatchRequestTooLong": fault.Invalid, "OverLimit": fault.Internal,
	} {
		s := serve(t, func(int, string, map[string]any) (int, string) { return 400, failed(code) })
		if err := s.KickAdmission(t.Context(), control.Kick{Cluster: "c"}); !fault.Is(err, want) {
			t.Errorf("%s gave %q: %v", code, fault.Of(err), err)
		}
	}
	s := serve(t, func(int, string, map[string]any) (int, string) { return 503, "" })
	if err := s.KickAdmission(t.Context(), control.Kick{Cluster: "c"}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a broken server gave %q: %v", fault.Of(err), err)
	}
}

func TestEnsureInbox_OfAJustDeletedQueueIsToBeTriedLater(t *testing.T) {
	s := serve(t, func(_ int, operation string, _ map[string]any) (int, string) {
		if operation == "GetQueueUrl" {
			return 400, failed("QueueDoesNotExist")
		}
		return 400, failed("QueueDeletedRecently")
	})
	if err := s.EnsureInbox(t.Context(), strings.Repeat("a", 32), "AROA:i"); !fault.Is(err, fault.Unavailable) {
		t.Fatalf("gave %v", err)
	}
}

func TestEnsureInbox_MakesANewQueueInTwoCallsAndMendsAnothersQueue(t *testing.T) {
	for exists, want := range map[bool][]string{
		false: {"GetQueueUrl", "CreateQueue"},
		true:  {"GetQueueUrl", "CreateQueue", "TagQueue", "GetQueueAttributes", "SetQueueAttributes"},
	} {
		s := serve(t, func(_ int, operation string, body map[string]any) (int, string) {
			switch operation {
			case "GetQueueUrl":
				return 400, failed("QueueDoesNotExist")
			case "CreateQueue":
				if exists {
					return 400, failed("QueueNameExists")
				}
				if tags, _ := body["tags"].(map[string]any); tags[sqsqueue.SenderTag] != "AROA:i" {
					t.Errorf("created with tags %v", body["tags"])
				}
				return 200, `{"QueueUrl":"https://sqs/1/x"}`
			case "GetQueueAttributes":
				return 200, `{"Attributes":{"VisibilityTimeout":"30"}}`
			case "SetQueueAttributes":
				if set := body["Attributes"].(map[string]any); len(set) != 3 || set["MessageRetentionPeriod"] != "3600" {
					t.Errorf("set %v", set)
				}
			}
			return 200, "{}"
		})
		if err := s.EnsureInbox(t.Context(), strings.Repeat("a", 32), "AROA:i"); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(s.calls, want) {
			t.Errorf("calls are %v, want %v", s.calls, want)
		}
	}
}
