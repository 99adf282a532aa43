package web

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/plan"
	"plimsoll/internal/report"
	"plimsoll/internal/workload"
)

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)

// fake is an agent that records its calls.
type fake struct {
	mu     sync.Mutex
	status report.Status
	calls  []string
	asked  int
	err    error
	block  chan struct{} // Status waits until it is closed; nil: does not wait
}

func (f *fake) Status() report.Status {
	f.mu.Lock()
	f.asked++
	f.mu.Unlock()
	if f.block != nil {
		<-f.block
	}
	return f.status
}

func (f *fake) Glance([]report.Container) report.Status { return f.Status() }

func (f *fake) Health() report.Status { return f.Status() }

func (f *fake) note(call ...string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, strings.Join(call, " "))
	return f.err
}

func (f *fake) Hold(_ context.Context, restore bool, reason string) ([]plan.Result, error) {
	if restore {
		return results(), f.note("hold+restore", reason)
	}
	return nil, f.note("hold", reason)
}

func (f *fake) Retire(context.Context) ([]plan.Result, error) { return results(), f.note("retire") }

func (f *fake) Resume(context.Context) error { return f.note("resume") }

func (f *fake) Pause(_ context.Context, container string, d time.Duration) error {
	return f.note("pause", container, d.String())
}

func (f *fake) Release(_ context.Context, cgroup string, d time.Duration) ([]plan.Result, error) {
	return results(), f.note("release", cgroup, d.String())
}

func results() []plan.Result {
	return []plan.Result{{Change: plan.Change{Cgroup: workload.ID{Path: "/lab/a", Inode: 7}, Knob: plan.Burst,
		From: "50ms", To: "0s",
		Why: "released"}, Outcome: plan.Applied, InForce: "0s", At: t0}}
}

func healthy() report.Status {
	return report.Status{Schema: report.StatusSchema, Version: "1", Started: t0, Now: t0, LastTurn: t0, ConfigOK: true,
		Mode:   report.Active,
		Writes: report.Writes{Results: map[plan.Knob]map[plan.Outcome]int64{}, Decisions: map[string]int64{"raise": 1}},
		Containers: []report.Container{
			{Cgroup: "/lab/a", Name: "default/web/nginx", Totals: report.Totals{Periods: 10, Throttled: 1}},
			{Cgroup: "/lab/b", Name: "default/api/nginx"},
		}}
}

