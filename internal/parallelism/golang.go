package parallelism

import (
	"fmt"
	"go/version"
	"math"
	"strings"
)

// leastByLimit is below what Go never goes for the sake of a limit (adjustCgroupGOMAXPROCS).
const leastByLimit = 2

// allCPUs is where a number comes from that no limit has lowered.
const allCPUs = "the CPUs that it may run on"

// goDegree is GOMAXPROCS.
func (p Process) goDegree() degree {
	if p.Env == nil {
		return unknown(noEnv)
	}
	if n := count(p.Env["GOMAXPROCS"]); n > 0 {
		return degree{threads: n, from: "GOMAXPROCS in its environment", strict: true}
	}
	if p.CPUs == 0 {
		return unknown(noCPUs)
	}
	all := degree{threads: p.CPUs, from: allCPUs, strict: true}
	if p.Go.AutoMaxProcs && !math.IsInf(p.Limit, 1) {
		n := max(1, int(math.Floor(min(p.Limit, math.MaxInt32))))
		return degree{threads: min(n, p.CPUs), strict: true, from: fmt.Sprintf("probably: its limit of %.2f CPUs, "+
			"which go.uber.org/automaxprocs rounds down, and at least 1", p.Limit)}
	}
	if !p.Go.readsLimits() {
		return all
	}
	if !p.Go.Settings && !mentions(p.Env["GODEBUG"], "containermaxprocs") {
		return unknown("it was built without modules: whether it looks at its limit is not known")
	}
	if setting(p.Env["GODEBUG"], p.Go.GODEBUG, "containermaxprocs") == "0" {
		all.from += " (containermaxprocs=0: it does not look at its limit)"
		return all
	}
	n := roundedUp(p.Limit)
	if n == 0 || max(n, leastByLimit) >= p.CPUs {
		return all
	}
	return degree{threads: max(n, leastByLimit), strict: true, from: fmt.Sprintf("its limit of %.2f CPUs, rounded "+
		"up, and at least %d (Go 1.25 and later)", p.Limit, leastByLimit),
		follows: setting(p.Env["GODEBUG"], p.Go.GODEBUG, "updatemaxprocs") != "0"}
}

// readsLimits says whether the toolchain's runtime looks at control groups: Go 1.25 and later. A development version is
// spelled "devel go1.27-abcdef".
func (b Build) readsLimits() bool {
	name, _, _ := strings.Cut(strings.TrimPrefix(b.Version, "devel "), " ")
	if main, _, devel := strings.Cut(name, "-"); devel {
		name = main
	}
	return version.Compare(version.Lang(name), "go1.25") >= 0
}

// setting is the value of a GODEBUG key: the environment's, else the one that the program was built with. The last one
// of a list counts (runtime.parsegodebug).
func setting(env, built, key string) string {
	value := ""
	for _, list := range []string{built, env} {
		for _, one := range strings.Split(list, ",") {
			if k, v, ok := strings.Cut(one, "="); ok && k == key {
				value = v
			}
		}
	}
	return value
}

func mentions(list, key string) bool { return setting(list, "", key) != "" }
