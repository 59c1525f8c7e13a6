package dynamostore

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/schema"
)

// Commit implements control.Store. One write is one conditional write, which
// costs half of a transaction with one.
func (s *Store) Commit(ctx context.Context, writes ...control.Write) error {
	if err := sound(writes); err != nil {
		return err
	}
	var err error
	if len(writes) == 1 && writes[0].Op != control.CheckOp {
		err = s.single(ctx, writes[0])
	} else {
		err = s.transact(ctx, writes)
	}
	if err != nil {
		return err
	}
	for _, w := range writes {
		if w.Op == control.PutOp {
			*w.Record.Revision()++
		}
	}
	return nil
}

// sound refuses what no store takes.
func sound(writes []control.Write) error {
	if len(writes) == 0 || len(writes) > 100 {
		return fault.New(fault.Invalid, "commit of %d writes; 1 to 100 are allowed", len(writes))
	}
	seen := map[place]bool{}
	for _, w := range writes {
		p := placeOf(w.Record)
		if !p.complete() {
			return fault.New(fault.Invalid, "commit of %s %q: its key is empty or too long", w.Record.Kind(), w.Record.Key())
		}
		if seen[p] {
			return fault.New(fault.Invalid, "commit of %s %q: written twice", w.Record.Kind(), w.Record.Key())
		}
		seen[p] = true
	}
	return nil
}

// single makes one conditional write.
func (s *Store) single(ctx context.Context, w control.Write) error {
	t := s.action(w)
	var err error
	switch {
	case t.Put != nil:
		_, err = s.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: t.Put.TableName, Item: t.Put.Item, ConditionExpression: t.Put.ConditionExpression,
			ExpressionAttributeNames: t.Put.ExpressionAttributeNames, ExpressionAttributeValues: t.Put.ExpressionAttributeValues,
		}, s.once)
	case t.Update != nil:
		_, err = s.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: t.Update.TableName, Key: t.Update.Key,
			UpdateExpression: t.Update.UpdateExpression, ConditionExpression: t.Update.ConditionExpression,
			ExpressionAttributeNames: t.Update.ExpressionAttributeNames, ExpressionAttributeValues: t.Update.ExpressionAttributeValues,
		}, s.once)
	case t.Delete != nil:
		_, err = s.client.DeleteItem(ctx, &dynamodb.DeleteItemInput{
			TableName: t.Delete.TableName, Key: t.Delete.Key, ConditionExpression: t.Delete.ConditionExpression,
			ExpressionAttributeNames: t.Delete.ExpressionAttributeNames, ExpressionAttributeValues: t.Delete.ExpressionAttributeValues,
		}, s.once)
	}
	return wrap(err, "%s %s %s", w.Op, w.Record.Kind(), w.Record.Key())
}

// transact makes all writes in one transaction. The client draws an idempotency
// token for each call, so that a call sent again after a lost answer is made
// once; a new try of ours is a new call.
func (s *Store) transact(ctx context.Context, writes []control.Write) error {
	var items []types.TransactWriteItem
	for _, w := range writes {
		items = append(items, s.action(w))
	}
	for try := 1; ; try++ {
		_, err := s.client.TransactWriteItems(ctx, &dynamodb.TransactWriteItemsInput{TransactItems: items})
		if err != nil && throttled(err) && try < attempts && pause(ctx, try) == nil {
			continue
		}
		return wrap(err, "commit of %d records, %s %s first", len(writes), writes[0].Record.Kind(), writes[0].Record.Key())
	}
}

// action is a write as part of a transaction. A record that does not exist is
// put whole, over whatever expired item may still lie there; one that exists is
// updated, so that attributes which this code does not know stay.
func (s *Store) action(w control.Write) types.TransactWriteItem {
	p, e := placeOf(w.Record), newExpression()
	condition := s.condition(w.Record, e)
	switch {
	case w.Op == control.DeleteOp:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: s.table(p.role), Key: p.key(), ConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		}}
	case w.Op == control.CheckOp:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: s.table(p.role), Key: p.key(), ConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		}}
	case *w.Record.Revision() == 0:
		item := itemOf(w.Record)
		maps.Copy(item, p.key())
		item[version] = number(1)
		return types.TransactWriteItem{Put: &types.Put{
			TableName: s.table(p.role), Item: item, ConditionExpression: &condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
		}}
	}
	update := updateOf(w.Record, e)
	return types.TransactWriteItem{Update: &types.Update{
		TableName: s.table(p.role), Key: p.key(), UpdateExpression: &update, ConditionExpression: &condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.bound(),
	}}
}

// condition holds while the item is what Load saw: the version is the record's,
// where an item whose time is over does not exist.
func (s *Store) condition(r control.Record, e *expression) string {
	var alive, expired string
	if control.ExpiresAt(r) != nil {
		now := e.number(s.now().Unix())
		alive = " AND " + e.absentOr(schema.TTL, ">", now)
		expired = " OR " + e.name(schema.TTL) + " <= " + now
	}
	if v := *r.Revision(); v != 0 {
		return e.name(version) + " = " + e.value(number(v)) + alive
	}
	return "attribute_not_exists(" + e.name(version) + ")" + expired
}

// updateOf sets what the record has and removes what it has not, of all that is
// known of its kind.
func updateOf(r control.Record, e *expression) string {
	item := itemOf(r)
	item[version] = number(*r.Revision() + 1)
	var set, remove []string
	for _, name := range slices.Sorted(slices.Values(stored(r))) {
		if a, ok := item[name]; ok {
			set = append(set, e.name(name)+" = "+e.value(a))
		} else {
			remove = append(remove, e.name(name))
		}
	}
	update := "SET " + strings.Join(set, ", ")
	if len(remove) > 0 {
		update += " REMOVE " + strings.Join(remove, ", ")
	}
	return update
}
