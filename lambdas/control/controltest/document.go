package controltest

import (
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

// Document is a record as the store in memory keeps it, and from when on it is
// taken for missing (zero: never). A model checker keeps states of the store as
// documents.
func Document(r control.Record) (doc []byte, expires time.Time) {
	it := encode(r)
	return it.doc, it.expires
}

// FromDocument fills a record with a document of the given version.
func FromDocument(r control.Record, version int64, doc []byte, expires time.Time) {
	decode(item{version: version, doc: doc, expires: expires}, r)
}

// Matches says whether the index of q shows t.
func Matches(q control.TaskQuery, t *control.Task) bool { return matches(q, t) }
