package requests

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
	"plimsoll/internal/probe/probetest"
)

// One world for all: to load the programs takes longer than the rest where the CPU is emulated.
func TestRequests(t *testing.T) {
	w := newWorld(t, Options{})
	w.start()
	w.addr = serveIn(t, w.group.Child("inner"), "server")
	for _, c := range []struct {
		name string
		test func(*world)
	}{
		{"answers", answersTakeTime}, {"pieces", pieces}, {"several at a time", severalAtATime},
		{"the throttled part", throttledPart}, {"no clock", noClock},
		{"groups", groups}, {"missed", missed},
	} {
		t.Run(c.name, func(t *testing.T) {
			w.t = t
			c.test(w)
		})
	}
}

// An answer of three sends is over with the last, and the client, which measures more, has measured at least as much.
// On a CPU that is emulated the client's next request overtakes the program at the last send at times.
func answersTakeTime(w *world) {
	const n, wait, gap = 40, 20 * ms, 5 * ms
	earlier, c, asked := w.read(), w.connect(), time.Duration(0)
	for range n {
		asked += c.ask(order{wait: wait, sends: 3, gap: gap})
	}
	got := w.settled(earlier, n)
	if got.Requests < n-2 || got.Doubtful > 0 || got.Withheld() || got.Split < got.Requests-1 {
		w.t.Errorf("%d requests, %d doubtful, %d overtaken, %d split: want %d", got.Requests, got.Doubtful,
			got.Overtaken, got.Split, n)
	}
	if least := time.Duration(got.Requests) * (wait + 2*gap); got.Time < least || got.Time > asked {
		w.t.Errorf("the answers took %v, want %v (what the server sleeps) to %v (what the client has waited)", got.Time,
			least, asked)
	}
	for _, one := range []struct {
		what    string
		lengths Lengths
		least   time.Duration
		n       int64
	}{{"response", got.Response, wait + 2*gap, got.Requests}, {"first byte", got.FirstByte, wait, got.Requests},
		{"rest", got.Rest, wait + 2*gap, got.Split}, {"upload", got.Upload, 0, got.Requests}} {
		if shortest := one.lengths.Quantile(0); one.lengths.N() != one.n || shortest < one.least*97/100 {
			w.t.Errorf("%s: %d of %v at least, want %d of %v at least", one.what, one.lengths.N(), shortest, one.n,
				one.least)
		}
	}
	if response, first := got.Response.Quantile(0.5), got.FirstByte.Quantile(0.5); first > response-gap ||
		got.Throttled > 0 {
		w.t.Errorf("p50 %v, first byte %v, %v throttled", response, first, got.Throttled)
	}
}

// A request in pieces that the server reads together takes from the first piece to the last to arrive. One piece that
// the server has read before the next arrives makes it doubtful.
func pieces(w *world) {
	earlier, c := w.read(), w.connect()
	// longer than an acknowledgement is put off: then the kernel joins the pieces
	const gap, late = 60 * ms, 60 * ms
	c.ask(order{sends: 1}) // the server has accepted it
	w.settled(earlier, 1)  // or the next request may overtake the answer
	line := order{sends: 1}.String()
	w.stopped(func() {
		c.write(line[:2])
		time.Sleep(gap)
		c.write(line[2:])
		time.Sleep(late)
	})
	c.answer()
	got := w.settled(earlier, 2)
	if longest := got.Upload.Quantile(1); got.Requests != 2 || longest < gap*97/100 ||
		got.Response.Quantile(1) < late*97/100 {
		w.t.Errorf("%d requests, the longest took %v to arrive and %v to be answered", got.Requests, longest,
			got.Response.Quantile(1))
	}
	c.write(line[:2])
	c.isRead()
	c.write(line[2:])
	c.answer()
	if got := w.settled(earlier, 3); got.Doubtful != 1 {
		w.t.Errorf("%d doubtful, want 1", got.Doubtful)
	}
}

