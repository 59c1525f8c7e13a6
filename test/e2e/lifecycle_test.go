//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

// metadata is the instance metadata service of one machine, which says when EC2
// takes it.
type metadata struct {
	*httptest.Server
	mu sync.Mutex
	at time.Time
}

func newMetadata(t *testing.T) *metadata {
	m := &metadata{}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		defer m.mu.Unlock()
		switch {
		case r.URL.Path == "/latest/api/token":
			w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "300")
			fmt.Fprint(w, "token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") != "token":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/latest/meta-data/spot/instance-action" && !m.at.IsZero():
			fmt.Fprintf(w, `{"action":"terminate","time":%q}`, m.at.UTC().Format(time.RFC3339))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *metadata) takenIn(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.at = time.Now().Add(d)
}
func (m *metadata) goesOn() { m.mu.Lock(); defer m.mu.Unlock(); m.at = time.Time{} }

// A Spot machine that EC2 takes, as its agent sees it: its service moves before the
// end, what stays is asked to stop and told why, and when EC2 thinks better of it
// the machine works again. And one whose agent sees nothing, of which EC2 tells us.
func TestSpot(t *testing.T) {
	t.Parallel()
	hosts := map[int]*metadata{1: newMetadata(t), 2: newMetadata(t)}
	s := up(t, local.Options{Agents: 2, HeartbeatEvery: 2 * time.Second, SuspectAfter: 30 * time.Second, ReapAfter: 5 * time.Minute, CleanupWait: time.Second,
		AgentEnv: func(n int, _ string) (map[string]string, error) {
			return map[string]string{
				"LONGSHORE_EC2_INSTANCE_ID": ec2Of(n), "AWS_EC2_METADATA_DISABLED": "false", "AWS_EC2_METADATA_SERVICE_ENDPOINT": hosts[n].URL,
			}, nil
		}})
	definition := s.register("web", nil)
	s.aws("create-service", "--service-name", "web", "--task-definition", definition, "--desired-count", "1")
	n := 0 // the agent that has it
	s.eventually("running is the service's task", func() bool { n = s.serviceOn(); return n > 0 })
	out, err := s.ecs.StartTask(t.Context(), &ecs.StartTaskInput{Cluster: aws.String(local.Cluster), TaskDefinition: &definition, ContainerInstances: []string{s.Agent(n).Instance}})
	if err != nil || len(out.Tasks) != 1 {
		t.Fatalf("start: %v %+v", err, out)
	}
	job := aws.ToString(out.Tasks[0].TaskArn)
	s.awaitStatus(job, "RUNNING")

	hosts[n].takenIn(10 * time.Minute)
	s.awaitState(n, "DRAINING", "Spot interruption notice for ")
	s.eventually("moved is the service", func() bool { return s.serviceOn() == 3-n })
	if got := aws.ToString(s.task(job).LastStatus); got != "RUNNING" {
		t.Fatalf("a task of nobody's is %s before it has to end", got)
	}

	hosts[n].takenIn(time.Minute) // sooner than its tasks are asked to stop
	ended := types.Task{}
	s.eventually("stopped is what stayed", func() bool {
		s.tick()
		ended = s.task(job)
		return aws.ToString(ended.LastStatus) == "STOPPED"
	})
	want := fmt.Sprintf("Host EC2 (instance %s) is interrupted: Spot interruption notice.", ec2Of(n))
	if ended.StopCode != "SpotInterruption" || aws.ToString(ended.StoppedReason) != want {
		t.Errorf("it ended as %s %q", ended.StopCode, aws.ToString(ended.StoppedReason))
	}

	hosts[n].goesOn()
	s.awaitState(n, "ACTIVE", "")

	warning := fmt.Sprintf(`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":%q,"detail":{"instance-id":%q,"instance-action":"terminate"}}`,
		time.Now().UTC().Format(time.RFC3339), ec2Of(n))
	if err := s.TellReaper(t.Context(), warning); err != nil {
		t.Fatal(err)
	}
	s.awaitState(n, "DRAINING", "Spot interruption notice for ")
	s.aws("update-container-instances-state", "--container-instances", s.Agent(n).Instance, "--status", "ACTIVE")
	s.awaitState(n, "ACTIVE", "")
	s.aws("delete-service", "--service", "web", "--force")
}

func ec2Of(n int) string { return fmt.Sprintf("i-%017x", 0xa0+n) }

// serviceOn is the agent that runs service web's only task, 0 for none.
func (s *stack) serviceOn() int {
	s.t.Helper()
	list, err := s.ecs.ListTasks(s.t.Context(), &ecs.ListTasksInput{Cluster: aws.String(local.Cluster), ServiceName: aws.String("web")})
	if err != nil || len(list.TaskArns) != 1 {
		return 0
	}
	of := s.task(list.TaskArns[0])
	for n := 1; n <= 2; n++ {
		if aws.ToString(of.LastStatus) == "RUNNING" && strings.HasSuffix(aws.ToString(of.ContainerInstanceArn), "/"+s.Agent(n).Instance) {
			return n
		}
	}
	return 0
}

func (s *stack) awaitState(n int, status, reason string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%s is agent %d", status, n), func() bool {
		i := s.instance(s.Agent(n).Instance)
		return aws.ToString(i.Status) == status && i.AgentConnected && strings.Contains(aws.ToString(i.StatusReason), reason)
	})
}
