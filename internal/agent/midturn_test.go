package agent

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/apply"
	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/journal"
	"plimsoll/internal/report"
	"plimsoll/internal/sim"
	"plimsoll/internal/strategy"
	"plimsoll/internal/workload"
)

// answer has a throttle answered on a thread of its own as soon as the turn yields. It returns when the throttle waits.
func (w *world) answer(throttle bandwidth.Throttle) (answered <-chan struct{}) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.agent.AnswerThrottles([]bandwidth.Throttle{throttle})
	}()
	for deadline := time.Now().Add(10 * time.Second); !w.agent.mu.Waits(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			w.t.Error("the throttle does not wait for the turn")
			break
		}
	}
	return done
}

// TestAnswerInTheMidstOfATurn: a throttle that begins while a turn reads a hundred groups is ended between two of them.
func TestAnswerInTheMidstOfATurn(t *testing.T) {
	for _, gone := range [][]string{{"/g99"}, {"/g98", "/g99"}} {
		answerInTheMidst(t, gone)
	}
}

// answerInTheMidst removes groups before that turn: it finds them gone all the same.
func answerInTheMidst(t *testing.T, gone []string) {
	t.Helper()
	w, _ := subscribed(t, true)
	pod := workload.Pod{ID: w.group("/a", 100*ms),
		Containers: []workload.Container{w.container("/a/c", 50*ms, sim.Load{})}}
	w.kernel.SetTasks("/a/c", 2)
	w.place.pods = append(w.place.pods, pod)
	for i := range 100 {
		w.calm(fmt.Sprintf("/g%02d", i), strategy.CFSQuotaBurstOnly)
	}
	w.run(20 * time.Second) // all is idle
	for _, path := range gone {
		w.kernel.RemoveGroup(path)
	}
	throttle := w.throttled("/a/c", 100*time.Microsecond)
	for id, g := range w.agent.groups { // of which the throttled one is none: it was idle
		if id.Path > "/b" {
			g.Due = time.Time{}
			g.MarkDue()
		}
	}
	skipped := false
	var answered <-chan struct{}
	var at []string // groups that were read after the answer
	w.kernel.Fault = func(_, name string, _ []byte) error {
		switch {
		case !strings.HasSuffix(name, "cpu.stat"):
		case answered == nil && strings.Contains(name, "/g07/"):
			skipped = w.agent.reader.Skipped(w.agent.groups[pod.Containers[0].ID].Group)
			answered = w.answer(throttle)
		case answered != nil && w.refills() == 1:
			at = append(at, name)
		}
		return nil
	}
	w.agent.Tick(w.kernel.Now())
	w.kernel.Fault = nil
	<-answered
	if !skipped {
		t.Error("the throttled group was read in the turn: it was to be idle")
	}
	for _, path := range gone {
		if w.agent.at(path) != nil {
			t.Errorf("%s is gone and kept, for another group was counted twice", path)
		}
	}
	if len(at) < 90 {
		t.Errorf("%d groups were read after the answer, want 90", len(at))
	}
	if got := w.booked("/a/c"); got.Refills+got.Unneeded+got.Ineffective > 1 || w.refills() != 1 {
		t.Errorf("%d refills decided, booked: %+v", w.refills(), got)
	}
	used, err := w.tree.Usage("/a/c")
	if err != nil {
		t.Fatal(err)
	}
	w.run(time.Second)
	w.agent.Status()
	if got := w.status("/a/c").Totals.Usage; got < used || got > used+3*time.Second {
		t.Errorf("%v booked as used, of %v at the turn", got, used)
	}
}

// TestRefillBetweenDecisionAndWrite: what was decided for a group is not written in the period in which it was refilled
// since: each of the two writes hands out a quota, and only one of them was counted on. It is written soon after.
func TestRefillBetweenDecisionAndWrite(t *testing.T) {
	w, _ := subscribed(t, true)
	var paths []string
	for i := range 3 {
		paths = append(paths, fmt.Sprint("/g", i))
		w.calm(paths[i], strategy.CFSQuotaBurstOnly)
	}
	w.run(960 * ms)
	last := paths[len(paths)-1]
	throttle := w.throttled(last, 100*time.Microsecond)
	w.place.pods = slices.Clone(w.place.pods)
	for i := range w.place.pods { // all are to get a burst
		p := &w.place.pods[i]
		p.Containers = slices.Clone(p.Containers)
		p.Containers[0].Strategy.Policy = strategy.Auto
	}
	var answered <-chan struct{}
	w.kernel.Fault = func(op, name string, _ []byte) error {
		if answered == nil && op == "write" && strings.Contains(name, paths[0]+"/") {
			answered = w.answer(throttle)
		}
		return nil
	}
	w.agent.Tick(w.kernel.Now())
	if answered == nil {
		t.Fatal("the turn has written nothing")
	}
	<-answered
	if w.refills() != 1 {
		t.Fatalf("%d refills: %s", w.refills(), w.status(last).Why)
	}
	for _, path := range paths[:len(paths)-1] {
		w.want(path, 50*ms, 50*ms)
	}
	w.want(last, 50*ms, 0)
	w.kernel.SetLoad(last, sim.Load{})
	w.run(300 * ms)
	w.want(last, 50*ms, 50*ms)
}

