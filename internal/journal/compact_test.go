package journal

import (
	"bytes"
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/plan"
)

// kernelFiles drives a journal as the writer does and keeps what would stand in the kernel.
type kernelFiles struct {
	original, held map[key]plan.Value
	claimed        map[key]bool // Claim returned without an error and Done was not tried since
}

func (k *kernelFiles) run(j *Journal) {
	for round := range 8 {
		for i, path := range []string{"/a", "/b", "/c"} {
			kk := key{id(path), plan.Quota}
			if k.original[kk] == "" {
				k.original[kk], k.held[kk] = "50ms", "50ms"
			}
			k.round(j, kk, plan.Time(time.Duration(60+round)*time.Millisecond), round > 0 && round%3 == i)
		}
	}
}

func (k *kernelFiles) round(j *Journal, kk key, value plan.Value, restore bool) {
	_ = j.Claim() // compacts
	if restore {
		k.held[kk] = k.original[kk]
		delete(k.claimed, kk)
		_ = j.Done(kk.id, kk.knob)
		return
	}
	if !k.claimed[kk] {
		if j.Claim(Entry{ID: kk.id, Knob: kk.knob, Original: k.held[kk], Min: "50ms", Max: "300ms"}) != nil {
			return
		}
		k.claimed[kk] = true
	}
	if j.Intend(kk.id, kk.knob, value) == nil {
		k.held[kk] = value
	}
}

// check: the journal knows every value of ours in the kernel, and restores the original.
func (k *kernelFiles) check(t *testing.T, what string, entries []Entry) {
	t.Helper()
	found := map[key]Entry{}
	for _, e := range entries {
		found[key{e.ID, e.Knob}] = e
	}
	for kk, held := range k.held {
		e, ok := found[kk]
		if k.claimed[kk] && !ok {
			t.Errorf("%s: the claim of %s is lost", what, kk.id.Path)
		}
		if held != k.original[kk] && (!ok || !e.Ours(held) || e.Target() != k.original[kk]) {
			t.Errorf("%s: %s holds %s, the entry is %+v", what, kk.id.Path, held, e)
		}
	}
}

// TestFaultAtEveryOperation lets each operation on the disk go wrong in each way, with compactions among them.
func TestFaultAtEveryOperation(t *testing.T) {
	const compactAt = 9
	for f := failOnce; f <= crash; f++ {
		steps := 0
		for at := 0; at <= steps; at++ {
			disk := newFaultyDisk(f, at)
			k := &kernelFiles{map[key]plan.Value{}, map[key]plan.Value{}, map[key]bool{}}
			j, err := openSmall(disk, compactAt)
			if err == nil {
				k.run(j)
			}
			if at == 0 {
				steps = disk.step
			}
			what := fmt.Sprintf("fault %d at %d", f, at)
			if err == nil && f != crash {
				k.check(t, what+", alive", j.Entries())
			}
			k.check(t, what+", process dead", openDisk(t, disk.afterProcessCrash()).Entries())
			onlyClaims := &kernelFiles{claimed: k.claimed, held: k.original, original: k.original}
			onlyClaims.check(t, what+", power lost", openDisk(t, disk.afterPowerLoss()).Entries())
		}
		if steps < 30 {
			t.Errorf("only %d operations: did it compact?", steps)
		}
	}
}

func openSmall(d Disk, compactAt int) (*Journal, error) {
	j, err := OpenDisk(d, boot, clock)
	if err == nil {
		j.compactAt = compactAt
	}
	return j, err
}

// TestClaimReportsFault: a claim that is not on disk must not look as if it were.
func TestClaimReportsFault(t *testing.T) {
	opened := newFaultyDisk(failOnce, 0)
	openDisk(t, opened)
	for f := failOnce; f <= shortLong; f++ {
		for at := opened.step + 1; at <= opened.step+2; at++ { // the write, the sync
			disk := newFaultyDisk(f, at)
			j := openDisk(t, disk)
			if err := j.Claim(claimOf("/a", plan.Quota, "50ms")); err == nil {
				t.Errorf("fault %d at %d: Claim returned no error", f, at)
			}
			wantEntries(t, j.Entries())
		}
	}
}

// TestCompaction: a claim compacts, also one of nothing, and an intent does not: it must not wait for the disk.
func TestCompaction(t *testing.T) {
	disk := NewMemory()
	j := openDisk(t, disk)
	for _, p := range []string{"/a", "/b"} {
		must(t, j.Claim(claimOf(p, plan.Quota, "50ms")))
	}
	for i := range compactAbove + 10 {
		must(t, j.Intend(id("/a"), plan.Quota, plan.Time(time.Duration(i+1)*time.Millisecond)))
	}
	lines := func() int {
		data, err := disk.ReadFile(fileName)
		must(t, err)
		return bytes.Count(data, []byte("\n"))
	}
	if n := lines(); n < compactAbove+10 {
		t.Errorf("%d lines: an intent has compacted", n)
	}
	must(t, j.Claim())
	if n := lines(); n > 20 {
		t.Errorf("%d lines after a compaction", n)
	}
	before := j.Entries()
	wantEntries(t, openDisk(t, disk).Entries(), before...)
	if before[0].Last != plan.Time((compactAbove+10)*time.Millisecond) {
		t.Errorf("last is %s", before[0].Last)
	}
}

func TestManyLiveEntriesAreNotCompactedAtEachStep(t *testing.T) {
	disk := newFaultyDisk(failOnce, 0)
	j, err := openSmall(disk, 4)
	must(t, err)
	for i := range 20 {
		must(t, j.Claim(claimOf(fmt.Sprint("/", i), plan.Quota, "50ms")))
	}
	if opened := 4 + 1; disk.step != opened+2*20 { // create, write, sync, rename; the first claim syncs the directory
		t.Errorf("%d operations for 20 claims: it compacts what is not history", disk.step)
	}
}

// diskFull refuses every new file.
type diskFull struct {
	*Memory
	tries int
}

func (d *diskFull) Create(string) (File, error) {
	d.tries++
	return nil, syscall.ENOSPC
}

func TestCompactionThatFailsIsNotTriedAtEachStep(t *testing.T) {
	disk := &diskFull{Memory: NewMemory()}
	openDisk(t, disk.Memory).Close()
	j := openDisk(t, disk)
	must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
	for i := range 3 * compactAbove {
		must(t, j.Intend(id("/a"), plan.Quota, plan.Number(int64(i))))
		must(t, j.Claim())
	}
	if disk.tries != 2 {
		t.Errorf("%d tries", disk.tries)
	}
}
