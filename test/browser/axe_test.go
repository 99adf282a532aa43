//go:build browser

package browser

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// axeFile is axe-core's script, which internal/page/vendor.sh takes from npm.
const axeFile = "../../.cache/page/node_modules/axe-core/axe.min.js"

// TestAccessible: axe finds nothing in what the page shows, in light on a wide screen and in dark on a narrow one.
func TestAccessible(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile(axeFile)
	if err != nil {
		t.Fatalf("%v; hint: bash internal/page/vendor.sh -check", err)
	}
	n := newNode(60)
	n.problems = []string{"/kubepods/x: cpu.cfs_quota_us: refused"}
	n.drift()
	n.rows[1].Used, n.turn = nil, nil
	n.colocation, n.reserve, n.waits = colocated(), reserved(), waited()
	f := newFake(t, n)
	browser := chromium(t)
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"light", 1280}, {"dark", 360}} {
		p := open(t, browser, f.URL, size(look.width, 900), media("prefers-color-scheme", look.scheme))
		p.loaded()
		ask[bool](p, "(()=>{"+string(script)+";return true})()")
		p.axe(look.scheme + ", all containers")
		p.picture("colocation-"+look.scheme+map[bool]string{true: "-narrow"}[look.width < 500], true)
		p.do(chromedp.KeyEvent("/"), chromedp.KeyEvent("no such container"))
		p.axe(look.scheme + ", nothing found")
		ask[bool](p, `(location.hash = '#/c/' + encodeURIComponent('`+n.rows[0].ID+`'), true)`)
		p.until(10*time.Second,
			`document.querySelectorAll('.plots canvas').length === 3 && !document.querySelector('.three').hidden`)
		time.Sleep(300 * time.Millisecond)
		p.axe(look.scheme + ", one container")
		f.set(func(f *fake) { f.lost = true })
		p.until(lossShown, `document.getElementById('live').dataset.state === 'agent'`)
		p.axe(look.scheme + ", no agent")
		f.set(func(f *fake) { f.lost = false })
		p.close()
	}
}

// axe fails the test with what axe finds.
func (p *tab) axe(where string) {
	p.t.Helper()
	found := ask[[]string](p,
		`axe.run(document, { resultTypes: ['violations'] }).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ': ' + n.html.slice(0, 160) + ': ' + n.failureSummary)))`)
	if len(found) > 0 {
		p.t.Errorf("%s: axe finds\n%s", where, strings.Join(found[:min(len(found), 8)], "\n"))
	}
}

// colocated is a node with online and offline work.
func colocated() *report.Colocation {
	room := 2.4
	return &report.Colocation{Asked: "auto", Mechanism: "idle", Why: "the kernel has cpu.idle", Room: &room,
		Knobs: []report.Priority{{Cgroup: "/kubepods/besteffort", Knob: "idle", Want: "1", Have: "1", InForce: true}},
		Ranks: []report.Rank{{Rank: strategy.Online, Containers: 41, Used: 2.2},
			{Rank: strategy.Offline, Containers: 19, Used: 1.1}}}
}

// waited is a node whose containers wait.
func waited() *report.Waits {
	rank := func(rank strategy.Rank, reserving int, causes ...report.Wait) report.RankWaits {
		return report.RankWaits{Rank: rank, Waits: 1200, Time: 3 * time.Second,
			Lengths:   []report.Length{{UpTo: 64 * time.Microsecond, N: 1100}, {UpTo: 4 * time.Millisecond, N: 100}},
			Reserving: reserving, Causes: causes}
	}
	return &report.Waits{Ranks: []report.RankWaits{
		rank(strategy.Online, 17, report.Wait{Cause: report.CauseOwnLimit, Time: 9 * time.Second,
			Short: 700 * time.Millisecond}, report.Wait{Cause: report.CauseNeighbour, Time: 2 * time.Second,
			Short: 1300 * time.Millisecond}),
		rank(strategy.Offline, 0, report.Wait{Cause: report.CauseNeighbour, Time: 90 * time.Second}),
	}}
}

// reserved is a node on which two containers have exclusive CPUs.
func reserved() *report.Reserve {
	return &report.Reserve{Policy: "spread", Shared: "0-1,6-7", CPUs: 4, MinShared: 2, Kept: "0",
		Exclusive: []report.ExclusiveCPUs{{Cgroup: "/kubepods/burstable/pod0000/checkout", Request: 2, CPUs: "2-3",
			N: 2, MayUse: "2-3"}, {Cgroup: "/kubepods/pod9/db", Request: 1, CPUs: "4", N: 1, MayUse: "4"}},
		Refused: []report.NoCPUs{{Cgroup: "/kubepods/pod8/cache", Why: "the share pool would have less than 2 CPUs"}},
		Pinned:  []report.BoundCPUs{{Cgroup: "/system.slice/dpdk", CPUs: "5"}}}
}
