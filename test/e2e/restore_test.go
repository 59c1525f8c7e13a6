//go:build e2e

package e2e

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	dynamotypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/longshore-run/longshore/test/local"
)

const backedUp = "-restored"

// backup copies every table beside it, as a restore to a point in time does.
func (s *stack) backup() {
	s.t.Helper()
	c := dynamodb.NewFromConfig(s.Config())
	for _, role := range []string{"Tasks", "Instances", "Leases", "Catalog"} {
		name := s.Outputs[role+"TableName"]
		table, err := c.DescribeTable(s.t.Context(), &dynamodb.DescribeTableInput{TableName: &name})
		if err != nil {
			s.t.Fatal(err)
		}
		in := &dynamodb.CreateTableInput{TableName: aws.String(name + backedUp), BillingMode: dynamotypes.BillingModePayPerRequest, KeySchema: table.Table.KeySchema}
		for _, k := range table.Table.KeySchema {
			in.AttributeDefinitions = append(in.AttributeDefinitions, dynamotypes.AttributeDefinition{AttributeName: k.AttributeName, AttributeType: dynamotypes.ScalarAttributeTypeS})
		}
		if _, err := c.CreateTable(s.t.Context(), in); err != nil {
			s.t.Fatal(err)
		}
		pages := dynamodb.NewScanPaginator(c, &dynamodb.ScanInput{TableName: &name, ConsistentRead: aws.Bool(true)})
		for pages.HasMorePages() {
			page, err := pages.NextPage(s.t.Context())
			if err != nil {
				s.t.Fatal(err)
			}
			for _, item := range page.Items {
				if _, err := c.PutItem(s.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(name + backedUp), Item: item}); err != nil {
					s.t.Fatal(err)
				}
			}
		}
	}
}

// runs are the engine's ids of an agent's running containers.
func (s *stack) runs(agent *local.Agent) []string {
	s.t.Helper()
	all, err := local.Containers(s.t.Context(), agent.Instance)
	if err != nil {
		s.t.Fatal(err)
	}
	ids := map[string]bool{}
	for _, c := range all {
		if c.State == "running" {
			ids[c.ID] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// The runbook of a restore, step by step, by the command alone.
func commandRestores(t *testing.T, s *stack) {
	agent := s.Agent(1)
	id := agent.Instance
	s.eventually("at rest", func() bool { return len(s.runs(agent)) == 0 }) // what ran for others
	plain := s.register("restore-plain", nil)
	picky := s.register("restore-picky", func(in *ecs.RegisterTaskDefinitionInput, _ *types.ContainerDefinition) {
		in.PlacementConstraints = []types.TaskDefinitionPlacementConstraint{{Type: types.TaskDefinitionPlacementConstraintTypeMemberOf, Expression: aws.String("attribute:restore == yes")}}
	})
	kept, ended := s.run(plain), s.run(plain)
	s.awaitStatus(kept, "RUNNING")
	s.awaitStatus(ended, "RUNNING")
	queued := s.run(picky)
	s.eventually("waiting for an attribute", func() bool {
		return slices.ContainsFunc(s.task(queued).Attributes, func(a types.Attribute) bool { return aws.ToString(a.Value) == "ATTRIBUTE" })
	})
	s.backup()

	// The machine lives on: what waited runs, what ran has ended, and there is more.
	_, err := s.ecs.PutAttributes(t.Context(), &ecs.PutAttributesInput{Cluster: aws.String(local.Cluster), Attributes: []types.Attribute{{Name: aws.String("restore"), Value: aws.String("yes"), TargetId: &id, TargetType: types.TargetTypeContainerInstance}}})
	if err != nil {
		t.Fatal(err)
	}
	s.awaitStatus(queued, "RUNNING")
	s.stop(ended)
	s.awaitStatus(ended, "STOPPED")
	before := s.runs(agent)
	later := s.run(plain)
	s.awaitStatus(later, "RUNNING")
	with := s.runs(agent)
	unknown := slices.DeleteFunc(slices.Clone(with), func(c string) bool { return slices.Contains(before, c) })
	if len(unknown) != 1 {
		t.Fatalf("containers %v, then %v", before, with)
	}

	if _, errs, code := s.says("restore", "copy", "--suffix="+backedUp, "--yes"); code != 1 || !strings.Contains(errs, "longshore restore halt") {
		t.Fatalf("tables were copied under running functions: %s", errs)
	}
	command := func(args ...string) string {
		t.Helper()
		out, errs, code := s.says(args...)
		if code != 0 {
			t.Fatalf("%s: %s", strings.Join(args, " "), errs)
		}
		return out
	}
	command("restore", "halt")
	if out, _, code := s.says("doctor"); code != 1 || !strings.Contains(out, "function Api is stopped") || !strings.Contains(out, "longshore restore resume") || !strings.Contains(out, "nothing reads its queue") {
		t.Errorf("doctor does not see that the functions are halted")
	}
	s.eventually("restored", func() bool { // what is under way ends first
		_, _, code := s.says("restore", "copy", "--suffix="+backedUp, "--yes")
		return code == 0
	})
	var raised struct{ Raised, Left int }
	if err := json.Unmarshal([]byte(command("restore", "raise-epochs", "-o", "json")), &raised); err != nil || raised.Raised != 1 || raised.Left != 0 {
		t.Fatalf("%+v, %v", raised, err)
	}
	command("audit")
	command("restore", "resume")

	s.eventually("the container that nobody knows is seen", func() bool {
		i := s.instance(id)
		return !i.AgentConnected && strings.Contains(aws.ToString(i.StatusReason), "UNKNOWN_CONTAINERS: 1")
	})
	for _, arn := range []string{kept, queued} {
		s.awaitStatus(arn, "RUNNING")
	}
	if got := s.awaitStatus(ended, "STOPPED"); got.StopCode == "" {
		t.Errorf("%+v", got)
	}
	if now := s.runs(agent); !slices.Equal(now, with) {
		t.Fatalf("containers %v, before the restore %v: what runs was stopped, or started twice", now, with)
	}

	// What the tables do not know ends some time; then all is as ever.
	if out, err := exec.CommandContext(t.Context(), "docker", "kill", unknown[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.eventually("taking work again", func() bool { return s.instance(id).AgentConnected })
	fresh := s.run(plain)
	s.awaitStatus(fresh, "RUNNING")
	for _, arn := range []string{kept, queued, fresh} {
		s.stop(arn)
		s.awaitStatus(arn, "STOPPED")
	}
	command("audit")
}
