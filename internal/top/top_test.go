package top

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/golden"
	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

const ms = time.Millisecond

var t0 = time.Date(2026, 11, 21, 9, 0, 0, 0, time.Local)

func ptr[T any](v T) *T { return &v }

// sample is a node with a throttled container, a quiet one, one without a limit and one of a hostile name.
func sample() view.View {
	row := func(name string, limit time.Duration, used float64, lost time.Duration, throttled int64) view.Row {
		return view.Row{ID: "/kubepods/" + name, Name: name, Level: "container", Policy: "auto", Period: 100 * ms,
			Limit: &limit, Quota: &limit, QuotaAsked: &limit, Used: &used, Peak: ptr(used * 1.5), Lost: &lost,
			Throttled: &throttled, Refills: ptr(throttled * 3), Tokens: ptr(12 * ms), Burst: limit}
	}
	hot := row("shop/checkout/api", 50*ms, 0.98, 4200*ms, 131)
	hot.Quota, hot.Cause, hot.Why = ptr(150*ms), view.AtCap, "throttled within the last 3 s: demand up to 148ms a "+
		"period, limit 50ms; the cap of its policy is reached"
	trick := row("default/\x1b[2J\u202eforged\nyes<img src=x onerror=alert(1)>"+strings.Repeat("x", 100), 20*ms, 0.1,
		30*ms, 2)
	trick.Cause, trick.Why = view.OwnLimit, "\x1b]0;title\x07 why"
	free := view.Row{ID: "/lab/free", Name: "/lab/free", Level: "container", Policy: "none", Period: 100 * ms,
		Used: ptr(0.5), Cause: view.NoCause}
	return view.View{Schema: view.Schema, Now: t0, Node: "worker-1", Version: "0.1.0", Mode: report.Active,
		Window: time.Minute,
		Sentence: "shop/checkout/api lost 4.2 s of the last minute: throttled by its own limit of 0.5 CPUs; it uses " +
			"all that its policy permits in a period; Plimsoll made 393 refills, and has raised the quota to 1.5 CPUs.",
		Mark: view.Mark{Node: report.Node{State: "idle", CPUs: 8, Capacity: 8, Used: 3.41, Threshold: 4, Granted: 1,
			Risk: &report.Risk{Now: 0.0004}},
			Changed: 3, Undo: "plimsoll restore"},
		Rows:     []view.Row{hot, trick, row("default/web/nginx", 100*ms, 0.3, 0, 0), free},
		Problems: []string{"kubernetes: the API server does not answer\x1b[2J"}}
}

// answering is the node where requests are measured: of one container all, of one only that they cannot be told.
func answering(width, height int) Model {
	v := sample()
	v.Rows[2].Requests = &report.RequestWindow{Window: time.Minute, Answered: 1200,
		Response: report.Quantiles{P50: 4 * ms, P90: 9 * ms, P99: 105 * ms},
		Unthrottled: report.Quantiles{
			P99: 15 * ms}, Time: 9 * time.Second, Throttled: 3 * time.Second, ThrottledKnown: true}
	v.Rows[3].Requests = &report.RequestWindow{Window: time.Minute, Answered: 90, Doubtful: 10, Withheld: true}
	return New(width, height).Seen(v)
}

// periods are of a container that climbs, is throttled, and is refilled.
func periods() view.Periods {
	p := view.Periods{Length: 100 * ms}
	for i := range int32(150) {
		used := i % 50 * 3000
		p.End = append(p.End, t0.UnixMilli()+100*int64(i))
		p.Used, p.Quota, p.Tokens = append(p.Used, used), append(p.Quota, 100_000), append(p.Tokens, 50_000-i%50*1000)
		throttled, refilled := int32(0), int32(0)
		if used > 120_000 {
			throttled = 1
		} else if used > 100_000 {
			refilled = 1
		}
		p.Throttles, p.Lost, p.Refills = append(p.Throttles, throttled), append(p.Lost,
			1000*throttled), append(p.Refills, refilled)
	}
	return p
}

