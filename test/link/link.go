// Package link is a connection between two programs of this machine that a test
// can spoil: a proxy on loopback, or on a socket in a folder, that passes bytes on
// until it is told a fault. It understands nothing of what it passes, and never
// sends anything twice: that is for queues. Tests alone import it.
package link

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Kind is what is wrong with a link.
type Kind string

// The kinds of fault. Cut, BreakOff and Close end connections; the others do not,
// so it is the client's own time-outs that have to notice.
const (
	None Kind = "none"
	// Cut resets every connection, and new ones as they come.
	Cut Kind = "cut"
	// BlackHole takes new connections and whatever is sent, either way, and drops it.
	// A connection that lost something in it stays deaf after the link is mended, as
	// one is that a firewall on the way has forgotten.
	BlackHole Kind = "black hole"
	// HalfOpen lets through what the client sends, and drops the answers; what lost
	// one stays deaf on that side.
	HalfOpen Kind = "half-open"
	// Stall holds everything until the link is mended: then it arrives, however old.
	Stall Kind = "stall"
	// Delay has each piece arrive later by Fault.Delay.
	Delay Kind = "delay"
	// Slow lets Fault.Rate bytes through in a second, a few at a time.
	Slow Kind = "slow"
	// BreakOff resets a connection when Fault.Bytes of an answer have passed.
	BreakOff Kind = "break off"
)

// Fault is a kind with its measure.
type Fault struct {
	Kind  Kind
	Delay time.Duration
	Rate  int
	Bytes int
}

// Counts are what a link has done to its connections.
type Counts struct {
	Connections   int64 // that were made over it
	Reset         int64 // connections that it ended
	RequestsLost  int64 // pieces of the client's that were dropped
	AnswersLost   int64 // pieces of the server's that were dropped
	Late          int64 // pieces that were stalled, delayed or slowed
	AnswersBroken int64 // answers of which a part arrived
}

// Link is one proxy. All of its methods may be called at any time.
type Link struct {
	listener net.Listener
	network  string
	target   string

	mu      sync.Mutex
	fault   Fault
	changed chan struct{} // closed when the fault changes
	closed  bool
	pairs   map[*pair]bool
	running sync.WaitGroup

	connections, reset, requestsLost, answersLost, late, broken atomic.Int64
}

// New listens on an address of the network ("tcp", "127.0.0.1:0", or "unix" with a
// path) and passes on to the target.
func New(network, address, target string) (*Link, error) {
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, err
	}
	k := &Link{listener: l, network: network, target: target, fault: Fault{Kind: None}, changed: make(chan struct{}), pairs: map[*pair]bool{}}
	k.running.Go(k.accept)
	return k, nil
}

// Addr is where the link listens: HOST:PORT, or the path.
func (l *Link) Addr() string { return l.listener.Addr().String() }

// Set spoils the link, in place of what was wrong with it before; with the zero
// Fault, or None, it is mended.
func (l *Link) Set(f Fault) {
	if f.Kind == "" {
		f.Kind = None
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fault = f
	close(l.changed)
	l.changed = make(chan struct{})
	if f.Kind == Cut {
		for p := range l.pairs {
			l.resetPair(p)
		}
	}
}

// Mend ends whatever is wrong with the link.
func (l *Link) Mend() { l.Set(Fault{}) }

// Counts are read while the link works.
func (l *Link) Counts() Counts {
	return Counts{l.connections.Load(), l.reset.Load(), l.requestsLost.Load(), l.answersLost.Load(), l.late.Load(), l.broken.Load()}
}

// Add sums counts up.
func (c Counts) Add(d Counts) Counts {
	return Counts{
		c.Connections + d.Connections, c.Reset + d.Reset, c.RequestsLost + d.RequestsLost, c.AnswersLost + d.AnswersLost,
		c.Late + d.Late, c.AnswersBroken + d.AnswersBroken,
	}
}

// Close ends the link with all its connections, and waits for its goroutines.
func (l *Link) Close() error {
	err := l.listener.Close()
	l.mu.Lock()
	l.closed = true
	close(l.changed)
	l.changed = make(chan struct{})
	for p := range l.pairs {
		p.close()
	}
	l.mu.Unlock()
	l.running.Wait()
	return err
}

func (l *Link) accept() {
	for {
		c, err := l.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			wait(10*time.Millisecond, nil) // of this connection alone, or there are too many files
			continue
		}
		l.running.Go(func() { l.serve(c) })
	}
}

// now is the fault, a channel that is closed when it changes, and whether the
// link was closed.
func (l *Link) now() (Fault, <-chan struct{}, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.fault, l.changed, l.closed
}

// resetPair is called with l.mu held.
func (l *Link) resetPair(p *pair) {
	if p.over {
		return
	}
	l.reset.Add(1)
	for _, c := range []net.Conn{p.client, p.server} {
		if t, ok := c.(*net.TCPConn); ok {
			_ = t.SetLinger(0) // closing it then resets it
		}
	}
	p.close()
}
