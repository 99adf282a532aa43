package agent

import (
	"fmt"
	"testing"
	"time"

	"plimsoll/internal/sim"
	"plimsoll/internal/workload"
)

// What a turn costs on a full node, kernel apart: 110 pods with 250 containers, of which none, or a tenth, want more than
// their cap all the time.
//
//	go test -run '^$' -bench Turn -benchmem ./internal/agent
func BenchmarkTurn(b *testing.B) {
	for _, throttled := range []int{0, 25} {
		b.Run(fmt.Sprintf("%d throttled", throttled), func(b *testing.B) {
			w := fullNode(b, throttled)
			w.run(40 * time.Second)
			before := w.agent.account.self.Looks
			b.ResetTimer()
			for range b.N {
				b.StopTimer()
				w.kernel.Advance(max(w.agent.next.Sub(w.kernel.Now()), ms))
				b.StartTimer()
				w.agent.Tick(w.kernel.Now())
			}
			b.ReportMetric(float64(w.agent.account.self.Looks-before)/float64(b.N), "looks/op")
		})
	}
}

func fullNode(tb testing.TB, throttled int) *world {
	w, _ := hearing(tb, true)
	for p := range 110 {
		n := 2
		if p < 30 {
			n = 3
		}
		quota := 50 * ms
		if p < throttled {
			quota = ms
		}
		path := fmt.Sprintf("/pod%d", p)
		pod := workload.Pod{ID: w.group(path, time.Duration(n)*quota), Name: path}
		for c := range n {
			name := fmt.Sprintf("%s/c%d", path, c)
			var load sim.Load
			if c == 0 && p < throttled {
				load = sim.Spin(1)
			}
			pod.Containers = append(pod.Containers, w.container(name, quota, load))
			w.kernel.SetTasks(name, 1)
		}
		w.place.pods = append(w.place.pods, pod)
	}
	return w
}
