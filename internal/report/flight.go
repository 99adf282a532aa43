package report

import "fmt"

// Flight is the state of the record, which keeps the periods of all containers on disk.
type Flight struct {
	Dir     string `json:"dir"`             // the folder
	Files   int    `json:"files"`           // how many files
	Bytes   int64  `json:"bytes"`           // their size
	Written int64  `json:"written_periods"` // periods of containers that were written
	Dropped int64  `json:"dropped_periods"` // periods that were not written: the disk was full, failed or was too slow
	Lost    int64  `json:"lost_periods"`    // periods that found no room in the kernel's ring, or whose group was gone
	Damaged int64  `json:"damaged_files"`   // files that could not be read when they were merged
	Fault   string `json:"error,omitempty"` // why nothing is written now
}

// line is "3.1 MiB in 42 files in /var/lib/plimsoll; 12 periods dropped".
func (f Flight) line() string {
	line := fmt.Sprintf("%.1f MiB in %s in %s", float64(f.Bytes)/(1<<20), several(f.Files, "file"), f.Dir)
	if n := f.Dropped + f.Lost; n > 0 {
		line += "; " + several(n, "period") + " dropped"
	}
	if f.Fault != "" {
		line += "; not written: " + f.Fault
	}
	return line
}

func flightMetrics() []metric[Flight] {
	return []metric[Flight]{
		gauge("record_bytes", "Size of the record's files.", nil, func(f Flight) float64 { return float64(f.Bytes) }),
		gauge("record_files", "Number of the record's files.", nil, func(f Flight) float64 { return float64(f.Files) }),
		gauge("record_ok", "1 while the record is written.", nil, func(f Flight) float64 { return bit(f.Fault == "") }),
		counter("record_written_periods_total", "Periods of containers that were written to the record.", nil,
			func(f Flight) float64 { return float64(f.Written) }),
		counter("record_dropped_periods_total",
			"Periods of containers that are not in the record, because the disk was full, failed or was too slow.", nil,
			func(f Flight) float64 { return float64(f.Dropped) }),
		counter("record_lost_periods_total",
			"Periods of containers that found no room in the kernel's ring, or whose group was gone when looked up.",
			nil, func(f Flight) float64 { return float64(f.Lost) }),
	}
}
