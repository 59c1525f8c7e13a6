package link

import (
	"net"
	"sync"
	"time"
)

// pair is one connection over a link: the client's and ours to the server. mu of
// the link guards over.
type pair struct {
	client, server net.Conn // server is nil in a black hole: nobody was called
	over           bool
	once           sync.Once

	answered int // bytes of the present answer, of one goroutine at a time
	answerMu sync.Mutex
}

func (p *pair) close() {
	p.once.Do(func() {
		p.over = true
		_ = p.client.Close()
		if p.server != nil {
			_ = p.server.Close()
		}
	})
}

// serve carries one connection until both of its sides have ended.
func (l *Link) serve(c net.Conn) {
	l.connections.Add(1)
	p := &pair{client: c}
	fault, _, _ := l.now()
	if fault.Kind != BlackHole {
		server, err := net.Dial(l.network, l.target)
		if err != nil {
			_ = c.Close() // as the server itself does
			return
		}
		p.server = server
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		p.close()
		return
	}
	l.pairs[p] = true
	if l.fault.Kind == Cut {
		l.resetPair(p)
	}
	l.mu.Unlock()
	var both sync.WaitGroup
	if p.server == nil {
		both.Go(func() { l.swallow(p) })
	} else {
		both.Go(func() { l.carry(p, p.client, p.server, true) })
		both.Go(func() { l.carry(p, p.server, p.client, false) })
	}
	both.Wait()
	l.mu.Lock()
	delete(l.pairs, p)
	p.close()
	l.mu.Unlock()
}

// swallow is a connection that was made into a black hole: it ends when the
// client gives it up.
func (l *Link) swallow(p *pair) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := p.client.Read(buffer)
		if n > 0 {
			l.requestsLost.Add(1)
		}
		if err != nil {
			return
		}
	}
}

// carry passes on what one side sends. A side that ended is told to the other,
// unless the connection is deaf in that direction: there nobody learns anything.
func (l *Link) carry(p *pair, from, to net.Conn, up bool) {
	buffer := make([]byte, 32<<10)
	deaf := false
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			deaf = l.pass(p, to, buffer[:n], up, deaf) || deaf
		}
		if err != nil {
			break
		}
	}
	fault, _, closed := l.now()
	if !closed && (deaf || fault.Kind == BlackHole || fault.Kind == HalfOpen && !up) {
		if up { // the client is gone, and its socket with it
			_ = from.Close()
		}
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite() // or it has ended, too
		return
	}
	_ = to.Close()
}

// pass lets one piece through, as the fault allows; true if it was dropped.
func (l *Link) pass(p *pair, to net.Conn, piece []byte, up, deaf bool) (dropped bool) {
	if up {
		p.answerMu.Lock()
		p.answered = 0
		p.answerMu.Unlock()
	}
	wasLate := false
	for {
		fault, changed, closed := l.now()
		switch {
		case closed:
			return true
		case deaf || fault.Kind == BlackHole || fault.Kind == HalfOpen && !up:
			if up {
				l.requestsLost.Add(1)
			} else {
				l.answersLost.Add(1)
			}
			return true
		case fault.Kind == Stall:
			if !wasLate {
				wasLate = true
				l.late.Add(1)
			}
			<-changed
			continue
		case fault.Kind == Delay:
			l.late.Add(1)
			wait(fault.Delay, changed)
		case fault.Kind == Slow && fault.Rate > 0:
			if !wasLate {
				wasLate = true
				l.late.Add(1)
			}
			if n := trickle(to, piece, fault.Rate, changed); n < len(piece) {
				piece = piece[n:]
				continue // it has changed, or the other side is gone
			}
			return false
		case fault.Kind == BreakOff && !up:
			if p.breakOff(to, piece, fault.Bytes) {
				l.broken.Add(1)
				l.mu.Lock()
				l.resetPair(p)
				l.mu.Unlock()
				return true
			}
			return false
		}
		_, _ = to.Write(piece) // the other side's end is found by reading from it
		return false
	}
}

// breakOff writes of a piece what still fits into most bytes of the answer; true
// if that was not all.
func (p *pair) breakOff(to net.Conn, piece []byte, most int) bool {
	p.answerMu.Lock()
	defer p.answerMu.Unlock()
	fits := min(len(piece), max(0, most-p.answered))
	p.answered += fits
	_, _ = to.Write(piece[:fits])
	return fits < len(piece)
}

// trickle writes a few bytes at a time and returns how many, all if the other
// side is gone.
func trickle(to net.Conn, piece []byte, rate int, changed <-chan struct{}) int {
	const steps = 20 // a second
	few := max(1, rate/steps)
	for n := 0; n < len(piece); n += few {
		if _, err := to.Write(piece[n:min(n+few, len(piece))]); err != nil {
			return len(piece)
		}
		if !wait(time.Second/steps, changed) {
			return min(n+few, len(piece))
		}
	}
	return len(piece)
}

// wait is over early, and false, when the fault changes.
func wait(d time.Duration, changed <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-changed:
		return false
	}
}