// Requests that are answered beside each other on one connection are told apart by nobody.
func severalAtATime(w *world) {
	const n = 60
	earlier, c := w.read(), w.connect()
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
	total := w.read()
	if got := total.Since(&earlier); got.Doubtful == 0 || !got.Withheld() {
		w.t.Errorf("%d requests, %d doubtful: want the figures withheld", got.Requests, got.Doubtful)
	}
}

// The throttled part of a server that does nothing but answer is its group's throttled time. It has one CPU: a group
// whose threads stand still on another one counts as throttled while the server computes.
func throttledPart(w *world) {
	const n, work = 20, 15 * ms
	w.onOneCPU()
	w.group.Limit(10 * ms)
	defer w.group.Limit(cpu.Unlimited)
	earlier, c := w.read(), w.connect()
	was, _ := w.clock.Totals(w.id)
	for range n {
		c.ask(order{burn: work, sends: 1})
	}
	got := w.settled(earlier, n)
	is, ok := w.clock.Totals(w.id)
	wall := is.Wall - was.Wall
	if !ok || got.Throttled < wall*3/4 || got.Throttled > wall*51/50 || wall < 200*ms {
		w.t.Errorf("%v of the answers throttled, of the group %v", got.Throttled, wall)
	}
	if rest := got.Time - got.Throttled; rest < time.Duration(got.Requests)*work*4/5 {
		w.t.Errorf("%d requests took %v, of which %v throttled: want what each computes left, %v", got.Requests,
			got.Time, got.Throttled, work)
	}
	w.t.Logf("%d requests in %v, of which %v throttled (group: %v); p50 %v, without %v", got.Requests, got.Time,
		got.Throttled, wall, got.Response.Quantile(0.5), got.Rest.Quantile(0.5))
}

// The throttled part of a response is not known where nobody counts the group's throttled time, and is not taken for 0.
func noClock(w *world) {
	if err := w.clock.Watch(nil); err != nil {
		w.t.Fatal(err)
	}
	defer w.watch(w.id)
	earlier, c := w.read(), w.connect()
	for range 3 {
		c.ask(order{wait: ms, sends: 2, gap: ms})
	}
	if got := w.settled(earlier, 3); got.Split != 0 || got.Rest.N() != 0 {
		w.t.Errorf("throttled time of %d of %d requests", got.Split, got.Requests)
	}
}

// A group that is not watched any more, or not yet, is not counted, and begins anew. The answers of a group inside of a
// watched one that is watched itself are its own.
func groups(w *world) {
	earlier, c := w.read(), w.connect()
	c.ask(order{sends: 1})
	w.settled(earlier, 1)
	w.watch()
	c.ask(order{sends: 1})
	time.Sleep(behind)
	if _, err := w.r.Read(w.id); !errors.Is(err, ebpf.ErrKeyNotExist) {
		w.t.Errorf("read a group that is not watched: %v", err)
	}
	w.watch(w.id)
	c.ask(order{sends: 1})
	w.settled(Counts{}, 1)
	inner, err := w.group.Tree().Inode(w.group.Path + "/inner")
	if err != nil {
		w.t.Fatal(err)
	}
	w.watch(w.id, inner)
	w.connect().ask(order{sends: 1}) // on a new connection: c remembers whose it is
	w.settled(Counts{}, 1)
	w.id = inner
	w.settled(Counts{}, 1)
	w.watch(inner)
	c.ask(order{sends: 1}) // and looks anew when that is not watched any more
	w.settled(Counts{}, 2)
}

// Sockets that are there before the programs are taken over, also those of a listening socket of Multipath TCP.
func TestRequestTakeOver(t *testing.T) {
	w := newWorld(t, Options{})
	for _, role := range []string{"server", "multipath"} {
		w.addr = serveIn(t, w.group.Child(role), role)
		old := w.connect()
		old.ask(order{sends: 1})
		w.start()
		earlier := w.read()
		old.ask(order{sends: 1})
		w.settled(earlier, 1)
		w.connect().ask(order{sends: 1})
		if got := w.settled(earlier, 2); got.Split != got.Requests {
			t.Errorf("%s: throttled time of %d of %d requests", role, got.Split, got.Requests)
		}
		if err := w.r.programs.Detach(); err != nil {
			t.Fatal(err)
		}
	}
}

