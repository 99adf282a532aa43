package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"plimsoll/internal/workload"
)

// TestReserveHistories: whatever comes, goes, asks, is resized or dies, kill -9 included, in the end no file holds
// anything of ours, and meanwhile nothing that the agent wrote was refused.
func TestReserveHistories(t *testing.T) {
	for _, version := range []int{1, 2} {
		for seed := range uint64(40) {
			t.Run(fmt.Sprintf("v%d/%d", version, seed), func(t *testing.T) {
				t.Parallel()
				h := &history{world: newShared(t, version, 6), rnd: rand.New(rand.NewPCG(seed, 8))}
				h.shield = seed%2 == 1
				h.revive()
				for range 25 {
					h.step()
				}
				h.end(version)
			})
		}
	}
}

// history is what happens to a world by chance.
type history struct {
	*world
	rnd  *rand.Rand
	made int
	live []string
}

func (h *history) step() {
	switch h.rnd.IntN(6) {
	case 0, 1:
		h.made++
		path := fmt.Sprintf("/g%d", h.made)
		if len(h.live) > 0 && h.rnd.IntN(2) == 0 {
			path = h.live[h.rnd.IntN(len(h.live))] + path
		}
		h.kernel.AddGroup(path)
		h.live = append(h.live, path)
		if h.rnd.IntN(2) == 0 {
			h.kernel.SetTasks(path, 1)
			exclusive := []workload.Exclusive{workload.ExclusiveYes, workload.ExclusiveStrict,
				workload.ExclusiveNo}[h.rnd.IntN(3)]
			c := workload.Container{ID: h.id(path), Name: path, Runtime: "cgroup", Exclusive: exclusive,
				Request: float64(1+h.rnd.IntN(10)) / 4}
			h.place.pods = append(slices.Clone(h.place.pods), workload.Pod{Containers: []workload.Container{c}})
		}
	case 2:
		h.leave()
	case 3:
		if len(h.place.pods) > 0 { // resized, or opted in or out
			pods := slices.Clone(h.place.pods)
			i := h.rnd.IntN(len(pods))
			c := pods[i].Containers[0]
			c.Request, c.Exclusive = float64(1+h.rnd.IntN(10))/4, []workload.Exclusive{workload.ExclusiveYes,
				workload.ExclusiveNo}[h.rnd.IntN(2)]
			pods[i].Containers = []workload.Container{c}
			h.place.pods = pods
		}
	case 4:
		if h.rnd.IntN(4) == 0 {
			h.revive()
		}
	}
	if h.rnd.IntN(3) > 0 {
		h.run(time.Duration(h.rnd.IntN(3000)) * time.Millisecond)
	}
}

// leave removes a group in which there is no other.
func (h *history) leave() {
	for i := len(h.live) - 1; i >= 0; i-- {
		path := h.live[i]
		if children, err := h.tree.Children(path); err != nil || len(children) > 0 {
			continue
		}
		h.kernel.RemoveGroup(path)
		h.live = slices.Delete(h.live, i, i+1)
		h.place.pods = slices.DeleteFunc(slices.Clone(h.place.pods),
			func(p workload.Pod) bool { return p.Containers[0].Path == path })
		return
	}
}

func (h *history) end(version int) {
	h.t.Helper()
	if err := h.agent.stop(); err != nil {
		h.t.Error(err)
	}
	for _, w := range h.kernel.Writes() {
		if !w.Foreign && w.Err != nil {
			h.t.Errorf("refused: %s to %q: %v", w.Name, w.Data, w.Err)
		}
	}
	h.wantRoot(1)
	want := map[int]string{1: "0-5", 2: ""}[version]
	for _, path := range h.live {
		set, err := h.tree.CPUs(path)
		if err != nil || set.String() != want {
			h.t.Errorf("%v: %s holds %q", err, path, set)
		}
	}
}
