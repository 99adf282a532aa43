//go:build browser

package browser

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/heapprofiler"
	"github.com/chromedp/cdproto/memory"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/tracing"
	"github.com/chromedp/chromedp"
)

var smooth = flag.Duration("smooth", time.Minute, "how long TestSmooth watches the page of a thousand containers")

const (
	longest = 50 * time.Millisecond // of a task of the page's main thread
	grown   = 3 << 20               // bytes of JavaScript's heap, after a collection
)

// TestSmooth: a thousand containers, all of which change each second, for a minute: no task of the main thread takes
// more than 50 ms, and the memory is flat. Meanwhile a person scrolls, searches, and looks at a container with 15
// minutes of periods.
//
// A task's time is the CPU time of its thread, which the browser's trace has for each task (RunTask, tdur): other
// programs of the machine, which may have its CPUs meanwhile, do not count.
// The longest wall time is reported beside it.
func TestSmooth(t *testing.T) {
	f := newFake(t, newNode(1000))
	p := open(t, chromium(t), f.URL, size(1280, 900))
	p.loaded()
	busy(p, f, 5*time.Second) // what is made once has been made
	before := p.footprint()
	tasks := p.trace(func() { busy(p, f, *smooth) })
	after := p.footprint()
	t.Logf("%d tasks; the longest took %v of CPU time, %v of wall time; in all %v of CPU time, %.1f %% of a CPU",
		tasks.n, tasks.cpu, tasks.wall, tasks.sum, 100*tasks.sum.Seconds()/smooth.Seconds())
	for _, one := range tasks.longest {
		t.Logf("%v of CPU time: %s", one.cpu, one.what)
	}
	t.Logf("heap %.1f MB, then %.1f MB; %d nodes of the document, then %d; %d listeners, then %d",
		float64(before.heap)/1e6, float64(after.heap)/1e6, before.nodes, after.nodes, before.listeners, after.listeners)
	if tasks.n < 100 {
		t.Fatalf("the trace has %d tasks of the main thread", tasks.n)
	}
	if tasks.cpu > longest {
		t.Errorf("a task of the main thread took %v of CPU time", tasks.cpu)
	}
	if after.heap > before.heap+grown || after.nodes > before.nodes+before.nodes/5+100 ||
		after.listeners > before.listeners+before.listeners/5+20 {
		t.Error("the page grows")
	}
}

// busy is a person before the page, who ends where it began.
func busy(p *tab, f *fake, d time.Duration) {
	begin := time.Now()
	for turn := 0; time.Since(begin) < d; turn++ {
		switch turn % 4 {
		case 0:
			ask[int](p,
				`new Promise((done) => { const s = document.querySelector('.scroller'); let n = 0; const step = () => { s.scrollTop += 700; if (++n < 20) requestAnimationFrame(step); else done(n); }; step(); })`)
		case 1:
			ask[bool](p,
				`(() => { const s = document.getElementById('search'); s.value = 'ledger 1'; s.dispatchEvent(new Event('input')); return true; })()`)
		case 2:
			ask[bool](p,
				`(() => { const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input')); location.hash = '#/c/' + encodeURIComponent('`+f.node.rows[0].ID+`'); return true; })()`)
			p.until(10*time.Second, `document.querySelector('.plots canvas')`)
			ask[bool](p, `(document.querySelector('.strip .group button:last-child').click(), true)`)
		case 3:
			ask[bool](p, `(location.hash = '#/', true)`)
			p.until(10*time.Second, `document.querySelector('.scroller')`)
		}
		time.Sleep(min(2500*time.Millisecond, max(0, d-time.Since(begin))))
	}
	ask[bool](p, `(location.hash = '#/', true)`)
	p.until(10*time.Second, `document.querySelector('.inside .line:not([hidden])')`)
}

type footprint struct{ heap, nodes, listeners int64 }

// footprint is what the page has in memory after a collection of garbage.
func (p *tab) footprint() (fp footprint) {
	p.t.Helper()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		for range 2 {
			if _, err := cdp.Call(ctx, t, heapprofiler.CollectGarbage, cdp.Empty{}); err != nil {
				return err
			}
		}
		heap, err := cdp.Call(ctx, t, runtime.GetHeapUsage, cdp.Empty{})
		if err != nil {
			return err
		}
		counters, err := cdp.Call(ctx, t, memory.GetDOMCounters, cdp.Empty{})
		fp = footprint{int64(heap.UsedSize), counters.Nodes, counters.JsEventListeners}
		return err
	}))
	return fp
}

