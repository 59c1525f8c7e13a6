package control

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/longshore-run/longshore/shared/fault"
)

// MaxPage is how much of a list one page holds at most.
const MaxPage = 1000

// Size is how many rows the page asks for.
func (p Page) Size() int {
	if p.Limit <= 0 || p.Limit > MaxPage {
		return MaxPage
	}
	return p.Limit
}

// From is the sort key after which the page starts, "" for the first page.
// list names the list and what it was asked for: a token of another list is a
// fault of kind Invalid.
func (p Page) From(list string) (string, error) {
	if p.After == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(p.After)
	if err != nil || len(raw) <= markBytes || string(raw[:markBytes]) != mark(list, string(raw[markBytes:])) {
		return "", fault.Field("nextToken", "must be a token that this list returned, with the request otherwise the same")
	}
	return string(raw[markBytes:]), nil
}

// PageToken is the token of the page that follows the row with sort key last.
func PageToken(list, last string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(mark(list, last) + last))
}

const markBytes = 6

// mark ties a token to its list. It guards against mistakes, not against malice:
// a forged token only makes its own list start elsewhere.
func mark(list, last string) string {
	sum := sha256.Sum256([]byte(list + "\x00" + last))
	return string(sum[:markBytes])
}

// ListName names the list of a query for its page tokens.
func (q TaskQuery) ListName() string {
	name := "tasks\x00" + q.Cluster + "\x00" + q.OnInstance + "\x00" + q.Group + "\x00" + string(q.Waiting)
	if q.Stopped {
		name += "\x00stopped"
	}
	return name
}

// Names of the other lists, for their page tokens.
const (
	ClusterList  = "clusters"
	LedgerList   = "ledgers"
	LiveTaskList = "live tasks"
)

func InstanceList(cluster string) string { return "instances\x00" + cluster }

func ServiceList(cluster string) string { return "services\x00" + cluster }

func ServiceDeploymentList(cluster, service string) string {
	return "service deployments\x00" + cluster + "\x00" + service
}

func FamilyList(prefix string) string { return "families\x00" + prefix }

func RevisionList(family string, descending bool) string {
	if descending {
		return "revisions descending\x00" + family
	}
	return "revisions\x00" + family
}

// pages calls f with everything that a paged list gives.
func pages[T any](ctx context.Context, list func(context.Context, Page) ([]T, string, error), f func(*T)) error {
	for after := ""; ; {
		all, next, err := list(ctx, Page{After: after})
		if err != nil {
			return err
		}
		for i := range all {
			f(&all[i])
		}
		if after = next; next == "" {
			return nil
		}
	}
}

// everything is all that a paged list gives.
func everything[T any](ctx context.Context, list func(context.Context, Page) ([]T, string, error)) (all []T, err error) {
	err = pages(ctx, list, func(one *T) { all = append(all, *one) })
	return all, err
}
