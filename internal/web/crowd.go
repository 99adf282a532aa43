package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
)

// How many connections a listener has at a time. As many readers of the agent's socket are answered at once as all
// bounds of a side permit: those at work, in the queue and being written, and the streams.
const (
	maxConnections = 512
	maxReaders     = 64
)

// crowd bounds the connections of a listener, each of which costs a goroutine and buffers.
//
// Problem: whoever has many addresses may open all connections and say nothing on them. The kubelet's probes and the
// readers have to be answered all the same.
//
// Approach: a new connection always finds room. Where there is none, the network with the most connections loses one,
// in it the address with the most: one that no request is at work on before others, and of these the one that waits
// longest. So the only connection of an address stays for as long as any network has two.
//
// Known limits: where 512 networks have one connection each,
// a new one has until 512 others have come to send a request.
type crowd struct {
	net.Listener
	most      int  // connections
	inside    bool // who connects has to have an address of the loopback interface, too
	mu        sync.Mutex
	members   []*member // the one that waits longest is first
	networks  tally[netip.Prefix]
	addresses tally[netip.Addr]
}

// tally has a counter for each key that is not at zero.
type tally[K comparable] map[K]*int

// member is a connection of a crowd.
type member struct {
	net.Conn
	crowd *crowd
	from  netip.Addr

	// Guarded by the crowd's lock.
	network, address *int // how many connections they have: looking them up for all members would take too long
	busy             bool // a request is at work
}

func newCrowd(l net.Listener, most int, inside bool) *crowd {
	return &crowd{Listener: l, most: most, inside: inside, networks: tally[netip.Prefix]{},
		addresses: tally[netip.Addr]{}}
}

func (c *crowd) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from, err := addressOf(conn.RemoteAddr())
		m := &member{Conn: conn, crowd: c, from: from}
		// With route_localnet, which kube-proxy sets, a neighbour's packets reach the loopback interface
		// (CVE-2020-8558).
		if err != nil || c.inside && !m.from.IsLoopback() {
			conn.Close()
			continue
		}
		if last := c.enter(m); last != nil {
			last.Conn.Close()
		}
		return m, nil
	}
}

// addressOf is where a connection is from. All connections of a socket of this machine are one client's.
func addressOf(remote net.Addr) (netip.Addr, error) {
	if remote.Network() == "unix" {
		return netip.Addr{}, nil
	}
	from, err := netip.ParseAddrPort(remote.String())
	return from.Addr().Unmap(), err
}

// enter takes a connection in. Where there was no room, it returns the one that has to go.
func (c *crowd) enter(m *member) (last *member) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.members) >= c.most {
		last = slices.MaxFunc(c.members, sooner) // the first of equals
		c.remove(last)
	}
	c.members = append(c.members, m)
	m.network, m.address = c.networks.add(networkOf(m.from)), c.addresses.add(m.from)
	return last
}

// sooner is above zero where a has to go before b.
func sooner(a, b *member) int {
	idle := func(m *member) int {
		if m.busy {
			return 0
		}
		return 1
	}
	return cmp.Or(*a.network-*b.network, *a.address-*b.address, idle(a)-idle(b))
}

// remove takes a connection out that is still in. The lock is held.
func (c *crowd) remove(m *member) {
	at := slices.Index(c.members, m)
	if at < 0 {
		return
	}
	c.members = slices.Delete(c.members, at, at+1)
	c.networks.remove(networkOf(m.from))
	c.addresses.remove(m.from)
}

func (t tally[K]) add(k K) *int {
	if t[k] == nil {
		t[k] = new(int)
	}
	*t[k]++
	return t[k]
}

func (t tally[K]) remove(k K) {
	if *t[k]--; *t[k] == 0 {
		delete(t, k)
	}
}

// networkOf is what one client may have: an address of IPv4,
// or the 64 bits of IPv6 that a host chooses its addresses in.
func networkOf(from netip.Addr) netip.Prefix {
	bits := 64
	if from.Is4() {
		bits = 32
	}
	network, _ := from.Prefix(bits) // no error: the address has as many bits
	return network
}

func (m *member) Close() error {
	m.crowd.mu.Lock()
	m.crowd.remove(m)
	m.crowd.mu.Unlock()
	return m.Conn.Close()
}

// begin says that a request is at work. The connection waits from the end on.
func (m *member) begin() (end func()) {
	m.crowd.mu.Lock()
	defer m.crowd.mu.Unlock()
	m.busy = true
	return func() {
		m.crowd.mu.Lock()
		defer m.crowd.mu.Unlock()
		m.busy = false
		if at := slices.Index(m.crowd.members, m); at >= 0 {
			m.crowd.members = append(slices.Delete(m.crowd.members, at, at+1), m)
		}
	}
}

// memberKey is where the context of a request has the connection.
type memberKey struct{}

// withMember is http.Server.ConnContext.
func withMember(ctx context.Context, conn net.Conn) context.Context {
	if c, ok := conn.(*tls.Conn); ok {
		conn = c.NetConn()
	}
	return context.WithValue(ctx, memberKey{}, conn)
}

// atWork tells the crowd which connections have a request at work: those without one close first.
func atWork(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if m, ok := r.Context().Value(memberKey{}).(*member); ok {
			defer m.begin()()
		}
		next.ServeHTTP(w, r)
	})
}
