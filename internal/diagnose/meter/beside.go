package meter

import "plimsoll/internal/report"

// Beside are the measurements that run beside an agent; nil: it was not asked for.
type Beside struct {
	Waits    *Waits
	Requests *RequestTimes
}

// Report lays what was measured over a status.
func (b Beside) Report(s *report.Status) {
	b.Waits.Report(s)
	b.Requests.Report(s)
}
