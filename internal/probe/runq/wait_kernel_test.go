package runq

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Two spinners on one CPU: each runs half of the time, and waits for the other in the rest.
func TestOneCPUForTwo(t *testing.T) {
	p := open(t, Options{Stats: true})
	a, b := cgrouptest.New(t), cgrouptest.New(t)
	ours, theirs := set(t, p, a, 1), set(t, p, b, 1)
	pin(t, 0, a.Spin(1)[0], b.Spin(1)[0])
	time.Sleep(200 * ms)
	got := during(t, p, time.Second, ours, theirs)
	t.Logf("%+v", got)
	pairs, err := p.Pairs()
	t.Log(pairs, err)
	c, _ := p.Cost()
	for _, c := range c {
		if c.Runs > 0 {
			t.Log(c, c.Total/time.Duration(c.Runs))
		}
	}
}
