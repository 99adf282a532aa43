// Package journal remembers what Plimsoll overwrote, so that it can be put back whatever happens to the process.
//
// # Problem
//
// A quota that was raised and never lowered outlives the agent that raised it. After a kill -9 somebody must know
// which files hold a value of ours, what stood there before, and, because others write these files too, whether
// the value that stands there now is ours at all.
//
// # Approach
//
// An append-only file of JSON lines. A claim (the original value) is on disk before the first write to a knob of a
// group. An intent (the next value) is appended before each write; it is not synced, for what write(2) took
// outlives the process, and a crash of the machine takes the control groups with it. So at every instant the file
// in the kernel holds the newest intent, or the one before it, or something foreign. A done ends the entry.
//
// # Known limits
//
// A foreign value that equals one of the last two intents cannot be distinguished from ours, unless the declared limit
// is known and equals it (SetBaseline). A value that the kernel clamped is known as ours only after it was read back.
package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"
	"time"
	"unicode/utf8"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

// Names in the state directory.
const (
	fileName     = "journal"
	newName      = "journal.new"           // a compaction that has not come to its end
	previousName = "journal.previous-boot" // set aside: its groups are gone
	damagedName  = "journal.damaged"       // set aside: some of its lines could not be read
)

// compactAbove is how many records a journal may hold before it is written anew, if most of them are history.
const compactAbove = 4096

// ErrClosed is returned by a journal after Close.
var ErrClosed = errors.New("the journal is closed")

// Journal is an open journal. Its methods may be called from several goroutines. One process at a time may hold
// a journal open (lock.Lock); any may Load it.
type Journal struct {
	mu        sync.Mutex
	disk      Disk
	now       func() time.Time
	boot      string
	file      File
	view      sync.RWMutex // of the table, for who reads it while mu waits for the disk
	table     table        // changed under both
	records   int          // lines in the file, without the header
	size      int64        // of the lines that are whole
	torn      bool         // bytes of a failed append may follow size
	unsynced  bool         // the directory does not yet hold the file's name for good
	compactAt int
	notes     []string
}

// Boot is the boot of the machine that the journal is of.
func (j *Journal) Boot() string { return j.boot }

// Open opens the journal in a directory and makes both if need be. A journal of another boot is set aside.
func Open(dir, bootID string, now func() time.Time) (*Journal, error) {
	if err := Dir(dir).make(); err != nil {
		return nil, fmt.Errorf("make the state directory: %w", err)
	}
	j, err := OpenDisk(Dir(dir), bootID, now)
	if err != nil {
		return nil, fmt.Errorf("state directory %s: %w", dir, err)
	}
	return j, nil
}

// OpenDisk is Open for any disk.
func OpenDisk(disk Disk, bootID string, now func() time.Time) (*Journal, error) {
	return openWith(disk, bootID, now, readers())
}

func openWith(disk Disk, bootID string, now func() time.Time, known map[int]reader) (*Journal, error) {
	j := &Journal{disk: disk, now: now, boot: bootID, table: table{}, compactAt: compactAbove}
	if err := j.open(known); err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

func (j *Journal) open(known map[int]reader) error {
	c, err := read(j.disk, known)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return j.rewrite()
	case errors.Is(err, errTornHeader):
		j.notes = []string{"the first line is not whole; the file is kept as " + damagedName}
		return j.startAfter(damagedName)
	case err != nil:
		return fmt.Errorf("read the journal: %w", err)
	case c.BootID != j.boot:
		return j.startAfter(previousName)
	}
	j.table, j.records, j.size, j.notes = c.table, c.records, c.size, c.notes
	if c.damaged {
		if err := j.setAside(); err != nil {
			return err
		}
	}
	if c.damaged || c.Version != version {
		return j.rewrite()
	}
	if j.file, err = j.disk.Append(fileName); err != nil {
		return fmt.Errorf("open the journal: %w", err)
	}
	// The name may be younger than the last sync of the directory, and the end may be torn.
	j.unsynced, j.torn = true, c.torn
	return nil
}

// startAfter renames the file that is there and begins a new one.
func (j *Journal) startAfter(name string) error {
	if err := j.disk.Rename(fileName, name); err != nil {
		return fmt.Errorf("set the journal aside: %w", err)
	}
	return j.rewrite()
}

// setAside keeps a copy of a journal with unreadable lines before it is written anew without them.
func (j *Journal) setAside() error {
	f, err := j.disk.Create(damagedName)
	if err == nil {
		err = copyAndClose(f, j.disk)
	}
	if err != nil {
		return fmt.Errorf("set a copy of the damaged journal aside: %w", err)
	}
	j.notes = append(j.notes, "a copy of the damaged file is kept as "+damagedName)
	return nil
}

