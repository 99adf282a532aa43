package web

import (
	"bufio"
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/recent"
	"plimsoll/internal/report"
)

// moving is an agent whose status tests change.
type moving struct {
	fake
	hang chan struct{} // Status waits for it to be closed; nil: it does not wait
}

func (m *moving) Status() report.Status {
	m.mu.Lock()
	m.asked++
	s, hang := m.status, m.hang
	s.Containers = append([]report.Container{}, s.Containers...)
	m.mu.Unlock()
	if hang != nil {
		<-hang
	}
	s.Now = t0.Add(time.Since(testStart()))
	s.LastTurn = s.Now
	return s
}

func (m *moving) Glance([]report.Container) report.Status { return m.Status() }

func (m *moving) set(change func(*report.Status)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.status)
}

func (m *moving) container(i int) report.Container {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.status.Containers[i]
}

func (m *moving) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

var testStart = sync.OnceValue(time.Now)

// tape records periods by hand.
type tape struct {
	mu   sync.Mutex
	on   bool
	took int
	next map[string][]recent.Period
	lost int64
	err  error
}

func (p *tape) Record(on bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.on = on && p.err == nil
	return p.err
}

func (p *tape) Take() (map[string][]recent.Period, int64, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took++
	ended := p.next
	p.next = nil
	return ended, p.lost, nil
}

func (p *tape) add(path string, list ...recent.Period) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = map[string][]recent.Period{path: list}
}

func (p *tape) state() (on bool, took int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.on, p.took
}

// stage is an agent and a site, for one test.
type stage struct {
	t      *testing.T
	agent  *moving
	tape   *tape
	url    string
	site   *Site
	server *Server
	stop   func() // of the agent
}

func onStage(t *testing.T, tape *tape, change func(*SiteOptions)) *stage {
	t.Helper()
	s := &stage{t: t, agent: &moving{fake: fake{status: healthy()}}, tape: tape}
	s.agent.status.Containers[0].Limit, s.agent.status.Containers[0].Period = 50*time.Millisecond, 100*time.Millisecond
	s.agent.status.Containers[0].Totals.Events = &report.Throttles{}
	dir := t.TempDir()
	o := Options{Control: filepath.Join(dir, ControlSocket), Read: ReadAccess{filepath.Join(dir, ReadSocket), Nobody},
		Now: time.Now, Log: quiet()}
	if tape != nil {
		o.Periods = tape
	}
	server, err := Listen(s.agent, o)
	if err != nil {
		t.Fatal(err)
	}
	s.server = server
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Serve(ctx) }()
	s.stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(s.stop)
	so := SiteOptions{Listen: []string{"127.0.0.1:0"}, Agent: o.Read.Socket, Node: "node-1", Now: time.Now,
		Log: quiet()}
	if change != nil {
		change(&so)
	}
	if s.site, err = OpenSite(so); err != nil {
		t.Fatal(err)
	}
	during(t, s.site.Serve)
	s.url = "http://" + s.site.Addrs()[0]
	return s
}

// got is one event of a stream.
type got struct {
	name string
	data string
}

// listen reads a stream until the test ends.
func (s *stage) listen(path string) <-chan got {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" {
		s.t.Fatalf("%s: %s %v", path, res.Status, res.Header)
	}
	events := make(chan got, 100)
	go func() {
		defer res.Body.Close()
		defer close(events)
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		var e got
		for lines.Scan() {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				e.name = value
			case "data":
				e.data = value
			case "":
				if e.name != "" {
					events <- e
				}
				e = got{}
			}
		}
	}()
	return events
}

// await waits for an event of which ok is true, for 5 s.
func (s *stage) await(events <-chan got, name string, ok func(data string) bool) string {
	s.t.Helper()
	late := time.After(5 * time.Second)
	var seen []string
	for {
		select {
		case e, open := <-events:
			if !open {
				s.t.Fatalf("the stream ended; %s seen", seen)
			}
			seen = append(seen, e.name)
			if e.name == name && (ok == nil || ok(e.data)) {
				return e.data
			}
		case <-late:
			s.t.Fatalf("no %s in 5 s; seen: %s", name, seen)
		}
	}
}

func (s *stage) eventually(what string, ok func() bool) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Second); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("not within 5 s: %s", what)
		}
	}
}
