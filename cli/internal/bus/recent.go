package bus

// remembered is how many ids at least are known again: SQS delivers a message
// again within minutes, and a reading may go on for weeks.
const remembered = 10_000

// recent knows the ids that came lately, in two halves of which the older is let go.
type recent struct{ now, before map[string]bool }

// first says whether an id has not come lately, and remembers it.
func (r *recent) first(id string) bool {
	if r.now[id] || r.before[id] {
		return false
	}
	if r.now == nil || len(r.now) == remembered {
		r.now, r.before = map[string]bool{}, r.now
	}
	r.now[id] = true
	return true
}
