// Package dynamostore is control.Store on DynamoDB: four tables as
// shared/schema lays them out. It decides nothing: it turns the conditions of a
// commit into DynamoDB's and DynamoDB's errors into kinds of fault. Only
// internal/boot imports it.
package dynamostore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/longshore-run/longshore/lambdas/control"
)

// Store keeps records in DynamoDB. It is safe for concurrent use.
type Store struct {
	client *dynamodb.Client
	tables map[string]string
	now    func() time.Time
	once   func(*dynamodb.Options)
}

var _ control.Store = (*Store)(nil)

const (
	attempts   = 3
	maxBackoff = 500 * time.Millisecond
)

// New is a store over the tables with the given names, by their role in
// shared/schema. now tells which items' time is over. Calls are repeated a few
// times within their context's deadline; who decides repeats the decision.
func New(config aws.Config, tables map[string]string, now func() time.Time) *Store {
	client := dynamodb.NewFromConfig(config, func(o *dynamodb.Options) {
		o.Retryer = retryer(append(slices.Clone(retry.DefaultRetryables), retry.IsErrorRetryableFunc(cutShort)))
	})
	// A single conditional write that was made, but whose answer was lost, would
	// fail its own condition when sent again and look like a conflict that never
	// was. So only what DynamoDB surely did not do is repeated.
	refused := retryer([]retry.IsErrorRetryable{
		retry.RetryableErrorCode{Codes: retry.DefaultThrottleErrorCodes}, retry.IsErrorRetryableFunc(refusedUnread),
	})
	return &Store{
		client: client, tables: tables, now: now,
		once: func(o *dynamodb.Options) { o.Retryer = refused },
	}
}

func retryer(retryables []retry.IsErrorRetryable) aws.Retryer {
	return retry.NewStandard(func(r *retry.StandardOptions) {
		r.MaxAttempts, r.MaxBackoff, r.Retryables = attempts, maxBackoff, retryables
	})
}

func (s *Store) table(role string) *string { return aws.String(s.tables[role]) }

// pause waits a jittered, growing time, or until ctx ends.
func pause(ctx context.Context, try int) error {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(25*time.Millisecond) << min(try, 5))))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// live drops an item whose time is over.
func (s *Store) live(r control.Record) bool { return !control.Expired(r, s.now()) }

// names of attributes and values of an expression. Every name is written as a
// placeholder, because DynamoDB reserves some hundred words.
type expression struct {
	names  map[string]string
	holder map[string]string
	values attributes
}

func newExpression() *expression {
	return &expression{names: map[string]string{}, holder: map[string]string{}, values: attributes{}}
}

// name is the placeholder of an attribute.
func (e *expression) name(attribute string) string {
	if h, ok := e.holder[attribute]; ok {
		return h
	}
	h := "#n" + strconv.Itoa(len(e.names))
	e.names[h], e.holder[attribute] = attribute, h
	return h
}

// value is the placeholder of a value.
func (e *expression) value(a types.AttributeValue) string {
	h := ":v" + strconv.Itoa(len(e.values))
	e.values[h] = a
	return h
}

func (e *expression) number(n int64) string {
	for h, a := range e.values {
		if v, ok := a.(*types.AttributeValueMemberN); ok && v.Value == strconv.FormatInt(n, 10) {
			return h
		}
	}
	return e.value(number(n))
}

// absentOr holds where the attribute is absent or compares so with a value.
func (e *expression) absentOr(attribute, operator, value string) string {
	n := e.name(attribute)
	return "(attribute_not_exists(" + n + ") OR " + n + " " + operator + " " + value + ")"
}

// equals compares with a string; an empty one is not stored.
func (e *expression) equals(attribute, value string) string {
	if value == "" {
		return e.absentOr(attribute, "=", e.value(text("")))
	}
	return e.name(attribute) + " = " + e.value(text(value))
}

// bound is the values, or nil where there are none: DynamoDB refuses an empty map.
func (e *expression) bound() attributes {
	if len(e.values) == 0 {
		return nil
	}
	return e.values
}
