package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

const boot = "boot-1"

func clock() time.Time { return time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC) }

func id(path string) workload.ID { return workload.ID{Path: path, Inode: uint64(len(path))} }

func claimOf(path string, knob plan.Knob, original plan.Value) Entry {
	return Entry{ID: id(path), Knob: knob, Original: original, Min: original, Max: "300ms"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openDisk(t *testing.T, d Disk) *Journal {
	t.Helper()
	j, err := OpenDisk(d, boot, clock)
	must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

func wantEntries(t *testing.T, got []Entry, want ...Entry) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(Entry{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
}

func TestEntryFollowsRecords(t *testing.T) {
	disk := NewMemory()
	j := openDisk(t, disk)
	a := id("/a")
	must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
	must(t, j.Claim(claimOf("/b", plan.Burst, "0s")))
	must(t, j.Intend(a, plan.Quota, "80ms"))
	must(t, j.Intend(a, plan.Quota, "120ms"))
	must(t, j.SetBaseline(a, plan.Quota, "60ms"))
	must(t, j.Claim(Entry{ID: a, Knob: plan.Quota, Original: "120ms", Min: "10ms", Max: "max"})) // widens
	must(t, j.Done(id("/b"), plan.Burst))
	must(t, j.Done(id("/c"), plan.Burst))
	must(t, j.SetBaseline(id("/c"), plan.Burst, "1ms"))
	want := Entry{ID: a, Knob: plan.Quota, Original: "50ms", Baseline: "60ms", Min: "10ms", Max: "max",
		Last: "120ms", Prev: "80ms", Since: clock()}
	wantEntries(t, j.Entries(), want)
	wantEntries(t, openDisk(t, disk).Entries(), want)
	if err := j.Intend(id("/b"), plan.Burst, "1ms"); err == nil {
		t.Error("an intent without a claim was taken")
	}
	if _, ok := j.Entry(id("/b"), plan.Burst); ok {
		t.Error("the entry that is done is still there")
	}
}

func TestOursAndTarget(t *testing.T) {
	base := Entry{Original: "50ms", Last: "50ms", Prev: "50ms"}
	one := Entry{Original: "50ms", Last: "80ms", Prev: "50ms", intents: 1}
	two := Entry{Original: "50ms", Last: "90ms", Prev: "80ms", Baseline: "70ms", intents: 2}
	for _, c := range []struct {
		e    Entry
		held plan.Value
		want bool
	}{
		{base, "50ms", false}, {one, "50ms", false}, {one, "80ms", true}, {two, "50ms", false},
		{two, "80ms", true}, {two, "90ms", true}, {two, "70ms", false},
	} {
		if got := c.e.Ours(c.held); got != c.want {
			t.Errorf("%d intents, held %s: ours %v", c.e.intents, c.held, got)
		}
	}
	if one.Target() != "50ms" || two.Target() != "70ms" {
		t.Errorf("targets %s, %s", one.Target(), two.Target())
	}
}

func TestOursOutlivesCompactionAndReopening(t *testing.T) {
	for intents := range 4 {
		disk := NewMemory()
		j := openDisk(t, disk)
		must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
		for i := range intents {
			must(t, j.Intend(id("/a"), plan.Quota, plan.Time(time.Duration(60+i)*time.Millisecond)))
		}
		before, _ := j.Entry(id("/a"), plan.Quota)
		must(t, j.rewrite())
		after, _ := openDisk(t, disk).Entry(id("/a"), plan.Quota)
		for _, held := range []plan.Value{"50ms", "60ms", "61ms", "62ms", "63ms"} {
			if before.Ours(held) != after.Ours(held) {
				t.Errorf("%d intents: ours(%s) was %v and is %v", intents, held, before.Ours(held), after.Ours(held))
			}
		}
	}
}

func TestDirectoryIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "run", "plimsoll")
	j, err := Open(dir, boot, clock)
	must(t, err)
	defer j.Close()
	for name, want := range map[string]os.FileMode{dir: dirMode, filepath.Join(dir, fileName): fileMode} {
		info, err := os.Stat(name)
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

// TestCutAtEveryByte cuts the file at each byte, as a crash of a half-written page might.
func TestCutAtEveryByte(t *testing.T) {
	disk := NewMemory()
	j := openDisk(t, disk)
	claimed := map[int]workload.ID{} // file size when Claim returned -> whose
	for i := range 6 {
		path := fmt.Sprintf("/g%0*d", i+1, i)
		must(t, j.Claim(claimOf(path, plan.Quota, "50ms")))
		claimed[len(disk.files[fileName].data)] = id(path)
		must(t, j.Intend(id(path), plan.Quota, "80ms"))
	}
	whole := disk.files[fileName].data
	for cut := range len(whole) + 1 {
		disk := NewMemory()
		disk.files[fileName] = &memoryFile{disk: disk, data: append([]byte(nil), whole[:cut]...)}
		before, err := LoadDisk(disk)
		must(t, err)
		j := openDisk(t, disk)
		wantEntries(t, j.Entries(), before.Entries...)
		must(t, j.Claim(claimOf("/later", plan.Burst, "0s"))) // must not be glued to a torn line
		after, err := LoadDisk(disk)
		must(t, err)
		if len(after.Notes) > 0 || !has(after.Entries, id("/later")) {
			t.Errorf("cut at %d: after the next claim: %v", cut, after.Notes)
		}
		for size, owner := range claimed {
			if size <= cut && !has(after.Entries, owner) {
				t.Errorf("cut at %d: the claim of %s, whole at %d, is lost", cut, owner.Path, size)
			}
		}
	}
}

// TestDirLosesNothing does the same round on real files.
func TestDirLosesNothing(t *testing.T) {
	dir := t.TempDir()
	j, err := Open(dir, boot, clock)
	must(t, err)
	must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
	beside, err := Load(dir)
	must(t, err)
	wantEntries(t, beside.Entries, j.Entries()...)
	must(t, j.rewrite())
	must(t, j.Intend(id("/a"), plan.Quota, "80ms"))
	must(t, j.Close())
	f, err := os.OpenFile(filepath.Join(dir, fileName), os.O_APPEND|os.O_WRONLY, 0)
	must(t, err)
	_, err = f.WriteString(`{"op":"done","cgr`)
	must(t, errors.Join(err, f.Close()))
	again, err := Open(dir, boot, clock)
	must(t, err)
	wantEntries(t, again.Entries(), j.Entries()...)
	must(t, again.Done(id("/a"), plan.Quota))
	must(t, again.Close())
	last, err := Load(dir)
	must(t, err)
	if len(last.Entries)+len(last.Notes) > 0 || last.BootID != boot {
		t.Errorf("in the end: %+v", last)
	}
}

func has(entries []Entry, owner workload.ID) bool {
	for _, e := range entries {
		if e.ID == owner {
			return true
		}
	}
	return false
}

func writeJournal(t *testing.T, m *Memory, lines ...string) {
	t.Helper()
	f, err := m.Create(fileName)
	must(t, err)
	_, err = f.Write([]byte(strings.Join(lines, "\n") + "\n"))
	must(t, err)
}

const (
	headerLine = `{"format":"plimsoll-journal","version":1,"boot_id":"boot-1"}`
	claimLine  = `{"op":"claim","cgroup":"/a","inode":2,"knob":"quota","original":"50ms","min":"50ms","max":"300ms"}`
)

func TestOtherBootIsSetAside(t *testing.T) {
	m := NewMemory()
	writeJournal(t, m, strings.Replace(headerLine, boot, "boot-0", 1), claimLine)
	old, _ := m.ReadFile(fileName)
	j := openDisk(t, m)
	wantEntries(t, j.Entries())
	kept, err := m.ReadFile(previousName)
	if err != nil || !bytes.Equal(old, kept) || len(j.Notes()) != 0 {
		t.Errorf("kept %q, %v; notes %q", kept, err, j.Notes())
	}
}

func TestNewerVersionIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	text := strings.Replace(headerLine, `"version":1`, `"version":2`, 1) + "\n" + claimLine + "\n"
	must(t, os.WriteFile(filepath.Join(dir, fileName), []byte(text), fileMode))
	_, openErr := Open(dir, boot, clock)
	_, loadErr := Load(dir)
	for _, err := range []error{openErr, loadErr} {
		var newer *VersionError
		if !errors.As(err, &newer) || newer.Hint() == "" || !strings.Contains(err.Error(), dir) {
			t.Errorf("error %v", err)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil || string(after) != text {
		t.Errorf("the file is now %q, %v", after, err)
	}
}

// TestUpgrade opens a journal of a made-up older version, whose records call the group "path".
func TestUpgrade(t *testing.T) {
	known := readers()
	known[0] = func(line []byte) (record, error) {
		var r record
		err := json.Unmarshal(bytes.Replace(line, []byte(`"path"`), []byte(`"cgroup"`), 1), &r)
		return r, err
	}
	m := NewMemory()
	writeJournal(t, m, strings.Replace(headerLine, `"version":1`, `"version":0`, 1),
		strings.Replace(claimLine, "cgroup", "path", 1))
	j, err := openWith(m, boot, clock, known)
	must(t, err)
	must(t, j.Intend(id("/a"), plan.Quota, "80ms"))
	want := claimOf("/a", plan.Quota, "50ms")
	want.Last, want.Prev = "80ms", "50ms"
	wantEntries(t, openDisk(t, m).Entries(), want)
	if data, _ := m.ReadFile(fileName); !bytes.HasPrefix(data, []byte(headerLine)) {
		t.Errorf("not written anew in today's version:\n%s", data)
	}
}

func TestDamage(t *testing.T) {
	for name, bad := range map[string]string{
		"not JSON":     `{"op":"claim","cgro`,
		"zeros":        strings.Repeat("\x00", 40),
		"unknown op":   `{"op":"claims","cgroup":"/a","inode":2,"knob":"quota"}`,
		"lost a claim": `{"op":"intent","cgroup":"/b","inode":2,"knob":"quota","value":"1ms"}`,
	} {
		m := NewMemory()
		writeJournal(t, m, headerLine, bad, claimLine)
		old, _ := m.ReadFile(fileName)
		j := openDisk(t, m)
		want := claimOf("/a", plan.Quota, "50ms")
		want.Last, want.Prev = "50ms", "50ms"
		wantEntries(t, j.Entries(), want)
		kept, err := m.ReadFile(damagedName)
		if err != nil || !bytes.Equal(kept, old) {
			t.Errorf("%s: kept %q, %v", name, kept, err)
		}
		if again := openDisk(t, m); len(j.Notes()) != 2 || len(again.Notes()) != 0 {
			t.Errorf("%s: notes %q, then %q", name, j.Notes(), again.Notes())
		}
	}
}

func TestForeignFileIsAnError(t *testing.T) {
	m := NewMemory()
	writeJournal(t, m, "hello", "world")
	var foreign *ForeignError
	if _, err := OpenDisk(m, boot, clock); !errors.As(err, &foreign) || foreign.Hint() == "" {
		t.Errorf("got %v, want a ForeignError with a hint", err)
	}
	if data, _ := m.ReadFile(fileName); string(data) != "hello\nworld\n" {
		t.Errorf("and changed it: %q", data)
	}
}

func TestPathsThatCannotBeSpelled(t *testing.T) {
	disk := NewMemory()
	j := openDisk(t, disk)
	if err := j.Claim(claimOf("/a\xff", plan.Quota, "50ms")); err == nil {
		t.Error("claimed a path that JSON cannot spell")
	}
	for _, odd := range []string{"/a\"b", "/a\\b c", "/<&>", "/\u00fc"} {
		must(t, j.Claim(claimOf(odd, plan.Quota, "50ms")))
	}
	wantEntries(t, openDisk(t, disk).Entries(), j.Entries()...)
}

func TestClosed(t *testing.T) {
	j := openDisk(t, NewMemory())
	must(t, j.Claim(claimOf("/a", plan.Quota, "50ms")))
	must(t, j.Close())
	must(t, j.Close())
	if err := j.Claim(claimOf("/b", plan.Quota, "50ms")); !errors.Is(err, ErrClosed) {
		t.Errorf("claim on a closed journal: %v", err)
	}
	if len(j.Entries()) != 1 {
		t.Error("entries are gone after Close")
	}
}

func TestLoadWithoutJournal(t *testing.T) {
	s, err := Load(filepath.Join(t.TempDir(), "none"))
	if err != nil || len(s.Entries) != 0 || s.BootID != "" {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestBootID(t *testing.T) {
	first, err := BootID()
	must(t, err)
	second, err := BootID()
	must(t, err)
	if first != second || len(first) != 36 {
		t.Errorf("boot ids %q, %q", first, second)
	}
}

func TestConcurrentUse(t *testing.T) {
	disk := NewMemory()
	j, err := openSmall(disk, 8)
	must(t, err)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			path := fmt.Sprint("/", g)
			_ = j.Claim(claimOf(path, plan.Quota, "50ms"))
			for i := range 50 {
				_ = j.Intend(id(path), plan.Quota, plan.Number(int64(i)))
				j.Entries()
			}
		})
	}
	wg.Wait()
	got := openDisk(t, disk).Entries()
	for _, e := range got {
		if e.Last != "49" || e.Prev != "48" {
			t.Errorf("%s: last %s, prev %s", e.Path, e.Last, e.Prev)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d entries", len(got))
	}
}

// FuzzParse: whatever stands in the file, it is an error or a table that outlives being written anew.
func FuzzParse(f *testing.F) {
	f.Add([]byte(headerLine + "\n" + claimLine + "\n"))
	f.Add([]byte(headerLine + "\n" + claimLine))
	f.Add([]byte(headerLine + "\n" + strings.Replace(claimLine, "claim", "done", 1) + "\n"))
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := parse(bytes.NewReader(data), readers())
		if err != nil {
			return
		}
		if c.size > int64(len(data)) {
			t.Fatalf("%d whole bytes of %d", c.size, len(data))
		}
		j := &Journal{disk: NewMemory(), boot: boot, table: c.table}
		must(t, j.rewrite())
		again, err := OpenDisk(j.disk, boot, clock)
		must(t, err)
		wantEntries(t, again.Entries(), c.table.sorted()...)
	})
}
