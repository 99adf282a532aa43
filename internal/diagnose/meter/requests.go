package meter

import (
	"errors"
	"fmt"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/probe"
	"plimsoll/internal/probe/requests"
	"plimsoll/internal/report"
)

// Requests measures how long containers take to answer the requests at their sockets, in windows of time.
type Requests struct {
	programs requestPrograms
	own      *probe.Probe // nil: the clock of throttled time is somebody else's
	of       map[string]*measured
}

// requestPrograms are those of package requests.
type requestPrograms interface {
	Watch(groups []uint64) error
	Start() error
	Read(group uint64) (requests.Counts, error)
	Untraced() int64
	Close() error
}

// measured is a container, and the counts at the beginning of its window.
type measured struct {
	inode uint64
	since time.Time
	begin requests.Counts
	upTo  [longestShown - shortestShown + 1]bound
}

// bound counts the responses up to one of the shown lengths.
type bound struct {
	read  uint32 // at the last reading: the counters of the kernel turn over
	n     int64  // it falls where a response has had one more send since, and is a longer one now
	shown int64  // the most so far: a counter does not fall
}

// OpenRequests loads the programs. Without a clock of throttled time they bring their own.
func OpenRequests(clock requests.Clock) (*Requests, error) {
	q := &Requests{of: map[string]*measured{}}
	var err error
	if clock == nil {
		if q.own, err = probe.Open(probe.Options{}); err != nil {
			return nil, err
		}
		clock = q.own
	}
	programs, err := requests.Open(clock, requests.Options{})
	if err != nil {
		return nil, errors.Join(err, q.Close())
	}
	q.programs = programs
	return q, nil
}

// RequestsOf measures the requests of containers from now on.
func RequestsOf(tree *cgroup.Tree, list []report.Container) (*Requests, error) {
	q, err := OpenRequests(nil)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(q.FollowContainers(tree, list), q.Start()); err != nil {
		return nil, errors.Join(err, q.Close())
	}
	return q, nil
}

// Close removes the programs.
func (q *Requests) Close() error {
	if q == nil {
		return nil
	}
	var err error
	if q.programs != nil {
		err = q.programs.Close()
	}
	if q.own != nil {
		err = errors.Join(err, q.own.Close())
	}
	return err
}

// Start begins to measure, for the containers that are followed and for those that will be.
func (q *Requests) Start() error { return q.programs.Start() }

// Follow says which containers are measured, by cgroup, and the inode of each.
func (q *Requests) Follow(containers map[string]uint64, now time.Time) error {
	ids := make([]uint64, 0, len(containers))
	for _, inode := range containers {
		ids = append(ids, inode)
	}
	if q.own != nil {
		if err := q.own.Watch(ids); err != nil {
			return err
		}
	}
	if err := q.programs.Watch(ids); err != nil {
		return err
	}
	for path, one := range q.of {
		if containers[path] != one.inode {
			delete(q.of, path)
		}
	}
	for path, inode := range containers {
		if q.of[path] == nil {
			q.of[path] = &measured{inode: inode, since: now}
		}
	}
	return nil
}

// FollowContainers follows containers by their cgroup; those that ended just now are left out. None where nothing is
// measured (nil).
func (q *Requests) FollowContainers(tree *cgroup.Tree, list []report.Container) error {
	if q == nil {
		return nil
	}
	groups := map[string]uint64{}
	for _, c := range list {
		if inode, err := tree.Inode(c.Cgroup); err == nil {
			groups[c.Cgroup] = inode
		}
	}
	return q.Follow(groups, time.Now())
}

// Describe adds the window of each container to its diagnosis.
func (q *Requests) Describe(d *report.Diagnosis, now time.Time) error {
	if q == nil {
		return nil
	}
	var err error
	for i := range d.Containers {
		if d.Containers[i].Requests, err = q.Of(d.Containers[i].Cgroup, now); err != nil {
			return err
		}
	}
	if n := q.programs.Untraced(); n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d connections came when too many were traced on the node: their "+
			"requests are in no figure", n))
	}
	return nil
}

// Begin begins the window of each container.
func (q *Requests) Begin(now time.Time) error {
	if q == nil {
		return nil
	}
	for _, one := range q.of {
		c, err := q.programs.Read(one.inode)
		if err != nil {
			return err
		}
		one.begin, one.since = c, now
	}
	return nil
}

// Of is the window of a container up to now; nil where it is not measured.
func (q *Requests) Of(path string, now time.Time) (*report.Requests, error) {
	one := q.of[path]
	if one == nil {
		return nil, nil
	}
	total, err := q.programs.Read(one.inode)
	if err != nil {
		return nil, err
	}
	return &report.Requests{RequestWindow: windowOf(total.Since(&one.begin), now.Sub(one.since)),
		Total: one.totals(total)}, nil
}

func windowOf(c requests.Counts, window time.Duration) report.RequestWindow {
	r := report.RequestWindow{Window: window, Answered: c.Requests, Doubtful: c.Doubtful, Withheld: c.Withheld()}
	if r.Withheld {
		return r
	}
	r.Time = c.Time
	r.Response, r.FirstByte, r.Upload = quantiles(&c.Response), quantiles(&c.FirstByte), quantiles(&c.Upload)
	if r.ThrottledKnown = c.ThrottledKnown(); r.ThrottledKnown {
		r.Throttled, r.Unthrottled = c.Throttled, quantiles(&c.Rest)
	}
	return r
}

func quantiles(l *requests.Lengths) report.Quantiles {
	return report.Quantiles{P50: l.Quantile(0.5), P90: l.Quantile(0.9), P99: l.Quantile(0.99)}
}

// The lengths that are shown: powers of two, of which each is the end of a class.
const (
	shortestShown = 17 // 2^17 ns: 131 us
	longestShown  = 35 // 34 s
)

func (one *measured) totals(c requests.Counts) report.RequestTotals {
	t := report.RequestTotals{Answered: c.Requests, Doubtful: c.Doubtful, Lengths: []report.Length{}}
	var before int64
	for i := range one.upTo {
		d, b := time.Duration(1)<<(shortestShown+i), &one.upTo[i]
		read := uint32(c.Response.UpTo(d))
		b.n += int64(int32(read - b.read))
		b.read, b.shown = read, max(b.shown, b.n)
		t.Lengths = append(t.Lengths, report.Length{UpTo: d, N: b.shown - before})
		before = b.shown
	}
	if c.Withheld() {
		t.Lengths = []report.Length{}
		return t
	}
	t.Time = c.Time
	if t.ThrottledKnown = c.ThrottledKnown(); t.ThrottledKnown {
		t.Throttled = c.Throttled
	}
	return t
}
