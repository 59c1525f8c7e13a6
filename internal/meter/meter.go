// Package meter watches the calls that an AWS client makes: which they are, and
// what DynamoDB says they cost. It keeps nothing and decides nothing. Mains, what
// boots them, and tests import it.
package meter

import (
	"context"
	"reflect"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go/middleware"
)

// Call is one call of an AWS API that has ended.
type Call struct {
	Service, Operation string
	// Requests is how often it was sent: more than once where it was repeated.
	Requests int
	// Read and Write are the units of DynamoDB's answer, indexes included; of a
	// repeated call those of the last answer.
	Read, Write float64
	Err         error
}

// Name is the call's service and operation.
func (c Call) Name() string { return c.Service + "." + c.Operation }

// Observe makes an entry for aws.Config.APIOptions that tells f of each call. It
// asks DynamoDB what a call costs, which changes nothing else of the call.
func Observe(f func(context.Context, Call)) func(*middleware.Stack) error {
	watch := middleware.InitializeMiddlewareFunc("longshore-meter", func(
		ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler,
	) (middleware.InitializeOutput, middleware.Metadata, error) {
		askCapacity(in.Parameters)
		out, metadata, err := next.HandleInitialize(ctx, in)
		c := Call{Service: awsmiddleware.GetServiceID(ctx), Operation: awsmiddleware.GetOperationName(ctx), Requests: 1, Err: err}
		if tries, ok := retry.GetAttemptResults(metadata); ok {
			c.Requests = max(len(tries.Results), 1)
		}
		if units := capacity(out.Result); reads(c.Operation) {
			c.Read = units
		} else {
			c.Write = units
		}
		f(ctx, c)
		return out, metadata, err
	})
	return func(stack *middleware.Stack) error { return stack.Initialize.Add(watch, middleware.After) }
}

// askCapacity sets a request's ReturnConsumedCapacity, if it has one. By reflection,
// for the agent knows no DynamoDB and is not to grow by it.
func askCapacity(parameters any) {
	v := reflect.ValueOf(parameters)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	if f := v.Elem().FieldByName("ReturnConsumedCapacity"); f.IsValid() && f.Kind() == reflect.String && f.String() == "" {
		f.SetString("TOTAL")
	}
}

// capacity adds up an answer's ConsumedCapacity: one, or one for each table.
func capacity(result any) (units float64) {
	v := reflect.ValueOf(result)
	if v.Kind() != reflect.Pointer || v.IsNil() || v.Elem().Kind() != reflect.Struct {
		return 0
	}
	f := v.Elem().FieldByName("ConsumedCapacity")
	switch {
	case !f.IsValid():
	case f.Kind() == reflect.Slice:
		for i := range f.Len() {
			units += unitsOf(f.Index(i))
		}
	case f.Kind() == reflect.Pointer && !f.IsNil():
		units = unitsOf(f.Elem())
	}
	return units
}

func unitsOf(v reflect.Value) float64 {
	if v.Kind() != reflect.Struct {
		return 0
	}
	f := v.FieldByName("CapacityUnits")
	if !f.IsValid() || f.Kind() != reflect.Pointer || f.IsNil() || f.Elem().Kind() != reflect.Float64 {
		return 0
	}
	return f.Elem().Float()
}

// reads tells DynamoDB's reading operations from those that write.
func reads(operation string) bool {
	return strings.HasSuffix(operation, "GetItem") || operation == "Query" || operation == "Scan" || operation == "TransactGetItems"
}
