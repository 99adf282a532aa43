package slim

import (
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// TestCleanSpans: only what is the program's own, cannot be written to and was not is given back.
func TestCleanSpans(t *testing.T) {
	smaps := `00400000-00e00000 r-xp 00000000 00:1f 42                         /bin/plimsoll
Rss:                 100 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
00e00000-01a00000 r--p 00a00000 00:1f 42                         /bin/plimsoll
Anonymous:             0 kB
01a00000-01b00000 r--p 01600000 00:1f 42                         /bin/plimsoll
Anonymous:             4 kB
01b00000-01c00000 rw-p 01700000 00:1f 42                         /bin/plimsoll
Anonymous:             0 kB
c000000000-c000400000 r--p 00000000 00:00 0
Anonymous:             0 kB
7f0000000000-7f0000100000 r-xp 00000000 00:1f 43                 /lib/libc.so
Anonymous:             0 kB
`
	want := []span{{0x400000, 0xe00000}, {0xe00000, 0x1a00000}}
	if got := cleanSpans(strings.NewReader(smaps), "/bin/plimsoll"); !slices.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestStart: a program that has given its code back runs on, and collects its heap often while it starts.
func TestStart(t *testing.T) {
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer smaps.Close()
	program, err := os.Readlink("/proc/self/exe")
	if spans := cleanSpans(smaps, program); err != nil || len(spans) == 0 {
		t.Errorf("%v, %v", spans, err)
	}
	t.Setenv("GOGC", "")
	Start()
	if percent := debug.SetGCPercent(100); percent != least {
		t.Errorf("the heap may grow by %d %%", percent)
	}
	Tidy()
}

// TestPercent: a small heap grows by as much as a large one, and a large one by a quarter; and a heap by what is
// allocated in a second, if that is more, within a bound.
func TestPercent(t *testing.T) {
	for _, c := range []struct {
		live, perSecond uint64
		want            int
	}{
		{0, 0, 100}, {1 << 20, 0, 100}, {4 << 20, 0, 100}, {6 << 20, 0, 66}, {8 << 20, 0, 50}, {16 << 20, 0, 25},
		{1 << 30, 0, 25},
		{16 << 20, 3 << 20, 25}, {16 << 20, 8 << 20, 50}, {16 << 20, 12 << 20, 75}, {16 << 20, 1 << 30, 75},
		{6 << 20, 1 << 30, 100},
	} {
		if got := percent(c.live, c.perSecond); got != c.want {
			t.Errorf("%d bytes, %d a second: %d, want %d", c.live, c.perSecond, got, c.want)
		}
	}
}