// TestAttentionOfAnAnswer: a turn that decided before the answer does not have the group read as seldom as before, nor
// later than the answer asks for: here its limit is not the one that was read.
func TestAttentionOfAnAnswer(t *testing.T) {
	w, _ := subscribed(t, true)
	for i := range 3 {
		w.calm(fmt.Sprint("/g", i), strategy.CFSQuotaBurstOnly)
	}
	w.run(time.Second)
	throttle := w.throttled("/g0", 100*time.Microsecond)
	throttle.Bandwidth.Quota = 60 * ms
	c := &w.place.pods[1].Containers[0] // a group of which a write is to be made
	w.place.pods = slices.Clone(w.place.pods)
	c.Strategy.Policy = strategy.Auto
	var answered <-chan struct{}
	w.kernel.Fault = func(op, _ string, _ []byte) error {
		if answered == nil && op == "write" {
			answered = w.answer(throttle)
		}
		return nil
	}
	w.agent.reader.DueAll()
	turn := w.agent.Tick(w.kernel.Now())
	if answered == nil {
		t.Fatal("the turn has written nothing")
	}
	<-answered
	g := w.agent.groups[w.id("/g0")]
	if !g.Watched || g.Stable || turn.Next.After(w.kernel.Now()) {
		t.Errorf("watched %v, stable %v; the next turn in %v", g.Watched, g.Stable, turn.Next.Sub(w.kernel.Now()))
	}
}

// answerNow has a throttle answered while the turn does something that takes long, and returns when it is answered.
func (w *world) answerNow(throttle bandwidth.Throttle) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.agent.AnswerThrottles([]bandwidth.Throttle{throttle})
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		w.t.Error("the throttle waits for what the turn waits for")
	}
}

