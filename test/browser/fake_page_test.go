//go:build browser

package browser

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// The parts of TestFake share one browser.
func TestFake(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	for _, part := range []struct {
		name string
		test func(*testing.T, context.Context)
	}{
		{"NotMeasured", notMeasured}, {"HostileNames", hostileNames}, {"Find", find}, {"Keyboard", keyboard},
		{"BackButton", backButton},
		{"Gone", gone}, {"Loss", loss}, {"End", end}, {"Hidden", hidden}, {"Recording", recording}, {"Narrow", narrow},
		{"Strip", theStrip}, {"Modules", modules},
		{"Mark", theMark}, {"Waits", theWaits}, {"NoWaits", noWaits}, {"Requests", theRequests}, {"Causes", theCauses},
		{"Shortfall", theShortfall},
		{"Rows", rows}, {"Container", figuresOf}, {"Node", theNode}, {"CPUs", theCPUs},
		{"Still", stands},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, browser) })
	}
}

const (
	first = `document.querySelector('.inside .line[aria-rowindex="2"]')`
	names = `[...document.querySelectorAll('.inside .line:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((l) => l.querySelector('.name b').textContent)`
)

// address is the page of one container.
func address(f *fake, id string) string { return f.URL + "/#/c/" + url.PathEscape(id) }

// notMeasured: null is a dash with a title, and 0 is 0.
func notMeasured(t *testing.T, browser context.Context) {
	n := newNode(2)
	n.turn = nil
	zero, none, nothing := 0.0, int64(0), time.Duration(0)
	n.rows[0].Name, n.rows[1].Name = "known", "unknown"
	n.rows[0].Used, n.rows[0].Peak, n.rows[0].Lost, n.rows[0].Throttled, n.rows[0].Refills, n.rows[0].Tokens =
		&zero, &zero, &nothing, &none, &none, &nothing
	n.rows[1].Limit, n.rows[1].Quota, n.rows[1].QuotaAsked = nil, nil, nil
	f := newFake(t, n)
	p := open(t, browser, f.URL)
	p.loaded()
	row := func(name string) map[string]string {
		return ask[map[string]string](p, `(() => {
			const line = [...document.querySelectorAll('.inside .line')].find((l) => l.querySelector('.name b').textContent === '`+name+`');
			return Object.fromEntries(['limit', 'used', 'peak', 'lost', 'throttled', 'refills', 'tokens', 'quota'].map((k) => [k, line.querySelector('.' + k).textContent + '|' + (line.querySelector('.' + k).title)]));
		})()`)
	}
	known, unknown := row("known"), row("unknown")
	for key, want := range map[string]string{"limit": "0.50|", "used": "0.00|", "peak": "0.00|", "lost": "0|",
		"throttled": "0|", "refills": "0|", "tokens": "0|", "quota": "0.50|"} {
		if known[key] != want {
			t.Errorf("%s of a container that did nothing: %q, want %q", key, known[key], want)
		}
		want := "–|not measured"
		if key == "limit" || key == "quota" {
			want = "none|"
		}
		if unknown[key] != want {
			t.Errorf("%s of a container of which nothing is known: %q, want %q", key, unknown[key], want)
		}
	}
}

// hostileNames are shown as they are: the document has no element that a name has made.
func hostileNames(t *testing.T, browser context.Context) {
	const name = `<img src=x onerror=alert(1)>"'&lt;script>`
	n := newNode(3)
	n.name, n.rows[0].Name, n.rows[0].Pod, n.rows[0].ID = name, name, name, "/pods/"+name+"/../%2e#?&\u202e"
	n.rows[0].Problem, n.problems, n.mark.Features[0].Text = name, []string{name}, name
	n.mark.Undo = name
	f := newFake(t, n)
	p := open(t, browser, f.URL)
	p.loaded()
	text := ask[string](p, "document.body.innerText")
	if got := strings.Count(text, name); got < 5 {
		t.Errorf("the name is shown %d times: %.900s", got, text)
	}
	p.do(chromedp.Navigate(address(f, n.rows[0].ID)))
	p.until(20*time.Second, `document.querySelector('.container .title')?.textContent.startsWith('<img')`)
	p.until(20*time.Second, `document.querySelector('.plots canvas')`)
	if got := ask[int](p, `document.querySelectorAll('img, body script, [onerror]').length`); got != 0 {
		t.Errorf("%d elements were made from a name", got)
	}
	if got := ask[string](p, `document.querySelector('.where code').textContent`); got != n.rows[0].ID {
		t.Errorf("the group is shown as %q", got)
	}
	if got := ask[string](p,
		`import('/assets/container.js').then((m) => m.quote("-o$(id)'; x"))`); got != `-- '-o$(id)'\''; x'` {
		t.Errorf("a name as an argument of a shell: %s", got)
	}
}

