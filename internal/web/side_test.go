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
	*Server
	taken, rendered atomic.Int64
	snapshot, view  chan struct{} // closed: go on
}

func newDesk(patience time.Duration) *desk {
	d := &desk{Server: sides(nil), snapshot: make(chan struct{}), view: make(chan struct{})}
	d.patience = patience
	d.snapshots.take = func() report.Status {
		n := d.taken.Add(1)
		<-d.snapshot
		return report.Status{Version: fmt.Sprint(n), Started: time.Now(), LastTurn: time.Now(), ConfigOK: true}
	}
	return d
}

func (d *desk) counted() view {
	return view{"counted", jsonType, func(w io.Writer, s report.Status) error {
		d.rendered.Add(1)
		<-d.view
		_, err := io.WriteString(w, "snapshot "+s.Version)
		return err
	}}
}

// ask sends n requests to a side, and returns the answers once they are there.
func (d *desk) ask(on *side, n int) (answers func() map[string]int) {
	var mu sync.Mutex
	got := map[string]int{}
	for range n {
		go func() {
			w := httptest.NewRecorder()
			d.show(on, d.counted())(w, httptest.NewRequest(http.MethodGet, "/", nil))
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
		first := d.ask(d.overTCP, 1)
		rest := d.ask(d.overTCP, 59)
		expect(t, "while the agent is asked", rest(), "map[503 retry 1:40]")
		close(d.snapshot)
		expect(t, "while it is rendered", first(), "map[]")
		if n := len(d.overTCP.work); n != maxAtWork {
			t.Errorf("%d at work, want %d", n, maxAtWork)
		}
		close(d.view)
		expect(t, "the first", first(), "map[snapshot 1:1]")
		expect(t, "the rest", rest(), "map[503 retry 1:40 snapshot 2:19]")
		if taken, rendered := d.taken.Load(), d.rendered.Load(); taken != 2 || rendered != 2 {
			t.Errorf("%d snapshots, rendered %d times; want 2 and 2", taken, rendered)
		}
		expect(t, "a later one", d.ask(d.overTCP, 1)(), "map[snapshot 3:1]")
	})
}

// While one side is full, the other one and the probes are answered.
func TestAFullSideKeepsNobodyElseWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(time.Minute)
		close(d.snapshot)
		full := d.ask(d.overTCP, maxAtWork+maxQueued+1)
		expect(t, "over TCP", full(), "map[503 retry 1:1]")
		for _, check := range []http.HandlerFunc{d.check(alive), d.check(ready)} {
			w := httptest.NewRecorder()
			if check(w, httptest.NewRequest(http.MethodGet, "/", nil)); w.Code != http.StatusOK {
				t.Errorf("a probe: %d %s", w.Code, w.Body)
			}
		}
		w := httptest.NewRecorder()
		d.show(d.overUnix, statusView())(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if w.Code != http.StatusOK {
			t.Errorf("through the socket: %d %s", w.Code, w.Body)
		}
		close(d.view)
		full()
	})
}

// A hung agent delays no request for longer than the server's patience, and takes no place.
func TestQueueIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(2 * time.Second)
		answers := d.ask(d.overTCP, maxAtWork+maxQueued)
		time.Sleep(2 * time.Second)
		expect(t, "all", answers(), fmt.Sprintf("map[503 retry :%d]", maxAtWork+maxQueued))
		if at, in := len(d.overTCP.work), len(d.overTCP.places); at != 0 || in != 0 {
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
			go d.show(d.overTCP, d.counted())(r, httptest.NewRequest(http.MethodGet, "/", nil))
			synctest.Wait()
		}
		at, in, written := len(d.overTCP.work), len(d.overTCP.places), len(d.overTCP.writing.list)
		if at != 0 || in != 0 || written != maxWriting {
			t.Errorf("%d at work, %d places taken, %d are written", at, in, written)
		}
		expect(t, "within the first second", d.ask(d.overTCP, 1)(), "map[503 retry 1:1]")
		expect(t, "the other side", d.ask(d.overUnix, 1)(), fmt.Sprintf("map[snapshot %d:1]", d.taken.Load()))
		time.Sleep(writeGrace)
		for range 3 {
			expect(t, "later", d.ask(d.overTCP, 1)(), fmt.Sprintf("map[snapshot %d:1]", d.taken.Load()))
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
		if cut != 1 || !strings.Contains(last, "snapshot") || len(d.overTCP.writing.list) != 0 {
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
		p := &page{view: statusView(), packed: packed}
		for _, accept := range []string{"", "gzip"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil)
			r.Header.Set("Accept-Encoding", accept)
			sides(nil).send(newSide(time.Now, 0), w, r, p)
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
	_, c := serve(t, a, func(s *Server) {
		for range cap(s.overUnix.places) {
			s.overUnix.places <- struct{}{}
		}
	})
	_, err := c.Status(t.Context())
	var e *Error
	if !errors.Is(err, ErrBusy) || errors.Is(err, ErrNoAnswer) || !errors.As(err, &e) || e.Hint() == "" {
		t.Errorf("%v", err)
	}
}
