package arch

// rule is what one package may do.
type rule struct {
	imports []string // packages of ours, below internal/
	pure    bool     // no I/O, no clock, no chance, no log: see impure
	except  []string // pure, but for these
	free    bool     // may import anything of ours (cmd, lab, tests)
	kube    bool     // may import k8s.io/*
}

// rules is the import table, keyed by the path below the module's root. docs/ARCHITECTURE.md says what each package is.
func rules() map[string]rule {
	values := []string{"cpu", "workload", "strategy", "plan"}
	and := func(list []string, more ...string) []string { return append(append([]string{}, list...), more...) }
	return map[string]rule{
		// values: no I/O
		"internal/cpu":      {pure: true},
		"internal/workload": {pure: true, imports: values},
		"internal/strategy": {pure: true, imports: values},
		"internal/plan":     {pure: true, imports: values},

		// pure: same input, same output
		"internal/printable":          {pure: true},
		"internal/spelling":           {pure: true},
		"internal/slab":               {pure: true},
		"internal/bandwidth":          {pure: true, imports: values},
		"internal/sample":             {pure: true, imports: values},
		"internal/config":             {pure: true, imports: and(values, "printable", "spelling")},
		"internal/report":             {pure: true, imports: and(values, "printable", "spelling")},
		"internal/loadline":           {pure: true, imports: values},
		"internal/loadline/noderisk":  {pure: true, imports: []string{"loadline"}},
		"internal/loadline/published": {pure: true, imports: []string{"loadline"}},
		"internal/ledger":             {pure: true, imports: values},
		"internal/tenant":             {pure: true, imports: values},
		"internal/suppress":           {pure: true, imports: and(values, "tenant")},
		"internal/policy": {pure: true, imports: and(values, "bandwidth", "receipt", "sample", "slab",
			"tenant")},
		"internal/receipt":     {pure: true},
		"internal/reserve":     {pure: true, imports: values},
		"internal/diagnose":    {pure: true, imports: []string{"report"}},
		"internal/parallelism": {pure: true, imports: and(values, "printable", "report")},
		"internal/recent":      {pure: true},
		"internal/flight":      {pure: true},
		"internal/view": {pure: true, imports: and(values, "bandwidth", "loadline", "printable",
			"recent", "report")},
		"internal/top":    {pure: true, imports: []string{"cpu", "printable", "report", "view"}},
		"internal/why":    {pure: true, imports: []string{"printable", "report", "view"}},
		"internal/doctor": {pure: true, imports: []string{"cgroup", "policy", "printable", "report", "strategy"}},
		"internal/doctor/features": {imports: []string{"cgroup", "doctor", "diagnose/meter", "hint", "kubelet",
			"probe", "probe/runq", "report"}},
		"internal/guide": {pure: true, imports: []string{"printable"}},
		// apart from report: it draws what it is given, and knows nothing of turns
		"internal/figure": {pure: true},

		// the kernel's spelling
		"internal/capability": {},

		"internal/cgroup":  {imports: []string{"cpu"}},
		"internal/sysfs":   {imports: []string{"cpu"}},
		"internal/kubelet": {imports: []string{"config", "cpu"}},
		"internal/probe":   {imports: []string{"capability", "cpu", "probe/programs"}},
		"internal/scx":     {imports: []string{"cpu", "probe"}}, // the records of throttles are the same
		"internal/task":    {imports: []string{"capability"}},

		"internal/parallelism/inspect": {imports: []string{"cgroup", "cpu", "parallelism", "report", "strategy"}},
		"internal/diagnose/meter": {imports: []string{"cgroup", "cpu", "diagnose", "hint", "parallelism/inspect",
			"probe", "probe/programs", "probe/requests", "probe/runq", "report", "strategy", "sysfs", "workload"}},

		"internal/probe/requests": {imports: []string{"probe/programs"}},
		"internal/probe/runq":     {imports: []string{"cpu", "probe/programs"}},
		"internal/probe/programs": {},

		// state
		"internal/journal":          {imports: values},
		"internal/lease":            {},
		"internal/journal/leftover": {imports: and(values, "apply", "cgroup", "journal", "report")},
		"internal/lock":             {},
		"internal/trace":            {imports: values},

		"internal/atomicfile":   {},
		"internal/receipt/disk": {imports: []string{"atomicfile", "policy"}},
		"internal/flight/disk":  {imports: []string{"atomicfile", "flight"}},
		"internal/flight/recorder": {imports: []string{"cpu", "flight", "flight/disk", "plan", "probe", "recent",
			"report", "workload"}},
		"internal/trace/sampler": {imports: []string{"cgroup", "cpu", "diagnose/meter", "hint", "probe", "report",
			"sysfs", "trace"}},

		// load
		"internal/load": {},

		// what the commands say and measure
		"internal/capacity": {imports: []string{"figure", "flight", "flight/disk", "hint", "loadline", "replay",
			"report", "sysfs", "trace"}},
		"internal/hint": {pure: true},

		// what the demo and the labs measure: a real service beside a real agent
		"internal/experiment": {imports: and(values, "cgroup", "figure", "hint", "load", "probe", "report", "sample",
			"sysfs", "web")},

		"internal/host": {imports: []string{"bandwidth", "cgroup", "cpu", "hint", "probe", "report",
			"schedext/loader", "sysfs"}},
		"internal/killswitch": {},
		"internal/slim":       {},

		"internal/logqueue": {},
		"internal/preempt":  {},

		"internal/progress":   {},
		"internal/top/screen": {imports: []string{"top", "view"}},
		"internal/ratelimit":  {},

		// doing
		"internal/apply":                {imports: and(values, "cgroup", "journal")},
		"internal/discover/cgroupfs":    {imports: and(values, "cgroup", "config")},
		"internal/config/follow":        {},
		"internal/discover/kube/fanout": {imports: []string{"discover/kube", "report"}},
		"internal/discover/index":       {imports: and(values, "cgroup", "config", "hint", "report")},
		"internal/discover/kube": {imports: and(values, "config", "discover/cgroupfs", "hint", "printable",
			"ratelimit"), kube: true},
		"internal/observe":         {imports: and(values, "cgroup", "policy", "sample")},
		"internal/schedext":        {imports: and(values, "policy", "report")},
		"internal/schedext/loader": {imports: []string{"cpu", "hint", "probe", "report", "schedext", "scx", "web"}},
		"internal/colocation": {imports: and(values, "apply", "cgroup", "ledger", "observe", "policy",
			"report", "schedext", "suppress")},
		"internal/exclusive": {imports: and(values, "apply", "cgroup", "ledger", "observe", "report", "reserve")},
		"internal/pauses":    {imports: []string{"atomicfile"}},
		"internal/risk":      {imports: and(values, "loadline/noderisk", "policy", "report")},
		"internal/outcome":   {imports: and(values, "ledger", "observe", "policy", "receipt", "report")},
		"internal/agent": {imports: and(values, "apply", "bandwidth", "cgroup", "colocation", "exclusive", "journal",
			"ledger", "observe", "outcome", "pauses", "policy", "preempt", "report", "reserve", "risk", "schedext",
			"slab")},
		"internal/node": {imports: and(values, "apply", "cgroup", "config", "discover/cgroupfs", "hint",
			"journal", "journal/leftover", "lock", "sysfs", "task", "web")},
		"internal/usage":        {imports: []string{"hint"}},
		"internal/services":     {},
		"internal/cluster":      {imports: and(values, "agent", "config", "discover/kube", "report")},
		"internal/agent/dryrun": {imports: and(values, "agent", "journal")},
		"internal/nri":          {imports: []string{"cpu"}},
		"internal/web":          {imports: and(values, "printable", "recent", "report", "view")},
		"internal/page":         {},
		"internal/kubeauth":     {imports: []string{"web"}, kube: true},

		// simulated: satisfies cgroup.FS without importing it
		"internal/sim": {pure: true, except: []string{"syscall"}, imports: []string{"bandwidth", "cpu", "workload"}},
		"internal/trial": {pure: true, except: []string{"context", "log/slog"},
			imports: and(values, "agent", "apply", "bandwidth", "cgroup", "journal", "pauses", "policy", "report",
				"sim")},

		"internal/replay": {pure: true, imports: and(values, "flight", "sim", "trial")},

		// tests
		"internal/arch":            {},
		"internal/cgrouptest":      {free: true},
		"internal/fulldisk":        {},
		"internal/golden":          {},
		"internal/logbook":         {},
		"internal/probe/probetest": {imports: []string{"probe/programs"}},
		"internal/scx/scxtest":     {},

		"deploy/tools/image":     {}, // a module of its own, with what builds the chart and the image
		"deploy/tools/manifests": {},
		"deploy/tools/sbom":      {},

		"test/browser":              {free: true},
		"test/kube/pause":           {},
		"test/vm/table":             {},
		"test/vm/relocate":          {},
		"test/kube/kubernetes/1.28": {kube: true}, // modules of their own: their versions are not the product's
		"test/kube/kubernetes/1.34": {kube: true},
		"test/kube/kubernetes/1.37": {kube: true},

		// programs
		"cmd/plimsoll": {free: true},
		// small: no more
		"cmd/plimsoll-lease": {imports: and(values, "apply", "cgroup", "journal", "lease", "lock", "sysfs", "task")},
		"lab/apache":         {free: true},
		"lab/colocation":     {free: true},
		"lab/cost":           {free: true},
		"lab/density":        {free: true},
		"lab/model":          {free: true},
		"lab/figures":        {free: true},
		"lab/frame":          {free: true},
		"lab/hostile":        {free: true},
		"lab/job":            {free: true},
		"lab/kubeapi":        {free: true},
		"lab/burst":          {free: true},
		"lab/peers":          {free: true},
		"lab/reaction":       {free: true},
		"lab/page":           {free: true},
		"lab/readers":        {free: true},
		"lab/receipts":       {free: true},
		"lab/replay":         {free: true},
		"lab/requests":       {free: true},
		"lab/reservation":    {free: true},
		"lab/soak":           {free: true},
		"lab/start":          {free: true},
	}
}

// impure lists what the pure packages may not import.
func impure() []string {
	return []string{"os", "os/exec", "os/signal", "net", "net/http", "syscall", "log", "log/slog", "context",
		"golang.org/x/sys/unix", "crypto/rand", "unsafe"}
}

// clock lists what the pure packages may not call: time and chance are arguments.
func clock() map[string][]string {
	dice := []string{"Int", "IntN", "Intn", "Int31", "Int31n", "Int32", "Int32N", "Int63", "Int63n", "Int64", "Int64N",
		"N", "Uint", "Uint32", "Uint32N", "Uint64", "Uint64N", "UintN", "Float32", "Float64", "NormFloat64",
		"ExpFloat64", "Perm", "Shuffle", "Read", "Seed"}
	return map[string][]string{
		"time":         {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"},
		"math/rand":    dice,
		"math/rand/v2": dice,
	}
}

// rooms lists folder names that say nothing of what is inside.
func rooms() []string {
	return []string{"util", "utils", "common", "helper", "helpers", "types", "manager", "pkg", "misc", "base", "shared"}
}
