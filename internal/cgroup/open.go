package cgroup

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"

	"golang.org/x/sys/unix"
)

// openFiles are the files that a Dir keeps open. Opening a file of a control group takes several times as long as
// reading it, so the files of a group that is read eleven times a second stay open. A descriptor costs the kernel about
// a kilobyte. So a group that is read once in minutes has none, except for the file that a refill writes.
type openFiles struct {
	limit  int
	bound  int             // of limit: descriptors that the process may use for this
	most   int             // entries of keep since shrink
	chosen bool            // only files of directories named by Hold are kept
	keep   map[string]bool // directories
	at     map[string]int
	in     map[string][]string // the open files of each directory that has some
	list   []openFile          // dense, so that a victim can be drawn
	rnd    *rand.Rand          // draws the victims; seeded with a constant
}

type openFile struct {
	name   string
	fd     int
	writes bool // it was opened for writing, and for reading too
}

func newOpenFiles(limit int) openFiles {
	return openFiles{limit: limit, bound: limit, keep: map[string]bool{}, at: map[string]int{},
		in: map[string][]string{}, rnd: rand.New(rand.NewPCG(1, 1))}
}

func (o *openFiles) find(name string) (openFile, bool) {
	i, ok := o.at[name]
	if !ok {
		return openFile{}, false
	}
	return o.list[i], true
}

// often lists the files that are read at each reading of a group. The others are read so seldom that their descriptors
// would only take the place of these.
func often(name string) bool {
	base := path.Base(name)
	return base == "cpu.stat" || base == "cpuacct.usage"
}

// refilled says whether a refill writes the file.
func refilled(name string) bool {
	base := path.Base(name)
	return base == "cpu.max.burst" || base == "cpu.cfs_burst_us"
}

// wants says whether a file is kept open as long as the list is not full. A quota's file is closed after each write:
// Notify counts a write when the file is closed, and one that is counted at a later refill would look like a write
// that this refill undid.
func (o *openFiles) wants(f openFile) bool {
	if !o.chosen {
		return o.limit > 0 && !f.writes
	}
	return o.limit > 0 && (f.writes && refilled(f.name) || often(f.name)) && o.keep[path.Dir(f.name)]
}

// add keeps a file open. Where the list is full, a random file is closed. The files are read in a cycle, so the oldest
// file would be the one that is read next. A file that is only read never replaces one that is written.
func (o *openFiles) add(f openFile) bool {
	if !o.wants(f) {
		return false
	}
	if old, taken := o.find(f.name); taken {
		if old.writes || !f.writes {
			return false
		}
		o.close(f.name)
	}
	if len(o.list) >= o.limit && !o.makeRoom(f.writes) {
		return false
	}
	o.at[f.name] = len(o.list)
	o.list = append(o.list, f)
	dir := path.Dir(f.name)
	o.in[dir] = append(o.in[dir], f.name)
	return true
}

// draws is how many victims are drawn until one is found that is only read.
const draws = 8

func (o *openFiles) makeRoom(atAnyCost bool) bool {
	victim := 0
	for range draws {
		victim = o.rnd.IntN(len(o.list))
		if !o.list[victim].writes {
			break
		}
	}
	if o.list[victim].writes && !atAnyCost {
		return false
	}
	o.closeAt(victim)
	return true
}

// closeIn closes some files of a directory.
func (o *openFiles) closeIn(dir string, which func(openFile) bool) {
	for _, name := range slices.Clone(o.in[dir]) {
		if f, ok := o.find(name); ok && which(f) {
			o.close(name)
		}
	}
}

func (o *openFiles) keepOnly(most int) {
	o.chosen, o.limit = true, min(most, o.bound)
	for i := len(o.list) - 1; i >= 0; i-- {
		if !o.wants(o.list[i]) {
			o.closeAt(i)
		}
	}
	for len(o.list) > max(0, o.limit) {
		o.makeRoom(true)
	}
}

func (o *openFiles) closeRead(dir string) {
	o.most = max(o.most, len(o.keep))
	delete(o.keep, dir)
	o.closeIn(dir, func(f openFile) bool { return !f.writes })
	if len(o.keep) < o.most/4 {
		o.shrink()
	}
}

// shrink gives back the room that the maps had for many entries, which they keep when the entries are gone: an agent
// that starts reads all groups often, and most of them no more once it knows them.
func (o *openFiles) shrink() {
	o.most = len(o.keep)
	o.keep, o.at, o.in = copied(o.keep), copied(o.at), copied(o.in)
}

func copied[V any](m map[string]V) map[string]V {
	n := make(map[string]V, len(m))
	maps.Copy(n, m)
	return n
}

// forget closes the files of a directory, and keeps none open of it from now on. It does not look for directories below
// it: a thousand groups that are gone are forgotten one by one, and none is to take as long as all of them.
func (o *openFiles) forget(dir string) {
	delete(o.keep, dir)
	o.closeIn(dir, func(openFile) bool { return true })
}

func (o *openFiles) forgetAll() {
	clear(o.keep)
	for len(o.list) > 0 {
		o.closeAt(len(o.list) - 1)
	}
}

func (o *openFiles) close(name string) {
	if i, ok := o.at[name]; ok {
		o.closeAt(i)
	}
}

func (o *openFiles) closeAt(i int) {
	name := o.list[i].name
	unix.Close(o.list[i].fd)
	delete(o.at, name)
	dir := path.Dir(name)
	if o.in[dir] = slices.DeleteFunc(o.in[dir], func(other string) bool { return other == name }); len(o.in[dir]) == 0 {
		delete(o.in, dir)
	}
	last := len(o.list) - 1
	if i != last {
		o.list[i] = o.list[last]
		o.at[o.list[i].name] = i
	}
	o.list = o.list[:last]
}
