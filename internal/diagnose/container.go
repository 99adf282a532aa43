package diagnose

import (
	"cmp"
	"math"
	"slices"
	"time"

	"plimsoll/internal/report"
)

// Container is what is known of a container beside its account.
type Container struct {
	Name, Cgroup string
	Reserved     float64 // CPUs; 0: not known
	Limit        float64 // CPUs; +Inf: none
	PodLimit     float64 // the lowest above it
}

// Behind is how long a container waited behind one neighbour, of the waits that ended.
type Behind struct {
	Name, Cgroup                  string
	Kernel                        bool // kernel threads
	Time, Phantom, Forced, Waking time.Duration
}

// Describe puts a container's account into words. The waits behind neighbours are scaled to those of the split.
func Describe(c Container, s Split, behind []Behind) report.Diagnosed {
	d := report.Diagnosed{Name: c.Name, Cgroup: c.Cgroup, Wanted: s.Wanted, Received: s.Received, Beside: s.Beside,
		Limit: finite(c.Limit), PodLimit: finite(c.PodLimit)}
	var all, kernel time.Duration
	for _, b := range behind {
		all += b.Time
		if b.Kernel {
			kernel += b.Time
		}
	}
	scale, kernels := 0.0, 0.0
	if all > 0 {
		scale, kernels = float64(s.Waits.Behind)/float64(all), float64(kernel)/float64(all)
	}
	d.Neighbours = neighbours(behind, scale)
	d.Waits = list(s.Waits, s.Shortfall, kernels)
	slices.SortStableFunc(d.Waits, func(a, b report.Wait) int { return cmp.Compare(b.Time, a.Time) })
	if c.Reserved > 0 && s.Elapsed > 0 {
		reserved, used, short := c.Reserved, s.Received.Seconds()/(c.Reserved*s.Elapsed.Seconds()), s.Shortfall.sum()
		d.Reserved, d.Used, d.Short = &reserved, &used, &short
	}
	d.Verdict, d.Next = judge(d, s.Elapsed)
	return d
}

// Named are the neighbours, kernel threads among them, that a container has waited for, the longest first and at most
// so many. Together they have no more than the time that it waited behind neighbours:
// what a limit took is never laid on one.
func Named(behind []Behind, w report.Waited, most int) []report.Neighbour {
	var all, waited time.Duration
	behind = slices.Clone(behind)
	for i := range behind {
		all += behind[i].Time
		behind[i].Kernel = false // to be named, too
	}
	for _, one := range w.Waits {
		if one.Cause == report.CauseNeighbour {
			waited = one.Time
		}
	}
	if all <= 0 {
		return nil
	}
	list := neighbours(behind, min(1, float64(waited)/float64(all)))
	list = slices.DeleteFunc(list, func(n report.Neighbour) bool { return n.Time <= 0 })
	return list[:min(len(list), most)]
}

// neighbours are ranked, those with one path as one: a group may have been made again.
func neighbours(behind []Behind, scale float64) []report.Neighbour {
	list := []report.Neighbour{}
	of := func(t time.Duration) time.Duration { return time.Duration(float64(t) * scale) }
	for _, b := range behind {
		if b.Kernel || b.Time <= 0 {
			continue
		}
		i := slices.IndexFunc(list, func(n report.Neighbour) bool { return n.Cgroup == b.Cgroup })
		if i < 0 {
			i = len(list)
			list = append(list, report.Neighbour{Name: b.Name, Cgroup: b.Cgroup})
		}
		n := &list[i]
		n.Time += of(b.Time)
		n.Phantom += of(b.Phantom)
		n.Forced += of(b.Forced)
		n.Waking += of(b.Waking)
	}
	slices.SortStableFunc(list, func(a, b report.Neighbour) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), cmp.Compare(a.Name, b.Name))
	})
	return list
}

func finite(v float64) *float64 {
	if math.IsInf(v, 1) {
		return nil
	}
	return &v
}

// Rank puts the largest shortfall first, and where none is known, the longest wait.
func Rank(list []report.Diagnosed) {
	short := func(d report.Diagnosed) time.Duration {
		if d.Short == nil {
			return 0
		}
		return *d.Short
	}
	slices.SortStableFunc(list, func(a, b report.Diagnosed) int {
		return cmp.Or(cmp.Compare(short(b), short(a)), cmp.Compare(b.Wanted-b.Received, a.Wanted-a.Received),
			cmp.Compare(a.Name, b.Name))
	})
}
