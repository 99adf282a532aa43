//go:build browser

package browser

import (
	"context"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// plain is an expression of a text without no-break spaces, which keep a number and its unit on one line.
func plain(expression string) string { return expression + `.replaceAll('\u00a0', ' ')` }

// texts is an expression of what stands in elements: their children's texts with | between them, and ;
// between elements.
func texts(selector string) string {
	return `[...document.querySelectorAll('` + selector +
		`')].map((e) => [...e.children].map((c) => c.textContent).join('|')).join(';')`
}

// theMark: the risk has its interval, and says where it has none yet.
func theMark(t *testing.T, browser context.Context) {
	f := newFake(t, newNode(2))
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	risk := plain(`document.querySelector('.facts').innerText`)
	p.until(5*time.Second, risk+`.includes('0.042 % (95 %: 0.017 % to 0.11 %)')`)
	f.set(func(f *fake) {
		r := *f.node.mark.Risk
		r.Interval = nil
		f.node.mark.Risk = &r
	})
	p.until(5*time.Second, risk+`.includes('Its interval is known after five minutes.')`)
}

// theWaits: neighbours are named where they had a part, and a container that its own limit holds is blamed on nobody.
func theWaits(t *testing.T, browser context.Context) {
	n := newNode(2)
	ingest := report.Neighbour{Name: "ingest", Cgroup: "/kubepods/ingest", Time: 5 * time.Second}
	limit, behind := view.WaitedFor{Cause: report.CauseOwnLimit, Text: "throttled by its own limit",
		Time: 21 * time.Second},
		view.WaitedFor{Cause: report.CauseNeighbour, Text: "waiting behind neighbours", Time: 6 * time.Second}
	f := newFake(t, n)
	for _, c := range []struct {
		name       string
		causes     []view.WaitedFor
		neighbours []report.Neighbour
		says, not  string
	}{
		{"own limit", []view.WaitedFor{limit}, nil, "100 % of the waiting is a limit of its own, not a neighbour.",
			"ingest"},
		{"own limit first", []view.WaitedFor{limit, behind}, []report.Neighbour{ingest},
			"78 % of the waiting is a limit of its own, not a neighbour.", "behind ingest"},
		{"neighbours", []view.WaitedFor{behind}, []report.Neighbour{ingest},
			"100 % of the waiting is behind neighbours, the longest behind ingest.", "limit of its own"},
		{"not named", []view.WaitedFor{behind}, nil, "plimsoll diagnose --state-dir /run/lab checkout", "ingest"},
	} {
		f.set(func(f *fake) { f.node.waited = &view.Waited{Causes: c.causes, Neighbours: c.neighbours} })
		p := open(t, browser, address(f, n.rows[0].ID), size(1280, 900))
		p.until(5*time.Second, plain(`(document.querySelector('.waits')?.innerText ?? '')`)+`.includes('`+c.says+`')`)
		text := ask[string](p, `document.querySelector('.waits').innerText`)
		if strings.Contains(text, c.not) || strings.Contains(text, "ingest") != (len(c.neighbours) > 0) {
			t.Errorf("%s: %s", c.name, text)
		}
		p.close()
	}
}

// noWaits: a container without waits has the reason, and the command that measures them only where it can.
func noWaits(t *testing.T, browser context.Context) {
	const command = "plimsoll diagnose"
	n := newNode(2)
	n.unmeasured = "no periods"
	f := newFake(t, n)
	for _, c := range []struct {
		name  string
		waits *report.Waits
		level string
		says  string
	}{
		{"not asked for", nil, "container", "Not measured: the agent runs without --waits. This measures them for a " +
			"while: " + command},
		{"refused", &report.Waits{Problem: "the kernel refuses the programs"}, "container",
			"Not measured: the kernel refuses the programs"},
		{"just begun", waited(), "container", "Not measured yet."},
		{"a pod", waited(), "pod", "Not measured: the waits are those of its containers."},
	} {
		f.set(func(f *fake) { f.node.waits, f.node.rows[0].Level = c.waits, c.level })
		p := open(t, browser, address(f, n.rows[0].ID), size(1280, 900))
		p.until(5*time.Second, `document.querySelector('.waits')?.innerText`)
		text := strings.Join(strings.Fields(ask[string](p, `document.querySelector('.waits').innerText`)), " ")
		if !strings.Contains(text, c.says) || strings.Contains(text, command) != strings.Contains(c.says, command) {
			t.Errorf("%s: got %q, want %q", c.name, text, c.says)
		}
		p.close()
	}
}

// theRequests: response times stand among the figures where they are measured, and none where they cannot be told.
func theRequests(t *testing.T, browser context.Context) {
	const ms = time.Millisecond
	n := newNode(2)
	f := newFake(t, n)
	for _, c := range []struct {
		name     string
		requests *report.RequestWindow
		want     string
	}{
		{"not measured", nil, ""},
		{"none came", &report.RequestWindow{Window: time.Minute}, ""},
		{"throttled", &report.RequestWindow{Window: time.Minute, Answered: 1200,
			Response:    report.Quantiles{P50: 4 * ms, P99: 105 * ms},
			Unthrottled: report.Quantiles{P99: 15 * ms}, Time: 9 * time.Second, Throttled: 3 * time.Second,
			ThrottledKnown: true},
			"Requests|20.00 a second, last 60 s;Response p99|105 ms; p50 4.0 ms;Without throttling|15 ms p99; 33 % " +
				"of the time throttled"},
		{"no clock", &report.RequestWindow{Window: time.Minute, Answered: 1200,
			Response: report.Quantiles{P50: 4 * ms, P99: 105 * ms}, Time: time.Second},
			"Requests|20.00 a second, last 60 s;Response p99|105 ms; p50 4.0 ms;Without throttling|– the throttled " +
				"part is not known"},
		{"several at a time", &report.RequestWindow{Window: time.Minute, Answered: 90, Doubtful: 10, Withheld: true},
			"Response p99|– cannot be told: several requests at a time on a connection"},
	} {
		f.set(func(f *fake) { f.node.rows[0].Requests = c.requests })
		p := open(t, browser, address(f, n.rows[0].ID), size(1280, 900))
		p.until(5*time.Second,
			`document.querySelectorAll('.figures:not(.requests) div').length === 9 && document.querySelector('.waits')?.innerText`)
		got := ask[string](p, plain(texts(`.figures.requests div`)))
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
		p.close()
	}
}

// theCauses: what holds no longer is told in the past, with the time since when, and what holds now in the present.
func theCauses(t *testing.T, browser context.Context) {
	n := newNode(2)
	n.drift()
	n.turn = nil
	last := time.Date(2026, 11, 25, 12, 34, 56, 0, time.Local)
	n.rows[0].Cause, n.rows[0].LastLost = view.Guard, &last
	f := newFake(t, n)
	p := open(t, browser, address(f, n.rows[0].ID), size(1280, 900))
	decision := `document.querySelector('.decision').innerText`
	p.until(5*time.Second,
		decision+`.includes('The node had no CPU time to spare. It has lost nothing since 12:34:56.')`)
	f.set(func(f *fake) { f.node.rows[0].CauseNow = view.Guard })
	p.until(5*time.Second,
		decision+`.includes('The node has no CPU time to spare.') && !`+decision+`.includes('since')`)
	f.set(func(f *fake) { f.node.rows[0].CauseNow = view.Paused })
	p.until(5*time.Second,
		decision+`.includes('The node had no CPU time to spare. Now: A person or a program has paused it.')`)
	f.set(func(f *fake) { f.node.rows[0].CauseNow = view.RefillsOff }) // of this container, or of the node
	p.until(5*time.Second, decision+`.includes('Now: Refills have no effect here.')`)
}

// theShortfall: by cause and rank; of a rank without requests it is not known, which is not 0.
func theShortfall(t *testing.T, browser context.Context) {
	n := newNode(2)
	n.colocation, n.waits = colocated(), waited()
	f := newFake(t, n)
	p := open(t, browser, f.URL, size(1280, 900))
	p.loaded()
	p.until(5*time.Second, `document.querySelector('.shortfall')`)
	got := ask[string](p, plain(texts(`.shortfall tr`)))
	if want := "Cause|online|offline;neighbours|1.30 s|–;its own limit|700 ms|–"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	f.set(func(f *fake) {
		w := *f.node.waits
		w.Ranks = []report.RankWaits{{Rank: "online"}, {Rank: "offline"}}
		f.node.waits = &w
	})
	p.until(5*time.Second,
		`document.querySelector('.colocation').innerText.includes('the request of no container is known')`)
}