// open runs an agent's server on its sockets, and a site on a free port that reads from it, until the test ends.
func open(t *testing.T, a Agent, change func(*Server)) (url string, c *Client) {
	t.Helper()
	dir := t.TempDir()
	control, read := filepath.Join(dir, ControlSocket), filepath.Join(dir, ReadSocket)
	s, err := Listen(a, Options{Control: control, Read: ReadAccess{read, Nobody}, Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(s)
	}
	during(t, s.Serve)
	site, err := OpenSite(SiteOptions{Listen: []string{"127.0.0.1:0"}, Agent: read, Now: later, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	during(t, site.Serve)
	return "http://" + site.Addrs()[0], Dial(control)
}

// during runs something until the test ends.
func during(t *testing.T, run func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

func later() time.Time { return t0.Add(time.Second) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

func TestPublicPages(t *testing.T) {
	url, _ := open(t, &fake{status: healthy()}, nil)
	for path, want := range map[string]string{
		"/":              "<h1>plimsoll</h1>",
		"/metrics":       `plimsoll_container_throttled_periods_total{cgroup="/lab/a"`,
		"/healthz":       "ok\n",
		"/readyz":        "ok\n",
		"/api/v1/status": `"schema": "plimsoll.status/v1"`,
		"/api/v1/report": `"throttled_ratio": 0.1`,
	} {
		if code, body := get(t, url+path); code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.300s; want 200 with %q", path, code, body, want)
		}
	}
	if code, body := get(t, url+"/nowhere"); code != http.StatusNotFound || !strings.Contains(body, `"error"`) {
		t.Errorf("/nowhere: got %d %s; want 404 in JSON", code, body)
	}
}

func TestNobodySteersOverTCP(t *testing.T) {
	a := &fake{status: healthy()}
	url, _ := open(t, a, nil)
	for _, call := range []string{"hold", "retire", "resume", "pause", "release", "status"} {
		res, err := http.Post(url+"/api/v1/"+call, "application/json", strings.NewReader(`{"container":"/lab/a"}`))
		if err != nil {
			t.Fatal(err)
		}
		var e Error
		if err := json.NewDecoder(res.Body).Decode(&e); err != nil || e.Advice == "" {
			t.Errorf("%s: got %+v, %v; want an error with a hint", call, e, err)
		}
		res.Body.Close()
		if res.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %d, want 405", call, res.StatusCode)
		}
	}
	if len(a.calls) > 0 {
		t.Errorf("the agent was steered: %v", a.calls)
	}
}

// TestDocumentedBodies: the control socket takes the bodies that docs/REFERENCE.md shows.
func TestDocumentedBodies(t *testing.T) {
	_, c := open(t, &fake{status: healthy()}, nil)
	doc, err := os.ReadFile("../../docs/REFERENCE.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile("`POST /api/v1/(\\w+)` \\| control socket \\| `(.*)` \\|").FindAllStringSubmatch(
		string(doc), -1)
	for _, row := range rows {
		var answer any
		if err := c.call(t.Context(), http.MethodPost, row[1], json.RawMessage(row[2]), &answer); err != nil {
			t.Errorf("%s %s: %v", row[1], row[2], err)
		}
	}
	if len(rows) < 3 {
		t.Errorf("only %d bodies", len(rows))
	}
}

func TestClientCalls(t *testing.T) {
	a := &fake{status: healthy()}
	_, c := open(t, a, nil)
	ctx := t.Context()
	check := func(what string, got, want any, err error) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", what, err, diff)
		}
	}
	s, err := c.Status(ctx)
	check("status", s, healthy(), err)
	r, err := c.Report(ctx)
	check("report", r, report.Of(healthy()), err)
	held, err := c.Hold(ctx, false, "looking")
	check("hold", held, []plan.Result{}, err)
	held, err = c.Hold(ctx, true, "restoring")
	check("hold+restore", held, results(), err)
	held, err = c.Retire(ctx)
	check("retire", held, results(), err)
	check("resume", nil, nil, c.Resume(ctx))
	target, err := c.Pause(ctx, "default/web/nginx", 30*time.Minute)
	check("pause", target, Target{"/lab/a", "default/web/nginx"}, err)
	target, err = c.Pause(ctx, "b", 0)
	check("end of pause", target, Target{"/lab/b", "default/api/nginx"}, err)
	released, err := c.Release(ctx, "/lab/a", time.Minute)
	check("release", released, Released{Target{"/lab/a", "default/web/nginx"}, results()}, err)
	check("the agent's side", a.calls, []string{"hold looking", "hold+restore restoring", "retire", "resume",
		"pause /lab/a 30m0s", "pause /lab/b 0s", "release /lab/a 1m0s"}, nil)
}

type advised struct{ error }

func (advised) Hint() string { return "try later" }

func TestClientErrors(t *testing.T) {
	a := &fake{status: healthy(), err: advised{errors.New("the journal is full")}}
	_, c := open(t, a, nil)
	for what, tc := range map[string]struct {
		call       func() error
		code       int
		text, hint string
	}{
		"agent": {func() error { return c.Resume(t.Context()) }, 500, "the journal is full", "try later"},
		"unknown": {func() error { _, err := c.Pause(t.Context(), "nobody", time.Second); return err }, 404,
			`no container is called "nobody"`, "status"},
		"ambiguous": {func() error { _, err := c.Release(t.Context(), "nginx", time.Second); return err }, 409,
			"default/api/nginx (/lab/b)", "cgroup path"},
		"negative": {func() error { _, err := c.Pause(t.Context(), "/lab/a", -time.Second); return err }, 400,
			"negative", ""},
	} {
		err := tc.call()
		var e *Error
		if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Msg, tc.text) ||
			!strings.Contains(e.Hint(), tc.hint) {
			t.Errorf("%s: got %#v; want %d, %q, hint %q", what, err, tc.code, tc.text, tc.hint)
		}
	}
}

func TestBadRequests(t *testing.T) {
	a := &fake{status: healthy()}
	_, c := open(t, a, nil)
	for what, body := range map[string]string{
		"no JSON":       "container=/lab/a",
		"unknown field": `{"container":"/lab/a","until":"30m"}`,
		"bad time":      `{"container":"/lab/a","for":"soon"}`,
		"number":        `{"container":"/lab/a","for":30}`,
		"huge":          `{"container":"` + strings.Repeat("a", maxBody) + `"}`,
	} {
		res, err := c.http.Post("http://plimsoll/api/v1/pause", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400; %v", what, res.StatusCode, err)
		}
		if what == "bad time" && !strings.Contains(string(text), `\"soon\" is not a time such as 30s or 10m`) {
			t.Errorf("%s: %s", what, text)
		}
	}
	if len(a.calls) > 0 {
		t.Errorf("the agent was steered: %v", a.calls)
	}
}

func TestNoAgent(t *testing.T) {
	_, err := Dial(filepath.Join(t.TempDir(), ControlSocket)).Status(t.Context())
	if !errors.Is(err, ErrNoAgent) {
		t.Errorf("got %v, want ErrNoAgent", err)
	}
}

