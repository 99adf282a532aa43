//go:build browser

package browser

import (
	"context"
	"testing"

	"plimsoll/internal/view"
)

// table is four rows by their figures: what is not measured is null.
const table = `const rows = [
	{ id: '/a', name: 'a', lost_ns: 0, throttled: 0, used_cpus: 3, peak_cpus: 3, limit_ns: 4e8, period_ns: 1e8, quota_ns: 4e8, burst_ns: 1, why: 'Spare' },
	{ id: '/b', name: 'B', lost_ns: 0, throttled: 2, used_cpus: null, peak_cpus: null, limit_ns: null, period_ns: 1e8, quota_ns: null, burst_ns: 9, why: 'x', pod: 'shop/b' },
	{ id: '/c', name: 'c', lost_ns: 5, throttled: 1, used_cpus: 1, peak_cpus: 8, limit_ns: 5e7, period_ns: 1e8, quota_ns: 6e8, burst_ns: 2, why: 'b', problem: 'refused' },
	{ id: '/d', name: 'd', lost_ns: null, throttled: null, used_cpus: 2, peak_cpus: 1, limit_ns: 1e8, period_ns: 1e8, quota_ns: 1e8, burst_ns: 3, why: 'a' },
	{ id: '/e', name: 'e', lost_ns: 0, throttled: 0, used_cpus: 3, peak_cpus: 3, limit_ns: 2e8, period_ns: 1e8, quota_ns: 2e8, burst_ns: 1, why: 'c' },
].map((r) => ({ runtime: 'docker', policy: 'auto', cause: '', ...r }));
const pick = (...how) => m.pick(rows, ...how).map((r) => r.name).join(''); `

// strip shows four minutes, so that two periods are drawn as one. Its group sleeps in the fourth period,
// and from the fifth on.
const strip = `const s = Object.assign(new m.Strip(), { zoom: [0, 24e4],
	data: { length: 1e8, time: [100, 200, 300, 400, 500, 600], used: [1, 3, 2, null, null, null],
		quota: [5, 6, 5, null, null, null], tokens: [3, 4, 7, null, null, null], lost: [10, 0, 5, null, null, null],
		throttles: [0, 1, 0, 0, 0, 0], refills: [0, 0, 2, 0, 0, 0], last: 3e5 } }), said = () => Object.values(s.values).slice(1).map((e) => e.textContent).join(); `

// period appends a period that ends at a time, of half a CPU.
const period = `const s = m.strip(), append = (end) =>
	m.append(s, { period_ns: 1e8, end_ms: [end], used_us: [50000], quota_us: [-1], tokens_us: [-1], throttles: [1], lost_us: [2500], refills: [3] }); `

