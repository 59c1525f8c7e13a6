package ecsapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"

	"github.com/longshore-run/longshore/lambdas/control"
)

const maxResults = 100

// position is what a paging token holds: where its list goes on, and a sum that
// binds it to the operation and the filters it was given for.
type position struct {
	Cursor control.Cursor `json:"c"`
	Sum    []byte         `json:"k"`
}

// listing is one request for a page of a list.
type listing struct {
	scope  []byte
	cursor control.Cursor
	limit  int
}

// newListing reads the paging members of a request; scope is the operation and
// whatever else of the request a token is good for alone.
func newListing(token string, max *int, scope ...any) (*listing, error) {
	l := &listing{limit: maxResults}
	l.scope, _ = json.Marshal(scope)
	if max != nil {
		if l.limit = *max; l.limit < 1 || l.limit > maxResults {
			return nil, parameter("maxResults", "is %d; 1 to %d are allowed", l.limit, maxResults)
		}
	}
	if token == "" {
		return l, nil
	}
	var p position
	b, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(b, &p)
	}
	if err != nil || !bytes.Equal(p.Sum, l.sum(p.Cursor)) {
		return nil, parameter("nextToken", "is not one that this operation gave for the same request")
	}
	l.cursor = p.Cursor
	return l, nil
}

func (l *listing) sum(c control.Cursor) []byte {
	b, _ := json.Marshal(c)
	sum := sha256.Sum256(append(append([]byte{}, l.scope...), b...))
	return sum[:9]
}

// token is the paging token of where a list goes on, "" at its end.
func (l *listing) token(next control.Cursor) string {
	if next == (control.Cursor{}) {
		return ""
	}
	b, _ := json.Marshal(position{next, l.sum(next)})
	return base64.RawURLEncoding.EncodeToString(b)
}
