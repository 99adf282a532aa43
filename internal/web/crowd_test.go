package web

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
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

// gathering is a crowd and its connections.
type gathering struct {
	*crowd
	source *arrivals
}

func gather() gathering {
	source := &arrivals{}
	return gathering{newCrowd(source, maxConnections, false), source}
}

// come has n connections come; an address with a verb is another one for each.
func (g gathering) come(n int, address string) (list []*member) {
	for i := range n {
		from := address
		if net.ParseIP(address) == nil {
			from = fmt.Sprintf(address, i/250, i%250)
		}
		g.source.from = []string{from}
		conn, err := g.Accept()
		if err != nil {
			panic(err)
		}
		list = append(list, conn.(*member))
	}
	return list
}

// stay says how many were not closed.
func stay(list []*member) (n int) {
	for _, m := range list {
		if m.Conn.(*arrival).closed == 0 {
			n++
		}
	}
	return n
}

// TestCrowd: a new connection finds room, and who has the most gives it.
func TestCrowd(t *testing.T) {
	const one, many, network = "10.0.0.1", "10.1.%d.%d", "fd00::%x:%x"
	for name, c := range map[string]struct {
		first, then int
		of, others  string
		want        [2]int // that stay
	}{
		"one address":                     {1, 1000, one, "10.0.0.2", [2]int{1, maxConnections - 1}},
		"this machine":                    {1, 1000, one, "127.0.0.1", [2]int{1, maxConnections - 1}},
		"one network of IPv6":             {2, 1000, one, network, [2]int{2, maxConnections - 2}},
		"an address in a network":         {1, 1000, "fd00::1:0:0", "fd00::1", [2]int{1, maxConnections - 1}},
		"many addresses":                  {1, maxConnections - 1, one, many, [2]int{1, maxConnections - 1}},
		"as many as there are":            {1, maxConnections, one, many, [2]int{0, maxConnections}},
		"many addresses, and who has two": {2, maxConnections - 1, one, many, [2]int{1, maxConnections - 1}},
	} {
		g := gather()
		first := g.come(c.first, c.of)
		then := g.come(c.then, c.others)
		if got := [2]int{stay(first), stay(then)}; got != c.want {
			t.Errorf("%s: %v stay, want %v", name, got, c.want)
		}
		for _, m := range append(first, then...) {
			m.Close()
			m.Close()
		}
		if len(g.members)+len(g.networks)+len(g.addresses) != 0 {
			t.Errorf("%s: %d connections of %v, %v are left", name, len(g.members), g.networks, g.addresses)
		}
	}
}

// TestNeighboursAreNotInside: a packet from another machine that reaches the loopback
// interface opens none of its pages.
func TestNeighboursAreNotInside(t *testing.T) {
	source := &arrivals{from: []string{"10.0.0.1", "fe80::1", "127.0.0.2", "::ffff:10.0.0.1", "::1"}}
	var from []string
	for c := newCrowd(source, maxConnections, true); ; {
		conn, err := c.Accept()
		if err != nil {
			break
		}
		from = append(from, conn.(*member).from.String())
	}
	if got := strings.Join(from, " "); got != "127.0.0.2 ::1" {
		t.Errorf("connections of %s", got)
	}
}

// TestWhoWaitsGoesFirst: of one address, a connection with a request at work stays,
// and one that had one lately stays longer.
func TestWhoWaitsGoesFirst(t *testing.T) {
	g := gather()
	list := g.come(maxConnections, "10.0.0.1")
	list[0].begin()
	list[1].begin()()
	g.come(maxConnections-2, "10.0.0.1")
	if n := stay(list); n != 2 || stay(list[:2]) != 2 {
		t.Errorf("%d stay", n)
	}
	g.come(1, "10.0.0.1")
	if stay(list[:1]) != 1 || stay(list[1:2]) != 0 {
		t.Error("another one than the connection that waits longest was closed")
	}
}

// attack keeps a connection from an address to a server of TLS, and when it is closed does so again as soon as it may.
func attack(ctx context.Context, from, to string, again <-chan struct{}, act func(net.Conn)) {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", to)
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			continue
		}
		end := context.AfterFunc(ctx, func() { conn.Close() })
		act(conn)
		_, _ = io.Copy(io.Discard, conn) // until it is closed
		conn.Close()
		end()
		select {
		case <-ctx.Done():
		case <-again:
		}
	}
}

// TestManyAddressesKeepNobodyOut: 64 addresses hold nine connections each, over which they say nothing, send a request
// slowly or ask and stay. Probes and a reader are answered all the same. So few come again meanwhile that this does not
// measure how many handshakes the machine can do in a second.
func TestManyAddressesKeepNobodyOut(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := onNetwork(t, token)
	ctx, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	const many, few = 576, 64
	again := make(chan struct{}, many)
	comeAgain := func() {
		for range few {
			again <- struct{}{}
		}
	}
	var begun atomic.Int64
	sends := func(text string) func(net.Conn) {
		return func(conn net.Conn) { fmt.Fprint(tls.Client(conn, n.client), text) }
	}
	acts := []func(net.Conn){func(net.Conn) {}, sends("GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "),
		sends("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")}
	for i := range many {
		act := acts[i%len(acts)]
		attackers.Go(func() {
			attack(ctx, fmt.Sprintf("127.1.0.%d", 1+i%64), "127.0.0.1"+n.port, again,
				func(conn net.Conn) { begun.Add(1); act(conn) })
		})
	}
	comeAgain()
	for begun.Load() < many+few { // there was no room for some, and they have come again
		time.Sleep(10 * time.Millisecond)
	}
	for range 20 {
		comeAgain()
		begin := time.Now()
		n.ask("/readyz", "", http.StatusOK)
		n.ask("/metrics", "Bearer secret", http.StatusOK)
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("a probe and a reader took %v", took)
		}
	}
}

// TestProbesShareAQuestion: however many addresses ask for the agent's health, it is asked one thing at a time.
func TestProbesShareAQuestion(t *testing.T) {
	socket := filepath.Join(t.TempDir(), ReadSocket)
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int64
	agent := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		asked.Add(1)
		time.Sleep(50 * time.Millisecond)
	}))
	agent.Listener.Close()
	agent.Listener = l
	agent.Start()
	defer agent.Close()
	site := &Site{agent: Dial(socket), log: quiet(), pages: newSide(newAnswers(local{}, time.Now, quiet()))}
	h := site.health("/readyz")
	var probes sync.WaitGroup
	for range 100 {
		probes.Go(func() {
			w := httptest.NewRecorder()
			if h(w, httptest.NewRequest(http.MethodGet, "/readyz", nil)); w.Code != http.StatusOK {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	probes.Wait()
	if n := asked.Load(); n > 4 {
		t.Errorf("the agent was asked %d times", n)
	}
}
