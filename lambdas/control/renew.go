package control

// Renewable says whether a heartbeat renews the lease: it is of the lease's
// incarnation and was sent later than the last one that did.
func (r *Lease) Renewable(by Renewal) bool {
	return r.Incarnation == by.Incarnation && by.Sent.After(r.Sent)
}

// Renew does to a renewable lease what Store.Renew does to the stored one.
func (r *Lease) Renew(by Renewal) {
	r.Sent = by.Sent
	r.Beats++
	if r.Session != by.Session {
		r.PrevSession, r.Session = r.Session, by.Session
	}
}
