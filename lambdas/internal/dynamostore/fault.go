package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/longshore-run/longshore/shared/fault"
)

// wrap gives an error of DynamoDB its kind; nil and what has a kind stay as they are.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return fmt.Errorf(format+": %w", append(args, err)...)
	}
	return fault.Wrap(kindOf(err), err, format, args...)
}

func kindOf(err error) fault.Kind {
	if canceled, ok := errors.AsType[*types.TransactionCanceledException](err); ok {
		return kindOfReasons(canceled.CancellationReasons)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Unavailable
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return fault.Unavailable // no answer: the network, or a body cut short
	}
	switch code := api.ErrorCode(); code {
	case "ConditionalCheckFailedException", "TransactionConflictException":
		return fault.Conflict
	case "ValidationException", "ItemCollectionSizeLimitExceededException":
		return fault.Invalid
	case "TransactionInProgressException", "InternalServerError", "ServiceUnavailable":
		return fault.Unavailable
	case "IdempotentParameterMismatchException":
		return fault.Internal
	default:
		if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() >= http.StatusInternalServerError {
			return fault.Unavailable
		}
		if _, throttled := retry.DefaultThrottleErrorCodes[code]; throttled {
			return fault.Unavailable
		}
		return fault.Internal
	}
}

// kindOfReasons judges a cancelled transaction by its worst part: one that can
// never succeed, then one whose condition is known to fail, then those that may
// succeed when tried again.
func kindOfReasons(reasons []types.CancellationReason) fault.Kind {
	kinds := map[fault.Kind]bool{}
	for _, r := range reasons {
		switch aws.ToString(r.Code) {
		case "None", "":
		case "ConditionalCheckFailed", "TransactionConflict":
			kinds[fault.Conflict] = true
		case "ProvisionedThroughputExceeded", "ThrottlingError":
			kinds[fault.Unavailable] = true
		case "ValidationError", "ItemCollectionSizeLimitExceeded":
			kinds[fault.Invalid] = true
		default:
			kinds[fault.Internal] = true
		}
	}
	for _, k := range []fault.Kind{fault.Invalid, fault.Internal, fault.Conflict, fault.Unavailable} {
		if kinds[k] {
			return k
		}
	}
	return fault.Unavailable
}

// throttled says whether a transaction was cancelled for want of throughput
// alone, so that the same may be tried again at once.
func throttled(err error) bool {
	canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
	return ok && len(canceled.CancellationReasons) > 0 && kindOfReasons(canceled.CancellationReasons) == fault.Unavailable
}

// cutShort says that an answer came, but could not be read.
func cutShort(err error) aws.Ternary {
	if _, ok := errors.AsType[*smithy.DeserializationError](err); ok {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}

// refusedUnread says that a call was refused, whatever the reason that could not
// be read: one refused was not made.
func refusedUnread(err error) aws.Ternary {
	answer, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if ok && answer.HTTPStatusCode()/100 == 4 && cutShort(err) == aws.TrueTernary {
		return aws.TrueTernary
	}
	return aws.UnknownTernary
}
