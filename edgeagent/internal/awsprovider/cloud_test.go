package awsprovider

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/internal/transport"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/taskdef"
)

// canary is in every value that is kept in a service: no error may have it.
const canary = "CANARY"

// cloud answers as SSM, Secrets Manager, S3 and ECR do on the wire.
type cloud struct {
	url string

	mu         sync.Mutex
	parameters map[string]string // by name or ARN
	secrets    map[string]string // by id, and by id#stage#version
	objects    map[string]string // by bucket/key
	buckets    map[string]string // the region of some
	fails      map[string]answer // by service
	asked      []string          // operation, region, access key
	batches    []int
	tokens     int
}

type answer struct {
	status     int
	code, text string
}

func newCloud(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{parameters: map[string]string{}, secrets: map[string]string{}, objects: map[string]string{}, buckets: map[string]string{}, fails: map[string]answer{}}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	scope := strings.Split(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
	key, region, service := scope[0], scope[2], scope[3]
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	c.asked = append(c.asked, strings.Join([]string{service + operation, region, key}, " "))
	if f, ok := c.fails[service]; ok {
		refuse(w, service, f)
		return
	}
	switch service {
	case "ssm":
		c.serveParameters(w, body)
	case "secretsmanager":
		c.serveSecret(w, body)
	case "ecr":
		c.tokens++
		token := base64.StdEncoding.EncodeToString(fmt.Appendf(nil, "AWS:%s-token-%d", canary, c.tokens))
		reply(w, map[string]any{"authorizationData": []any{map[string]any{"authorizationToken": token, "expiresAt": time.Now().Add(12 * time.Hour).Unix()}}})
	default:
		c.serveObject(w, r, region)
	}
}

func (c *cloud) serveParameters(w http.ResponseWriter, body []byte) {
	var in struct {
		Names          []string
		WithDecryption bool
	}
	_ = json.Unmarshal(body, &in)
	c.batches = append(c.batches, len(in.Names))
	found, missing := []any{}, []string{}
	for _, n := range in.Names {
		v, ok := c.parameters[n]
		switch {
		case !ok || !in.WithDecryption:
			missing = append(missing, n)
		case strings.HasPrefix(n, "arn:"):
			found = append(found, map[string]any{"Name": n[strings.LastIndex(n, "/")+1:], "ARN": n, "Value": v})
		default:
			found = append(found, map[string]any{"Name": n, "ARN": "arn:aws:ssm:us-east-1:123456789012:parameter/" + n, "Value": v})
		}
	}
	slices.Reverse(found) // the order of an answer says nothing
	reply(w, map[string]any{"Parameters": found, "InvalidParameters": missing})
}

func (c *cloud) serveSecret(w http.ResponseWriter, body []byte) {
	var in struct{ SecretId, VersionStage, VersionId string }
	_ = json.Unmarshal(body, &in)
	id := in.SecretId
	if in.VersionStage+in.VersionId != "" {
		id += "#" + in.VersionStage + "#" + in.VersionId
	}
	v, ok := c.secrets[id]
	switch {
	case !ok:
		refuse(w, "secretsmanager", answer{400, "ResourceNotFoundException", "Secrets Manager can't find the specified secret."})
	case v == "binary":
		reply(w, map[string]any{"ARN": in.SecretId, "SecretBinary": "AAAA"})
	default:
		reply(w, map[string]any{"ARN": in.SecretId, "SecretString": v})
	}
}

func (c *cloud) serveObject(w http.ResponseWriter, r *http.Request, region string) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	bucket, _, _ := strings.Cut(name, "/")
	if there := c.buckets[bucket]; there != "" && there != region {
		w.Header().Set("X-Amz-Bucket-Region", there)
		refuse(w, "s3", answer{301, "PermanentRedirect", "The bucket you are attempting to access must be addressed using the specified endpoint."})
		return
	}
	text, ok := c.objects[name]
	if !ok {
		refuse(w, "s3", answer{404, "NoSuchKey", "The specified key does not exist."})
		return
	}
	_, _ = io.WriteString(w, text)
}

func reply(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, service string, a answer) {
	if service == "s3" {
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(a.status)
		fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", a.code, a.text)
		return
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(map[string]string{"__type": a.code, "message": a.text})
}

// sessions names the role in the access key.
type sessions struct {
	mu      sync.Mutex
	fails   error
	asked   []string
	dropped []string
}

func (s *sessions) Credentials(_ context.Context, role, name string) (aws.Credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, role+" "+name)
	return aws.Credentials{AccessKeyID: "key-of-" + role[strings.LastIndex(role, ":")+1:][5:], SecretAccessKey: "s", SessionToken: "t"}, s.fails
}

func (s *sessions) Drop(name string) { s.dropped = append(s.dropped, name) }

const roleARN = "arn:aws:iam::123456789012:role/exec"

func need(c taskdef.ContainerDefinition) agent.Need {
	return agent.Need{ContainerID: agent.ContainerID{Task: "task-1", Container: "app"}, ExecutionRole: roleARN, Definition: c}
}

// bench is a provider before a cloud.
func bench(t *testing.T, auth Auth) (*cloud, *sessions, *Provider) {
	t.Helper()
	c, s := newCloud(t), &sessions{}
	config := aws.Config{
		Region: "us-east-1", BaseEndpoint: &c.url, RetryMaxAttempts: 1, HTTPClient: transport.Client{HTTP: http.DefaultClient},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "key-of-agent", SecretAccessKey: "s"}, nil
		}),
	}
	return c, s, New(config, s, auth, time.Now)
}

// tells fails unless the error has its kind and says what it should, and no value.
func tells(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if err == nil || fault.Of(err) != kind {
		t.Errorf("%v has kind %q, want %q", err, fault.Of(err), kind)
		return
	}
	if strings.Contains(err.Error(), canary) {
		t.Errorf("the error tells a value: %v", err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}
