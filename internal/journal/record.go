package journal

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sort"
	"time"

	"plimsoll/internal/plan"
	"plimsoll/internal/workload"
)

const (
	format  = "plimsoll-journal"
	version = 1
)

// header is the first line of the file.
type header struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	BootID  string `json:"boot_id"`
}

type op string

const (
	opClaim    op = "claim"    // Original stands in the file; values from Min to Max may follow
	opIntent   op = "intent"   // Value is about to be written
	opBaseline op = "baseline" // Value is the declared limit
	opDone     op = "done"     // nothing of ours stands in the file any more
)

// record is every later line. All records of version 1 have the fields of this struct.
type record struct {
	Op op `json:"op"`
	workload.ID
	Knob     plan.Knob  `json:"knob"`
	Value    plan.Value `json:"value,omitempty"`
	Original plan.Value `json:"original,omitempty"`
	Baseline plan.Value `json:"baseline,omitempty"`
	Min      plan.Value `json:"min,omitempty"`
	Max      plan.Value `json:"max,omitempty"`
	Period   plan.Value `json:"period,omitempty"`
	Quota    plan.Value `json:"quota,omitempty"`
	Time     time.Time  `json:"time,omitzero"`
}

// reader turns one line of an older format into a record of today's.
type reader func(line []byte) (record, error)

// readers has one reader for each version of the format that was ever in use. A journal of an older version is
// written anew, in today's, when it is opened.
func readers() map[int]reader { return map[int]reader{1: readV1} }

func readV1(line []byte) (record, error) {
	var r record
	if err := json.Unmarshal(line, &r); err != nil {
		return record{}, err
	}
	switch r.Op {
	case opClaim, opIntent, opBaseline, opDone:
		return r, nil
	}
	return record{}, fmt.Errorf("unknown record %q", r.Op)
}

// encode spells a header or a record as a line.
func encode(v any) ([]byte, error) {
	line, err := json.Marshal(v)
	return append(line, '\n'), err
}

type key struct {
	id   workload.ID
	knob plan.Knob
}

// table is what a sequence of records amounts to.
type table map[key]*Entry

// play applies one record to the table.
func (t table) play(r record) error {
	k := key{r.ID, r.Knob}
	e, ok := t[k]
	if !ok && r.Op != opClaim {
		return fmt.Errorf("%s of %s in %s, which was not claimed", r.Op, r.Knob, r.Path)
	}
	switch r.Op {
	case opClaim:
		if !ok { // a second claim only widens the range, or says that the kernel has scaled the values
			e = &Entry{ID: r.ID, Knob: r.Knob, Original: r.Original, Baseline: r.Baseline, Period: r.Period,
				Last: r.Original, Prev: r.Original, Since: r.Time}
			t[k] = e
		}
		*e = e.scaled(r.Period)
		e.Min, e.Max, e.Period, e.Quota = r.Min, r.Max, cmp.Or(e.Period, r.Period), cmp.Or(r.Quota, e.Quota)
	case opIntent:
		e.Prev, e.Last = e.Last, r.Value
		e.intents++
	case opBaseline:
		e.Baseline = r.Value
	case opDone:
		delete(t, k)
	}
	return nil
}

// sorted lists the entries by path, inode and knob.
func (t table) sorted() []Entry {
	entries := make([]Entry, 0, len(t))
	for _, e := range t {
		entries = append(entries, *e)
	}
	sort.Slice(entries, func(i, j int) bool {
		a, b := entries[i], entries[j]
		switch {
		case a.ID.Path != b.ID.Path:
			return a.ID.Path < b.ID.Path
		case a.ID.Inode != b.ID.Inode:
			return a.ID.Inode < b.ID.Inode
		}
		return a.Knob < b.Knob
	})
	return entries
}

// records are the fewest that amount to an entry.
func (e Entry) records() []record {
	base := record{ID: e.ID, Knob: e.Knob}
	records := []record{e.claim()}
	values := []plan.Value{e.Prev, e.Last}
	for _, v := range values[2-min(e.intents, 2):] {
		intent := base
		intent.Op, intent.Value = opIntent, v
		records = append(records, intent)
	}
	return records
}

// claim is the record that makes an entry.
func (e Entry) claim() record {
	return record{Op: opClaim, ID: e.ID, Knob: e.Knob, Original: e.Original, Baseline: e.Baseline, Min: e.Min,
		Max: e.Max, Period: e.Period, Quota: e.Quota, Time: e.Since}
}

// content is a journal file, read.
type content struct {
	header
	table   table
	records int
	size    int64    // of the lines that are whole
	torn    bool     // more follows them
	damaged bool     // a line that is not the last could not be read
	notes   []string // for people: what was dropped
}

// errTornHeader says that not even the first line is whole: no claim can have been made.
var errTornHeader = errors.New("the first line is not whole")

// read reads the journal of a disk, line by line: a small process has no room for the text of all of them.
func read(disk Disk, known map[int]reader) (content, error) {
	f, err := disk.Open(fileName)
	if err != nil {
		return content{}, err
	}
	c, err := parse(f, known)
	return c, errors.Join(err, f.Close())
}

// parse reads a journal file. A last line without its newline was being appended when the process died: whoever
// wrote it never saw the append succeed, and the line is dropped.
func parse(text io.Reader, known map[int]reader) (content, error) {
	c := content{table: table{}}
	lines := bufio.NewReader(text)
	first, err := lines.ReadBytes('\n')
	switch {
	case errors.Is(err, io.EOF):
		return c, errTornHeader
	case err != nil:
		return c, err
	}
	if err := json.Unmarshal(first, &c.header); err != nil || c.Format != format {
		return c, &ForeignError{}
	}
	record, ok := known[c.Version]
	if !ok {
		return c, &VersionError{Version: c.Version}
	}
	c.size = int64(len(first))
	for n := 2; ; n++ {
		line, err := lines.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return c, nil
		case errors.Is(err, io.EOF):
			c.torn = true
			c.notes = append(c.notes, fmt.Sprintf("line %d is torn; dropped", n))
			return c, nil
		case err != nil:
			return c, err
		}
		c.records++
		c.size += int64(len(line))
		r, err := record(line[:len(line)-1])
		if err == nil {
			err = c.table.play(r)
		}
		if err != nil {
			c.damaged = true
			c.notes = append(c.notes, fmt.Sprintf("line %d: %v; dropped", n, err))
		}
	}
}
