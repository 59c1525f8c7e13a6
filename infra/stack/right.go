package stack

import (
	"slices"

	"github.com/longshore-run/longshore/infra/construct/identity"
	"github.com/longshore-run/longshore/shared/schema"
)

// allow is everything a function's role may do, besides writing its own log.
// A transaction is no action of its own: its parts are.
func (s *Stack) allow(name string) []identity.Statement {
	everywhere := []string{schema.Tasks, schema.Instances, schema.Leases, schema.Catalog}
	switch name {
	case readapi:
		return s.read(everywhere...)
	case api:
		return join(s.readWrite(everywhere...),
			s.send(s.admission.QueueArn(), s.services.QueueArn(), s.commandQueues()))
	case admission:
		return join(s.readWrite(everywhere...),
			s.consume(s.admission.QueueArn()),
			s.send(s.admission.Dead.QueueArn(), s.commandQueues()))
	case statechange:
		return join(s.readWrite(everywhere...),
			s.consume(s.reports.QueueArn(), s.heartbeats.QueueArn()),
			s.send(s.reports.Dead.QueueArn(), s.heartbeats.Dead.QueueArn(),
				s.admission.QueueArn(), s.services.QueueArn(), s.commandQueues()),
			// The machine's inbox: made, tagged with its owner, mended.
			allowed(s.commandQueues(), "sqs:CreateQueue", "sqs:GetQueueUrl", "sqs:GetQueueAttributes",
				"sqs:SetQueueAttributes", "sqs:TagQueue"))
	case reaper:
		return join(s.readWrite(everywhere...),
			allowed(s.tables[schema.Leases].TableArn(), "dynamodb:Scan"),
			allowed(s.tables[schema.Instances].TableArn(), "dynamodb:Scan"), // after a restore: every ledger
			s.send(s.heartbeats.QueueArn(), s.admission.QueueArn(), s.services.QueueArn(), s.commandQueues()),
			allowed(s.heartbeats.QueueArn(), "sqs:GetQueueAttributes"),
			allowed(s.commandQueues(), "sqs:DeleteQueue"),
			s.groups())
	case services:
		// It frees nothing on an instance: what it stops there, reports end.
		return join(s.readWrite(schema.Tasks, schema.Catalog),
			s.read(schema.Instances),
			s.consume(s.services.QueueArn()),
			s.send(s.services.Dead.QueueArn(), s.admission.QueueArn(), s.commandQueues()))
	case audit: // it writes nothing but the books, and those only where it may repair
		return join(s.readWrite(schema.Instances, schema.Catalog),
			allowed(s.tables[schema.Tasks].TableArn(), "dynamodb:Scan"),
			allowed(s.tables[schema.Instances].TableArn(), "dynamodb:Scan"),
			s.send(s.admission.QueueArn(), s.services.QueueArn()))
	case scheduled: // of a family without a revision it looks for the newest that is ACTIVE
		return join(s.load(schema.Tasks, schema.Instances, schema.Leases),
			s.read(schema.Catalog),
			s.write(schema.Tasks, schema.Catalog),
			s.send(s.admission.QueueArn(), s.commandQueues(), s.scheduleDead.QueueArn()))
	case events:
		return join(s.load(schema.Instances, schema.Leases, schema.Catalog),
			s.follow(),
			allowed(s.bus.EventBusArn(), "events:PutEvents"),
			s.send(s.eventsDead.QueueArn()))
	}
	return nil
}

// load allows reading of items whose keys are known, and nothing else.
func (s *Stack) load(roles ...string) []identity.Statement {
	var tables []*string
	for _, role := range roles {
		tables = append(tables, s.tables[role].TableArn())
	}
	return []identity.Statement{{Actions: []string{"dynamodb:GetItem", "dynamodb:BatchGetItem"}, Resources: tables}}
}

// follow is what Lambda's poller does on the streams with the function's role.
func (s *Stack) follow() []identity.Statement {
	var streams []*string
	for _, t := range schema.Tables() {
		if t.Streamed {
			streams = append(streams, s.tables[t.Role].TableStreamArn())
		}
	}
	return []identity.Statement{{
		Actions:   []string{"dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator", "dynamodb:ListStreams"},
		Resources: streams,
	}}
}

// read allows reading of tables and of each of their indexes by name.
func (s *Stack) read(roles ...string) []identity.Statement {
	var tables, queried []*string
	for _, role := range roles {
		t := s.tables[role]
		tables = append(tables, t.TableArn())
		queried = append(append(queried, t.TableArn()), t.Indexes...)
	}
	return []identity.Statement{
		{Actions: []string{"dynamodb:GetItem", "dynamodb:BatchGetItem"}, Resources: tables},
		{Actions: []string{"dynamodb:Query"}, Resources: queried},
	}
}

func (s *Stack) readWrite(roles ...string) []identity.Statement {
	return append(s.read(roles...), s.write(roles...)...)
}

func (s *Stack) write(roles ...string) []identity.Statement {
	return []identity.Statement{{
		Actions: []string{
			"dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:ConditionCheckItem",
		},
		Resources: s.load(roles...)[0].Resources,
	}}
}

func (s *Stack) send(queues ...*string) []identity.Statement {
	return []identity.Statement{{Actions: []string{"sqs:SendMessage"}, Resources: queues}}
}

// consume is what Lambda's poller does with the function's role.
func (s *Stack) consume(queues ...*string) []identity.Statement {
	return []identity.Statement{{
		Actions:   []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"},
		Resources: queues,
	}}
}

func allowed(resource *string, actions ...string) []identity.Statement {
	return []identity.Statement{{Actions: actions, Resources: []*string{resource}}}
}

func join(parts ...[]identity.Statement) []identity.Statement { return slices.Concat(parts...) }
