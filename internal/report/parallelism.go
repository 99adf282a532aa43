package report

// Parallelism says how many threads the language runtimes of a container run at once, and whether a burst can give more
// CPUs than these threads can use.
type Parallelism struct {
	Limit     float64 `json:"limit_cpus"`     // the declared limit
	Burst     float64 `json:"burst_cpus"`     // the most CPUs that a burst can give in one period
	BurstFrom string  `json:"burst_from"`     // why so many
	Proposed  bool    `json:"burst_proposed"` // nothing lets it burst now: `burst_cpus` is what `auto` would give
	// threads of all its runtimes together, on the CPUs that they may use; `null`: not known
	Threads *int `json:"parallelism"`
	// a tenth of `burst_cpus` or more finds no thread, and most of the CPU time is not used by `other_processes`
	Unusable bool             `json:"burst_unusable"`
	Runtimes []RuntimeProcess `json:"runtimes"`        // the one that used most CPU time first
	Others   int              `json:"other_processes"` // processes of no known runtime
	// processes that were not looked at: there were too many, or it took too long
	Unread  int    `json:"unread_processes"`
	Verdict string `json:"verdict"` // in words; empty where there is nothing to say
	Next    string `json:"next"`    // what to do, in words
}

// RuntimeProcess is one process of a runtime.
type RuntimeProcess struct {
	PID         int    `json:"pid"`               // of the process
	Name        string `json:"name"`              // of the process
	Runtime     string `json:"runtime"`           // `go`, `jvm` or `node`
	Version     string `json:"version,omitempty"` // of the runtime
	Threads     int    `json:"threads,omitempty"` // threads of the kernel, all that the process has; absent: not known
	Parallelism *int   `json:"parallelism"`       // threads that run code at once; `null`: not known
	From        string `json:"parallelism_from"`  // where the number comes from, or why it is not known
	// false: pools are sized by the number, and other threads run beside them
	Strict bool   `json:"parallelism_strict"`
	Set    string `json:"set,omitempty"` // what makes the burst usable
}