func keys(m Model, list ...string) Model {
	for _, key := range list {
		m = m.Key(key)
	}
	return m
}

func screens() map[string]Model {
	seen := func(w, h int) Model { return New(w, h).Seen(sample()) }
	held := sample()
	held.Mode, held.HeldReason, held.Sentence = report.Held, "incident\x1b[2J", "Nobody stood still in the last minute."
	held.Problems = append(held.Problems, "a second", "a third", "a fourth")
	empty := sample()
	empty.Rows, empty.Problems = nil, nil
	return map[string]Model{
		"table-80x24":    seen(80, 24),
		"table-120x40":   seen(120, 40),
		"cursor-80x24":   keys(seen(80, 24), "n", "down", "down"),
		"filter-80x24":   keys(seen(80, 24), "/", "w", "e", "b"),
		"strip-80x24":    keys(seen(80, 24), "enter").Recorded("/kubepods/shop/checkout/api", periods()),
		"requests-80x24": keys(answering(80, 24), "p"),
		"requests-120x40": keys(answering(120, 40), "p", "home", "enter").Recorded("/kubepods/default/web/nginx",
			periods()),
		"strip-120x40":  keys(seen(120, 40), "enter").Recorded("/kubepods/shop/checkout/api", periods()),
		"lost-80x24":    seen(80, 24).Failed("no agent is running (/run/plimsoll/read.sock)", t0.Add(3*time.Second)),
		"held-80x24":    New(80, 24).Seen(held),
		"empty-80x24":   New(80, 24).Seen(empty),
		"waiting-80x24": New(80, 24),
		"help-80x24":    keys(seen(80, 24), "?"),
	}
}

// TestFrames holds the screens against testdata, and each to the size of its terminal.
func TestFrames(t *testing.T) {
	for name, m := range screens() {
		got := m.Render()
		checkFrame(t, name, got, m.Width, m.Height)
		golden.File(t, name+".txt", got+"\n")
	}
	golden.File(t, "once.txt", New(100, 0).Seen(sample()).Once())
}

// TestFiguresSayTheirWindow: soon after a start, and in one picture, the last minute is shorter.
func TestFiguresSayTheirWindow(t *testing.T) {
	v := sample()
	v.Window = time.Second
	for what, got := range map[string]string{"one picture": New(100, 0).Seen(v).Once(),
		"a strip": keys(New(80, 24).Seen(v), "enter").Render()} {
		if !strings.Contains(got, "last 1 s") || strings.Count(got, "last minute") > strings.Count(v.Sentence,
			"last minute") {
			t.Errorf("%s:\n%s", what, got)
		}
	}
}

// checkFrame: so many lines, none too long, and nothing that steers a terminal.
func checkFrame(t *testing.T, name, frame string, width, height int) {
	t.Helper()
	lines := strings.Split(frame, "\n")
	if len(lines) != height {
		t.Errorf("%s: %d lines, want %d", name, len(lines), height)
	}
	for _, line := range lines {
		if wide(line) > width {
			t.Errorf("%s: %d columns: %s", name, wide(line), line)
		}
		if i := strings.IndexFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%s: %q does not print", name, line)
		}
	}
}

// TestAnySize: a terminal of any size gets that many lines.
func TestAnySize(t *testing.T) {
	for name, m := range screens() {
		for _, size := range [][2]int{{20, 8}, {40, 10}, {60, 15}, {79, 23}, {200, 60}} {
			checkFrame(t, fmt.Sprint(name, size), m.Resized(size[0], size[1]).Render(), size[0], size[1])
		}
	}
}

