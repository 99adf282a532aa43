package capability

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestMissing(t *testing.T) {
	for _, c := range []struct {
		set  uint64
		want string
	}{
		{0x1ffffffffff, ""},
		{0xc000800000, "CAP_DAC_OVERRIDE and CAP_SYS_PTRACE and CAP_SYS_RESOURCE"}, // what the chart gives
		{0xc001880002, ""},
		{0x8001880002, "CAP_PERFMON"},
		{0, "CAP_DAC_OVERRIDE and CAP_SYS_PTRACE and CAP_SYS_NICE and CAP_SYS_RESOURCE and CAP_PERFMON and CAP_BPF"},
	} {
		if got := missing(c.set, All()); got.String() != c.want {
			t.Errorf("%#x: %q, want %q", c.set, got, c.want)
		}
	}
	if got := Capability(63).String(); got != "capability 63" {
		t.Error(got)
	}
}

// TestMissingHere: what this thread lacks is what the kernel shows in its status.
func TestMissingHere(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "CapEff:\t")
	text, _, _ := strings.Cut(rest, "\n")
	set, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	var every []Capability
	for c := range Capability(unix.CAP_LAST_CAP + 1) {
		every = append(every, c)
	}
	got, err := Missing(every...)
	if want := missing(set, every); err != nil || got.String() != want.String() {
		t.Errorf("%v: %v, want %v", err, got, want)
	}
}
