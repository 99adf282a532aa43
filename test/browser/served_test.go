//go:build browser

package browser

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/recent"
	"plimsoll/internal/view"
)

// TestServed: the shipped `plimsoll serve` shows a file, in which a tenant has named a throttled container in HTML. It
// takes no agent and no control group, so that it runs beside tests that do.
func TestServed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	n := newNode(40)
	n.drift()
	n.turn = nil
	worst := &n.rows[3]
	worst.Name = hostile
	*worst.Lost, *worst.Throttled = 2*time.Second, 25
	var periods []recent.Period
	for end := now.Add(-20 * time.Second); end.Before(now); end = end.Add(worst.Period) {
		periods = append(periods, recent.Period{End: end.UnixMilli(), Used: 200_000, Quota: 200_000, Throttles: 1,
			Lost: 60_000})
	}
	file := filepath.Join(t.TempDir(), "node.json.gz")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	s := view.Snapshot{Made: now, View: n.view(now),
		Containers: []view.Kept{{ID: worst.ID, Periods: recent.Append(nil, periods)}}}
	zip := gzip.NewWriter(f)
	if err := errors.Join(s.WriteJSON(zip), zip.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	prog := &program{t: t, binary: cgrouptest.Binary(t), state: filepath.Join(t.TempDir(), "none")}
	_, url := prog.start("serve", "--from", file)
	headers(t, url)
	p := open(t, chromium(t), url, size(1280, 900), media("prefers-color-scheme", "light"))
	p.until(20*time.Second, first+`?.textContent.includes('`+hostile+`')`) // the worst comes first
	p.until(5*time.Second, first+`.querySelector('.lost').textContent === '2,000'`)
	ask[bool](p, `(`+first+`.click(), true)`)
	p.until(20*time.Second, `document.querySelectorAll('.plots canvas').length === 3`)
	p.until(20*time.Second, red(0)+` > 20`)
	if ask[int](p, `document.querySelectorAll('img').length`) != 0 {
		t.Error("the name of a container became an element")
	}
}