func TestSilentAgent(t *testing.T) {
	a := &fake{status: healthy(), block: make(chan struct{})}
	url, c := open(t, a, func(s *Server) {
		s.owner.patience, s.readers.patience = 20*time.Millisecond, 20*time.Millisecond
	})
	t.Cleanup(func() { close(a.block) })
	for path, want := range map[string]string{"/healthz": "not ok", "/readyz": "not ok", "/api/v1/status": "no answer",
		"/metrics": "no answer"} {
		if code, body := get(t, url+path); code != http.StatusServiceUnavailable || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %s; want 503", path, code, body)
		}
	}
	a.mu.Lock()
	if a.asked != 2 {
		t.Errorf("%d goroutines wait for the agent, want one for its health and one for its state", a.asked)
	}
	a.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	var e *Error
	if _, err := c.Status(ctx); !errors.As(err, &e) || e.Hint() == "" || !errors.Is(err, context.DeadlineExceeded) ||
		!errors.Is(err, ErrNoAnswer) {
		t.Errorf("got %v, want a deadline with a hint", err)
	}
}

// TestQuestionsShareASnapshot: all requests during a snapshot get the next one, however many they are.
func TestQuestionsShareASnapshot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &fake{status: healthy(), block: make(chan struct{})}
		s := newAnswers(local{a}, time.Now, quiet())
		ask := func(n int) {
			for range n {
				go func() {
					if _, err := s.ask(t.Context(), &s.whole); err != nil {
						t.Error(err)
					}
				}()
			}
			synctest.Wait()
		}
		ask(1)
		ask(50)
		for want := 1; want <= 2; want++ {
			a.mu.Lock()
			if a.asked != want {
				t.Errorf("the agent was asked %d times, want %d", a.asked, want)
			}
			a.mu.Unlock()
			a.block <- struct{}{}
			synctest.Wait()
		}
		if a.asked != 2 {
			t.Errorf("the agent was asked %d times in all, want 2", a.asked)
		}
		ask(1)
		a.block <- struct{}{}
		synctest.Wait()
		if a.asked != 3 {
			t.Errorf("a later question: the agent was asked %d times in all, want 3", a.asked)
		}
	})
}

func TestHealth(t *testing.T) {
	change := func(f func(*report.Status)) report.Status { s := healthy(); f(&s); return s }
	for name, tc := range map[string]struct {
		s            report.Status
		after        time.Duration
		alive, ready string // "" for good, else part of the reason
	}{
		"turning":  {healthy(), staleTurn, "", ""},
		"stopped":  {healthy(), staleTurn + 1, "last turn", "last turn"},
		"starting": {change(func(s *report.Status) { s.LastTurn = time.Time{} }), time.Second, "", "first scan"},
		"never turned": {change(func(s *report.Status) { s.LastTurn = time.Time{} }), time.Minute, "last turn",
			"first scan"},
		"bad config": {change(func(s *report.Status) { s.ConfigOK, s.ConfigMsg = false, "line 3" }), 0, "", ""},
		"held":       {change(func(s *report.Status) { s.Mode = report.Held }), 0, "", ""},
	} {
		for what, c := range map[string]struct {
			err  error
			want string
		}{"alive": {alive(tc.s, t0.Add(tc.after)), tc.alive}, "ready": {ready(tc.s, t0.Add(tc.after)), tc.ready}} {
			if (c.err == nil) != (c.want == "") || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
				t.Errorf("%s, %s: got %v, want %q", name, what, c.err, c.want)
			}
		}
	}
}

func TestUnhealthyIs503(t *testing.T) {
	s := healthy()
	s.LastTurn = t0.Add(-time.Minute)
	url, c := open(t, &fake{status: s}, nil)
	for path, want := range map[string]string{"/healthz": "1m1s ago", "/readyz": "1m1s ago"} {
		if code, body := get(t, url+path); code != http.StatusServiceUnavailable ||
			strings.TrimSpace(body) != notHealthy {
			t.Errorf("%s: got %d %s; want 503 without a reason", path, code, body)
		}
		if err := reader(c).Healthy(t.Context(), path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s on the socket: got %v; want %q", path, err, want)
		}
	}
}

// TestNotReadyBeforeTheAPIServerSpoke: it lives, and does not do its work.
func TestNotReadyBeforeTheAPIServerSpoke(t *testing.T) {
	s := healthy()
	s.Kubernetes = &report.Kubernetes{Fault: "forbidden"}
	url, c := open(t, &fake{status: s}, nil)
	if err := reader(c).Healthy(t.Context(), "/readyz"); err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("readyz: %v", err)
	}
	if code, body := get(t, url+"/healthz"); code != http.StatusOK {
		t.Errorf("healthz: %d %s", code, body)
	}
}

// reader reads from the other socket of the same agent.
func reader(c *Client) *Client { return Dial(filepath.Join(filepath.Dir(c.socket), ReadSocket)) }

func TestReleaseTellsOfTheFamilyOnly(t *testing.T) {
	at := func(paths ...string) []plan.Result {
		list := []plan.Result{}
		for _, p := range paths {
			list = append(list, plan.Result{Change: plan.Change{Cgroup: workload.ID{Path: p}}})
		}
		return list
	}
	got := ofFamily(at("/pods", "/pods/a", "/pods/a/x", "/pods/ab", "/pods/b"), "/pods/a")
	if diff := cmp.Diff(at("/pods", "/pods/a", "/pods/a/x"), got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
