package probe

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// What the programs cost a context switch: of two threads in a watched container with a limit that it does not reach,
// in a pod, and the same while another watched group stands still, so that ends are waited for.
//
//	go test -run '^$' -bench Switch -benchtime 20x ./internal/probe
func BenchmarkSwitch(b *testing.B) {
	pod := cgrouptest.New(b)
	container, other := pod.Child("container"), cgrouptest.New(b)
	container.Limit(10 * time.Second)
	limit(b, other, ms, time.Second)
	pinned := other.Spin(1)[0]
	cgrouptest.Pin(b, 1, pinned)
	pingPong := container.PingPong()
	ask := func(b *testing.B) {
		cgrouptest.ReportMedian(b, func() time.Duration { return pingPong(0) }, "ns/switch")
	}
	b.Run("without", ask)
	quiet := []*cgrouptest.Group{pod, container}
	for _, c := range []struct {
		name    string
		options Options
		groups  []*cgrouptest.Group
	}{
		{"quiet", Options{}, quiet},
		{"quiet, by the kernel", Options{Stats: true}, quiet},
		{"another stands still, by the kernel", Options{Stats: true}, append(quiet, other)},
		{"with use, by the kernel", Options{Use: true, Stats: true}, quiet},
		{"ahead", Options{Ahead: true}, quiet},
		{"ahead, by the kernel", Options{Ahead: true, Stats: true}, quiet},
	} {
		b.Run(c.name, func(b *testing.B) {
			p := open(b, c.options)
			watch(b, p, c.groups...)
			ask(b)
			if !c.options.Stats {
				return
			}
			costs, err := p.Cost()
			if err != nil {
				b.Fatal(err)
			}
			for _, c := range costs {
				if c.Runs > 100 {
					b.ReportMetric(float64(c.Total)/float64(c.Runs), "ns/"+c.Program)
				}
			}
		})
	}
}

// From the kernel's time of a throttle to the reader's.
//
//	go test -run '^$' -bench Told -benchtime 1000x ./internal/probe
func BenchmarkTold(b *testing.B) {
	for name, load := range map[string]int{"idle machine": 0, "loaded machine": 4} {
		for _, realtime := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s, realtime %v", name, realtime), func(b *testing.B) {
				p := open(b, Options{Realtime: realtime, Rate: 1e6})
				g := cgrouptest.New(b)
				limit(b, g, 5*ms, time.Second)
				watch(b, p, g)
				cgrouptest.New(b).Spin(load)
				h := listen(b, p, func(Event) { g.Limit(5 * ms) })
				g.Spin(1)
				within(b, 2*time.Minute, "enough throttles", func() bool { return len(h.begins(0)) >= b.N })
				h.mu.Lock()
				defer h.mu.Unlock()
				slices.Sort(h.late)
				b.ReportMetric(float64(h.late[len(h.late)/2]), "ns-p50")
				b.ReportMetric(float64(h.late[len(h.late)*99/100]), "ns-p99")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
