package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// TestLive: first the whole view, and then the rows that have changed and no others, with the periods of one container.
func TestLive(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	end := time.Now()
	s.tape.add("/lab/a", recent.Period{End: end.UnixMilli(), Used: 1}) // from before anybody asked
	events := s.listen("/api/v1/live?container=/lab/a")
	first := s.await(events, "view", nil)
	var v view.View
	if err := json.Unmarshal([]byte(first), &v); err != nil || len(v.Rows) != 2 || v.Node != "node-1" ||
		v.Schema != view.Schema {
		t.Fatalf("%v %s", err, first)
	}
	var d view.Detail
	if err := json.Unmarshal([]byte(s.await(events, "detail", nil)), &d); err != nil || d.Row.ID != "/lab/a" ||
		len(d.Periods.End) != 0 {
		t.Fatalf("%v %+v", err, d)
	}
	s.await(events, "change", func(data string) bool { return strings.Contains(data, `"rows":[]`) }) // nothing is new
	s.agent.set(func(st *report.Status) { st.Containers[1].Why = "changed" })
	data := s.await(events, "change", func(data string) bool { return strings.Contains(data, `"why":"changed"`) })
	var c changes
	if err := json.Unmarshal([]byte(data), &c); err != nil || len(c.Rows) != 1 || c.Rows[0].ID != "/lab/b" ||
		len(c.Gone) != 0 || c.Problems != nil {
		t.Errorf("%v: %s", err, data)
	}
	s.tape.add("/lab/a", recent.Period{End: end.UnixMilli() + 500, Used: 7, Quota: 50_000},
		recent.Period{End: end.UnixMilli() + 600, Used: 8, Quota: 50_000})
	var p view.Periods
	if err := json.Unmarshal([]byte(s.await(events, "periods", nil)), &p); err != nil || len(p.Used) != 2 ||
		p.Used[1] != 8 || p.End[1] != end.UnixMilli()+600 {
		t.Errorf("%v: %+v", err, p)
	}
	s.agent.set(func(st *report.Status) { st.Containers, st.Problems = st.Containers[:1], []string{"a problem"} })
	data = s.await(events, "change", func(data string) bool { return strings.Contains(data, `"gone":["/lab/b"]`) })
	if !strings.Contains(data, `"problems":["a problem"]`) {
		t.Errorf("%s", data)
	}
	s.await(events, "change", func(data string) bool { // and again, although nothing is new
		return !strings.Contains(data, "problems") && strings.Contains(data, `"gone":[]`)
	})
}

// TestNothingWhileNobodyLooks: no status is taken and no period recorded before the first reader,
// and a while after the last.
func TestNothingWhileNobodyLooks(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	if n := s.agent.count(); n != 0 {
		t.Errorf("nobody asked, and the agent was asked %d times", n)
	}
	if on, took := s.tape.state(); on || took > 0 {
		t.Errorf("nobody asked, and periods are recorded: %v, taken %d times", on, took)
	}
	if code, body := get(t, s.url+"/api/v1/view"); code != http.StatusOK || !strings.Contains(body, view.Schema) {
		t.Fatalf("%d %s", code, body)
	}
	if on, _ := s.tape.state(); !on {
		t.Error("somebody asked, and no periods are recorded")
	}
	w := s.site.watch
	w.mu.Lock()
	w.asked = w.asked.Add(-2 * lingerFor)
	w.mu.Unlock()
	s.eventually("recording is off again", func() bool { on, _ := s.tape.state(); return !on })
	f := s.server.feed
	if f.mu.Lock(); f.running { // what would ask the agent has not ended
		t.Errorf("%d follow the agent after the last reader had gone", len(f.followers))
	}
	f.mu.Unlock()
	if w.mu.Lock(); w.kept.store != nil || w.scene != nil {
		t.Error("what was kept is not forgotten")
	}
	w.mu.Unlock()
	if code, _ := get(t, s.url+"/api/v1/view"); code != http.StatusOK { // and it begins anew
		t.Errorf("%d", code)
	}
}

