package ecsapi

import "context"

type callKey struct{}

// contextOf lets an operation see the call it answers: who asks, and where.
func contextOf(ctx context.Context, q *call) context.Context {
	return context.WithValue(ctx, callKey{}, q)
}

func callOf(ctx context.Context) *call { return ctx.Value(callKey{}).(*call) }
