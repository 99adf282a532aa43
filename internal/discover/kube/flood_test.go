package kube

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"plimsoll/internal/config"
	"plimsoll/internal/cpu"
	"plimsoll/internal/logbook"
	"plimsoll/internal/ratelimit"
	"plimsoll/internal/strategy"
)

// logged is a world with a log, bounded as that of `plimsoll run`.
func logged(t *testing.T) (*world, *logbook.Book, *ratelimit.Lines) {
	b := &logbook.Book{}
	lines := ratelimit.NewLines(ratelimit.Rate{Burst: 20, Every: 30 * time.Second},
		ratelimit.Rate{Burst: 500, Every: 100 * time.Millisecond})
	w := &world{t: t, server: newServer(), groups: &groups{wake: make(chan struct{}, 1)},
		disk: map[string]cpu.Bandwidth{}}
	w.d = New(Options{API: w.server, Node: "n1", Names: names(), Groups: w.groups, Own: strategy.DefaultNode(),
		Now:       time.Now,
		Bandwidth: func(string) (cpu.Bandwidth, error) { return cpu.Bandwidth{Quota: 400 * ms, Period: 100 * ms}, nil },
		Changed:   func(strategy.Node) {}, Log: slog.New(lines.Over(slog.NewTextHandler(b, nil)))})
	return w, b, lines
}

// flood runs the sender of Events beside a test, in a bubble with its own time.
func (w *world) flood(t *testing.T, test func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { w.d.events.run(ctx); close(done) }()
	test()
	cancel()
	<-done
}

// made counts the Events that the API server was asked to make.
func (w *world) made() int {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return w.server.asked["event"]
}

// TestAPodThatChangesInALoop: ten minutes of a pod with ten bad annotations a second cost a few lines and Events. What
// is left out is counted, and another pod is reported at once.
func TestAPodThatChangesInALoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log, lines := logged(t)
		w.given(node(nil))
		w.flood(t, func() {
			watch := w.pods()
			const changes = 6000
			for i := range changes {
				watch.put(web(fmt.Sprintf(`{"policy": "no%d"}`, i)))
				time.Sleep(100 * time.Millisecond)
			}
			other := web(`{"policy": "other"}`)
			other.Name, other.UID = "other", "u2"
			watch.put(other)
			time.Sleep(time.Second)
			// its burst, one in 30 s, two counts of Events left out, the other's
			if n := strings.Count(log.String(), "\n"); n > 20+20+2+1 {
				t.Errorf("%d lines", n)
			}
			if n := w.made(); n > 10+2+1 { // its burst, one in 5 minutes, the other's
				t.Errorf("%d Events", n)
			}
			if !strings.Contains(log.String(), `object="Pod default/other"`) ||
				!strings.Contains(strings.Join(w.events(), "\n"), "other") {
				t.Errorf("the other pod is not reported: %s", log)
			}
			s := w.d.Status()
			if s.RejectedTotal != changes+1 || s.RejectedNow != 2 || len(s.Rejected) != 2 ||
				s.EventsDropped < changes-20 || lines.Dropped() < changes-50 {
				t.Errorf("counted: %+v, %d lines", s, lines.Dropped())
			}
			time.Sleep(reportDropped)
			if !strings.Contains(log.String(), "Events were left out") {
				t.Error("nothing says that Events were left out")
			}
		})
	})
}

// TestManyRefusedPods: 1,000 pods with bad annotations neither fill the log nor keep the API server busy.
func TestManyRefusedPods(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log, _ := logged(t)
		list := []runtime.Object{node(nil)}
		for i := range 1000 {
			p := web(`{"policy": "no", "cpuBurstPercent": -1}`)
			p.Name, p.UID = fmt.Sprint("web", i), types.UID(fmt.Sprint("u", i))
			list = append(list, p)
		}
		w.flood(t, func() {
			w.given(list...)
			time.Sleep(time.Second)
			if n := w.made(); n > 52 {
				t.Errorf("%d Events in the first second", n)
			}
			time.Sleep(10 * time.Minute)
			n := w.made()
			if n < maxWaiting || n > maxWaiting+eventsAll().Burst { // some were made while others came
				t.Errorf("%d Events", n)
			}
			if n := strings.Count(log.String(), "\n"); n > 510 {
				t.Errorf("%d lines", n)
			}
			if s := w.d.Status(); s.RejectedNow != 2000 || len(s.Rejected) != mostListed ||
				s.EventsDropped != int64(2000-n) {
				t.Errorf("%d of %d rejected, %d Events dropped", len(s.Rejected), s.RejectedNow, s.EventsDropped)
			}
		})
	})
}

