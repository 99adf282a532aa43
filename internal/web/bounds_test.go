package web

import (
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/view"
)

// TestLongHeadersAreRefused: by the site and by the agent, whose memory is bounded.
func TestLongHeadersAreRefused(t *testing.T) {
	url, c := open(t, &fake{status: healthy()}, nil)
	for client, url := range map[*http.Client]string{http.DefaultClient: url, c.http: "http://plimsoll",
		reader(c).http: "http://plimsoll"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("a", 2*maxHeader))
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: %s", url, res.Status)
		}
	}
}

// TestEverySiteChecksHosts: on loopback, where no token is asked for, a page of another site reads nothing.
func TestEverySiteChecksHosts(t *testing.T) {
	url, _ := open(t, &fake{status: healthy()}, nil)
	for _, path := range []string{"/metrics", "/api/v1/status", "/", "/healthz"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "evil.example"
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMisdirectedRequest {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}

// TestEveryPageTakesAShare: no path but the probes' is answered beyond the share of an address. Streams have shares of
// their own (TestPagesShareTheStreams).
func TestEveryPageTakesAShare(t *testing.T) {
	site, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0"}, Agent: filepath.Join(t.TempDir(), ReadSocket),
		Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	during(t, site.Serve)
	site.pages.clients.of = map[string]int{"10.0.0.1": maxOfClient}
	h := site.handler(SiteOptions{})
	for _, path := range []string{"/metrics", "/api/v1/status", "/api/v1/report", "/api/v1/view",
		"/api/v1/container?id=/a", "/api/v1/snapshot"} {
		w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.RemoteAddr = "10.0.0.1:1"
		if h.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable ||
			!strings.Contains(w.Body.String(), "too many") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
}

// TestSlowReadersOfThePage: a client that does not read a view, a container or a snapshot takes no place either, and
// the number of these answers is bounded.
func TestSlowReadersOfThePage(t *testing.T) {
	for _, path := range []string{"view", "container?id=/lab/a", "snapshot"} {
		synctest.Test(t, func(t *testing.T) {
			o := SiteOptions{Now: time.Now, Log: quiet(),
				From: &view.Snapshot{View: view.View{Rows: []view.Row{{ID: "/lab/a"}}}}}
			s := &Site{pages: newSide(newAnswers(local{}, o.Now, o.Log)), watch: newWatcher(nil, o), log: o.Log}
			h := s.handler(o)
			ask := func(w http.ResponseWriter) {
				h.ServeHTTP(w, fromLoopback(httptest.NewRequest(http.MethodGet, "/api/v1/"+path, nil)))
			}
			reader := newStuck()
			for range maxWriting {
				go ask(reader)
				synctest.Wait()
			}
			if in, written := len(s.pages.places), len(s.pages.writing.list); in != 0 || written != maxWriting {
				t.Errorf("%s: %d places taken, %d are written, want 0 and %d", path, in, written, maxWriting)
			}
			w := httptest.NewRecorder()
			if ask(w); w.Code != http.StatusServiceUnavailable {
				t.Errorf("%s: one more is written: %d", path, w.Code)
			}
			close(reader.cut)
			synctest.Wait()
		})
	}
}

// TestReadersAreBoundedEverywhere: the readers of the agent and of a site leave it time,
// and a site bounds its connections.
func TestReadersAreBoundedEverywhere(t *testing.T) {
	dir := t.TempDir()
	s, err := Listen(&fake{}, Options{Control: filepath.Join(dir, ControlSocket),
		Read: ReadAccess{filepath.Join(dir, ReadSocket), Nobody}, Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	site, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0"}, Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer site.close()
	if a, b, owner := s.readers.whole.pause, site.pages.whole.pause, s.owner.whole.pause; a != readersPause ||
		b != readersPause || owner != 0 {
		t.Errorf("pauses of %d and %d for readers, %d for the owner", a, b, owner)
	}
	for l := range site.listeners {
		if c, ok := l.(*crowd); !ok || !c.inside {
			t.Errorf("the connections of %T are not bounded, or not this machine's", l)
		}
	}
}

// TestTheSocketForReadersIsBounded: who opens connections to it without end, and says nothing on them, costs the agent
// the memory of a few. A reader is answered all the same, and one that asks stays before those that do not.
func TestTheSocketForReadersIsBounded(t *testing.T) {
	s := onStage(t, nil, nil)
	c := s.site.agent
	stream, err := c.http.Get("http://plimsoll/api/v1/follow")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	const many = 200
	var closed atomic.Int64
	for range many {
		conn, err := net.Dial("unix", c.socket)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		go func() {
			_, _ = conn.Read(make([]byte, 1)) // until it is closed
			closed.Add(1)
		}()
	}
	s.eventually("there is room for few", func() bool { return closed.Load() == many+1-maxReaders })
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("a reader: %v", err)
	}
	if _, err := Dial(filepath.Join(filepath.Dir(c.socket), ControlSocket)).Status(t.Context()); err != nil {
		t.Errorf("the owner: %v", err)
	}
	s.eventually("the reader had another one's room", func() bool { return closed.Load() == many+2-maxReaders })
	if _, err := stream.Body.Read(make([]byte, 1)); err != nil {
		t.Errorf("the stream: %v", err)
	}
}

// TestPagePolicy: a name that were taken for HTML after all runs no script,
// and no other site shows the page in a frame.
func TestPagePolicy(t *testing.T) {
	w := httptest.NewRecorder()
	sendFile(w, httptest.NewRequest(http.MethodGet, "/", nil), fstest.MapFS{"index.html": {Data: []byte("page")}},
		"index.html")
	got := map[string]string{}
	for directive := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), " ")
		got[name] = value
	}
	for name, want := range map[string]string{"default-src": "'none'", "script-src": "'self'", "style-src": "'self'",
		"connect-src":     "'self'",
		"frame-ancestors": "'none'", "base-uri": "'none'", "form-action": "'none'"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
}

// TestARefusedRequestKeepsNoShare: who came while the queue was full is not refused later for that.
func TestARefusedRequestKeepsNoShare(t *testing.T) {
	d := newSide(newAnswers(local{}, time.Now, quiet()))
	for range cap(d.places) {
		d.places <- struct{}{}
	}
	if _, err := d.place("10.0.0.1"); err == nil {
		t.Error("there was a place in a full queue")
	}
	if len(d.clients.of) != 0 {
		t.Errorf("shares are taken: %v", d.clients.of)
	}
}

// TestProbesWaitForNobody: while a site's queue is full, the probes are answered with the agent's judgement.
func TestProbesWaitForNobody(t *testing.T) {
	_, c := open(t, &fake{status: healthy()}, nil)
	site, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0"}, Agent: reader(c).socket, Now: later,
		Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	for range cap(site.pages.places) {
		site.pages.places <- struct{}{}
	}
	during(t, site.Serve)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/livez": 200, "/metrics": 503} {
		if code, body := get(t, "http://"+site.Addrs()[0]+path); code != want {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
}

// TestSlowClientsHaveATime: a client that sends a request slowly, sends none,
// or does not read holds no connection for ever.
func TestSlowClientsHaveATime(t *testing.T) {
	s := bounded(nil, quiet())
	for what, d := range map[string]time.Duration{"headers": s.ReadHeaderTimeout, "a request": s.ReadTimeout,
		"an answer": s.WriteTimeout, "none": s.IdleTimeout} {
		if d <= 0 || d > time.Minute {
			t.Errorf("the time for %s is %v", what, d)
		}
	}
}

// dated is an answer that knows until when it has to be written.
type dated struct {
	*httptest.ResponseRecorder
	until []time.Time
}

func (d *dated) SetWriteDeadline(t time.Time) error { d.until = append(d.until, t); return nil }

// TestAnswersHaveATime: a reader that does not read costs a place for a bounded time.
func TestAnswersHaveATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newSide(newAnswers(local{}, time.Now, quiet()))
		p := &page{format: statusFormat()}
		var err error
		if p.packed, err = d.packer.pack(func(io.Writer) error { return nil }); err != nil {
			t.Fatal(err)
		}
		w := &dated{ResponseRecorder: httptest.NewRecorder()}
		d.send(w, httptest.NewRequest(http.MethodGet, "/", nil), p)
		if len(w.until) != 1 || !w.until[0].Equal(time.Now().Add(answerTime)) {
			t.Errorf("an answer has until %v", w.until)
		}
		w = &dated{ResponseRecorder: httptest.NewRecorder()}
		s := newStream(w, "text/plain")
		for range 2 {
			if err := s.write([]byte("a")); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.until) != 2 || !w.until[1].Equal(time.Now().Add(partTime)) {
			t.Errorf("the parts of a stream have until %v", w.until)
		}
	})
}

