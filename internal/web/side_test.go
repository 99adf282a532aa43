package web

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/report"
)

// desk is a server whose agent and whose only view count their calls, and answer when the test lets them.
type desk struct {
	*side
	other           *side
	taken, rendered atomic.Int64
	snapshot, view  chan struct{} // closed: go on
}

func newDesk(patience time.Duration) *desk {
	d := &desk{snapshot: make(chan struct{}), view: make(chan struct{})}
	d.side, d.other = newSide(newAnswers(d, time.Now, quiet())), newSide(newAnswers(d, time.Now, quiet()))
	d.patience, d.other.patience = patience, patience
	return d
}

func (d *desk) Status(context.Context) (report.Status, error) {
	n := d.taken.Add(1)
	<-d.snapshot
	return report.Status{Version: fmt.Sprint(n), Started: time.Now(), LastTurn: time.Now(), ConfigOK: true}, nil
}

func (d *desk) Health(context.Context) (report.Status, error) {
	return report.Status{Started: time.Now(), LastTurn: time.Now(), ConfigOK: true}, nil
}

func (d *desk) counted() format {
	return format{"counted", jsonType, func(w io.Writer, s report.Status) error {
		d.rendered.Add(1)
		<-d.view
		_, err := io.WriteString(w, "snapshot "+s.Version)
		return err
	}}
}

// ask sends n requests to a side, and returns the answers once they are there.
func (d *desk) requests(on *side, n int) (answers func() map[string]int) {
	var mu sync.Mutex
	got := map[string]int{}
	for range n {
		go func() {
			w := httptest.NewRecorder()
			on.show(d.counted())(w, fromLoopback(httptest.NewRequest(http.MethodGet, "/", nil)))
			text := w.Body.String()
			if w.Code != http.StatusOK {
				text = fmt.Sprint(w.Code, " retry ", w.Header().Get("Retry-After"))
			}
			mu.Lock()
			defer mu.Unlock()
			got[text]++
		}()
	}
	synctest.Wait()
	return func() map[string]int {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

func expect(t *testing.T, what string, got map[string]int, want string) {
	t.Helper()
	if fmt.Sprint(got) != want {
		t.Errorf("%s: %v, want %s", what, got, want)
	}
}

// Sixty requests at once: the first has a snapshot of its own, the others within the bound share the next, and each
// answer is rendered once. The bound is 20; the rest must come again.
func TestAnswersAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		first := d.requests(d.side, 1)
		rest := d.requests(d.side, 59)
		expect(t, "while the agent is asked", rest(), "map[503 retry 1:40]")
		close(d.snapshot)
		expect(t, "while it is rendered", first(), "map[]")
		if n := len(d.work); n != maxAtWork {
			t.Errorf("%d at work, want %d", n, maxAtWork)
		}
		close(d.view)
		expect(t, "the first", first(), "map[snapshot 1:1]")
		expect(t, "the rest", rest(), "map[503 retry 1:40 snapshot 2:19]")
		if taken, rendered := d.taken.Load(), d.rendered.Load(); taken != 2 || rendered != 2 {
			t.Errorf("%d snapshots, rendered %d times; want 2 and 2", taken, rendered)
		}
		expect(t, "a later one", d.requests(d.side, 1)(), "map[snapshot 3:1]")
	})
}

// While one side is full, the other one and the probes are answered.
func TestAFullSideKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		close(d.snapshot)
		full := d.requests(d.side, maxAtWork+maxQueued+1)
		expect(t, "on one side", full(), "map[503 retry 1:1]")
		for _, check := range []http.HandlerFunc{d.check(alive), d.check(ready)} {
			w := httptest.NewRecorder()
			if check(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusOK {
				t.Errorf("a probe: %d %s", w.Code, w.Body)
			}
		}
		w := httptest.NewRecorder()
		d.other.show(statusFormat())(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("on the other: %d %s", w.Code, w.Body)
		}
		close(d.view)
		full()
	})
}

// A hung agent delays no request for longer than the server's patience, and takes no place.
func TestQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(2 * time.Second)
		answers := d.requests(d.side, maxAtWork+maxQueued)
		time.Sleep(2 * time.Second)
		expect(t, "all", answers(), fmt.Sprintf("map[503 retry :%d]", maxAtWork+maxQueued))
		if at, in := len(d.work), len(d.places); at != 0 || in != 0 {
			t.Errorf("%d at work, %d places taken", at, in)
		}
		close(d.snapshot)
		synctest.Wait()
	})
}