// tasks of the page's main thread.
type tasks struct {
	n              int
	cpu, wall, sum time.Duration // the longest, the longest, and all of the first
	longest        []task        // the first few
}

// task is a long one, and what it did.
type task struct {
	cpu  time.Duration
	what string
}

// note is a part of the browser's trace; times are in microseconds.
type note struct {
	Name string  `json:"name"`
	Pid  int     `json:"pid"`
	Tid  int     `json:"tid"`
	At   float64 `json:"ts"`
	Wall float64 `json:"dur"`
	CPU  float64 `json:"tdur"`
	Args struct {
		Name string `json:"name"`
		Data struct {
			Function string `json:"functionName"`
			URL      string `json:"url"`
			Type     string `json:"type"`
		} `json:"data"`
	} `json:"args"`
}

// trace has the browser note each task of the main thread meanwhile.
func (p *tab) trace(do func()) tasks {
	p.t.Helper()
	var notes []note
	ended := make(chan struct{})
	ctx, stop := context.WithCancel(p.Context)
	defer stop()
	err := chromedp.Listen(ctx, func(event any) {
		switch e := event.(type) {
		case *tracing.EventDataCollected:
			for _, raw := range e.Value {
				var n note
				if json.Unmarshal(raw, &n) == nil && (n.CPU > 300 || n.Name == "RunTask" || n.Name == "thread_name") {
					notes = append(notes, n)
				}
			}
		case *tracing.EventTracingComplete:
			close(ended)
		}
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, tracing.Start,
			tracing.StartParams{TraceConfig: &tracing.TraceConfig{
				RecordMode:         tracing.TraceConfigRecordModeRecordUntilFull,
				IncludedCategories: []string{"disabled-by-default-devtools.timeline"}, ExcludedCategories: []string{
					"*"}}})
		return err
	}))
	do()
	p.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, tracing.End, cdp.Empty{})
		return err
	}))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		p.t.Fatal("the browser did not send its trace")
	}
	return sum(notes)
}

// sum is over the main threads of all pages. The browser has no other page that does anything.
func sum(notes []note) (all tasks) {
	main := map[[2]int]bool{}
	for _, n := range notes {
		if n.Name == "thread_name" && n.Args.Name == "CrRendererMain" {
			main[[2]int{n.Pid, n.Tid}] = true
		}
	}
	for _, n := range notes {
		if n.Name != "RunTask" || !main[[2]int{n.Pid, n.Tid}] {
			continue
		}
		all.keep(n, notes)
		cpu, wall := time.Duration(n.CPU*1e3), time.Duration(n.Wall*1e3)
		all.n++
		all.cpu, all.wall, all.sum = max(all.cpu, cpu), max(all.wall, wall), all.sum+cpu
	}
	return all
}

// mostShown is how many of the longest tasks are told of.
const mostShown = 5

// keep keeps a task that is among the longest, with what it did for long.
func (all *tasks) keep(n note, notes []note) {
	cpu := time.Duration(n.CPU * 1e3)
	if len(all.longest) == mostShown && cpu <= all.longest[mostShown-1].cpu {
		return
	}
	var what []string
	for _, part := range notes {
		if part.Pid == n.Pid && part.Tid == n.Tid && part.At >= n.At && part.At+part.Wall <= n.At+n.Wall &&
			part.Name != "RunTask" && part.CPU > 1000 {
			d := part.Args.Data
			what = append(what, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", part.Name, d.Type, d.Function,
				path.Base(d.URL)))+fmt.Sprintf(" %.1f ms", part.CPU/1e3))
		}
	}
	all.longest = append(all.longest, task{cpu, strings.Join(what, ", ")})
	slices.SortFunc(all.longest, func(a, b task) int { return cmp.Compare(b.cpu, a.cpu) })
	all.longest = all.longest[:min(len(all.longest), mostShown)]
}