func copyAndClose(f File, disk Disk) error {
	from, err := disk.Open(fileName)
	if err == nil {
		_, err = io.Copy(f, from)
		err = errors.Join(err, from.Close())
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// rewrite writes the fewest lines that amount to the table into a new file. A rename replaces the old file in one
// step: a crash leaves one or the other.
func (j *Journal) rewrite() error {
	f, err := j.disk.Create(newName)
	if err != nil {
		return fmt.Errorf("make a journal: %w", err)
	}
	size, records, err := j.writeAll(f)
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = j.disk.Rename(newName, fileName)
	}
	if err != nil {
		return fmt.Errorf("write a journal: %w", errors.Join(err, f.Close()))
	}
	if j.file != nil {
		err = j.file.Close() // its records are in the new file
	}
	// After a power loss the old file may be back under the name, and is as good: the next claim syncs the name.
	j.file, j.size, j.records, j.torn, j.unsynced = f, size, records, false, true
	return err
}

// writeAll writes them piece by piece: the text of all of them is the largest thing that a small process has.
func (j *Journal) writeAll(f File) (size int64, records int, err error) {
	w := bufio.NewWriterSize(f, 64<<10)
	write := func(v any) error {
		line, err := encode(v)
		if err == nil {
			_, err = w.Write(line)
		}
		size += int64(len(line))
		return err
	}
	if err := write(header{Format: format, Version: version, BootID: j.boot}); err != nil {
		return 0, 0, err
	}
	for _, e := range j.table.sorted() {
		for _, r := range e.records() {
			if err := write(r); err != nil {
				return 0, 0, err
			}
			records++
		}
	}
	return size, records, w.Flush()
}

// Claim syncs to disk the values of files before their first write, and the ranges of the values that
// will be written, all of them or none. Claim ignores Last, Prev and Since of the entries. Claiming again widens the
// range and renews the quota; claiming what Entry.In returns scales the entry. When it fails, the files must not be
// written. A Claim, also one of nothing, writes the journal anew when most of it is history, so that no other call has
// to wait for the disk.
func (j *Journal) Claim(entries ...Entry) error {
	records := make([]record, 0, len(entries))
	for _, e := range entries {
		if !utf8.ValidString(e.Path) {
			return fmt.Errorf("claim %s of %q: a path that is not UTF-8 cannot be journalled", e.Knob, e.Path)
		}
		e.Since = j.now().Round(0)
		records = append(records, e.claim())
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.append(records...); err != nil {
		return err
	}
	j.compact()
	return nil
}

// Intend notes the value that is about to be written to a claimed knob. When it fails, the file must not be written.
func (j *Journal) Intend(id workload.ID, knob plan.Knob, value plan.Value) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.append(record{Op: opIntent, ID: id, Knob: knob, Value: value})
}

// SetBaseline notes the declared limit of a claimed knob. For a knob that is not claimed there is nothing to note.
func (j *Journal) SetBaseline(id workload.ID, knob plan.Knob, value plan.Value) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e, ok := j.table[key{id, knob}]; !ok || e.Baseline == value {
		return nil
	}
	return j.append(record{Op: opBaseline, ID: id, Knob: knob, Value: value})
}

// Done ends an entry: nothing of ours stands in the file any more. Ending what is not there is no error.
func (j *Journal) Done(id workload.ID, knob plan.Knob) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.table[key{id, knob}]; !ok {
		return nil
	}
	return j.append(record{Op: opDone, ID: id, Knob: knob})
}

// append writes records of one kind, and then applies them to the table.
// A failed append changes neither file nor table.
func (j *Journal) append(records ...record) error {
	if j.file == nil {
		return ErrClosed
	}
	var lines []byte
	for _, r := range records {
		if _, ok := j.table[key{r.ID, r.Knob}]; !ok && r.Op != opClaim {
			return fmt.Errorf("journal: %s of %s in %s, which was not claimed", r.Op, r.Knob, r.Path)
		}
		line, err := encode(r)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		lines = append(lines, line...)
	}
	if len(records) == 0 {
		return nil
	}
	if err := j.heal(); err != nil {
		return err
	}
	_, err := j.file.Write(lines)
	if err == nil && records[0].Op == opClaim {
		err = j.sync()
	}
	if err != nil {
		j.torn = true
		r := records[0]
		return fmt.Errorf("journal %s of %s in %s: %w", r.Op, r.Knob, r.Path, errors.Join(err, j.heal()))
	}
	j.size += int64(len(lines))
	j.records += len(records)
	return j.play(records)
}

// play applies records to the table.
func (j *Journal) play(records []record) error {
	j.view.Lock()
	defer j.view.Unlock()
	var errs []error
	for _, r := range records {
		errs = append(errs, j.table.play(r))
	}
	return errors.Join(errs...)
}

// sync makes the file and its name last a crash of the machine.
func (j *Journal) sync() error {
	if err := j.file.Sync(); err != nil || !j.unsynced {
		return err
	}
	if err := j.disk.Sync(); err != nil {
		return err
	}
	j.unsynced = false
	return nil
}

// heal truncates the file after its last whole line, where a failed append or a crash left more.
func (j *Journal) heal() error {
	if !j.torn {
		return nil
	}
	if err := j.file.Truncate(j.size); err != nil {
		return fmt.Errorf("journal: cut off a torn line: %w", err)
	}
	j.torn = false
	return nil
}

// compact writes the journal anew when most of it is history. If that fails the old file goes on, and the next
// attempt is made when the file has doubled. Nobody is told: what the disk refuses of new entries is.
func (j *Journal) compact() {
	if j.records <= j.compactAt || j.records <= 4*len(j.table) {
		return
	}
	j.compactAt = compactAbove
	if err := j.rewrite(); err != nil {
		j.compactAt = max(compactAbove, 2*j.records)
	}
}

// Entries lists all entries by path, inode and knob. It does not wait for the disk.
func (j *Journal) Entries() []Entry {
	j.view.RLock()
	defer j.view.RUnlock()
	return j.table.sorted()
}

// Entry finds one entry. It does not wait for the disk.
func (j *Journal) Entry(id workload.ID, knob plan.Knob) (Entry, bool) {
	j.view.RLock()
	defer j.view.RUnlock()
	e, ok := j.table[key{id, knob}]
	if !ok {
		return Entry{}, false
	}
	return *e, true
}

// Notes are for people: what could not be read when the journal was opened.
func (j *Journal) Notes() []string { return j.notes }

// Close closes the file. Entries can still be read.
func (j *Journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	err := j.file.Close()
	j.file = nil
	return err
}
