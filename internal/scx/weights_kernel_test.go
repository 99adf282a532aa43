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
// What each used is the scheduler's own count, and the longer it is taken the nearer it comes to the weights.
func TestWeights(t *testing.T) {
	need(t)
	heavy, pod := cgrouptest.New(t), cgrouptest.New(t)
	a, b := pod.Child("a"), pod.Child("b")
	weigh(t, heavy, "300")
	s := open(t, Options{})
	heavy.Spin(2)
	a.Spin(2)
	b.Spin(2)
	for _, c := range []struct {
		name, pod string
		want      float64 // heavy's use by the pod's
	}{{"3 to 1", "100", 3}, {"3 to 9", "900", 1. / 3}} {
		weigh(t, pod, c.pod)
		time.Sleep(300 * ms)
		before := count(t, s, heavy, a, b)
		var ratio, even float64
		within(t, time.Minute, c.name, func() bool {
			used := count(t, s, heavy, a, b).since(before).groups
			ratio, even = float64(used[0])/float64(used[1]+used[2]), float64(used[1])/float64(used[2])
			return used[0]+used[1]+used[2] > 4*time.Second && about(ratio, c.want) && about(even, 1)
		})
		t.Logf("%s: %.3f, and in the pod %.3f", c.name, ratio, even)
	}
}

// about says whether a ratio is within a twentieth of the expected one.
func about(got, want float64) bool { return got > want*0.95 && got < want*1.05 }