// TestAgentIsLost: an agent that ends, and one that hangs, is told of within three seconds, again and again, and so is
// its return.
func TestAgentIsLost(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	events := s.listen("/api/v1/live")
	s.await(events, "view", nil)
	hang := make(chan struct{})
	s.agent.mu.Lock()
	s.agent.hang = hang
	s.agent.mu.Unlock()
	begun := time.Now()
	lost := func(data string) bool { return strings.Contains(data, `"ok":false`) }
	s.await(events, "agent", lost)
	if took := time.Since(begun); took > 3500*time.Millisecond { // the frame before may be a second old
		t.Errorf("told after %v", took)
	}
	if code, body := get(t, s.url+"/api/v1/view"); code != http.StatusServiceUnavailable ||
		!strings.Contains(body, "does not answer") {
		t.Errorf("%d %s", code, body)
	}
	s.await(events, "agent", lost)
	s.agent.mu.Lock()
	s.agent.hang = nil
	s.agent.mu.Unlock()
	close(hang)
	s.await(events, "agent", func(data string) bool { return strings.Contains(data, `"ok":true`) })
	s.await(events, "view", nil)
	begun = time.Now()
	s.stop()
	s.await(events, "agent", lost)
	if took := time.Since(begun); took > 3*time.Second {
		t.Errorf("told after %v", took)
	}
}

// TestStreamsEndWithTheServer: an open page does not keep agent or site from ending.
// TestQuietStreams: where nothing is new, a page hears an event all the same, unless it shows a recording.
func TestQuietStreams(t *testing.T) {
	for name, c := range map[string]struct {
		fixed *view.Snapshot
		scene *scene
		want  string
	}{
		"waits": {nil, nil, "event: agent\ndata: {\"ok\":true,\"why\":\"waiting"},
		"calm":  {nil, &scene{}, "event: agent\ndata: {\"ok\":true}"},
		"lost":  {nil, &scene{lost: "hangs"}, "event: agent\ndata: {\"ok\":false,\"why\":\"hangs\""},
		"fixed": {&view.Snapshot{}, &scene{}, ": "},
	} {
		l := liveReader{watcher: &watcher{fixed: c.fixed}}
		if got := string(l.quiet(c.scene)); !strings.HasPrefix(got, c.want) || !strings.HasSuffix(got, "\n\n") {
			t.Errorf("%s: %q, want it to begin with %q", name, got, c.want)
		}
	}
}

func TestStreamsEndWithTheServer(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	events := s.listen("/api/v1/live")
	s.await(events, "view", nil)
	begun := time.Now()
	s.stop()
	if took := time.Since(begun); took > graceShutdown/2 {
		t.Errorf("the agent's server ended after %v", took)
	}
}

// TestStreamsLastAMinute: then the place is free, and the reader has to connect and to ask again.
func TestStreamsLastAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*liveFor)
		defer cancel()
		w := newWatcher(nil, SiteOptions{Now: time.Now, Log: quiet(), From: &view.Snapshot{}})
		answer, begun := httptest.NewRecorder(), time.Now()
		w.live(newSide(newAnswers(local{}, time.Now, quiet())))(answer,
			httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/live", nil))
		if lasted := time.Since(begun); lasted != liveFor || len(w.readers) != 0 ||
			answer.Header().Get("Connection") != "close" {
			t.Errorf("it lasted %v, %d readers are left, %v", lasted, len(w.readers), answer.Header())
		}
	})
}

// TestReadersAreBounded: the ninth page is told to come back, and a place is free once one is closed.
func TestReadersAreBounded(t *testing.T) {
	s := onStage(t, nil, nil)
	var streams []*http.Response
	for range maxLive {
		res, err := http.Get(s.url + "/api/v1/live")
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(err, res)
		}
		defer res.Body.Close()
		streams = append(streams, res)
	}
	res, err := http.Get(s.url + "/api/v1/live")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	streams[0].Body.Close()
	s.eventually("there is a place", func() bool {
		res, err := http.Get(s.url + "/api/v1/live")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == http.StatusOK
	})
}

