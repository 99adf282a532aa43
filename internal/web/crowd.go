package web

import (
	"net"
	"net/netip"
	"sync"
)

const (
	maxConnections = 512 // at a time, of a listener of the network
	maxOfAddress   = 32  // of these, by one address that is not of the loopback interface
)

// crowd bounds the connections of a listener, each of which costs a goroutine and buffers. What is too many is closed at
// once: whoever waited in the kernel's queue would keep the kubelet's probes waiting too.
type crowd struct {
	net.Listener
	mu  sync.Mutex
	all int
	of  map[netip.Addr]int
}

func newCrowd(l net.Listener) *crowd { return &crowd{Listener: l, of: map[netip.Addr]int{}} }

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := netip.ParseAddrPort(conn.RemoteAddr().String())
		if err == nil && c.enter(from.Addr()) {
			return &member{Conn: conn, leave: sync.OnceFunc(func() { c.leave(from.Addr()) })}, nil
		}
		conn.Close()
	}
}

func (c *crowd) enter(from netip.Addr) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all >= maxConnections || !from.IsLoopback() && c.of[from] >= maxOfAddress {
		return false
	}
	c.all++
	c.of[from]++
	return true
}

func (c *crowd) leave(from netip.Addr) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all--
	if c.of[from]--; c.of[from] == 0 {
		delete(c.of, from)
	}
}

// member is a connection that was accepted.
type member struct {
	net.Conn
	leave func()
}

func (m *member) Close() error {
	m.leave()
	return m.Conn.Close()
}
