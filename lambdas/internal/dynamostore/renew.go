package dynamostore

import (
	"context"
	"errors"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schema"
)

// renewTries bounds how often a renewal finds that another session or a
// transaction came between.
const renewTries = 5

// Renew implements control.Store in one write on the item. Who sent the last
// beat is part of the condition, because the sessions kept depend on it: the
// first try takes it to be the same session, as it nearly always is.
func (s *Store) Renew(ctx context.Context, r control.Renewal) (*control.Lease, bool, error) {
	lease := &control.Lease{ID: r.ID}
	if !placeOf(lease).complete() {
		return nil, false, fault.New(fault.Invalid, "renew lease %q: its key is empty or too long", r.ID)
	}
	lease.Session = r.Session
	for try := 1; try <= renewTries; try++ {
		item, renewed, err := s.renew(ctx, r, lease)
		if err != nil && kindOf(err) == fault.Conflict && pause(ctx, try) == nil {
			continue // a transaction on the lease was in the way
		}
		if err != nil {
			return nil, false, wrap(err, "renew lease %s", r.ID)
		}
		if err := s.fillLive(lease, item); err != nil {
			return nil, false, err
		}
		if lease.Version == 0 {
			return nil, false, fault.New(fault.NotFound, "no lease of instance %s", r.ID)
		}
		if renewed || !lease.Renewable(r) {
			return lease, renewed, nil
		}
	}
	return nil, false, fault.New(fault.Unavailable, "renew lease %s: others keep coming between", r.ID)
}

// renew tries once, on condition that the sessions are those of seen. It returns
// the item after the renewal, or as it is without one.
func (s *Store) renew(ctx context.Context, r control.Renewal, seen *control.Lease) (attributes, bool, error) {
	e, p := newExpression(), placeOf(seen)
	update, condition := s.renewal(r, seen, e)
	out, err := s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: s.table(p.role), Key: p.key(),
		UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
		ReturnValues:                        types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}, s.once)
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return failed.Item, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return out.Attributes, true, nil
}

// renewal is control.Lease.Renew as expressions.
func (s *Store) renewal(r control.Renewal, seen *control.Lease, e *expression) (update, condition string) {
	sent := e.value(text(formatTime(r.Sent)))
	raise := func(attribute string) string {
		return e.name(attribute) + " = if_not_exists(" + e.name(attribute) + ", " + e.number(0) + ") + " + e.number(1)
	}
	set := []string{e.name(leaseSent) + " = " + sent, raise(leaseBeats), raise(version)}
	conditions := []string{
		"attribute_exists(" + e.name(version) + ")",
		e.absentOr(leaseSent, "<", sent),
		e.equals(leaseIncarnation, r.Incarnation),
		e.equals(leaseSession, seen.Session),
		e.absentOr(schema.TTL, ">", e.number(s.now().Unix())),
	}
	if seen.Session != r.Session {
		set = append(set,
			e.name(leaseSession)+" = "+e.value(text(r.Session)),
			e.name(leasePrevSession)+" = "+e.value(text(seen.Session)))
	}
	return "SET " + strings.Join(set, ", "), strings.Join(conditions, " AND ")
}

// Attributes of a lease that a renewal writes.
const (
	leaseSent        = "sent"
	leaseBeats       = "beats"
	leaseIncarnation = "incarnation"
	leaseSession     = "session"
	leasePrevSession = "prevSession"
)