// TestColourIsLaidOver: without its escapes a coloured frame is the plain one, so nothing is said by colour alone.
func TestColourIsLaidOver(t *testing.T) {
	for name, m := range screens() {
		plain := m.Render()
		m.Colour = true
		painted := m.Render()
		var b strings.Builder
		escape := false
		for _, r := range painted {
			switch {
			case r == '\x1b':
				escape = true
			case escape:
				escape = r != 'm'
			default:
				b.WriteRune(r)
			}
		}
		if diff := cmp.Diff(plain, b.String()); diff != "" || name == "table-80x24" && painted == plain {
			t.Errorf("%s (-plain +coloured): %s", name, diff)
		}
	}
}

func names(m Model) string {
	var list []string
	for _, r := range m.rows() {
		list = append(list, string([]rune(r.Name)[:9]))
	}
	return strings.Join(list, " ")
}

// TestOrders: what is not measured comes after what is 0.
func TestOrders(t *testing.T) {
	for key, want := range map[string]string{
		"l": "shop/chec default/\x1b default/w /lab/free",
		"t": "shop/chec default/\x1b default/w /lab/free",
		"u": "shop/chec /lab/free default/w default/\x1b",
		"n": "/lab/free default/\x1b default/w shop/chec",
	} {
		if got := names(New(80, 24).Seen(sample()).Key(key)); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
	}
}

// TestCursor stays on its container while the order changes, and goes to the first when it is gone. Untouched it is on
// the worst.
func TestCursor(t *testing.T) {
	worse := sample()
	worse.Rows[2].Lost = ptr(time.Hour)
	m := New(80, 24).Seen(sample())
	if got := m.Seen(worse).at; got != worse.Rows[2].ID || m.at == got {
		t.Errorf("at %s, and then at %s, which loses the most", m.at, got)
	}
	if got := m.Key("enter").Seen(worse); got.at != got.Open() {
		t.Errorf("at %s while %s is open", got.at, got.Open())
	}
	m = keys(New(80, 24).Seen(sample()), "down", "down")
	if m.at != "/kubepods/default/web/nginx" {
		t.Fatalf("at %s", m.at)
	}
	v := sample()
	v.Rows[0], v.Rows[2] = v.Rows[2], v.Rows[0]
	if m = m.Seen(v).Key("n"); m.at != "/kubepods/default/web/nginx" {
		t.Errorf("at %s after the order changed", m.at)
	}
	v.Rows = v.Rows[2:]
	if m = m.Seen(v); m.at != "/lab/free" {
		t.Errorf("at %s after the container was gone", m.at)
	}
	for _, key := range []string{"up", "pgup", "home", "down", "end", "pgdown", "G", "k"} {
		m = m.Key(key)
	}
	if m.index(m.rows()) < 0 {
		t.Error("the cursor left the table")
	}
}

func TestFilter(t *testing.T) {
	m := keys(New(80, 24).Seen(sample()), "/", "W", "E", "x", "backspace", "b")
	if got := names(m); got != "default/w" || m.at != "/kubepods/default/web/nginx" {
		t.Errorf("%q, at %s", got, m.at)
	}
	if m = keys(m, "q"); m.Quit {
		t.Error("q is a letter while a filter is typed")
	}
	if m = keys(m, "backspace", "enter", "q"); !m.Quit || names(m) != "default/w" {
		t.Errorf("after enter, q quits: %v, %q", m.Quit, names(m))
	}
	if m = keys(m, "esc"); len(m.rows()) != 4 {
		t.Errorf("esc drops the filter: %q", names(m))
	}
	if m = keys(m, "/", "z", "z"); !strings.Contains(m.Render(), "no container has zz") {
		t.Error("an empty table does not say why")
	}
}

