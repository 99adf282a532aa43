package report

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Plus adds what another enforcer of limits counted for the same group. The usage is not summed: each enforcer sees
// all of it.
func (t Throttles) Plus(o Throttles) Throttles {
	t.Begun += o.Begun
	t.Ended += o.Ended
	t.Unreported += o.Unreported
	t.Wall += o.Wall
	t.Foreseen += o.Foreseen
	t.Last = cmp.Or(o.Last, t.Last)
	t.Peak = max(t.Peak, o.Peak)
	t.Second = max(t.Second, o.Second)
	sum := map[time.Duration]int64{}
	for _, l := range slices.Concat(t.Lengths, o.Lengths) {
		sum[l.UpTo] += l.N
	}
	t.Lengths = make([]Length, 0, len(sum))
	for _, upTo := range slices.Sorted(maps.Keys(sum)) {
		t.Lengths = append(t.Lengths, Length{upTo, sum[upTo]})
	}
	return t
}
