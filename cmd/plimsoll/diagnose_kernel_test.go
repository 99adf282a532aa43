package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/report"
)

// Two groups share a CPU, a third one is throttled: the diagnosis names the cause of each, and the parts add up.
func TestKernelDiagnose(t *testing.T) {
	top := cgrouptest.New(t)
	web, batch, capped := top.Child("web"), top.Child("batch"), top.Child("capped")
	limit := 2 * time.Millisecond // which a busy machine gives it too
	if emulated() {
		// A CPU pays for another one's turn there, up to 50 ms: of 2 ms in 100, those of more than two seconds.
		limit = 20 * time.Millisecond
	}
	capped.Limit(limit)
	cgrouptest.Pin(t, 0, web.Spin(1)[0], batch.Spin(1)[0], capped.Spin(1)[0])
	time.Sleep(200 * time.Millisecond)
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("overrides:\n- cgroup: "+top.Path+"/web\n  request: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d, found := n.diagnose(t, top.Path+"/*", "--config", file)
	slack := d.Elapsed / 20
	if emulated() {
		slack = d.Elapsed / 3 // the virtual machine pauses for long
	}
	for _, c := range d.Containers {
		sum := c.Received
		for _, w := range c.Waits {
			sum += w.Time
		}
		if off := (sum - c.Wanted).Abs(); off > c.Wanted/100 {
			t.Errorf("%s: %v wanted, %v in parts", c.Name, c.Wanted, sum)
		}
		if off := (c.Wanted - d.Elapsed).Abs(); off > slack {
			t.Errorf("%s: a spinner wanted %v of %v", c.Name, c.Wanted, d.Elapsed)
		}
	}
	w := found["web"]
	if w.Reserved == nil || *w.Reserved != 1 || w.Short == nil ||
		(*w.Short-(w.Wanted-w.Received)).Abs() > w.Wanted/20 || w.Used == nil {
		t.Errorf("with a CPU reserved: %+v", w)
	}
	if behind := neighbour(w, batch.Path); (behind - found["batch"].Received).Abs() > 2*slack {
		t.Errorf("waited %v behind the neighbour, which received %v: %+v", behind, found["batch"].Received,
			w.Neighbours)
	}
	if found["batch"].Short != nil {
		t.Errorf("a shortfall without a reservation: %+v", found["batch"])
	}
	c := found["capped"]
	if c.Limit == nil || *c.Limit != float64(limit)/float64(100*time.Millisecond) ||
		cause(c, report.CauseOwnLimit) == 0 || cause(w, report.CauseOwnLimit) > 0 {
		t.Errorf("%+v", c)
	}
	if d.Overhead.Switches == 0 || d.Overhead.PerSwitch <= 0 || d.Overhead.Share <= 0 || d.Overhead.Lost > 0 {
		t.Errorf("%+v", d.Overhead)
	}
}

// diagnose measures for two seconds, and returns the containers by the last part of their path.
func (n testNode) diagnose(t *testing.T, args ...string) (report.Diagnosis, map[string]report.Diagnosed) {
	t.Helper()
	out, _, err := n.run(append([]string{"diagnose", "--for", "2s", "--json"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	var d report.Diagnosis
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	found := map[string]report.Diagnosed{}
	for _, c := range d.Containers {
		found[filepath.Base(c.Cgroup)] = c
	}
	return d, found
}

// TestKernelDiagnoseWithoutAdmin: CAP_SYS_ADMIN, which the chart's pods do not have,
// is needed for what the programs cost alone.
func TestKernelDiagnoseWithoutAdmin(t *testing.T) {
	g := cgrouptest.New(t)
	g.Spin(1)
	runtime.LockOSThread() // never unlocked: the thread ends with the test
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData
	if err := unix.Capget(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	sets[0].Effective &^= 1 << unix.CAP_SYS_ADMIN
	if err := unix.Capset(&header, &sets[0]); err != nil {
		t.Fatal(err)
	}
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}
	d, found := n.diagnose(t, g.Path)
	if !d.Overhead.Uncounted || d.Overhead.Programs != 0 || found[filepath.Base(g.Path)].Received == 0 {
		t.Errorf("%+v", d)
	}
	if out, _, err := n.run("diagnose", g.Path, "--for", "1s"); err != nil || !strings.Contains(out, "CAP_SYS_ADMIN") {
		t.Errorf("%v: %s", err, out)
	}
}

// What can be named, and what not.
func TestKernelDiagnoseNames(t *testing.T) {
	g := cgrouptest.New(t)
	n := testNode{state: t.TempDir(), cgroups: cgrouptest.Root()}
	if out, _, err := n.run("diagnose", g.Path, "--for", "200ms"); err != nil ||
		!strings.Contains(out, "hardly any CPU") {
		t.Errorf("%v: %s", err, out)
	}
	for _, bad := range [][]string{{"/plimsoll-no-such-group"}, {"/plimsoll-no-such-*"}, {"no-such-name"}, {"[", "x"},
		{g.Path, "--for", "100ms"}} {
		if out, _, err := n.run(append([]string{"diagnose"}, bad...)...); err == nil {
			t.Errorf("%q: %s", bad, out)
		}
	}
}

func neighbour(d report.Diagnosed, cgroup string) time.Duration {
	for _, n := range d.Neighbours {
		if n.Cgroup == cgroup {
			return n.Time
		}
	}
	return 0
}

func cause(d report.Diagnosed, c report.Cause) time.Duration {
	for _, w := range d.Waits {
		if w.Cause == c {
			return w.Time
		}
	}
	return 0
}
