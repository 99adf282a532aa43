package progress

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
)

func TestLine(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		passed      time.Duration
		want        string
	}{
		{0, 10, 3 * time.Second, "measuring " + strings.Repeat("░", 40) + "   0 %"},
		{5, 10, 3 * time.Second, "measuring " + strings.Repeat("█", 20) + strings.Repeat("░", 20) + "  50 %, 3s left"},
		{10, 10, 6 * time.Second, "measuring " + strings.Repeat("█", 40) + " 100 %"},
		{11, 10, 6 * time.Second, "measuring " + strings.Repeat("█", 40) + " 100 %"},
		{3, 0, 61 * time.Second, "measuring: 1m1s"},
	} {
		got := Line("measuring", c.done, c.total, c.passed)
		if got != c.want || utf8.RuneCountInString(got) > 79 {
			t.Errorf("%d of %d after %v: %q, want %q", c.done, c.total, c.passed, got, c.want)
		}
	}
}

// TestBar: nothing is drawn of what is over at once, and what was drawn is taken away.
func TestBar(t *testing.T) {
	for _, c := range []struct {
		takes time.Duration
		want  string
	}{
		{Patience - 1, ""},
		{Patience + time.Second/4, "\rwork " + strings.Repeat("█", 20) + strings.Repeat("░", 20) +
			"  50 %, 2s left\x1b[K\r\x1b[K"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			b := Start(&out, "work", 10)
			b.Set(5)
			time.Sleep(c.takes)
			b.Stop()
			if out.String() != c.want {
				t.Errorf("after %v: %q, want %q", c.takes, out.String(), c.want)
			}
		})
	}
}

// TestFor goes by the clock, and draws nothing of a short time.
func TestFor(t *testing.T) {
	for length, want := range map[time.Duration]string{Patience: "", 10 * time.Second: "  50 %, 5s left"} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			b := For(&out, "work", length)
			time.Sleep(length/2 + time.Millisecond)
			b.Stop()
			if got := out.String(); want == "" && got != "" || !strings.Contains(got, want) {
				t.Errorf("%v: %q, want %q", length, got, want)
			}
		})
	}
}

// TestNoTerminal: without a writer there is nothing to draw on.
func TestNoTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := Start(nil, "work", 10)
		time.Sleep(time.Minute)
		b.Stop()
	})
}
