//go:build browser

package browser

import (
	"context"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// figured is a node whose figures stay: "alpha" lost time and loses none now, "beta" loses time and has a problem.
func figured() *node {
	const ms = time.Millisecond
	n := newNode(3)
	n.turn = nil
	for i := range n.rows {
		lost, throttled, refills, tokens, used, peak := time.Duration(0), int64(0), int64(0), 40*ms, 0.1, 0.2
		r := &n.rows[i]
		r.Name, r.Limit, r.Quota, r.QuotaAsked = []string{"alpha", "beta",
			"gamma"}[i], new(time.Duration), new(time.Duration), new(time.Duration)
		*r.Limit, *r.Quota, *r.QuotaAsked = 50*ms, 50*ms, 50*ms
		r.Why, r.Lost, r.Throttled, r.Refills, r.Tokens, r.Used, r.Peak =
			"nothing to do", &lost, &throttled, &refills, &tokens, &used, &peak
	}
	a, b := &n.rows[0], &n.rows[1]
	*a.Used, *a.Peak, *a.Lost, *a.Throttled, *a.Refills, *a.Tokens = 0.2, 0.9, 1234*ms, 7, 3, 12*ms
	*a.Quota, *a.QuotaAsked, a.BurstAsked, a.Cause, a.Why = 75*ms, 100*ms, 150*ms, view.Guard, "the node is full"
	*b.Lost, *b.Throttled, b.Cause, b.CauseNow, b.Why, b.Problem =
		5*ms, 1, view.Refused, view.Refused, "left alone", "invalid argument"
	return n
}

// rows: each figure of a container stands in its column, with what its colours say.
func rows(t *testing.T, browser context.Context) {
	n := figured()
	f := newFake(t, n)
	p := open(t, browser, f.URL, size(1500, 900))
	p.loaded()
	check := func(what, expression, want string) {
		t.Helper()
		if got := ask[string](p, plain(expression)); got != want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, want)
		}
	}
	check("the sentence", `document.querySelector('h1').textContent`, sentence)
	check("the heads", texts(`.heads .line > div > button`),
		"Container|;Limit|CPUs;Use|CPUs, 1 s;Peak|CPUs, 0.1 s;Of its limit|0 to 2 ×;Time lost|ms in 60 "+
			"s;Throttled|periods in 60 s;"+
			"Refills|in 60 s;Burst tokens|ms saved;Quota now|CPUs;Burst now|ms;Last decision|and why")
	check("the cells", texts(`.inside .line:not([hidden])`),
		"alphashop/checkout-0000|0.50|0.20|0.90||1,234|7|3|12|0.75asked 1.00|200asked 150|node is fullthe node is "+
			"full|0.20 of 0.50 CPUs, peak 0.90, throttled 7 ×;"+
			"betashop/search-0001|0.50|0.10|0.20||5.0|1|0|40|0.50|200|write refusedinvalid argument|0.10 of 0.50 "+
			"CPUs, "+
			"peak 0.20, throttled 1 ×;"+
			"gammashop/ingest-0002|0.50|0.10|0.20||0|0|0|40|0.50|200|nothing to do|0.10 of 0.50 CPUs, peak 0.20, "+
			"throttled 0 ×")
	marked := func(selector string) string {
		return `[...document.querySelectorAll('.inside .line:not([hidden])')].map((l) => String(l.matches(':has(` +
			selector + `)') || l.matches('` + selector + `'))).join()`
	}
	check("time is lost", marked("[data-lost]"), "true,true,false")
	check("a figure is bad", marked(".lost[data-bad]"), "true,true,false")
	check("a quota is raised", marked(".quota[data-raised]"), "true,false,false")
	check("a cause is over", marked(".cause:not([hidden])[data-over]"), "true,false,false")
	check("a problem", marked("[data-problem]"), "false,true,false")
	check("a peak above the limit", marked(".gauge[data-over]"), "true,false,false")
	check("use and peak against twice the limit",
		`[...document.querySelectorAll('.inside .line:not([hidden]) .gauge')].map((g) => g.querySelector('.bar').style.width + ' ' + g.querySelector('.tip').style.left).join()`,
		"20% 90%,10% 20%,10% 20%")
	check("a name that the cell cuts off", `document.querySelector('.inside .name').title.replaceAll('\n', ' ')`,
		"alpha shop/checkout-0000 "+n.rows[0].ID)

	ask[bool](p, `(`+first+`.focus(), true)`)
	p.do(chromedp.KeyEvent(kb.ArrowDown))
	f.set(func(*fake) { *n.rows[1].Lost = time.Hour })
	p.until(20*time.Second,
		`document.activeElement.ariaRowIndex === '2' && document.activeElement.querySelector('.name b').textContent === 'beta'`)
	ask[bool](p, `(document.querySelector('.inside .line[aria-rowindex="4"]').click(), true)`)
	p.until(20*time.Second, `document.querySelector('.container .title')?.textContent === 'gamma'`)
}

