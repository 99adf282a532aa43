package requests

import (
	"fmt"
	"math"
	"time"
)

// Counts are the responses of a group since it is watched, or in a time (Since).
type Counts struct {
	Requests  int64         // that were answered and counted
	Doubtful  int64         // on connections with several requests at a time: in nothing else
	Overtaken int64         // sends of which it is not known what they answer: in nothing else
	Time      time.Duration // of all Requests
	Split     int64         // of Requests: the throttled time is known
	Throttled time.Duration // of these

	Response  Lengths // from the arrival of a request's last bytes to the last send of its response
	FirstByte Lengths // to the first send
	Upload    Lengths // from the arrival of a request's first bytes to that of its last
	Rest      Lengths // of Split: responses without throttled time
}

// Lengths counts times by length: below 1,024 ns, and in 16 classes of each power of two from there on.
type Lengths [448]uint32

const (
	least   = 10 // the power of two where the classes begin
	classes = 16
)

// from is where a class begins, and where the last one ends.
func from(class int) time.Duration {
	if class == 0 {
		return 0
	}
	power, part := (class-1)/classes, (class-1)%classes
	return time.Duration((classes + part) << (power + least - 4))
}

// N is how many there are.
func (l *Lengths) N() int64 {
	var n int64
	for _, c := range l {
		n += int64(c)
	}
	return n
}

// UpTo is how many are shorter; exact where that is a power of two from 1,024 ns on.
func (l *Lengths) UpTo(d time.Duration) int64 {
	var n int64
	for class, c := range l {
		if from(class+1) > d {
			break
		}
		n += int64(c)
	}
	return n
}

// Quantile is the length that a part q of all is no longer than: within 3 % of it, a half of a class;
// 0 where there are none.
func (l *Lengths) Quantile(q float64) time.Duration {
	rank := max(1, int64(math.Ceil(q*float64(l.N()))))
	var before int64
	for class, c := range l {
		n := int64(c)
		if n > 0 && before+n >= rank {
			begin, end := from(class), from(class+1)
			return begin + time.Duration(float64(end-begin)*(float64(rank-before)-0.5)/float64(n))
		}
		before += n
	}
	return 0
}

// minus is what was added since an earlier reading. A response of before that had one more send since is counted as a
// longer one now, in place of the shorter one: so a class may have fewer, and one above it has as many too much.
func (l *Lengths) minus(o *Lengths) (d Lengths) {
	moved := int32(0)
	for i := range d {
		n := int32(l[i]-o[i]) - moved // the counters of the kernel turn over as these do
		moved = max(0, -n)
		d[i] = uint32(max(0, n))
	}
	return d
}

// Since is what was added since an earlier reading.
func (c *Counts) Since(o *Counts) Counts {
	return Counts{c.Requests - o.Requests, c.Doubtful - o.Doubtful, c.Overtaken - o.Overtaken, c.Time - o.Time,
		c.Split - o.Split, c.Throttled - o.Throttled, c.Response.minus(&o.Response), c.FirstByte.minus(&o.FirstByte),
		c.Upload.minus(&o.Upload), c.Rest.minus(&o.Rest)}
}

// A group's figures are withheld where more of its requests are doubtful than these: then others, which are counted,
// may have had the response of another request. Up to a hundredth, the 99th percentile is not theirs.
const (
	trusted       = 0.01
	fewestDoubted = 2
)

// Withheld says that the response times cannot be told.
func (c *Counts) Withheld() bool {
	return c.Doubtful > fewestDoubted && float64(c.Doubtful) > trusted*float64(c.Requests+c.Doubtful)
}

// mostly is of which part of the requests the throttled time has to be known.
const mostly = 0.95

// ThrottledKnown says whether the throttled time of nearly all requests is known: that of the others is in no sum.
func (c *Counts) ThrottledKnown() bool { return float64(c.Split) >= mostly*float64(c.Requests) }

// Read reads the counts of a watched group.
func (r *Requests) Read(group uint64) (Counts, error) {
	var a kernelResponses
	if err := r.objects.Watched.Lookup(group, &a); err != nil {
		return Counts{}, fmt.Errorf("requests: read group %d: %w", group, err)
	}
	return Counts{int64(a.Requests), int64(a.Doubtful), int64(a.Overtaken), time.Duration(a.Time), int64(a.Split),
		time.Duration(a.Throttled), a.Response, a.First, a.Upload, a.Rest}, nil
}