// The verifier is far from its limit.
func TestVerifierOfRequests(t *testing.T) {
	_, p := open(t, Options{})
	probetest.FarFromLimit(t, p.programs.All())
}

// What the programs do not see of a request, its arrival or its send, is in no length, and not taken for a part of
// another request.
func missed(w *world) {
	see := func(on bool) {
		err := w.r.programs.Detach()
		if on {
			err = w.r.attach()
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
	const wait = time.Second // longer than it takes to attach the programs
	earlier, c := w.read(), w.connect()
	c.ask(order{sends: 1})
	w.settled(earlier, 1)
	see(false)
	c.write(order{wait: wait, sends: 1}.String())
	c.isRead()
	see(true)
	c.answer()
	if got := w.settled(earlier, 2); got.Requests != 1 || got.Overtaken != 1 || got.Response.Quantile(1) >= wait/2 {
		w.t.Errorf("an arrival was not seen: %d requests, %d overtaken, the longest of %v", got.Requests, got.Overtaken,
			got.Response.Quantile(1))
	}
	w.stopped(func() {
		c.write(order{sends: 1}.String())
		see(false)
	})
	c.answer()
	see(true)
	for range 3 {
		c.ask(order{sends: 1})
	}
	if got := w.settled(earlier, 5); got.Requests != 4 || got.Doubtful > 0 {
		w.t.Errorf("a send was not seen: %d requests, %d doubtful, %d overtaken", got.Requests, got.Doubtful,
			got.Overtaken)
	}
}

// A client that asks again as soon as it has the answer, on another CPU: its next request arrives while the program at
// the last send runs. No time is longer than the client's longest.
func TestNextRequestArrivesMeanwhile(t *testing.T) {
	w := newWorld(t, Options{})
	w.start()
	w.addr = serveIn(t, w.group.Child("inner"), "echo")
	file, err := w.connect().conn.(*net.TCPConn).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	fd, text := int(file.Fd()), []byte("request")
	var asked, longest time.Duration
	n := int64(0)
	for begin := time.Now(); asked < 6*time.Second; n++ {
		if _, err := unix.Write(fd, text); err != nil {
			t.Fatal(err)
		}
		for got := 0; got < len(text); { // it does not sleep
			some, _, err := unix.Recvfrom(fd, text, unix.MSG_DONTWAIT)
			if err != nil && err != unix.EAGAIN {
				t.Fatal(err)
			}
			got += max(0, some)
		}
		took := time.Since(begin) - asked
		asked, longest = asked+took, max(longest, took)
	}
	var got Counts
	var missed int64
	soon(t, "seen to answer all", func() bool {
		got, missed = w.read(), 0
		for _, one := range w.r.programs.All() {
			stats, err := one.Stats()
			if err != nil {
				t.Fatal(err)
			}
			missed += int64(stats.RecursionMisses)
		}
		return got.Requests+got.Doubtful+got.Overtaken >= n-missed
	})
	t.Logf("%d requests, the longest of %v; programs were not run %d times", n, longest, missed)
	if got.Requests > n || got.Doubtful > 0 || got.Time > asked {
		t.Errorf("%d requests, %d doubtful, %d overtaken, %v in all; the client has %d and %v", got.Requests,
			got.Doubtful, got.Overtaken, got.Time, n, asked)
	}
	for _, l := range []*Lengths{&got.Response, &got.FirstByte, &got.Upload, &got.Rest} {
		if most := l.Quantile(1); most > longest*21/20 || l != &got.Rest && l.N() != got.Requests {
			t.Errorf("%d with %v as the longest, the client has %d and %v", l.N(), most, n, longest)
		}
	}
}