// stuck is a reader that does not read, until it is cut off or reads on.
type stuck struct {
	*httptest.ResponseRecorder
	goOn, cut chan struct{}
	once      sync.Once
}

func newStuck() *stuck {
	return &stuck{ResponseRecorder: httptest.NewRecorder(), goOn: make(chan struct{}), cut: make(chan struct{})}
}

func (s *stuck) Write(p []byte) (int, error) {
	select {
	case <-s.goOn:
		return s.ResponseRecorder.Write(p)
	case <-s.cut:
		return 0, errors.New("cut off")
	}
}

func (s *stuck) SetWriteDeadline(t time.Time) error {
	if t.Before(time.Now()) {
		s.once.Do(func() { close(s.cut) })
	}
	return nil
}

// Clients that do not read take no place at work. Their number is bounded, and the first one is cut off for a
// new one, but not in its first second.
func TestSlowReaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		close(d.snapshot)
		close(d.view)
		var readers []*stuck
		for range maxWriting {
			r := newStuck()
			readers = append(readers, r)
			go d.show(d.counted())(r, httptest.NewRequest(http.MethodGet, "/", nil))
			synctest.Wait()
		}
		at, in, written := len(d.work), len(d.places), len(d.writing.list)
		if at != 0 || in != 0 || written != maxWriting {
			t.Errorf("%d at work, %d places taken, %d are written", at, in, written)
		}
		expect(t, "within the first second", d.requests(d.side, 1)(), "map[503 retry 1:1]")
		expect(t, "the other side", d.requests(d.other, 1)(), fmt.Sprintf("map[snapshot %d:1]", d.taken.Load()))
		time.Sleep(writeGrace)
		for range 3 {
			expect(t, "later", d.requests(d.side, 1)(), fmt.Sprintf("map[snapshot %d:1]", d.taken.Load()))
		}
		cut := 0
		for _, r := range readers {
			select {
			case <-r.cut:
				cut++
			default:
				close(r.goOn)
			}
		}
		synctest.Wait()
		last := readers[maxWriting-1].Body.String()
		if cut != 1 || !strings.Contains(last, "snapshot") || len(d.writing.list) != 0 {
			t.Errorf("%d were cut off, want 1: the place that it left is free; the last one has %q", cut, last)
		}
	})
}

// A page is compressed for a client that accepts that, and not for any other.
func TestCompression(t *testing.T) {
	for accept, want := range map[string]bool{
		"": false, "gzip": true, "deflate, gzip;q=1.0, *;q=0.5": true, "gzip;q=0": false, "br": false,
		"GZIP ; q = 0.5": true, "gzip;q=x": false, "identity, gzip": true, "gzipped": false} {
		if got := takesGzip(accept); got != want {
			t.Errorf("%q: %v", accept, got)
		}
	}
	var k packer
	for _, text := range []string{strings.Repeat("a long text ", 10_000), "", "another"} {
		packed, err := k.pack(func(w io.Writer) error { _, err := io.WriteString(w, text); return err })
		if err != nil {
			t.Fatal(err)
		}
		p := &page{format: statusFormat(), packed: packed}
		for _, accept := range []string{"", "gzip"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", accept)
			newSide(newAnswers(local{}, time.Now, quiet())).send(w, r, p)
			body := io.Reader(w.Body)
			if w.Header().Get("Content-Encoding") == "gzip" {
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			got, err := io.ReadAll(body)
			if string(got) != text || err != nil || (accept != "") != (w.Header().Get("Content-Encoding") != "") {
				t.Errorf("%d bytes as %q: %d, %v", len(text), accept, len(got), err)
			}
		}
	}
	if _, err := k.pack(func(io.Writer) error { return context.Canceled }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// The client says that the agent answers others, and not that the agent hangs.
func TestClientOfABusyAgent(t *testing.T) {
	a := &fake{status: healthy()}
	_, c := open(t, a, func(s *Server) {
		for range cap(s.owner.places) {
			s.owner.places <- struct{}{}
		}
	})
	_, err := c.Status(t.Context())
	var e *Error
	if !errors.Is(err, ErrBusy) || errors.Is(err, ErrNoAnswer) || !errors.As(err, &e) || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}

// fromLoopback makes a request one of this machine's own.
func fromLoopback(r *http.Request) *http.Request {
	r.RemoteAddr = "127.0.0.1:4711"
	return r
}

// gate is an Access that answers when the test opens it.
type gate struct {
	asked atomic.Int64
	open  chan struct{}
}

func (g *gate) Permit(*http.Request) error {
	g.asked.Add(1)
	<-g.open
	return nil
}

// TestEachClientHasAShareOfPermissions: one address with many tokens keeps no other from the API server's answer.
func TestEachClientHasAShareOfPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Site{pages: newSide(newAnswers(local{}, time.Now, quiet()))}
		access := &gate{open: make(chan struct{})}
		mux := http.NewServeMux()
		mux.HandleFunc("GET /metrics", func(http.ResponseWriter, *http.Request) {})
		h := s.permit(access, mux)
		ask := func(from, path string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil)
			r.RemoteAddr = from
			go h.ServeHTTP(w, r)
			synctest.Wait()
			return w
		}
		for _, address := range []string{"10.0.0.1:1", "127.0.0.1:1", "10.0.0.2:1"} {
			before := access.asked.Load()
			for range maxOfClient {
				ask(address, "/metrics")
			}
			if w := ask(address, "/metrics"); w.Code != http.StatusServiceUnavailable ||
				w.Header().Get("Retry-After") != "1" {
				t.Errorf("%s has its share: %d %s", address, w.Code, w.Body)
			}
			if n := access.asked.Load() - before; n != maxOfClient {
				t.Errorf("%s: %d requests wait, want %d", address, n, maxOfClient)
			}
		}
		close(access.open)
		synctest.Wait()
		before := access.asked.Load()
		if ask("10.0.0.1:1", "/metrics"); access.asked.Load() != before+1 || len(s.asking.of) != 0 {
			t.Errorf("after the answers: %d asked, %v are left", access.asked.Load()-before, s.asking.of)
		}
	})
}

