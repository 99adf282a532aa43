package scx

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
)

func TestMain(m *testing.M) {
	cgrouptest.Main(m, map[string]func(){"hold": hold, helperSleep: func() { help(sleeps) },
		helperPipe: func() { help(roundTrips) }})
}

// hold loads the scheduler, and stays.
func hold() {
	if _, err := Open(Options{}); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("ready")
	time.Sleep(time.Minute)
}

// helper starts a process that loads the scheduler and stays.
func helper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd, lines, _ := cgrouptest.Dialogue(t, "hold")
	if !lines.Scan() || lines.Text() != "ready" {
		t.Fatalf("helper: %q", lines.Text())
	}
	return cmd
}

const ms = time.Millisecond

// vm runs these tests on a kernel with sched_ext, and with two threads a core.
const vm = "test/vm/scx.sh"

// open puts the scheduler in force until the test ends. A kernel without sched_ext refuses that, and the rest
// of the test has nothing to test: of the kernels of test/vm, only the last one has sched_ext.
func open(t *testing.T, o Options) *Scheduler {
	t.Helper()
	begin := time.Now()
	s, err := Open(o)
	if _, there := ReadState(); errors.Is(there, ErrNotThere) {
		if err == nil {
			t.Fatal("loaded, on a kernel without sched_ext")
		}
		if os.Getenv("PLIMSOLL_EMULATED") != "" && cgrouptest.AtLeast(cgrouptest.Release(t), "6.18") {
			t.Fatal(there)
		}
		cgrouptest.Elsewhere(t, vm, "%v", there)
	}
	if err != nil {
		var refused *ebpf.VerifierError
		if errors.As(err, &refused) {
			t.Logf("%+v", refused)
		}
		t.Fatal(err)
	}
	t.Logf("open in %v, attached in %v at try %d: longest stall %v, %v as a baseline", time.Since(begin), s.Stall.Took,
		s.Tries, s.Stall.Longest, s.Stall.Baseline)
	t.Cleanup(func() {
		if alive, err := s.Alive(); !alive || err != nil {
			exit, _ := s.Exit()
			t.Errorf("the scheduler has ended: %+v, %v", exit, err)
		}
		p, err := s.Close()
		t.Logf("detached in %v: longest stall %v, %v as a baseline", p.Took, p.Longest, p.Baseline)
		if err != nil {
			t.Error(err)
		}
		gone(t)
	})
	return s
}

// need skips the test where the kernel has no sched_ext: open says what is tested there.
func need(t *testing.T) {
	t.Helper()
	if _, err := ReadState(); errors.Is(err, ErrNotThere) {
		cgrouptest.Elsewhere(t, vm, "%v", err)
	}
}

// within waits for something.
func within(t *testing.T, most time.Duration, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(most); !is(); time.Sleep(50 * ms) { // seldom: reading takes time, too
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, most)
		}
	}
}

// gone checks that no scheduler is left.
func gone(t *testing.T) {
	t.Helper()
	if state, err := ReadState(); err != nil || state.State != disabled {
		t.Errorf("after the end: %+v, %v", state, err)
	}
}

func inode(t testing.TB, g *cgrouptest.Group) uint64 {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path.Dir(g.File("cgroup.procs")), &st); err != nil {
		t.Fatal(err)
	}
	return st.Ino
}

func set(t *testing.T, s *Scheduler, g *cgrouptest.Group, to Setting) {
	t.Helper()
	if err := s.Set(inode(t, g), to); err != nil {
		t.Fatal(err)
	}
}

// used is what groups use in a time, as shares of one CPU.
func used(t *testing.T, over time.Duration, groups ...*cgrouptest.Group) []float64 {
	t.Helper()
	read := func() []time.Duration {
		var list []time.Duration
		for _, g := range groups {
			u, err := g.Tree().Usage(g.Path)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, u)
		}
		return list
	}
	begin, before := time.Now(), read()
	time.Sleep(over)
	after, took := read(), time.Since(begin)
	var shares []float64
	for i := range groups {
		shares = append(shares, float64(after[i]-before[i])/float64(took))
	}
	return shares
}
