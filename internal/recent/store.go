package recent

import (
	"bytes"
	"math"
	"slices"
	"time"
)

const (
	// Keep is for how long periods are kept.
	Keep = 15 * time.Minute
	// MaxBytes bounds what a Store keeps: 1,000 containers that are never idle fit.
	MaxBytes = 30 << 20

	blockLen = 192         // periods in a block: 19 s of 100 ms each
	atHand   = 32          // latest periods that are kept as they are, at least, until the group rests
	resting  = time.Minute // without a period: then a group rests
	grain    = 64          // us, to which times of a block are rounded
)

// Store keeps the periods of the groups of one node. Its methods are not to be called at the same time.
type Store struct {
	groups map[string]*series
	bytes  int
	most   int
	packer packer
}

// New makes an empty store that keeps so many bytes at most; 0: MaxBytes.
func New(most int) *Store {
	if most == 0 {
		most = MaxBytes
	}
	return &Store{groups: map[string]*series{}, most: most}
}

// series are the periods of one group: blocks, oldest first, and then the latest ones.
type series struct {
	blocks []block
	latest []Period
}

type block struct {
	last int64 // the end of its last period
	data []byte
}

// Sizes in memory, without what the allocator adds.
const (
	periodBytes = 32
	blockBytes  = 32
	groupBytes  = 200
)

// Add appends periods of a group, oldest first. What ended before the latest one of the group is dropped: the clock was
// set back.
func (s *Store) Add(group string, list []Period) {
	g := s.groups[group]
	if g == nil {
		g = &series{}
		s.groups[group] = g
		s.bytes += groupBytes
	}
	for _, p := range list {
		if p.End <= g.end() {
			continue
		}
		if before := cap(g.latest); len(g.latest) == before {
			g.latest = slices.Grow(g.latest, min(max(before, 8), blockLen+atHand-before)) // not more than is needed
			s.bytes += (cap(g.latest) - before) * periodBytes
		}
		if g.latest = append(g.latest, p); len(g.latest) == blockLen+atHand {
			s.pack(g, blockLen)
		}
	}
}

// end is that of the latest period.
func (g *series) end() int64 {
	if n := len(g.latest); n > 0 {
		return g.latest[n-1].End
	}
	if n := len(g.blocks); n > 0 {
		return g.blocks[n-1].last
	}
	return math.MinInt64
}

// pack makes a block of the oldest n of the latest periods.
func (s *Store) pack(g *series, n int) {
	b := block{last: g.latest[n-1].End, data: s.packer.pack(g.latest[:n])}
	g.blocks = append(g.blocks, b)
	s.bytes += len(b.data) + blockBytes
	g.latest = g.latest[:copy(g.latest, g.latest[n:])]
}

// Expire drops what ended Keep before now, and, where the bound is exceeded, the oldest blocks of all groups.
func (s *Store) Expire(now time.Time) {
	oldest := now.Add(-Keep).UnixMilli()
	s.before(oldest)
	s.rest(now.Add(-resting).UnixMilli())
	for from := oldest; s.bytes > s.most && from < now.UnixMilli(); {
		from += time.Minute.Milliseconds()
		s.before(from)
	}
}

// rest packs all periods of the groups that have had none since an instant: the latest ones take up to 7 KB a group.
func (s *Store) rest(since int64) {
	for _, g := range s.groups {
		if n := len(g.latest); n > 0 && g.end() < since {
			s.pack(g, n)
			s.bytes -= cap(g.latest) * periodBytes
			g.latest = nil
		}
	}
}

// before drops blocks that ended before an instant, and groups of which nothing is left.
func (s *Store) before(oldest int64) {
	for name, g := range s.groups {
		n := 0
		for n < len(g.blocks) && g.blocks[n].last < oldest {
			s.bytes -= len(g.blocks[n].data) + blockBytes
			g.blocks[n].data = nil
			n++
		}
		g.blocks = g.blocks[n:]
		if len(g.blocks) == 0 && g.end() < oldest {
			s.bytes -= groupBytes + cap(g.latest)*periodBytes
			delete(s.groups, name)
		}
	}
}

// Periods are those of a group that ended after an instant, oldest first.
func (s *Store) Periods(group string, after time.Time) []Period {
	g := s.groups[group]
	if g == nil {
		return nil
	}
	from, list := after.UnixMilli(), []Period{}
	for _, b := range g.blocks {
		if b.last > from {
			list = unpack(list, b.data)
		}
	}
	list = append(list, g.latest...)
	for len(list) > 0 && list[0].End <= from {
		list = list[1:]
	}
	return list
}

// packer makes blocks, and reuses its memory.
type packer struct {
	rounded []Period
	data    []byte
}

func (k *packer) pack(list []Period) []byte {
	k.rounded = append(k.rounded[:0], list...)
	for i := range k.rounded {
		p := &k.rounded[i]
		p.Used, p.Lost = round(p.Used), round(p.Lost)
	}
	k.data = Append(k.data[:0], k.rounded)
	return bytes.Clone(k.data)
}

func round(us int32) int32 { return us/grain + us%grain/(grain/2) }

// unpack appends the periods of a block, which is ours: it can be read.
func unpack(list []Period, data []byte) []Period {
	at := len(list)
	list, _ = Decode(list, data)
	for i := at; i < len(list); i++ {
		list[i].Used, list[i].Lost = list[i].Used*grain, list[i].Lost*grain
	}
	return list
}
