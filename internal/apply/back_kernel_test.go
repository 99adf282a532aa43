package apply

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/plan"
)

// TestKernelBurstComesBack: an owner that writes the quota in a loop puts bursts back that are restored meanwhile. Once
// its last write is over, they are restored for good.
func TestKernelBurstComesBack(t *testing.T) {
	p := newRealPod(t)
	cgrouptest.Need(t, p.pod.Features().Get(cgroup.FeatureBurst))
	for i := range 200 { // the kernel visits all of them, before it sets the values
		p.a.Child(fmt.Sprintf("child%d", i))
	}
	w, j := p.writer(t.TempDir())
	var turn sync.Mutex // the owner holds it while it writes
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for o, i := newOwner(t, p.a), 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			turn.Lock()
			o.write([2]time.Duration{40 * ms, 45 * ms}[i%2], os.O_TRUNC)
			turn.Unlock()
		}
	}()
	rounds, back := 0, 0
	for end := time.Now().Add(30 * time.Second); back < 3 && time.Now().Before(end) && !t.Failed(); rounds++ {
		c := p.change(p.a, plan.Burst, plan.Time(30*ms))
		w.Do([]plan.Change{c})
		w.TryRestore(nil)
		turn.Lock() // no write is under way
		// the latter where it was refused: it came back each time
		back += len(w.RestoreAgain()) + len(w.TryRestore(nil))
		held, err := Read(p.tree, p.a.Path, plan.Burst)
		p.must(err)
		if held != c.From || len(j.Entries()) > 0 {
			t.Errorf("round %d: the burst is %s, it was %s; %d entries are left", rounds, held, c.From,
				len(j.Entries()))
		}
		turn.Unlock()
	}
	close(stop)
	<-stopped
	t.Logf("%d rounds, %d bursts came back", rounds, back)
	if back == 0 && !emulated() {
		t.Error("no burst came back: it proves nothing")
	}
}
