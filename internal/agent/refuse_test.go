package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/policy"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// TestRefusedUnseen: the pods of a tenant that has used up its share of writes are not read for each of their
// throttles, and another tenant's throttle in the same batch is ended.
func TestRefusedUnseen(t *testing.T) {
	w, _ := subscribed(t, true)
	pods := map[string]string{"/victim": "victim"}
	const attackers = 500
	for i := range attackers {
		pods[fmt.Sprintf("/attacker%03d", i)] = "attacker"
	}
	for path, namespace := range pods {
		c := w.container(path+"/c", 50*ms, sim.Load{})
		c.Strategy.Policy = strategy.CFSQuotaBurstOnly
		w.kernel.SetTasks(path+"/c", 2)
		w.place.pods = append(w.place.pods, workload.Pod{ID: w.group(path, 100*ms), Namespace: namespace,
			Containers: []workload.Container{c}})
	}
	w.run(5 * time.Second)
	batch := func() (read int) {
		var throttles []bandwidth.Throttle
		for _, path := range slices.Sorted(maps.Keys(pods)) {
			throttles = append(throttles, bandwidth.Throttle{Inode: w.id(path + "/c").Inode, At: w.kernel.Now(),
				Snap: 50 * ms, Bandwidth: w.kernel.Bandwidth(path + "/c"), Expires: w.kernel.Now().Add(50 * ms),
				UseKnown: true, Used: 50 * ms})
		}
		seen := map[string]bool{}
		w.kernel.Fault = func(_, name string, _ []byte) error {
			for part := range strings.SplitSeq(name, "/") {
				if strings.HasPrefix(part, "attacker") {
					seen[part] = true
				}
			}
			return nil
		}
		w.agent.AnswerThrottles(throttles)
		w.kernel.Fault = nil
		return len(seen)
	}
	if read := batch(); read < attackers/4 {
		t.Errorf("of a share that is full only %d throttles were looked at", read)
	}
	w.run(100 * ms)
	before := len(w.kernel.Writes())
	if read := batch(); read > attackers/2 { // of those that it has writes for again
		t.Errorf("%d pods were read: the share is used up", read)
	}
	if !slices.ContainsFunc(w.kernel.Writes()[before:],
		func(x sim.Write) bool { return x.Group == w.id("/victim/c") }) {
		t.Error("the victim is not refilled")
	}
	s := w.agent.Status()
	if n := s.Writes.Decisions[string(policy.KindRefusedWrites)]; n < attackers/2 {
		t.Errorf("%d of the attackers' throttles are counted as refused", n)
	}
}

// TestRetriesRestores: a group that is no longer managed is restored also when the kernel refuses that at first. It is
// tried again the more seldom the longer the kernel does so.
func TestRetriesRestores(t *testing.T) {
	w, tries := raised(t), 0
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if op == "write" && strings.HasPrefix(name, "cpu/lab/a/") {
			tries++
			return syscall.EINVAL
		}
		return nil
	}
	w.place.pods = nil
	w.run(2 * time.Second)
	w.wantRaised("/lab/a", 50*ms)
	w.wantProblem("/lab/a: its quota is not restored to 50ms")
	if w.run(28 * time.Second); tries < 4 || tries > 8 {
		t.Errorf("tried %d times in 30 s", tries)
	}
	w.kernel.Fault = nil
	w.run(32 * time.Second)
	w.want("/lab/a", 50*ms, 0)
	w.wantProblem("")
}
