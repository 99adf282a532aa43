package requests

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf"
)

// An answer of three sends is over with the last, and the client, which measures more, has measured at least as much.
func TestRequestAnswers(t *testing.T) {
	w := newWorld(t, "server")
	w.start()
	const n, wait, gap = 40, 20 * ms, 5 * ms
	c, asked := w.connect(), time.Duration(0)
	for range n {
		asked += c.ask(order{wait: wait, sends: 3, gap: gap})
	}
	got := w.settled(n)
	if got.Requests < n-2 || got.Doubtful > 0 || got.Withheld() || got.Split != got.Requests-1 && got.Split != got.Requests {
		t.Errorf("%d requests, %d doubtful, %d overtaken, %d split: want %d", got.Requests, got.Doubtful, got.Overtaken, got.Split, n)
	}
	if least := time.Duration(got.Requests) * (wait + 2*gap); got.Time < least || got.Time > asked {
		t.Errorf("the answers took %v, want %v (what the server sleeps) to %v (what the client has waited)", got.Time, least, asked)
	}
	for _, one := range []struct {
		what    string
		lengths Lengths
		least   time.Duration
		n       int64
	}{{"response", got.Response, wait + 2*gap, got.Requests}, {"first byte", got.FirstByte, wait, got.Requests}, {"rest", got.Rest, wait + 2*gap, got.Split},
		{"upload", got.Upload, 0, got.Requests}} {
		if shortest := one.lengths.Quantile(0); one.lengths.N() != one.n || shortest < one.least*97/100 {
			t.Errorf("%s: %d of %v at least, want %d of %v at least", one.what, one.lengths.N(), shortest, one.n, one.least)
		}
	}
	if response, first := got.Response.Quantile(0.5), got.FirstByte.Quantile(0.5); first > response-gap || got.Throttled > 0 {
		t.Errorf("p50 %v, first byte %v, %v throttled", response, first, got.Throttled)
	}
}

// Requests that are answered beside each other on one connection are told apart by nobody.
func TestRequestsAtATime(t *testing.T) {
	w := newWorld(t, "server")
	w.start()
	const n = 60
	c := w.connect()
	done := make(chan bool)
	go func() {
		defer close(done)
		for range n {
			c.answer()
		}
	}()
	for range n {
		c.write("+" + order{wait: 20 * ms, sends: 1}.String())
		time.Sleep(5 * ms)
	}
	<-done
	if got := w.read(); got.Doubtful == 0 || !got.Withheld() {
		t.Errorf("%d requests, %d doubtful: want the figures withheld", got.Requests, got.Doubtful)
	}
}

// A request in pieces that the server reads together takes from the first piece to the last to arrive. One piece that
// the server has read before the next arrives makes it doubtful.
func TestRequestPieces(t *testing.T) {
	w := newWorld(t, "server")
	w.start()
	c := w.connect()
	const gap = 20 * ms
	c.ask(order{sends: 1, rest: 200 * ms}) // so long it does not read
	w.settled(1)                           // or the next request may overtake the answer
	line := order{sends: 1}.String()
	c.write(line[:2])
	time.Sleep(gap)
	c.write(line[2:])
	c.answer()
	got := w.settled(2)
	if longest := got.Upload.Quantile(1); got.Requests != 2 || longest < gap*97/100 || got.Response.Quantile(1) < 50*ms {
		t.Errorf("%d requests, the longest took %v to arrive and %v to be answered", got.Requests, longest, got.Response.Quantile(1))
	}
	w.settled(2)
	c.write(line[:2])
	time.Sleep(gap)
	c.write(line[2:])
	c.answer()
	if got := w.settled(3); got.Doubtful != 1 {
		t.Errorf("%d doubtful, want 1", got.Doubtful)
	}
}

// Sockets that are there before the programs are taken over, also those of a listening socket of Multipath TCP.
func TestRequestTakeOver(t *testing.T) {
	for _, role := range []string{"server", "multipath"} {
		t.Run(role, func(t *testing.T) {
			w := newWorld(t, role)
			old := w.connect()
			old.ask(order{sends: 1})
			w.start()
			old.ask(order{sends: 1})
			if got := w.settled(1); got.Split != got.Requests {
				t.Errorf("throttled time of %d of %d requests", got.Split, got.Requests)
			}
			w.connect().ask(order{sends: 1})
			if got := w.settled(2); got.Split != got.Requests {
				t.Errorf("throttled time of %d of %d requests", got.Split, got.Requests)
			}
		})
	}
}

// The throttled part of a server that does nothing but answer is its group's throttled time.
func TestRequestThrottledPart(t *testing.T) {
	w := newWorld(t, "server")
	w.group.Limit(10 * ms)
	w.start()
	c := w.connect()
	for range 20 {
		c.ask(order{burn: 15 * ms, sends: 1})
	}
	got := w.settled(20)
	total, ok := w.clock.Totals(w.id)
	if !ok || got.Throttled < total.Wall*3/4 || got.Throttled > total.Wall*51/50 || total.Wall < 200*ms {
		t.Errorf("%v of the answers throttled, of the group %v", got.Throttled, total.Wall)
	}
	if rest := got.Time - got.Throttled; rest < time.Duration(got.Requests)*12*ms { // another CPU may be throttled while it runs
		t.Errorf("%d requests took %v, of which %v throttled: want the 15ms of each left that it computes", got.Requests, got.Time, got.Throttled)
	}
	t.Logf("%d requests in %v, of which %v throttled (group: %v); p50 %v, without %v", got.Requests, got.Time, got.Throttled, total.Wall,
		got.Response.Quantile(0.5), got.Rest.Quantile(0.5))
}

// A group that is not watched any more, or not yet, costs nothing and is not counted.
func TestRequestGroups(t *testing.T) {
	w := newWorld(t, "server")
	w.start()
	c := w.connect()
	c.ask(order{sends: 1})
	w.settled(1)
	w.watch()
	c.ask(order{sends: 1})
	if _, err := w.r.Read(w.id); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("read a group that is not watched: %v", err)
	}
	w.watch(w.id)
	c.ask(order{sends: 1})
	w.settled(1)
}

// A container's own groups are part of it.
func TestRequestInnerGroup(t *testing.T) {
	w := newWorld(t, "server", "inner")
	w.start()
	w.connect().ask(order{sends: 1})
	w.settled(1)
}
