package control

import "time"

// ExpiresAt is where a record says when it may be forgotten; nil for kinds that
// are never forgotten by time.
func ExpiresAt(r Record) *time.Time {
	switch r := r.(type) {
	case *Task:
		return &r.ExpiresAt
	case *Instance:
		return &r.ExpiresAt
	case *Ledger:
		return &r.ExpiresAt
	case *Lease:
		return &r.ExpiresAt
	case *Probe:
		return &r.ExpiresAt
	case *Schedule:
		return &r.ExpiresAt
	case *Token:
		return &r.ExpiresAt
	case *Service:
		return &r.ExpiresAt
	case *ServiceEvents:
		return &r.ExpiresAt
	case *ServiceRevision:
		return &r.ExpiresAt
	case *ServiceDeployment:
		return &r.ExpiresAt
	}
	return nil
}

// ExpirySecond is an expiry as stores keep it: in whole seconds, rounded up,
// so that nothing is forgotten early.
func ExpirySecond(t time.Time) time.Time {
	if whole := t.UTC().Truncate(time.Second); !t.After(whole) {
		return whole
	}
	return t.UTC().Truncate(time.Second).Add(time.Second)
}

// Expired says whether a record's time is over. Stores take it for missing from
// that moment on, because DynamoDB removes expired items hours or days late.
func Expired(r Record, now time.Time) bool {
	at := ExpiresAt(r)
	return at != nil && !at.IsZero() && !now.Before(ExpirySecond(*at))
}
