package scx

import (
	"os"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

func weigh(t *testing.T, g *cgrouptest.Group, weight string) {
	t.Helper()
	if err := os.WriteFile(g.File("cpu.weight"), []byte(weight), 0); err != nil {
		t.Fatal(err)
	}
}

// Online groups share by their weights, level by level: what was set before the scheduler came, and what is set after.
// The bounds are wide, for the CPU is emulated and may be held up: without weights both would be 1.
func TestWeights(t *testing.T) {
	need(t)
	heavy, pod := cgrouptest.New(t), cgrouptest.New(t)
	a, b := pod.Child("a"), pod.Child("b")
	weigh(t, heavy, "300")
	open(t, Options{})
	heavy.Spin(2)
	a.Spin(2)
	b.Spin(2)
	for _, c := range []struct {
		name     string
		pod      string
		from, to float64 // of heavy's use by the pod's
	}{{"3 to 1", "100", 1.2, 6}, {"3 to 9", "900", 0.1, 0.7}} {
		weigh(t, pod, c.pod)
		time.Sleep(300 * ms)
		got := used(t, 2*time.Second, heavy, a, b)
		ratio := got[0] / (got[1] + got[2])
		t.Logf("%s: %.2f, %.3f CPUs", c.name, ratio, got)
		if ratio < c.from || ratio > c.to || got[1] < got[2]/3 || got[2] < got[1]/3 {
			t.Errorf("%s: %.2f, %.3f CPUs", c.name, ratio, got)
		}
	}
}