// TestPagesShareTheStreams: one address may have all, and takes no place of a request with them. Who has fewer by two
// or more gets the oldest of who has most, so that no address is kept out by another, and no two take from each other
// for ever.
func TestPagesShareTheStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWatcher(nil, SiteOptions{Now: time.Now, Log: quiet(), From: &view.Snapshot{}})
		d := newSide(newAnswers(local{}, time.Now, quiet()))
		h := w.live(d)
		open := func(from string) *httptest.ResponseRecorder {
			answer, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
			r.RemoteAddr = from + ":1"
			go h(answer, r)
			synctest.Wait()
			return answer
		}
		has := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			var list strings.Builder
			for _, l := range w.readers {
				list.WriteString(strings.TrimPrefix(l.client, "10.0.0."))
			}
			return list.String()
		}
		before := ""
		for i, step := range []struct{ from, want string }{
			{"1", "1"}, {"1", "11"}, {"1", "111"}, {"1", "1111"}, {"1", "11111"}, {"1", "111111"}, {"1", "1111111"},
			{"1", "11111111"}, {"1", "11111111"}, {"2", "11111112"}, {"1", "11111112"}, {"2", "11111122"},
			{"2", "11111222"}, {"2", "11112222"}, {"2", "11112222"}, {"1", "11112222"}, {"3", "11122223"},
			{"1", "11122223"}, {"3", "11122233"}, {"3", "11122233"},
		} {
			refused := open("10.0.0."+step.from).Code == http.StatusServiceUnavailable
			got := has()
			if got != step.want || refused != (got == before) {
				t.Errorf("step %d: %s have streams, want %s; refused: %v", i, got, step.want, refused)
			}
			before = got
		}
		if leave, err := d.place("10.0.0.1"); err != nil || len(d.clients.of) != 1 {
			t.Errorf("its streams take places of requests: %v, %v", err, d.clients.of)
		} else {
			leave()
		}
		time.Sleep(liveFor)
		if synctest.Wait(); has() != "" {
			t.Errorf("after their time %s have streams", has())
		}
	})
}

// TestUnmeasuredPeriods: where periods are not recorded there is no recording, which is not one without periods.
func TestUnmeasuredPeriods(t *testing.T) {
	s := onStage(t, &tape{err: errors.New("5.10 has no such field")}, nil)
	code, body := get(t, s.url+"/api/v1/view")
	if code != http.StatusOK || !strings.Contains(body, `"recording":null`) {
		t.Errorf("%d %s", code, body)
	}
	if _, took := s.tape.state(); took != 0 {
		t.Errorf("taken %d times", took)
	}
}