// TestRefusedPeersAreLoggedOnce: whoever may run programs as many users does not fill the log with them.
func TestRefusedPeersAreLoggedOnce(t *testing.T) {
	l, err := ListenUnix(filepath.Join(t.TempDir(), ReadSocket), Nobody, quiet())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var text strings.Builder
	p := l.(*peers)
	p.log = slog.New(slog.NewTextHandler(&text, nil))
	for range 2 {
		p.logRefused(&unix.Ucred{Uid: 1000}, nil)
	}
	if n := strings.Count(text.String(), "\n"); n != 1 {
		t.Errorf("one user: %d lines", n)
	}
	for i := range 10 * maxRefused {
		p.logRefused(&unix.Ucred{Uid: uint32(2000 + i)}, nil)
	}
	if n := strings.Count(text.String(), "\n"); n != maxRefused {
		t.Errorf("many users: %d lines, want %d", n, maxRefused)
	}
}

// TestTLSAndAccessAreNeeded: TLS without anybody who is asked is as open as no TLS.
func TestTLSAndAccessAreNeeded(t *testing.T) {
	for name, o := range map[string]SiteOptions{"TLS alone": {TLS: &tls.Config{}}, "Access alone": {Access: AnyOf{}}} {
		o.Listen, o.Now, o.Log = []string{"0.0.0.0:0"}, later, quiet()
		site, err := OpenSite(o)
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, "open to the network") {
			t.Errorf("%s: %v", name, err)
		}
		if site != nil {
			site.close()
		}
	}
}