// find searches and sorts a thousand rows, of which few have elements.
func find(t *testing.T, browser context.Context) {
	n := newNode(1000)
	n.rows[777].Name = "needle"
	f := newFake(t, n)
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	if got := ask[int](p, `document.querySelectorAll('.inside .line').length`); got > 45 {
		t.Errorf("%d lines for those in sight", got)
	}
	if got := ask[string](p,
		`document.querySelector('.scroller').ariaRowCount ?? document.querySelector('.scroller').getAttribute('aria-rowcount')`); got != "1001" {
		t.Errorf("a reader is told of %s rows", got)
	}
	p.do(press("/"), chromedp.KeyEvent("needle 0777"))
	p.until(5*time.Second, names+`.join() === 'needle'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(5*time.Second, `document.querySelector('.number').textContent === '1,000'`)
	sorted := func(column, sign string) {
		p.until(5*time.Second, `(() => { const v = [...document.querySelectorAll('.inside .line:not([hidden])')].sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map((l) => Number(l.querySelector('.`+column+`').textContent.replace(',', '')));
			return v.length > 5 && v.every((x, i) => i === 0 || v[i - 1] `+sign+` x); })()`)
	}
	sorted("lost", ">=")
	p.do(chromedp.Click(chromedp.CSS(".heads .used button")))
	sorted("used", ">=")
	p.do(chromedp.Click(chromedp.CSS(".heads .used button")))
	sorted("used", "<=")
	if got := ask[string](p, `document.querySelector('.heads .used').getAttribute('aria-sort')`); got != "ascending" {
		t.Errorf("aria-sort is %s", got)
	}
	p.until(time.Second,
		`(document.querySelector('.scroller').scrollTop = 1e9, document.querySelector('.scroller').dispatchEvent(new Event('scroll')), true)`)
	p.until(5*time.Second, `document.querySelector('.inside .line[aria-rowindex="1001"]:not([hidden])')`)
}

// keyboard: a person reaches and opens a row without a mouse, and comes back to it.
func keyboard(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(200))
	f.node.turn = nil // the order stands
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	for range 30 {
		if ask[bool](p, `document.activeElement.matches('.inside .line')`) {
			break
		}
		p.do(chromedp.KeyEvent(kb.Tab))
	}
	p.do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.End),
		chromedp.KeyEvent(kb.ArrowUp))
	p.until(2*time.Second, `document.activeElement.getAttribute('aria-rowindex') === '200'`)
	id := ask[string](p, `document.activeElement.querySelector('.name').title.split('\n').pop()`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(5*time.Second, `document.querySelector('.where code')?.textContent === '`+id+`'`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(5*time.Second,
		`document.activeElement.matches('.inside .line') && document.activeElement.querySelector('.name').title.endsWith('`+id+`')`)
	ask[bool](p, `(document.querySelector('.skip').focus(), true)`)
	p.do(chromedp.KeyEvent(kb.Enter))
	p.until(2*time.Second, `document.activeElement.matches('.inside .line')`)
}

// backButton: the address says what is shown.
func backButton(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(20))
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	ask[bool](p, `(`+first+`.click(), true)`)
	p.until(5*time.Second, `location.hash.startsWith('#/c/%2Fkubepods')`)
	p.do(chromedp.NavigateBack())
	p.until(5*time.Second, `document.querySelector('.scroller')`)
	p.do(chromedp.NavigateForward())
	p.until(5*time.Second, `document.querySelector('.container .plots canvas')`)
	p.do(chromedp.Reload())
	p.until(5*time.Second, `document.querySelector('.container .plots canvas')`)
}

// gone: a container that ends leaves the table, and its own page says so.
func gone(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(5))
	id := f.node.rows[2].ID
	p := open(t, browser, address(f, id))
	p.until(5*time.Second, `document.querySelector('.container .plots canvas')`)
	f.set(func(f *fake) {
		f.node.gone = []string{id}
		f.node.rows = append(f.node.rows[:2:2], f.node.rows[3:]...)
	})
	p.until(5*time.Second, `document.querySelector('.where').textContent.includes('It has ended.')`)
	p.do(chromedp.KeyEvent(kb.Escape))
	p.until(5*time.Second, `document.querySelector('.number')?.textContent === '4'`)
}

const lossShown = 3 * time.Second

// loss: of the agent, of the server, and of a server that hangs or refuses, is shown within 3 s, and so is the return.
func loss(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(20))
	p := open(t, browser, f.URL)
	p.expect("status of 503", "ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_EMPTY_RESPONSE",
		"ERR_CONNECTION_RESET")
	state := func(want string) string { return `document.getElementById('live').dataset.state === '` + want + `'` }
	p.loaded()
	p.until(lossShown, state("live"))
	for _, c := range []struct {
		name, state, says string
		begin, end        func(*fake)
	}{
		{"agent", "agent", "The agent does not answer: dial unix", func(f *fake) { f.lost = true },
			func(f *fake) { f.lost = false }},
		{"a server that hangs", "lost", "No news from plimsoll serve", func(f *fake) { f.silent = true },
			func(f *fake) { f.silent = false }},
		{"a server that refuses", "refused", "plimsoll serve refuses: too many pages are open. This page tries again.",
			func(f *fake) { f.full = true; close(f.ended); f.ended = make(chan struct{}) },
			func(f *fake) { f.full = false }},
	} {
		f.set(c.begin)
		took := p.until(lossShown, state(c.state))
		t.Logf("loss of %s: shown after %v", c.name, took.Round(10*time.Millisecond))
		if got := ask[string](p, `document.getElementById('banner').innerText`); !strings.Contains(got, c.says) ||
			!strings.Contains(got, "What is shown is of ") {
			t.Errorf("%s: the banner says %q", c.name, got)
		}
		if !ask[bool](p, `document.body.hasAttribute('data-stale')`) {
			t.Errorf("%s: old figures look like new ones", c.name)
		}
		f.set(c.end)
		took = p.until(15*time.Second, state("live")+` && document.getElementById('banner').hidden`)
		t.Logf("return of %s: shown after %v", c.name, took.Round(10*time.Millisecond))
	}
	listening := f.Listener.Addr().String()
	f.Config.SetKeepAlivesEnabled(false)
	f.Listener.Close()
	f.CloseClientConnections()
	took := p.until(lossShown, state("lost"))
	t.Logf("loss of the server at %s: shown after %v", listening, took.Round(10*time.Millisecond))
	// what was known stays
	p.until(time.Second, `[...document.querySelectorAll('.inside .line:not([hidden])')].length > 5`)
}

// end: where the server ends a stream, the page opens the next one, and shows the same container without a word of it.
func end(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(5))
	id := f.node.rows[2].ID
	p := open(t, browser, address(f, id))
	p.until(5*time.Second, `document.querySelector('.container .plots canvas')`)
	p.until(3*time.Second, `document.getElementById('live').dataset.state === 'live'`)
	ask[bool](p, `(window.said = [], window.canvas = document.querySelector('.plots canvas'), new MutationObserver(() => said.push(document.getElementById('live').dataset.state)).
		observe(document.getElementById('live'), { attributes: true }), true)`)
	time.Sleep(3 * time.Second) // longer than a stream may be silent
	_, before := f.streams()
	f.set(func(f *fake) { close(f.ended); f.ended = make(chan struct{}) })
	within(t, 3*time.Second, func() bool { open, all := f.streams(); return open == 1 && all == before+1 })
	time.Sleep(3 * time.Second)
	if got := ask[string](p, `JSON.stringify([said, canvas === document.querySelector('.plots canvas'), document.querySelector('.where code').textContent])`); got != `[[],true,"`+id+`"]` {
		t.Errorf("conditions, whether the plots stay, container: %s", got)
	}
}

// hidden: a page that nobody sees has no stream.
func hidden(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(5))
	p := open(t, browser, f.URL)
	p.loaded()
	hide := func(on string) {
		ask[bool](p,
			`(Object.defineProperty(document, 'hidden', { value: `+on+`, configurable: true }), document.dispatchEvent(new Event('visibilitychange')))`)
	}
	hide("true")
	within(t, 3*time.Second, func() bool { open, _ := f.streams(); return open == 0 })
	_, before := f.streams()
	hide("false")
	within(t, 3*time.Second, func() bool { open, all := f.streams(); return open == 1 && all == before+1 })
	p.until(3*time.Second, `document.getElementById('live').dataset.state === 'live'`)
}

func within(t *testing.T, limit time.Duration, condition func() bool) {
	t.Helper()
	for begin := time.Now(); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Since(begin) > limit {
			t.Fatalf("not within %v", limit)
		}
	}
}

// recording: what is not live says so, and no silence counts as a loss.
func recording(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(5))
	f.set(func(f *fake) { f.recent = true })
	p := open(t, browser, f.URL)
	p.until(5*time.Second, `document.getElementById('banner').innerText.startsWith('A recording of node-7, made ')`)
	time.Sleep(3500 * time.Millisecond) // longer than a stream may be silent
	if got := ask[string](p, `document.getElementById('live').innerText`); got != "recording" {
		t.Errorf("the page says %q", got)
	}
	if _, all := f.streams(); all != 1 {
		t.Errorf("%d streams were opened", all)
	}
	if got := ask[string](p, `document.getElementById('share').getAttribute('href')`); got != "/api/v1/snapshot" ||
		!ask[bool](p, `document.getElementById('share').hasAttribute('download')`) {
		t.Errorf("the file is at %s", got)
	}
}

// overflows are the cells whose text goes beyond them, and is not cut off.
const overflows = `[...document.querySelectorAll('.line > div')].filter((c) => c.offsetWidth > 0 && c.scrollWidth > c.offsetWidth + 1 && getComputedStyle(c).overflowX === 'visible').map((c) => c.className + ': ' + c.innerText).slice(0, 5)`

// wraps are the figures of tables that stand on two lines, and the tables that are wider than their panel.
const wraps = `[...document.querySelectorAll('.panel td')].filter((c) => { const r = document.createRange(); r.selectNodeContents(c); return r.getClientRects().length > 1; }).
	concat([...document.querySelectorAll('.panel table')].filter((e) => e.offsetWidth > e.parentElement.clientWidth - 24)).map((e) => e.innerText)`

// narrow: at 360 px the page does not scroll sideways, and begins with who stands still.
func narrow(t *testing.T, browser context.Context) {
	n := newNode(20)
	n.rows[0].Name = strings.Repeat("a-very-long-name-", 8)
	n.problems = []string{strings.Repeat("/kubepods/burstable/pod", 20) + ": refused"}
	n.colocation, n.reserve, n.waits = colocated(), reserved(), waited()
	for i := range n.waits.Ranks {
		n.waits.Ranks[i].Waits, n.waits.Ranks[i].Time, n.waits.Ranks[i].Beside =
			1_234_567, 90*time.Minute, 12*time.Minute
	}
	f := newFake(t, n)
	for _, width := range []int64{360, 620, 820, 1100, 1280} {
		p := open(t, browser, f.URL, size(width, 780))
		p.loaded()
		wide :=
			`[document.documentElement.scrollWidth, innerWidth, document.querySelector('.scroller')?.scrollWidth ?? 0, document.querySelector('.scroller')?.clientWidth ?? 0]`
		got := ask[[]int](p, wide)
		if over := ask[[]string](p, overflows); len(over) > 0 {
			t.Errorf("%d px: text goes beyond its cell: %q", width, over)
		}
		if got[0] > got[1] || got[2] > got[3] {
			t.Errorf("%d px: the page is %d wide in a window of %d, and the table %d in %d", width, got[0], got[1],
				got[2], got[3])
		}
		if begins := ask[string](p,
			`document.querySelector('.all').firstElementChild.querySelector('h2').textContent`); (begins == "Containers") != (width <= 760) {
			t.Errorf("%d px: the page begins with %s", width, begins)
		}
		if width == 360 &&
			ask[float64](p,
				`document.querySelector('.inside .line[aria-rowindex="4"]').getBoundingClientRect().bottom`) > 780 {
			t.Error("three containers are not in sight at 360 px")
		}
		if broken := ask[[]string](p, wraps); len(broken) > 0 {
			t.Errorf("%d px: figures of tables wrap, or a table is wider than its panel: %q", width, broken)
		}
		p.do(chromedp.Navigate(address(f, n.rows[0].ID)))
		p.until(5*time.Second, `document.querySelector('.plots canvas') && document.querySelector('.advice td')`)
		if broken := ask[[]string](p, wraps); len(broken) > 0 {
			t.Errorf("%d px: a container's tables: %q", width, broken)
		}
		if got := ask[[]int](p, wide); got[0] > got[1] {
			t.Errorf("%d px: a container's page is %d wide in a window of %d", width, got[0], got[1])
		}
		p.close()
	}
}

// theStrip: the three plots hold the server's periods, the cursor reads them, and zoom keeps what it shows.
func theStrip(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(5))
	p := open(t, browser, address(f, f.node.rows[0].ID), size(1280, 900))
	p.until(10*time.Second, `document.querySelectorAll('.plots canvas').length === 3`)
	p.do(chromedp.Focus(chromedp.CSS(".plots")), chromedp.KeyEvent(kb.ArrowLeft))
	p.until(2*time.Second, `/^\d\d:\d\d:\d\d\.\d$/.test(document.querySelector('.readout .time dd').textContent)`)
	p.until(2*time.Second, `document.querySelector('.strip [aria-live]').textContent.includes('used')`)
	p.do(chromedp.KeyEvent("+"))
	shown := ask[string](p, `document.querySelector('.part').textContent`)
	if !strings.HasSuffix(shown, ", not live") {
		t.Errorf("zoomed, it says %q", shown)
	}
	time.Sleep(2200 * time.Millisecond)
	if again := ask[string](p, `document.querySelector('.part').textContent`); again != shown {
		t.Errorf("what was zoomed at has moved from %q to %q", shown, again)
	}
	p.do(chromedp.KeyEvent("0"))
	p.until(2*time.Second, `document.querySelector('.part').textContent === ''`)

	f.set(func(f *fake) { f.node.unmeasured = "this kernel has no eBPF programs that record periods" })
	p.do(chromedp.Navigate(f.URL+"/#/"), chromedp.Navigate(address(f, f.node.rows[1].ID))) // the same document
	p.until(5*time.Second,
		`document.querySelector('.strip .nothing:not([hidden])')?.textContent.includes('no eBPF programs')`)
	if ask[bool](p, `Boolean(document.querySelector('.plots canvas'))`) {
		t.Error("a strip of what is not measured")
	}
}

// stands: a picture is one of a drawing that is ready, whether the page draws it frame by frame or on its own time.
func stands(t *testing.T, browser context.Context) {
	n := newNode(1)
	n.turn = nil
	f := newFake(t, n)
	f.every = time.Minute
	p := open(t, browser, f.URL)
	p.loaded()
	for name, draw := range map[string]string{
		"frames": `import('/assets/frames.js').then((m) => { for (let i = 50; i >= 0; i--) m.frame(() => paint(i)); return true; })`,
		"time":   `(() => { let i = 100; const id = setInterval(() => { paint(--i); if (i === 0) clearInterval(id); }, 10); return true; })()`,
	} {
		ask[bool](p,
			`(window.paint = (i) => { document.body.style.opacity = 1 - i / 101; document.body.dataset.left = i; }, `+draw+`)`)
		p.still(chromedp.FullScreenshot(100))
		if left := ask[string](p, `document.body.dataset.left`); left != "0" {
			t.Errorf("%s: a picture was taken with %s frames to come", name, left)
		}
	}
}
