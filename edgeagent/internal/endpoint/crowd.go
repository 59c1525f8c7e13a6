package endpoint

import (
	"net"
	"net/netip"
	"sync"
)

// crowd is a listener that holds so many connections of one address, and so many of
// all. When there is one too many the oldest of the address that has the most is
// closed: whoever opens many and lets them lie loses his own.
type crowd struct {
	net.Listener
	ofOne, ofAll int

	mu   sync.Mutex
	held map[netip.Addr][]*guest // the oldest first
	all  int
}

type guest struct {
	net.Conn
	of   *crowd
	from netip.Addr
	once sync.Once
}

func crowded(l net.Listener, ofOne, ofAll int) net.Listener {
	return &crowd{Listener: l, ofOne: ofOne, ofAll: ofAll, held: map[netip.Addr][]*guest{}}
}

// Accept implements net.Listener.
func (c *crowd) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err != nil {
		return nil, err
	}
	g := &guest{Conn: conn, of: c}
	if at, err := netip.ParseAddrPort(conn.RemoteAddr().String()); err == nil {
		g.from = at.Addr().Unmap()
	}
	if out := c.enter(g); out != nil {
		_ = out.Close() // its owner has had his time
	}
	return g, nil
}

// enter takes one in, and says who has to go for it.
func (c *crowd) enter(g *guest) (out *guest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held[g.from] = append(c.held[g.from], g)
	c.all++
	switch {
	case len(c.held[g.from]) > c.ofOne:
		return c.held[g.from][0]
	case c.all > c.ofAll:
		most := g.from
		for from, list := range c.held {
			if len(list) > len(c.held[most]) {
				most = from
			}
		}
		return c.held[most][0]
	}
	return nil
}

// Close implements net.Conn.
func (g *guest) Close() error {
	g.once.Do(func() {
		g.of.mu.Lock()
		defer g.of.mu.Unlock()
		list := g.of.held[g.from]
		for i, one := range list {
			if one == g {
				g.of.held[g.from] = append(list[:i:i], list[i+1:]...)
				g.of.all--
				break
			}
		}
		if len(g.of.held[g.from]) == 0 {
			delete(g.of.held, g.from)
		}
	})
	return g.Conn.Close()
}