// TestTextsAreReadBesideATurn: annotations and ConfigMaps are parsed, and faults logged, while a turn of the agent has
// the lock.
func TestTextsAreReadBesideATurn(t *testing.T) {
	w, log, _ := logged(t)
	w.given(node(nil))
	w.d.mu.Lock()
	done := make(chan struct{})
	go func() {
		w.pods().put(web(`{"policy": "no"}`))
		close(done)
	}()
	waitFor(t, "the pod's fault", func() bool { return strings.Contains(log.String(), `object="Pod default/web"`) })
	w.d.mu.Unlock()
	<-done
	w.d.order.Lock() // as learn has it
	w.d.maps[w.d.Names[0]] = configMap(w.d.Names[0].Namespace, w.d.Names[0].Name, config.BurstKey, "{")
	w.d.mu.Lock()
	done = make(chan struct{})
	go func() {
		w.d.readConfigMaps()
		close(done)
	}()
	waitFor(t, "the ConfigMap's fault", func() bool { return strings.Contains(log.String(), `object="ConfigMap `) })
	w.d.mu.Unlock()
	<-done
	w.d.order.Unlock()
}

func waitFor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !holds(); time.Sleep(ms) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// TestLongAnnotationIsNotKept: of an annotation that is refused nothing but its begin is in memory, whether its pod is
// listed, new or changed. It is refused once, whatever follows the begin.
func TestLongAnnotationIsNotKept(t *testing.T) {
	w, log, _ := logged(t)
	long := func(uid, end string) *corev1.Pod {
		p := web(`{"policy": "auto", "x": "` + strings.Repeat("\u202e", 80<<10) + end + `"}`)
		p.Name, p.UID = uid, types.UID(uid)
		return p
	}
	w.ok(w.server.Add(node(nil)))
	w.ok(w.server.Add(long("u1", "")))
	w.run()
	expect := func(what string, uids ...string) {
		t.Helper()
		w.soon(what, func() bool {
			w.d.mu.Lock()
			defer w.d.mu.Unlock()
			for _, uid := range uids {
				if p := w.d.pods[uid]; p == nil || len(p.annotations[config.Annotation]) != config.MaxAnnotation+1 {
					return false
				}
			}
			return len(uids) == len(w.d.pods)
		})
	}
	expect("a listed pod", "u1")
	w.soon("the watches", func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return len(w.server.watches) == len(w.d.queries())
	})
	w.ok(w.server.Update(called("pods"), long("u1", "x"), "default"))
	w.ok(w.server.Create(called("pods"), long("u2", ""), "default"))
	expect("a new pod", "u1", "u2")
	if s := w.d.Status(); s.RejectedNow != 2 || s.RejectedTotal != 2 ||
		!strings.Contains(s.Rejected[0].Error(), "longer than 4096 bytes") {
		t.Errorf("%+v", s)
	}
	if n := strings.Count(log.String(), "longer than"); n != 2 {
		t.Errorf("logged %d times", n)
	}
	if strings.ContainsFunc(log.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) ||
		len(log.String()) > 1000 {
		t.Errorf("%q", log)
	}
}

// TestNamesOfEventsAreBounded: what is remembered of a pod that changes in a loop does not grow for ever.
func TestNamesOfEventsAreBounded(t *testing.T) {
	h := testHerald(newServer(), "n1")
	for i := range 2 * maxSaid {
		h.warn(aPod, reasonInvalid, fmt.Sprint(i))
	}
	if n := len(h.left); n == 0 || n > maxSaid {
		t.Errorf("%d names are remembered", n)
	}
}

// TestEventsPrint: whatever an object is called and whatever was written, an Event has one line of at most 1,024 bytes.
func TestEventsPrint(t *testing.T) {
	h := testHerald(newServer(), "n1")
	const trick = "\x1b[2J\u202e\u009b%s%!s(MISSING)\n<script>"
	h.warn(Object{"Pod", "default", "web", "u1"}, reasonForeign, trick+strings.Repeat("\x1b", 2000))
	e := h.waiting[0]
	if len(e.Message) > maxMessage || strings.ContainsFunc(e.Message,
		func(r rune) bool { return !unicode.IsPrint(r) }) || !strings.Contains(e.Message, "%s%!s(MISSING)") {
		t.Errorf("%q", e.Message)
	}
}
