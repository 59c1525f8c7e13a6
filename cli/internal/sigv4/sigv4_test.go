package sigv4_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/longshore-run/longshore/cli/internal/sigv4"
)

func TestSign_TheScopeIsLambdas(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "https://abc.lambda-url.eu-central-1.on.aws/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.ListTasks")
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	if err := sigv4.Sign(t.Context(), credentials.NewStaticCredentialsProvider("AKID", "SECRET", ""), r, []byte("{}"), "eu-central-1", at); err != nil {
		t.Fatal(err)
	}
	got := r.Header.Get("Authorization")
	if !strings.Contains(got, "Credential=AKID/20260102/eu-central-1/lambda/aws4_request") || !strings.Contains(got, "x-amz-target") {
		t.Errorf("signed %s", got)
	}
	if err := sigv4.Sign(t.Context(), nil, r, nil, "eu-central-1", at); err == nil {
		t.Error("signed by nobody")
	}
}

func TestRegion_IsThatOfAFunctionURL(t *testing.T) {
	for host, want := range map[string]string{
		"abc123.lambda-url.eu-central-1.on.aws": "eu-central-1", "127.0.0.1": "", "abc.lambda-url.eu-central-1.on.aws.evil.example": "", "": "",
	} {
		if got := sigv4.Region(host); got != want {
			t.Errorf("%s is in %q", host, got)
		}
	}
}
