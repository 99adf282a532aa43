package flight

import "math/bits"

// Schema is the version of the rows, in the metadata of each file under SchemaKey. Columns are added, never renamed or
// given another meaning, within a version.
const (
	Schema    = "plimsoll.record/v1"
	SchemaKey = "plimsoll.schema"
)

// Minute is one row: what a container did in one minute. docs/RECORD.md documents each column.
type Minute struct {
	Cgroup      string `parquet:"cgroup,dict"`
	ContainerID string `parquet:"container_id,dict"`
	Namespace   string `parquet:"namespace,dict"`
	Pod         string `parquet:"pod,dict"`
	Container   string `parquet:"container,dict"`
	Start       int64  `parquet:"minute,timestamp(millisecond),delta"` // Unix time in ms
	First       int32  `parquet:"first_ms,dict"`                       // place i ends at Start + First + i periods
	PeriodUs    int32  `parquet:"period_us,dict"`
	// of CPU time per period, as its owner declares it; -1: none, or not known
	LimitUs int64 `parquet:"limit_us,dict"`

	// Exact sums of the minute.
	Periods     int32 `parquet:"periods"` // that the kernel has reported: in the others the group slept
	UsedUs      int64 `parquet:"used_us"`
	PeakUs      int64 `parquet:"peak_us"` // the most in one period
	ThrottledUs int64 `parquet:"throttled_us"`
	Throttles   int32 `parquet:"throttles"`
	Refills     int32 `parquet:"refills"`

	Used []float32 `parquet:"used_10us,list" parquet-element:",split"` // of each place, see round
	// up to the last place that was throttled
	ThrottledMs []int32 `parquet:"throttled_ms,list" parquet-element:",split"`
	RefillAt    []int32 `parquet:"refill_at,list" parquet-element:",delta"` // a place for each refill
	QuotaAt     []int32 `parquet:"quota_at,list" parquet-element:",delta"`  // from this place on
	QuotaUs     []int64 `parquet:"quota_us,list" parquet-element:",dict"`   // this quota is in force

	Requests *Requests `parquet:"requests,optional"` // nil: not measured
	Waits    *Waits    `parquet:"waits,optional"`    // nil: not measured
}

// Waits are the waits of a minute that are over (run --waits), in thread time, in us.
type Waits struct {
	Wanted     int64 `parquet:"wanted_us"` // on a CPU, or waiting for one
	Received   int64 `parquet:"received_us"`
	OwnLimit   int64 `parquet:"own_limit_us"`
	PodLimit   int64 `parquet:"pod_limit_us"`
	Neighbour  int64 `parquet:"neighbour_us"`
	Kernel     int64 `parquet:"kernel_threads_us"`
	Interrupts int64 `parquet:"interrupts_us"`
	Hypervisor int64 `parquet:"hypervisor_us"`
	IdleWakeup int64 `parquet:"idle_wakeup_us"`
	OwnThreads int64 `parquet:"own_threads_us"`
	Unnamed    int64 `parquet:"unnamed_us"`
}

// Causes are the columns of what was waited for, by its name in reports (report.Cause).
func (w *Waits) Causes() map[string]*int64 {
	return map[string]*int64{"own_limit": &w.OwnLimit, "pod_limit": &w.PodLimit, "neighbour": &w.Neighbour,
		"kernel_threads": &w.Kernel, "interrupts": &w.Interrupts, "hypervisor": &w.Hypervisor,
		"idle_wakeup": &w.IdleWakeup, "own_threads": &w.OwnThreads, "unnamed": &w.Unnamed}
}

// Requests are those that a container answered in a minute (run --requests), with response times in wall time. -1 is a
// time that cannot be told: nothing was answered, or connections carry several requests at a time.
type Requests struct {
	Answered         int64 `parquet:"answered"`
	Doubtful         int64 `parquet:"doubtful"` // on connections that carry several at a time; in no time
	P50Us            int64 `parquet:"p50_us"`
	P90Us            int64 `parquet:"p90_us"`
	P99Us            int64 `parquet:"p99_us"`
	UnthrottledP99Us int64 `parquet:"unthrottled_p99_us"` // without throttled time; -1 also where that is not known
	ResponseUs       int64 `parquet:"response_us"`        // sum of all
	ThrottledUs      int64 `parquet:"throttled_us"`       // of it; -1 also where it is not known
}

// Batch is what was recorded up to an instant: the rows of one file.
type Batch struct {
	Rows    []Minute
	Covered Spans // in which periods were recorded, whether or not there are rows
	Lost    int64 // periods that found no room in the kernel's ring, or whose group was gone
}

// Periods is how many periods are in a batch.
func (b Batch) Periods() (n int64) {
	for i := range b.Rows {
		n += int64(b.Rows[i].Periods)
	}
	return n
}

// Name is what the container is called in a table: as in `plimsoll status`.
func (m *Minute) Name() string {
	switch {
	case m.Namespace != "":
		return m.Namespace + "/" + m.Pod + "/" + m.Container
	case m.Container != "":
		return m.Container
	}
	return m.Cgroup
}

const (
	usedUnit    = 10 // us, of Used
	significant = 7  // bits of Used: an error of 0.8 % at most
)

// round is a CPU time as Used has it: a whole number of 10 us, of which only the highest bits count.
func round(us int64) float32 {
	n := (us + usedUnit/2) / usedUnit
	if over := bits.Len64(uint64(n)) - significant; over > 0 {
		n = (n + 1<<(over-1)) >> over << over
	}
	return float32(n)
}