// figuresOf: the boxes and tables of one container.
func figuresOf(t *testing.T, browser context.Context) {
	n := figured()
	f := newFake(t, n)
	p := open(t, browser, address(f, n.rows[0].ID), size(1280, 900))
	p.until(5*time.Second, `document.querySelector('.advice tbody tr')`)
	for what, c := range map[string]struct{ expression, want string }{
		"figures": {texts(`.figures:not(.requests) div`),
			"Limit|0.50 CPUs;Use|0.20 CPUs, last 1 s;Peak|0.90 CPUs, in 100 ms;Time lost|1,234 ms, last 60 " +
				"s;Throttled|7 periods, last 60 s;Refills|3 last 60 s;" +
				"Burst tokens|12 ms saved of 200;Quota now|0.75 CPUs, asked 1.00;Burst now|200 ms, asked 150"},
		"bad figures": {`[...document.querySelectorAll('.figures .bad dt')].map((e) => e.textContent).join()`,
			"Time lost,Throttled"},
		"advice": {texts(`.advice tbody tr`),
			"the limit alone|0.50|0|812|0.41;burst 100 %|0.50|50|301 to 344|0.11 to 0.14;burst 400 %now|0.50|200|24 " +
				"to 31|0.01 to 0.02;" +
				"limit × 1.5|0.75|0|96 to 120|0.05 to 0.06"},
		"now": {`[...document.querySelectorAll('.advice .now th')].map((e) => e.textContent).join()`,
			"burst 400 %now"},
		"waits": {texts(`.waits .causes:first-of-type li`),
			"throttled by its own limit|21.0 s|;waiting behind neighbours|6.00 s|;an idle CPU woke up|900 ms|"},
		"ended": {`String(document.querySelector('.where').textContent.includes('ended'))`, "false"},
		// nobody else's sentence
		"title": {`[...document.querySelectorAll('h1:not([hidden])')].map((e) => e.textContent).join()`,
			n.rows[0].Name},
	} {
		if got := ask[string](p, plain(c.expression)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, c.want)
		}
	}
	id := n.rows[1].ID
	p.do(chromedp.Navigate(address(f, id)))
	p.until(5*time.Second,
		`document.querySelector('.figures').innerText.includes('as asked') && document.querySelector('.decision .bad')?.textContent.includes('invalid argument')`)
}

// theNode: the drawing and the words beside it.
func theNode(t *testing.T, browser context.Context) {
	n := newNode(2)
	n.mark.Risk.Met = false
	f := newFake(t, n)
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	says := func(selector, text string) {
		t.Helper()
		p.until(3*time.Second, plain(`document.querySelector('`+selector+`').innerText`)+`.includes('`+text+`')`)
	}
	says(".facts", "Below the line")
	says(".facts", "Target: at most 0.10 %, missed")
	says(".facts", "It measures and writes.")
	p.until(time.Second, `/\D[56]\d\s% of the load line, 5.20 CPUs/.test(document.querySelector('.facts').innerText)`)
	says(".features .lacks", "core scheduling (not here)")
	says(".features .has", "burst")
	says(".changed", "14 files hold")
	p.until(time.Second,
		`(() => { const top = (e) => document.querySelector(e).getBoundingClientRect().top; return top('.deck') < top('.disc path') && top('.disc path') < top('.surface'); })()`)
	p.until(time.Second,
		`document.querySelector('.surface').getBoundingClientRect().right < Math.min(...[...document.querySelectorAll('.labels text')].map((e) => e.getBoundingClientRect().left))`)
	f.set(func(*fake) { n.mark.State, n.mark.Changed, n.mode = "overload", 0, report.Held })
	says(".facts", "Above the line")
	says(".facts", "It measures and writes nothing: no reason given.")
	says(".changed", "Nothing is changed")
	f.set(func(*fake) { n.mark.State = "unknown" })
	p.until(3*time.Second,
		`document.querySelector('.labels').textContent.includes('use not measured') && !document.querySelector('.labels').textContent.includes(' used')`)
}

// theCPUs: colocation says what is in force, and the map whose each CPU is.
func theCPUs(t *testing.T, browser context.Context) {
	n := newNode(2)
	n.colocation, n.reserve, n.waits = colocated(), reserved(), waited()
	n.colocation.Knobs = append(n.colocation.Knobs, report.Priority{Cgroup: "/x", Knob: "idle", Problem: "refused"},
		report.Priority{Cgroup: "/y", Knob: "idle", InForce: true})
	f := newFake(t, n)
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	p.until(5*time.Second, `document.querySelector('.map li')`)
	for what, c := range map[string]struct{ expression, want string }{
		"map": {`[...document.querySelectorAll('.map li')].map((e) => e.className + ' ' + e.textContent).join()`,
			"kept 0,pool 1,own k0 21,own k0 31,own k1 42,off 5,pool 6,pool 7"},
		"title": {`document.querySelector('.map li:nth-child(6)').title`, "CPU 5: bound by another program"},
		"waits": {texts(`.waiting tbody tr`),
			"online|1,200|3.00 s|64 µs|4.0 ms|0 s;offline|1,200|3.00 s|64 µs|4.0 ms|0 s"},
		"force": {`[...document.querySelectorAll('.colocation > p')].map((e) => e.textContent).slice(0, 2).join(' ')`,
			"idle: the kernel has cpu.idle. Offline work may use 2.40 CPUs now. Files that hold the priority that " +
				"Plimsoll requests: 2 of 3."},
		"bad": {`document.querySelector('.colocation .bad').textContent`, "/x: idle: refused"},
	} {
		if got := ask[string](p, plain(c.expression)); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", what, got, c.want)
		}
	}
	f.set(func(*fake) {
		without := *n.colocation
		without.Room = nil
		n.colocation = &without
	})
	p.until(3*time.Second, `!document.querySelector('.colocation').textContent.includes('may use')`)
	f.set(func(*fake) {
		n.waits = &report.Waits{Ranks: []report.RankWaits{{Rank: "online",
			Lengths: []report.Length{{UpTo: time.Second}}}}}
	})
	p.until(3*time.Second, plain(texts(`.waiting tbody tr`))+` === 'online|0|0 s|–|–|0 s'`)
	f.set(func(*fake) { n.colocation = nil })
	p.until(3*time.Second, `document.querySelector('.colocation').hidden`) // nothing is online or offline here
}