// TestWhoseShareItIs: an address of IPv4, 64 bits of IPv6, and nobody's on this machine.
func TestWhoseShareItIs(t *testing.T) {
	for from, want := range map[string]string{"10.0.0.1:1": "10.0.0.1", "[::ffff:10.0.0.1]:1": "10.0.0.1",
		"[2001:db8:1:2:3::4]:1": "2001:db8:1:2::/64",
		"[fe80::1%eth0]:1":      "fe80::/64", "127.0.0.1:1": "", "[::1]:1": "", "[::ffff:127.0.0.1]:1": "", "@": ""} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = from
		if got := clientOf(r); got != want {
			t.Errorf("%s takes the share of %q, want %q", from, got, want)
		}
	}
}

// TestEachClientHasAShare: one address of the network does not take the places of the others.
func TestEachClientHasAShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		from := func(address string, n int) (codes func() map[int]int) {
			got := map[int]int{}
			var mu sync.Mutex
			for range n {
				go func() {
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					r.RemoteAddr = address
					w := httptest.NewRecorder()
					d.show(d.counted())(w, r)
					mu.Lock()
					defer mu.Unlock()
					got[w.Code]++
				}()
			}
			synctest.Wait()
			return func() map[int]int { synctest.Wait(); return got }
		}
		greedy := from("10.0.0.1:1", 60)
		modest := from("[fd00::2]:1", 2)
		close(d.snapshot)
		close(d.view)
		if got := fmt.Sprint(greedy()); got != fmt.Sprintf("map[200:%d 503:%d]", maxOfClient, 60-maxOfClient) {
			t.Errorf("the greedy one: %s", got)
		}
		if got := fmt.Sprint(modest()); got != "map[200:2]" {
			t.Errorf("the modest one: %s", got)
		}
		if len(d.clients.of) != 0 {
			t.Errorf("clients are remembered: %v", d.clients.of)
		}
	})
}

// TestReadersHaveAFixedPartOfTheAgentsTime: between two snapshots for readers is a pause of
// four times the first one's time.
func TestReadersHaveAFixedPartOfTheAgentsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := snapshots{pause: readersPause, take: func(context.Context) (report.Status, error) {
			time.Sleep(100 * time.Millisecond)
			return report.Status{}, nil
		}}
		begin := time.Now()
		for range 11 {
			<-s.join().taken
		}
		if took, want := time.Since(begin), 10*500*time.Millisecond+100*time.Millisecond; took != want {
			t.Errorf("11 snapshots took %v, want %v", took, want)
		}
		time.Sleep(pauseMost)
	})
}
