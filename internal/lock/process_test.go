package lock

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLocks(t *testing.T) {
	const text = "1: POSIX  ADVISORY  WRITE 7 00:1b:42 0 EOF\n" +
		"2: FLOCK  ADVISORY  WRITE 8 00:1b:43 0 EOF\n" +
		"3: FLOCK  ADVISORY  READ 9 00:1b:42 0 EOF\n" +
		"3: -> FLOCK  ADVISORY  WRITE 10 00:1b:42 0 EOF\n" +
		"4: OFDLCK ADVISORY  READ -1 00:1b:42 0 EOF\n" +
		"5: FLOCK\n"
	for file, want := range map[string][]fileLock{
		"00:1b:42": {{"POSIX", 7}, {"FLOCK", 9}, {"OFDLCK", -1}},
		"00:1b:43": {{"FLOCK", 8}},
		"00:1b:4":  nil,
	} {
		if diff := cmp.Diff(want, parseLocks([]byte(text), file), cmp.AllowUnexported(fileLock{})); diff != "" {
			t.Errorf("%s: -want +got\n%s", file, diff)
		}
	}
}

func TestParseStart(t *testing.T) {
	const rest = " S 1 2 3 0 -1 4 5 6 7 8 9 10 11 12 20 0 1 0 4711 99 98"
	for text, want := range map[string]uint64{
		"12 (sleep)" + rest:                4711,
		"12 (a) S 1 2 3 (b)" + rest + "\n": 4711,
		"12 (sleep) S 1":                   0,
		"":                                 0,
	} {
		if got := parseStart([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if _, start := Self(); start == 0 || started(os.Getpid()) != start {
		t.Errorf("this process started at %d, and as others see it at %d", start, started(os.Getpid()))
	}
}
