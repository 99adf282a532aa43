package report

// Parallelism says how many threads the language runtimes of a container run at once, and whether a burst can give more
// CPUs than these threads can use.
type Parallelism struct {
	Limit     float64          `json:"limit_cpus"`
	Burst     float64          `json:"burst_cpus"` // the most CPUs that a burst can give in one period
	BurstFrom string           `json:"burst_from"`
	Proposed  bool             `json:"burst_proposed"` // nothing lets it burst now: Burst is what policy auto would give
	Threads   *int             `json:"parallelism"`    // all runtimes together, on the CPUs that they may use; null: not known
	Unusable  bool             `json:"burst_unusable"` // Burst is more than Threads can use
	Runtimes  []RuntimeProcess `json:"runtimes"`       // the one that used most CPU time first
	Others    int              `json:"other_processes"`
	Unread    int              `json:"unread_processes"` // not looked at: there were too many, or it took too long
	Verdict   string           `json:"verdict"`          // "" where there is nothing to say
	Next      string           `json:"next"`
}

// RuntimeProcess is one process of a runtime.
type RuntimeProcess struct {
	PID         int    `json:"pid"`
	Name        string `json:"name"`
	Runtime     string `json:"runtime"`
	Version     string `json:"version,omitempty"`
	Threads     int    `json:"threads,omitempty"`  // of the kernel, all that the process has; 0: not known
	Parallelism *int   `json:"parallelism"`        // null: not known, for the reason in From
	From        string `json:"parallelism_from"`   // where the number comes from
	Strict      bool   `json:"parallelism_strict"` // false: pools are sized by it, and other threads run beside them
	Set         string `json:"set,omitempty"`      // what makes the burst usable
}