// TestContainer: one detail, and 404 for nobody.
func TestContainer(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	if code, body := get(t, s.url+"/api/v1/container?id=/lab/a"); code != http.StatusOK ||
		!strings.Contains(body, `"id":"/lab/a"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body := get(t, s.url+"/api/v1/container?id=/lab/nobody"); code != http.StatusNotFound ||
		!strings.Contains(body, "hint") {
		t.Errorf("%d %s", code, body)
	}
}

// TestSnapshotIsServed: a file that is fetched shows the same page without an agent.
func TestSnapshotIsServed(t *testing.T) {
	s := onStage(t, &tape{}, nil)
	events := s.listen("/api/v1/live")
	s.await(events, "view", nil)
	s.tape.add("/lab/a", recent.Period{End: time.Now().UnixMilli(), Used: 7, Quota: 50_000})
	s.eventually("the period is kept", func() bool {
		_, body := get(t, s.url+"/api/v1/container?id=/lab/a")
		return strings.Contains(body, `"used_us":[7]`)
	})
	res, err := http.Get(s.url + "/api/v1/snapshot")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if name := res.Header.Get("Content-Disposition"); err != nil ||
		!strings.Contains(name, `filename="plimsoll-node-1-`) {
		t.Fatalf("%q %v", name, err)
	}
	file, err := view.ReadSnapshot(bytes.NewReader(data), view.MaxSnapshotBytes)
	if err != nil {
		t.Fatal(err)
	}
	other := onStage(t, nil, func(o *SiteOptions) { o.From, o.Agent = &file, "/nowhere" })
	for path, want := range map[string]string{"/api/v1/view": `"recorded":"`,
		"/api/v1/container?id=/lab/a": `"used_us":[7]`, "/healthz": "ok"} {
		if code, body := get(t, other.url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, _ := get(t, other.url+"/api/v1/status"); code != http.StatusNotFound {
		t.Errorf("a recording has a status: %d", code)
	}
	recorded := other.listen("/api/v1/live?container=/lab/a")
	other.await(recorded, "view", func(data string) bool { return strings.Contains(data, `"recorded":"`) })
	other.await(recorded, "detail", func(data string) bool { return strings.Contains(data, `"used_us":[7]`) })
	if n := other.agent.count(); n != 0 {
		t.Errorf("an agent was asked %d times", n)
	}
}

// TestASceneIsRenderedOnce: all who ask for the view, or for the snapshot, of one second share one answer.
func TestASceneIsRenderedOnce(t *testing.T) {
	s := &Site{pages: newSide(newAnswers(local{}, time.Now, quiet())),
		watch: newWatcher(nil, SiteOptions{Now: later, Log: quiet()})}
	one, other := &scene{}, &scene{}
	for name, render := range map[string]func(*http.Request, *scene) (*page, error){"view": s.viewed,
		"snapshot": s.snapshot} {
		a, err := render(nil, one)
		b, again := render(nil, one)
		c, next := render(nil, other)
		if err := errors.Join(err, again, next); err != nil || a != b || a == c {
			t.Errorf("%s: %v; shared by one scene: %v, by two: %v", name, err, a == b, a == c)
		}
	}
}

// TestPageFiles: index.html for browsers, the list of paths for others, a strict policy, and nothing sent twice.
func TestPageFiles(t *testing.T) {
	files := fstest.MapFS{"index.html": {Data: []byte("<!doctype html><title>page</title>")},
		"assets/app.js":  {Data: []byte("let x")},
		"assets/app.css": {Data: []byte("a{}")}, "secret": {Data: []byte("secret")}}
	s := onStage(t, nil, func(o *SiteOptions) { o.Page = files })
	ask := func(path, accept, tag string) *http.Response {
		t.Helper()
		req, err := http.NewRequest(http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", accept)
		req.Header.Set("If-None-Match", tag)
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	for path, kind := range map[string]string{"/": "text/html; charset=utf-8",
		"/assets/app.js": "text/javascript; charset=utf-8", "/assets/app.css": "text/css; charset=utf-8"} {
		res := ask(path, "text/html,*/*", "")
		h := res.Header
		if res.StatusCode != http.StatusOK || h.Get("Content-Type") != kind ||
			h.Get("Content-Security-Policy") != PagePolicy || h.Get("ETag") == "" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: %s %v", path, res.Status, h)
		}
		if again := ask(path, "text/html", h.Get("ETag")); again.StatusCode != http.StatusNotModified {
			t.Errorf("%s, which the browser has: %s", path, again.Status)
		}
	}
	if _, body := get(t, s.url+"/"); !strings.Contains(body, "<h1>plimsoll</h1>") {
		t.Errorf("who does not take HTML gets the list of paths: %s", body)
	}
	for _, path := range []string{"/secret", "/assets/", "/assets/none.js", "/assets/..%2fsecret",
		"/assets/%2e%2e/secret"} {
		if res := ask(path, "text/html", ""); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
	if res := ask("/api/v1/view", "*/*", ""); !strings.HasPrefix(res.Header.Get("Content-Security-Policy"),
		"default-src 'none'; frame-ancestors") {
		t.Errorf("data is no page: %v", res.Header)
	}
}
