package web

import (
	"net"
	"testing"
)

// arrivals is a listener of connections from given addresses.
type arrivals struct {
	net.Listener
	from []string
}

// arrival is one of them.
type arrival struct {
	net.Conn
	from   net.Addr
	closed int
}

func (a *arrival) RemoteAddr() net.Addr { return a.from }

func (a *arrival) Close() error { a.closed++; return nil }

func (a *arrivals) Accept() (net.Conn, error) {
	if len(a.from) == 0 {
		return nil, net.ErrClosed
	}
	ip := net.ParseIP(a.from[0])
	a.from = a.from[1:]
	return &arrival{from: &net.TCPAddr{IP: ip, Port: 4711}}, nil
}

// TestCrowd: one address has a part of the connections, all together have a bound, and who leaves makes room.
func TestCrowd(t *testing.T) {
	many := func(n int, address string) (list []string) {
		for range n {
			list = append(list, address)
		}
		return list
	}
	source := &arrivals{}
	c := newCrowd(source)
	accept := func(from []string) (conns []net.Conn) {
		source.from = from
		for {
			conn, err := c.Accept()
			if err != nil {
				return conns
			}
			conns = append(conns, conn)
		}
	}
	greedy := accept(many(100, "10.0.0.1"))
	local := accept(many(1000, "127.0.0.1"))
	if len(greedy) != maxOfAddress || len(local) != maxConnections-maxOfAddress {
		t.Errorf("%d of one address, %d of the loopback interface", len(greedy), len(local))
	}
	if other := accept(many(1, "10.0.0.2")); len(other) != 0 {
		t.Error("above the bound of all")
	}
	for _, conn := range append(greedy, local...) {
		conn.Close()
		conn.Close()
	}
	if c.all != 0 || len(c.of) != 0 {
		t.Errorf("%d connections, %v are left", c.all, c.of)
	}
	if n := len(accept(many(1, "10.0.0.2"))); n != 1 {
		t.Error("no room was made")
	}
}
