package recent

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
)

// A list is written by columns. What seldom changes is written only where it changes, and what changes always in as few
// bits as its largest number needs:
//
//	count, and unless that is 0:
//	the first end, the first distance between two ends, and each other distance with its place
//	the quotas that are not that of the period before, each with its place; and the bursts, each larger by one
//	the periods with a throttle, a refill or time lost, each with its place: throttles; twice the time, and 1 where
//	refills follow; refills
//	the bits of a use, and the uses
//
// All numbers but the uses are varints (encoding/binary). A place is the distance from the one before it.

// Append encodes periods.
func Append(to []byte, list []Period) []byte {
	to = binary.AppendUvarint(to, uint64(len(list)))
	if len(list) == 0 {
		return to
	}
	distance := int64(0)
	if len(list) > 1 {
		distance = list[1].End - list[0].End
	}
	to = binary.AppendVarint(binary.AppendVarint(to, list[0].End), distance)
	to = appendSparse(to, len(list), func(to []byte, i int) ([]byte, bool) {
		if i == 0 || list[i].End-list[i-1].End == distance {
			return to, false
		}
		return binary.AppendVarint(to, list[i].End-list[i-1].End), true
	})
	to = appendSparse(to, len(list), func(to []byte, i int) ([]byte, bool) {
		if i > 0 && list[i].Quota == list[i-1].Quota {
			return to, false
		}
		return binary.AppendUvarint(to, uint64(list[i].Quota)), true
	})
	to = appendSparse(to, len(list), func(to []byte, i int) ([]byte, bool) {
		if i > 0 && list[i].Burst == list[i-1].Burst {
			return to, false
		}
		return binary.AppendUvarint(to, uint64(int64(list[i].Burst)-UnknownBurst)), true
	})
	to = appendSparse(to, len(list), func(to []byte, i int) ([]byte, bool) {
		p := &list[i]
		if p.Throttles == 0 && p.Refills == 0 && p.Lost == 0 {
			return to, false
		}
		to = binary.AppendUvarint(to, uint64(p.Throttles))
		if p.Refills == 0 {
			return binary.AppendUvarint(to, uint64(p.Lost)<<1), true
		}
		return binary.AppendUvarint(binary.AppendUvarint(to, uint64(p.Lost)<<1|1), uint64(p.Refills)), true
	})
	return appendUses(to, list)
}

// appendSparse writes those of n entries of which write says so, each after its place, and then the end.
func appendSparse(to []byte, n int, write func(to []byte, i int) ([]byte, bool)) []byte {
	last := -1
	var entry [3 * binary.MaxVarintLen64]byte
	for i := range n {
		if data, ok := write(entry[:0], i); ok {
			to = append(binary.AppendUvarint(to, uint64(i-last)), data...)
			last = i
		}
	}
	return append(to, 0)
}

func appendUses(to []byte, list []Period) []byte {
	var most int32
	for i := range list {
		most = max(most, list[i].Used)
	}
	width := bits.Len32(uint32(most))
	to = append(to, byte(width))
	var held uint64
	n := 0
	for i := range list {
		held |= uint64(list[i].Used) << n
		for n += width; n >= 8; n -= 8 {
			to = append(to, byte(held))
			held >>= 8
		}
	}
	if n > 0 {
		to = append(to, byte(held))
	}
	return to
}

// Decode reads what Append has written, all of it, and appends it to a list.
func Decode(list []Period, data []byte) ([]Period, error) {
	r := reader{data: data}
	n := r.unsigned(maxEncoded)
	if !r.bad && n > 0 && len(r.data) < 5 { // the least that a period takes
		r.bad = true
	}
	at := len(list)
	if !r.bad {
		list = append(list, make([]Period, n)...)
		r.periods(list[at:])
	}
	if r.bad || len(r.data) > 0 {
		return list[:at], fmt.Errorf("%w: %d bytes are left of %d", ErrDamaged, len(r.data), len(data))
	}
	return list, nil
}

// reader reads numbers. bad: one was out of range, or is missing.
type reader struct {
	data []byte
	bad  bool
}

func (r *reader) unsigned(most uint64) uint64 {
	v, n := binary.Uvarint(r.data)
	if n <= 0 || v > most {
		r.bad, n, v = true, max(n, 0), 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) signed() int64 {
	v, n := binary.Varint(r.data)
	if n <= 0 {
		r.bad, n = true, 0
	}
	r.data = r.data[n:]
	return v
}

func (r *reader) periods(list []Period) {
	if len(list) == 0 {
		return
	}
	first, distance := r.signed(), r.signed()
	ends := make([]int64, len(list))
	for i := range ends {
		ends[i] = distance
	}
	ends[0] = first
	r.sparse(len(list), func(i int) { ends[i] = r.signed() })
	for i := range list {
		list[i].Quota, list[i].Burst = missing, missing
	}
	r.sparse(len(list), func(i int) { list[i].Quota = int32(r.unsigned(math.MaxInt32)) })
	r.sparse(len(list), func(i int) { list[i].Burst = int32(int64(r.unsigned(math.MaxInt32+1)) + UnknownBurst) })
	r.sparse(len(list), func(i int) {
		p := &list[i]
		p.Throttles = uint16(r.unsigned(math.MaxUint16))
		lost := r.unsigned(math.MaxUint32)
		if p.Lost = int32(lost >> 1); lost&1 != 0 {
			p.Refills = uint16(r.unsigned(math.MaxUint16))
		}
	})
	for i := range list {
		list[i].End = ends[i]
		if i > 0 {
			list[i].End += list[i-1].End
			if list[i].Quota == missing {
				list[i].Quota = list[i-1].Quota
			}
			if list[i].Burst == missing {
				list[i].Burst = list[i-1].Burst
			}
		}
	}
	r.bad = r.bad || list[0].Quota == missing || list[0].Burst == missing
	r.uses(list)
}

// missing is what is in no list: the value is that of the period before.
const missing = math.MinInt32

// sparse calls read for each entry that there is.
func (r *reader) sparse(n int, read func(i int)) {
	at := -1
	for !r.bad {
		step := r.unsigned(uint64(n))
		if step == 0 {
			return
		}
		if at += int(step); at >= n {
			r.bad = true
			return
		}
		read(at)
	}
}

func (r *reader) uses(list []Period) {
	width := int(r.unsigned(31))
	if size := (len(list)*width + 7) / 8; r.bad || len(r.data) < size {
		r.bad = true
		return
	}
	var held uint64
	n := 0
	for i := range list {
		for ; n < width; n += 8 {
			held |= uint64(r.data[0]) << n
			r.data = r.data[1:]
		}
		list[i].Used = int32(held & (1<<width - 1))
		held >>= width
		n -= width
	}
}