// TestOpen: enter opens the container under the cursor, periods of another are not its, and esc goes back.
func TestOpen(t *testing.T) {
	m := keys(New(80, 24).Seen(sample()), "enter")
	if m.Open() != "/kubepods/shop/checkout/api" {
		t.Fatalf("open %q", m.Open())
	}
	if m = m.Recorded("/other", periods()); len(m.periods.End) != 0 || !strings.Contains(m.Render(), "no period yet") {
		t.Error("the periods of another container are shown")
	}
	if m = m.Recorded(m.Open(), periods()).Key("down"); m.Open() == "/kubepods/shop/checkout/api" ||
		len(m.periods.End) != 0 {
		t.Error("down does not go to the next container, or keeps the periods")
	}
	if m = m.Key("esc"); m.Open() != "" || m.Quit {
		t.Error("esc does not go back")
	}
	v := sample()
	v.Rows = v.Rows[1:]
	if m = keys(New(80, 24).Seen(sample()), "enter").Seen(v); !strings.Contains(m.Render(), "this container is gone") {
		t.Error("a container that is gone")
	}
}

// TestLossIsOver with the next snapshot.
func TestLossIsOver(t *testing.T) {
	m := New(80, 24).Seen(sample()).Failed("gone", t0).Failed("gone", t0.Add(time.Minute))
	if text := m.Render(); !strings.Contains(text, "NO AGENT since 09:00:00: gone") ||
		!strings.Contains(text, "shop/checkout/api") {
		t.Errorf("not said, or not since when, or the last snapshot is away:\n%s", text)
	}
	if text := m.Seen(sample()).Render(); strings.Contains(text, "NO AGENT") {
		t.Error("said after the agent is back")
	}
}

// TestTimesAreOfOneZone: those of the agent's JSON have its offset, and those of another day their date.
func TestTimesAreOfOneZone(t *testing.T) {
	local := time.Local
	t.Cleanup(func() { time.Local = local })
	time.Local = time.FixedZone("", 2*60*60)
	v := sample()
	v.Now = time.Date(2026, 11, 21, 12, 3, 10, 0, time.UTC)
	lost := v.Now.Add(2 * time.Second).Local()
	v.Rows[0].Paused = ptr(v.Now.Add(30 * time.Minute))
	v.Rows[1].Paused = ptr(v.Now.Add(10 * time.Hour))
	m := New(200, 24).Seen(v)
	for what, c := range map[string]struct {
		screen Model
		want   string
	}{
		"loss": {m.Failed("gone", lost), "NO AGENT since 14:03:12: gone; below is how it was at 14:03:10"},
		"a day of loss": {m.Failed("gone", lost).Failed("gone", lost.Add(24*time.Hour)),
			"NO AGENT since 2026-11-21 14:03:12: gone; below is how it was at 2026-11-21 14:03:10"},
		"pause":          {m, "paused until 14:33:10"},
		"till the next":  {m.Key("down"), "paused until 2026-11-22 00:03:10"},
		"pause of strip": {m.Key("enter"), "paused until 14:33:10"},
	} {
		if text := c.screen.Render(); !strings.Contains(text, c.want) {
			t.Errorf("%s: no %q in\n%s", what, c.want, text)
		}
	}
}

func TestAppend(t *testing.T) {
	p := view.Periods{}
	one := view.Periods{Length: 100 * ms, End: []int64{1}, Used: []int32{1}, Quota: []int32{1}, Tokens: []int32{1},
		Throttles: []int32{1}, Lost: []int32{1}, Refills: []int32{1}}
	for i := range int64(5) {
		one.End = []int64{i}
		p = Append(p, one, 3)
	}
	if diff := cmp.Diff([]int64{2, 3, 4}, p.End); diff != "" || len(p.Used) != 3 || len(p.Refills) != 3 ||
		p.Length != 100*ms {
		t.Errorf("%s %+v", diff, p)
	}
	one.End = []int64{4 + outOfOrder}
	p = Append(p, one, 3)
	one.End = []int64{4}
	if p = Append(p, one, 3); len(p.End) != 3 {
		t.Errorf("a reading overtook another one: %+v", p)
	}
	one.End[0] -= 2 * outOfOrder
	if p = Append(p, one, 3); len(p.End) != 1 {
		t.Errorf("the clock was set back: %+v", p)
	}
}
