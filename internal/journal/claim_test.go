package journal

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// syncedDisk counts the syncs of files, and does something in each.
type syncedDisk struct {
	*Memory
	syncs int
	in    func() error
}

type syncedFile struct {
	File
	disk *syncedDisk
}

func (d *syncedDisk) Create(name string) (File, error) {
	f, err := d.Memory.Create(name)
	return &syncedFile{f, d}, err
}

func (f *syncedFile) Sync() error {
	f.disk.syncs++
	if f.disk.in != nil {
		return f.disk.in()
	}
	return nil
}

// claimsOf are claims of so many groups.
func claimsOf(n int) []Entry {
	var list []Entry
	for i := range n {
		id := workload.ID{Path: fmt.Sprint("/g", i), Inode: uint64(i + 1)}
		list = append(list, Entry{ID: id, Knob: plan.Quota, Original: "50ms", Min: "50ms", Max: "150ms"})
	}
	return list
}

func openSynced(t *testing.T) (*Journal, *syncedDisk) {
	t.Helper()
	d := &syncedDisk{Memory: NewMemory()}
	j, err := OpenDisk(d, "boot", func() time.Time { return time.Unix(1000, 0) })
	if err != nil {
		t.Fatal(err)
	}
	d.syncs = 0
	return j, d
}

// TestClaimsTogether: claims of many files wait for the disk once, and are all there after a crash.
func TestClaimsTogether(t *testing.T) {
	j, d := openSynced(t)
	if err := j.Claim(claimsOf(100)...); err != nil {
		t.Fatal(err)
	}
	if d.syncs != 1 || len(j.Entries()) != 100 {
		t.Errorf("%d syncs, %d entries", d.syncs, len(j.Entries()))
	}
	again, err := OpenDisk(d.Memory, "boot", time.Now)
	if err != nil || len(again.Entries()) != 100 {
		t.Errorf("%d entries after a crash, %v", len(again.Entries()), err)
	}
	if err := j.Claim(); err != nil || d.syncs != 1 {
		t.Errorf("no claim: %d syncs, %v", d.syncs, err)
	}
}

// TestClaimsFailTogether: where the disk fails none of them is claimed, and nothing of them is left in the file.
func TestClaimsFailTogether(t *testing.T) {
	j, d := openSynced(t)
	d.in = func() error { return syscall.EIO }
	if err := j.Claim(claimsOf(3)...); err == nil {
		t.Fatal("claimed on a broken disk")
	}
	d.in = nil
	if err := j.Claim(claimsOf(4)[3]); err != nil {
		t.Fatal(err)
	}
	again, err := OpenDisk(d.Memory, "boot", time.Now)
	if err != nil || len(j.Entries()) != 1 || len(again.Entries()) != 1 || again.Entries()[0].Path != "/g3" {
		t.Errorf("%+v, after a crash %+v, %v", j.Entries(), again.Entries(), err)
	}
}

// TestEntriesDoNotWait: who asks what is claimed does not wait for the disk,
// and is not told of a claim before it is synced.
func TestEntriesDoNotWait(t *testing.T) {
	j, d := openSynced(t)
	if err := j.Claim(claimsOf(1)...); err != nil {
		t.Fatal(err)
	}
	d.in = func() error {
		known := make(chan int)
		go func() {
			first := claimsOf(1)[0]
			if _, ok := j.Entry(first.ID, first.Knob); !ok {
				t.Error("what was claimed before is not known")
			}
			known <- len(j.Entries())
		}()
		select {
		case n := <-known:
			if n != 1 {
				t.Errorf("%d entries while the second is synced", n)
			}
		case <-time.After(10 * time.Second):
			t.Error("they wait for the disk")
		}
		return nil
	}
	if err := j.Claim(claimsOf(2)[1]); err != nil || len(j.Entries()) != 2 {
		t.Errorf("%d entries, %v", len(j.Entries()), err)
	}
}

// TestLeft: what an agent of this boot has written, one that runs too, and nothing of an earlier boot.
func TestLeft(t *testing.T) {
	now, err := BootID()
	must(t, err)
	for boot, want := range map[string]int{now: 1, "another": 0} {
		dir := t.TempDir()
		j, err := Open(dir, boot, clock)
		must(t, err)
		must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
		left, err := Left(dir)
		must(t, err)
		if len(left) != want {
			t.Errorf("boot %s: %+v, want %d", boot, left, want)
		}
		j.Close()
	}
	if left, err := Left(t.TempDir()); len(left) != 0 || err != nil {
		t.Errorf("without a journal: %+v, %v", left, err)
	}
}