// TestDiscoveryIsNotWaitedFor: a throttle is answered while nobody says who is there.
func TestDiscoveryIsNotWaitedFor(t *testing.T) {
	w, _ := subscribed(t, true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(960 * ms)
	throttle := w.throttled("/a", 100*time.Microsecond)
	w.place.asked = func() {
		w.place.asked = nil
		w.answerNow(throttle)
		if w.refills() != 1 {
			t.Errorf("%d refills while the discovery is asked", w.refills())
		}
	}
	w.agent.Tick(w.kernel.Now())
	if w.place.asked != nil {
		t.Error("the discovery was not asked")
	}
}

// syncDisk is a journal's disk that says when it syncs.
type syncDisk struct {
	*journal.Memory
	syncs func()
}

type syncFile struct {
	journal.File
	disk *syncDisk
}

func (d *syncDisk) Create(name string) (journal.File, error) {
	f, err := d.Memory.Create(name)
	return &syncFile{f, d}, err
}

func (f *syncFile) Sync() error {
	if f.disk.syncs != nil {
		f.disk.syncs()
	}
	return f.File.Sync()
}

// onDisk is a world with throttle events whose journal is on a disk that the test can watch.
func onDisk(t *testing.T) (*world, *syncDisk, *journal.Journal) {
	t.Helper()
	w, _ := subscribed(t, true)
	disk := &syncDisk{Memory: journal.NewMemory()}
	j, err := journal.OpenDisk(disk, "boot", w.kernel.Now)
	if err != nil {
		t.Fatal(err)
	}
	w.agent.Writer = apply.New(w.tree, j, w.kernel.Now)
	return w, disk, j
}

// TestFsyncIsNotWaitedFor: a throttle is answered while the disk takes its time for the claims of a turn, which are
// synced all at once.
func TestFsyncIsNotWaitedFor(t *testing.T) {
	w, disk, _ := onDisk(t)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	w.run(960 * ms)
	throttle := w.throttled("/a", 100*time.Microsecond)
	for i := range 50 {
		w.calm(fmt.Sprintf("/late%02d", i), strategy.Auto)
	}
	w.place.pods = slices.Clone(w.place.pods)
	syncs := 0
	disk.syncs = func() {
		if syncs++; syncs == 1 {
			w.answerNow(throttle)
		}
	}
	w.agent.Tick(w.kernel.Now())
	if syncs != 1 || w.refills() != 1 {
		t.Errorf("%d syncs for 50 claims, %d refills", syncs, w.refills())
	}
	for i := range 50 {
		w.want(fmt.Sprintf("/late%02d", i), 50*ms, 50*ms)
	}
}

// TestPackingIsNotWaitedFor: a throttle is answered while the machine is read for those who ask for exclusive CPUs, and
// between two of the groups' cpusets.
func TestPackingIsNotWaitedFor(t *testing.T) {
	w := newShared(t, 1, 4)
	w.subscribes(true)
	w.calm("/a", strategy.CFSQuotaBurstOnly)
	for i := range 20 {
		w.made(fmt.Sprintf("/ask%02d", i), 50*ms, workload.ExclusiveYes, 64) // in vain
	}
	w.run(960 * ms)
	throttle := w.throttled("/a", 100*time.Microsecond)
	topology, asked := w.agent.cpus.Topology, 0
	w.agent.cpus.Topology = func() (cpu.Topology, error) {
		if asked++; asked == 1 {
			w.answerNow(throttle)
			if w.refills() != 1 {
				t.Errorf("%d refills while the CPUs are read", w.refills())
			}
		}
		return topology()
	}
	w.agent.cpus.Again()
	w.agent.Tick(w.kernel.Now())
	if asked == 0 || len(w.agent.Status().Reserve.Refused) != 20 {
		t.Errorf("the CPUs were read %d times; %+v", asked, w.agent.Status().Reserve)
	}
}

// askedEvents say when they are asked for a group's counters.
type askedEvents struct {
	*fakeEvents
	asked func()
}

func (e askedEvents) Totals(group uint64) (report.Throttles, bool) {
	e.asked()
	return e.fakeEvents.Totals(group)
}

// TestStatusIsNotWaitedFor: a throttle that begins while the status of many groups is made
// is answered between two of them.
func TestStatusIsNotWaitedFor(t *testing.T) {
	w, e := subscribed(t, true)
	for i := range 100 {
		w.calm(fmt.Sprintf("/g%02d", i), strategy.CFSQuotaBurstOnly)
	}
	w.run(960 * ms)
	throttle := w.throttled("/g07", 100*time.Microsecond)
	w.agent.reader.Refreshed = w.kernel.Now() // so that no turn is taken for it
	var answered <-chan struct{}
	after := 0 // groups whose counters were read after the answer
	w.agent.Events = askedEvents{e, func() {
		switch {
		case answered == nil:
			answered = w.answer(throttle)
		case w.refills() == 1:
			after++
		}
	}}
	w.agent.Status()
	w.agent.Events = e
	<-answered
	if after < 98 {
		t.Errorf("%d groups of 100 were read after the answer", after)
	}
}

// TestReceiptsAreNotWaitedFor: a throttle that begins while the experiments of many groups are copied to be kept is
// answered between two of them.
func TestReceiptsAreNotWaitedFor(t *testing.T) {
	w, _ := subscribed(t, true)
	for i := range 100 {
		w.calm(fmt.Sprintf("/g%02d", i), strategy.CFSQuotaBurstOnly)
		w.place.pods[i].Containers[0].Strategy.Receipts = 0.001
	}
	w.run(960 * ms)
	throttle := w.throttled("/g07", 100*time.Microsecond)
	var answered <-chan struct{}
	after := 0 // groups that were copied after the answer
	w.agent.mu.Lock()
	kept := w.agent.state.Kept(func() {
		if answered == nil {
			answered = w.answer(throttle)
		}
		if w.agent.mu.Yield(); w.refills() == 1 {
			after++
		}
	})
	w.agent.mu.Unlock()
	<-answered
	if after < 98 || len(kept.Groups) != 100 {
		t.Errorf("%d groups of 100 were copied after the answer, %d are kept", after, len(kept.Groups))
	}
	if one := w.agent.KeptReceipts(); len(one.Groups) != 100 || one.Groups[7].Next != 1 {
		t.Errorf("the spell that the throttle began is not kept: %+v", one.Groups[7])
	}
}