// modules are the page's arithmetic, which needs no document.
func modules(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(1))
	p := open(t, browser, f.URL)
	for _, c := range []struct{ module, body, want string }{
		{"format",
			"return [m.cpus(0), m.cpus(null), m.cpus(128), m.ms(0), m.ms(null), m.ms(1.5e6), m.ms(61e9), m.count(null)]", `["0.00","–","128.0","0","–","1.5","61,000","–"]`},
		{"format", "return [0, 4200, 42e3, 2.5e6, 2.5e9, 25e9, 300e9, 9000e9, null].map(m.span)",
			`["0 s","4.2 µs","42 µs","2.5 ms","2.50 s","25.0 s","5.0 min","2.5 h","–"]`},
		{"format", "return [0, 0.00042, 0.000001, 0.004, 0.04, 0.5, null, NaN].map(m.percent)",
			`["0 %","0.042 %","< 0.001 %","0.40 %","4.0 %","50 %","–","–"]`},
		{"format", "return [m.share(5e7, 1e8), m.share(null, 1e8), m.share(5e7, 0)]", `[0.5,null,null]`},
		{"format",
			"return ['own-limit', 'pod-limit', 'at-cap', 'load-line', 'extra-cores', 'budget', 'guard', 'refused', " +
				"'paused', 'held', 'policy-none', 'refills-off', 'a-new-word', ''].map(m.cause)",
			`["own limit","pod's limit","at its cap","cut by load line","extra cores used","budget spent","node is full","write refused","paused","agent held","policy none","refills off","a new word",""]`},
		{"store",
			"const s = m.empty(); m.apply(s, 'change', { rows: [{ id: 'a' }] }); const before = s.order.length; " +
				"m.apply(s, 'view', { rows: [{ id: 'a', n: 1 }, { id: 'b' }] });" +
				"m.apply(s, 'change', { rows: [{ id: 'a', n: 2 }, { id: 'c' }], gone: ['b'] }); return [before, " +
				"s.order.map((r) => r.id + r.n)]", `[0,["a2","cundefined"]]`},
		{"store",
			period +
				"append(1000); append(1000); append(1100); append(1500); return [s.time, s.used, s.quota, s.tokens, " +
				"s.lost, s.throttles, s.refills]",
			`[[1000,1100,1200,1500],[0.5,0.5,null,0.5],[null,null,null,null],[null,null,null,null],[2.5,2.5,null,2.5],[1,1,0,1],[3,3,0,3]]`},
		{"store",
			period +
				"append(1000); append(1100); const all = m.empty(), known = all.strip = s, backlog = (...end_ms) => " +
				"m.apply(all, 'detail', { row: {}, periods: { period_ns: 1e8, end_ms, used_us: [1, 2], " +
				"quota_us: [1, 2], tokens_us: [1, 2], throttles: [1, 2], lost_us: [1, 2], refills: [1, 2] } }); " +
				"backlog(1100, 1200); const same = all.strip === known; backlog(1300, 1400); " +
				"return [same, s.time, all.strip.time]",
			`[true,[1000,1100,1200],[1300,1400]]`},
		{"store",
			period + "append(3600e3); append(3600e3 + 100); append(1000); append(1100); return s.time", `[1000,1100]`},
		{"store",
			period +
				"append(1000); append(1000 + 14 * 60e3); const long = s.time.length; append(1000 + 16 * 60e3); " +
				"return [long, s.time[0] / 60e3 > 13, s.used.length === s.time.length]", `[3,true,true]`},
		{"store",
			table +
				"return ['worst', 'name', 'limit', 'used', 'peak', 'gauge', 'lost', 'quota', 'burst', " +
				"'why'].map((c) => pick('', c, false))",
			`["cBead","Bacde","aedcB","aedcB","caedB","cdeaB","cBaed","caedB","Bdcae","adceB"]`},
		{"store", table + "return ['worst', 'name', 'lost'].map((c) => pick('', c, true))",
			`["daeBc","edcaB","Baecd"]`},
		{"store",
			table +
				"return ['REFUSED', ' spare', 'b SHOP', 'shop refused', 'docker'].map((words) => pick(words, " +
				"'name', false))", `["c","a","B","","Bacde"]`},
		{"strip", strip + "return s.columns()",
			`[[[200,400,600],[3,2,null],[6,5,null]],[[200,400,600],[3,7,null]],[[200,400,600],[10,5,null]]]`},
		{"strip",
			strip +
				"const zoomed = s.range(); s.zoom = null; s.span = 120; return [zoomed, s.range(), s.find(200), " +
				"s.find(201)]", `[[0,240000],[180000,300000],1,2]`},
		{"strip",
			strip +
				"s.show(s.data, { limit_ns: 5e7, period_ns: 1e8 }); s.read(); const last = said(); s.time = 300; " +
				"s.read(); s.destroy(); return [last, said()]",
			`["idle,–,0.50 CPUs,–,–,0 ×,0 ×","2.00 CPUs,5.00 CPUs,0.50 CPUs,7.0 ms,5.0 ms,0 ×,2 ×"]`},
		{"strip",
			strip +
				"const key = (key) => { s.key({ key, preventDefault() {} }); return s.index; }; return " +
				"['ArrowLeft', 'ArrowLeft', 'ArrowRight', 'Home', 'End'].map(key)", `[4,3,4,0,5]`},
		{"strip",
			strip +
				"const log = [], no = () => {}, ctx = { save: no, restore: no, fillText(text) { log.push(text, " +
				"this.fillStyle); }, fillRect(x) { log.push(x); } }; s.limit = null; s.colours = { bad: 'bad', " +
				"good: 'good' };" +
				"s.marks({ ctx, bbox: { left: 0, top: 50, width: 600 }, valToPos: (time) => time * " +
				"devicePixelRatio }); " +
				"return log.map((x) => x > 0 ? x < 200 ? 2 : 3 : x)", `["throttled","bad",2,"refilled","good",3]`},
		{"live",
			"const waits = [], real = [EventSource, setTimeout]; window.EventSource = class { static CLOSED = 2; " +
				"addEventListener() {} close() {} }; window.setTimeout = (again, ms) => { waits.push(ms); again(); };" +
				"const live = new m.Live({ condition() {} }); live.show(null); for (let n = 0; n < 6; n++) " +
				"live.source.onerror(); live.close(); [window.EventSource, window.setTimeout] = real; return waits",
			`[500,1000,2000,4000,8000,8000]`},
		{"colocation", "return [m.cpuset('0-3,7, 9'), m.cpuset('x'), m.cpuset(null)]", `[[0,1,2,3,7,9],[],[]]`},
	} {
		got := ask[string](p,
			`import('/assets/`+c.module+`.js').then((m) => { `+c.body+`; }).then((value) => `+plain(
				"JSON.stringify(value)")+`)`)
		if got != c.want {
			t.Errorf("%s: %s:\n got %s\nwant %s", c.module, c.body, got, c.want)
		}
	}
	if view.Schema != "plimsoll.view/v1" {
		t.Errorf("the page knows another schema than %s", view.Schema)
	}
}
