package installation

import (
	"context"
	"encoding/json"
)

// Audit is the answer of the audit function.
type Audit struct {
	Ledgers     int          `json:"ledgers"`
	Services    int          `json:"services"`
	Busy        int          `json:"busy"`
	Differences []Difference `json:"differences"`
}

// Difference is one book that its tasks do not add up to.
type Difference struct {
	Cluster  string          `json:"cluster"`
	Instance string          `json:"instance,omitempty"`
	Service  string          `json:"service,omitempty"`
	Book     json.RawMessage `json:"book"`
	Tasks    json.RawMessage `json:"tasks"`
	Repaired bool            `json:"repaired"`
}

// Audit recomputes every ledger and every service's count from the tasks, now. It
// repairs only where the installation is set to (longshore:auditRepairs).
func (in *Installation) Audit(ctx context.Context) (*Audit, error) {
	out := &Audit{}
	return out, in.invoke(ctx, "Audit", map[string]any{}, out)
}
