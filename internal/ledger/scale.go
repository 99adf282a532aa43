package ledger

import (
	"time"

	"plimsoll/internal/plan"
)

// rescale follows the kernel, which may multiply period, quota and burst: a file that holds what it held, multiplied,
// still has the same writer, and all that is known of the file is multiplied too. It is divided again once the file's
// owner writes its own period.
func (e *Entry) rescale(s Sight) Event {
	switch {
	case s.Period == e.period*time.Duration(e.scale):
	case s.Period == e.period:
		n := e.scale
		e.scale = 1
		e.convert(func(v plan.Value) plan.Value { return v.Divided(n) })
	default:
		n := plan.Scale(e.period*time.Duration(e.scale), s.Period)
		switch {
		case n > 1 && e.multiplied(s.InFile, n):
		case n > 1 && s.InFile == e.InFile: // v1 has the period in a file of its own: the kernel may scale in between
			return None
		default:
			e.period, e.scale = s.Period, 1
			return None
		}
		e.scale *= n
		before := *e
		e.convert(func(v plan.Value) plan.Value { return v.Times(n) })
		if e.Baseline != before.Baseline || e.InFile != before.InFile {
			return Scaled
		}
	}
	return None
}

// multiplied says whether the file holds n times what it held. A value of ours that the kernel has multiplied before
// the writer could read it back is taken for written.
func (e *Entry) multiplied(held plan.Value, n int64) bool {
	if held == e.InFile.Times(n) {
		return true
	}
	if e.State == Foreign || held != e.Intended.Times(n) {
		return false
	}
	e.State, e.Wrote = Ours, e.Intended
	return true
}

// convert changes each value that is known of the file.
func (e *Entry) convert(to func(plan.Value) plan.Value) {
	for _, v := range []*plan.Value{&e.Baseline, &e.Wrote, &e.InFile, &e.Intended, &e.seen,
		&e.recent[0], &e.recent[1], &e.replaced} {
		*v = to(*v)
	}
}
