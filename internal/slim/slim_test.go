package slim

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
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

// inMemory is how much of the program's file is in this process's memory, and where its parts are.
func inMemory(t *testing.T) (kib int, spans []span) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for line := range strings.Lines(string(smaps)) {
		fields := strings.Fields(line)
		switch {
		case strings.Contains(fields[0], "-"):
			inside = fields[len(fields)-1] == program
		case inside && fields[0] == "Rss:":
			n, err := strconv.Atoi(fields[1])
			if err != nil {
				t.Fatal(err)
			}
			kib += n
		}
	}
	return kib, cleanSpans(bytes.NewReader(smaps), program)
}

// TestFit: an agent that has little to do gives back what it has used of its program, and a busy one keeps it.
func TestFit(t *testing.T) {
	_, spans := inMemory(t)
	for _, s := range spans {
		if _, _, e := unix.Syscall(unix.SYS_MADVISE, s.from, s.to-s.from, unix.MADV_POPULATE_READ); e != 0 {
			t.Fatalf("read all of the program (Linux 5.14): %v", e)
		}
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	for range fewTimes + 1 {
		runtime.GC()
	}
	all, _ := inMemory(t)
	cycles := []metrics.Sample{{Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(cycles)
	fit(100, cycles[0].Value.Uint64()-fewTimes-1)
	if keeps, _ := inMemory(t); keeps < all {
		t.Errorf("a busy one keeps %d of %d KiB", keeps, all)
	}
	fit(100, cycles[0].Value.Uint64())
	if keeps, _ := inMemory(t); keeps > all*9/10 { // what runs is mapped again at once, with what is around it
		t.Errorf("one with little to do keeps %d of %d KiB", keeps, all)
	}
}

// TestPercent: a small heap grows by as much as a large one, and a large one by a quarter.
func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{0: 100, 1 << 20: 100, 4 << 20: 100, 6 << 20: 66, 8 << 20: 50, 16 << 20: 25, 1 << 30: 25} {
		if got := percent(live); got != want {
			t.Errorf("%d bytes: %d, want %d", live, got, want)
		}
	}
}
