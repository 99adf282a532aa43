package runq

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Two threads that the programs take for one core: one group runs beside the other for exactly as long as the other
// beside it, whatever else runs there and however long the turns are.
func TestBesideASibling(t *testing.T) {
	cgrouptest.NeedTwoCPUs(t)
	p := open(t, Options{Siblings: map[int]int{0: 1, 1: 0}})
	for _, c := range []struct {
		name  string
		cpus  time.Duration // that they may fill
		start func(online, offline *cgrouptest.Group)
	}{
		{"two spinners", 1, func(online, offline *cgrouptest.Group) {
			cgrouptest.Pin(t, 0, online.Spin(1)...)
			cgrouptest.Pin(t, 1, offline.Spin(1)...)
		}},
		{"short turns beside long ones", 1, func(online, offline *cgrouptest.Group) {
			cgrouptest.Pin(t, 0, online.Start("while :; do (:); done"))
			cgrouptest.Pin(t, 1, offline.Spin(1)...)
		}},
		{"also beside threads of its own", 2, func(online, offline *cgrouptest.Group) {
			cgrouptest.Pin(t, 0, online.Spin(1)...)
			cgrouptest.Pin(t, 1, online.Spin(1)[0], offline.Spin(1)[0])
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			online, offline := cgrouptest.New(t), cgrouptest.New(t)
			ours, theirs := setClass(t, p, online, 1), setClass(t, p, offline, 2)
			c.start(online, offline)
			time.Sleep(100 * ms) // until each CPU has been seen to switch
			first := [2]Sums{read(t, p, ours), read(t, p, theirs)}
			last, enough := first, 150*ms
			if emulated() {
				enough = 700 * ms
			}
			for end := time.Now().Add(20 * time.Second); last[0].minus(first[0]).Beside[2] < enough &&
				time.Now().Before(end); {
				time.Sleep(100 * ms) // a busy machine gives them little
				last = [2]Sums{read(t, p, ours), read(t, p, theirs)}
			}
			apart := first[1].At - first[0].At + last[1].At - last[0].At
			off := apart + 2*ms
			if emulated() {
				off += 100 * ms // for so long QEMU lets another CPU run, be it in the middle of a switch
			}
			a, b := last[0].minus(first[0]), last[1].minus(first[1])
			beside(t, a, b, a.Running+b.Running-c.cpus*a.At, off)
		})
	}
}

// beside checks what two groups ran beside each other: it is the same for both, at least what does not fit on their
// CPUs without it, and at most what each ran.
func beside(t *testing.T, ours, theirs Sums, least, off time.Duration) {
	t.Helper()
	a, b, most := ours.Beside[2], theirs.Beside[1], min(ours.Running, theirs.Running)
	if (a-b).Abs() > off || max(a, b) > most+off || min(a, b) < least-off || a == 0 {
		t.Errorf("they ran %v and %v of %v (+-%v), and %v and %v beside each other; at least %v", ours.Running,
			theirs.Running, ours.At, off, a, b, least)
	}
	if ours.Beside[1] != 0 || theirs.Beside[2] != 0 {
		t.Errorf("a group beside itself: %v, %v", ours.Beside, theirs.Beside)
	}
}
