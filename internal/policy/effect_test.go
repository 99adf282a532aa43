package policy

import (
	"testing"
	"time"

	"plimsoll/internal/bandwidth"
	"plimsoll/internal/cpu"
	"plimsoll/internal/tenant"
	"plimsoll/internal/workload"
)

// TestJudgeRefill: a refill 60 ms before its period's end, of a group of 50 ms that had used 80 ms of CPU and stayed
// throttled for 10 ms so far.
func TestJudgeRefill(t *testing.T) {
	begun := t0.Add(time.Second)
	throttle := bandwidth.Throttle{At: begun.Add(-ms), Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
		Expires: begun.Add(60 * ms), UseKnown: true, Used: 50 * ms}
	ahead := throttle
	ahead.Ahead, ahead.Used, ahead.Left, ahead.Dry = true, 46*ms, 4*ms, begun.Add(4*ms)
	unknown := throttle
	unknown.UseKnown = false
	vague := ahead
	vague.UseKnown = false
	endless := throttle
	endless.Expires = time.Time{}
	read := func(used, throttled time.Duration) cpu.Counters {
		return cpu.Counters{HasUsage: true, Usage: 80*ms + used, ThrottledTime: 10*ms + throttled}
	}
	for name, c := range map[string]struct {
		of     bandwidth.Throttle
		after  cpu.Counters
		at     time.Duration // from when the write was begun; 0: when it is done
		effect Effect
	}{
		"a throttle has ended":                      {throttle, read(0, ms), 0, Effective},
		"none has ended yet":                        {throttle, read(0, 0), 0, Undecided},
		"ahead, nothing is known at once":           {ahead, read(0, ms), 0, Undecided},
		"it lasts to the end":                       {throttle, read(0, 0), 59 * ms, Ineffective},
		"it ran all the same":                       {throttle, read(20*ms, 0), 59 * ms, Effective},
		"within what is not exact":                  {throttle, read(ms, 0), 59 * ms, Ineffective},
		"it ended by itself":                        {throttle, read(ms/2, 5*ms), 59 * ms, Unneeded},
		"read late, it ended with its period":       {throttle, read(20*ms, 60*ms), 80 * ms, Ineffective},
		"read late, it ended by itself":             {throttle, read(20*ms, 30*ms), 80 * ms, Unneeded},
		"read late, it ran more than after the end": {throttle, read(82*ms, 0), 80 * ms, Effective},
		"nobody knows what it had left":             {unknown, read(20*ms, 0), 59 * ms, Unneeded},
		"nor does that matter while it lasts":       {unknown, read(0, 0), 59 * ms, Ineffective},
		"the kernel does not tell the end":          {endless, read(0, 0), 11 * ms, Ineffective},
		"read late, and nobody knows":               {endless, read(0, 90*ms), 80 * ms, Unneeded},
		"no usage is counted": {throttle, cpu.Counters{ThrottledTime: 10 * ms}, 59 * ms,
			Ineffective},
		"ahead, and used":                      {ahead, read(6*ms, 0), 59 * ms, Effective},
		"ahead, and not used":                  {ahead, read(4*ms, 0), 59 * ms, Unneeded},
		"ahead, and the job ended":             {ahead, read(0, 0), 59 * ms, Unneeded},
		"ahead, read late, not surely used":    {ahead, read(40*ms, 0), 80 * ms, Unneeded},
		"ahead, read late, surely used":        {ahead, read(50*ms, 0), 80 * ms, Effective},
		"ahead, with what it had left by time": {vague, read(8*ms, 0), 59 * ms, Unneeded},
		"and more than that":                   {vague, read(12*ms, 0), 59 * ms, Effective},
	} {
		r := &Refill{At: begun.Add(ms / 10), For: c.of, Before: read(0, 0), CPUs: 2}
		got := r.Later(begun.Add(c.at), c.after)
		if c.at == 0 {
			got = r.AtOnce(c.after)
		}
		if got != c.effect {
			t.Errorf("%s: %q, want %q", name, got, c.effect)
		}
	}
}

// TestThrottledAhead: a throttle that begins after a refill that was to prevent it.
func TestThrottledAhead(t *testing.T) {
	begun := t0.Add(time.Second)
	ahead := bandwidth.Throttle{Ahead: true, At: begun, Bandwidth: cpu.Bandwidth{Quota: 50 * ms, Period: 100 * ms},
		Expires: begun.Add(60 * ms), UseKnown: true, Used: 46 * ms, Left: 4 * ms}
	held := func(ran, left time.Duration) func(refill, throttle *bandwidth.Throttle) { // 28 ms at the refill
		return func(r, th *bandwidth.Throttle) { r.Left, th.Used, th.Left = 28*ms, r.Used+ran, left }
	}
	for name, c := range map[string]struct {
		change func(refill, throttle *bandwidth.Throttle)
		effect Effect
	}{
		"as if there had been none":      {func(_, _ *bandwidth.Throttle) {}, Ineffective},
		"a tick later on each CPU":       {func(_, th *bandwidth.Throttle) { th.Used += 8 * ms }, Ineffective},
		"after what it handed out":       {func(_, th *bandwidth.Throttle) { th.Used += 50 * ms }, Effective},
		"CPUs held much of it before":    {held(50*ms, 0), Unneeded},
		"and hold some of it now":        {held(40*ms, 10*ms), Unneeded},
		"they held much, and no more":    {held(36*ms, 0), Ineffective},
		"it began before the write":      {func(_, th *bandwidth.Throttle) { th.At = begun }, Undecided},
		"in the next period":             {func(_, th *bandwidth.Throttle) { th.At = begun.Add(61 * ms) }, Undecided},
		"it is foreseen again":           {func(_, th *bandwidth.Throttle) { th.Ahead = true }, Undecided},
		"the use is not known":           {func(_, th *bandwidth.Throttle) { th.UseKnown = false }, Undecided},
		"nor was what it had left":       {func(r, _ *bandwidth.Throttle) { r.UseKnown = false }, Undecided},
		"the refill was after one":       {func(r, _ *bandwidth.Throttle) { r.Ahead = false }, Undecided},
		"of a kernel that tells no ends": {func(r, _ *bandwidth.Throttle) { r.Expires = time.Time{} }, Ineffective},
	} {
		of, th := ahead, ahead
		th.Ahead, th.At, th.Used, th.Left = false, begun.Add(4*ms), 50*ms, 0
		c.change(&of, &th)
		r := &Refill{At: begun.Add(ms / 10), For: of, CPUs: 2}
		if got := r.Throttled(th); got != c.effect {
			t.Errorf("%s: %q, want %q", name, got, c.effect)
		}
	}
}

// TestTrust: after three ineffective refills in a row a group is refilled no more for a minute, and then once, and
// after three in a row in different tenants none is.
func TestTrust(t *testing.T) {
	s := NewState(0)
	ids := map[string]workload.ID{}
	for i, path := range []string{"a", "b", "c"} {
		id := workload.ID{Path: path, Inode: uint64(i + 1)}
		ids[path], s.groups[id] = id, &memory{owner: tenant.Owner{Namespace: path}}
	}
	const e, n, u = Effective, Ineffective, Unneeded
	for i, c := range []struct {
		at      time.Duration
		of      string
		effect  Effect
		refills string // by which groups after it
		group   bool   // it is news
		node    bool
	}{
		{0, "a", n, "abc", false, false},
		{0, "a", n, "abc", false, false},
		{0, "a", e, "abc", false, false},
		{0, "a", n, "abc", false, false},
		{0, "a", u, "abc", false, false},
		{0, "a", n, "abc", false, false},
		{0, "a", n, "bc", true, false},
		{time.Second, "a", n, "bc", false, false}, // a late one
		{time.Second, "b", e, "bc", false, false},
		{59 * time.Second, "b", u, "bc", false, false},
		{60 * time.Second, "b", u, "abc", false, false},
		{61 * time.Second, "a", u, "abc", false, false},
		{62 * time.Second, "a", n, "bc", true, false},
		{181 * time.Second, "b", u, "bc", false, false},
		{182 * time.Second, "a", e, "abc", true, false},
		{183 * time.Second, "a", n, "abc", false, false},
		{183 * time.Second, "b", n, "abc", false, false},
		{183 * time.Second, "b", n, "abc", false, false},
		{183 * time.Second, "c", n, "", false, true},
		{242 * time.Second, "b", u, "", false, false},
		{243 * time.Second, "b", u, "abc", false, false},
		{244 * time.Second, "a", n, "", false, true},
		{364 * time.Second, "c", e, "abc", false, true},
	} {
		now := t0.Add(c.at)
		group, node := s.Refilled(now, &Refill{Of: ids[c.of]}, c.effect)
		got := ""
		for _, path := range []string{"a", "b", "c"} {
			if s.Refills(now, ids[path]) {
				got += path
			}
		}
		if got != c.refills || group.News != c.group || node.News != c.node {
			t.Errorf("%d: %s %s: refilled are %q, group %+v, node %+v; want %q, news %v %v", i, c.of, c.effect, got,
				group, node, c.refills, c.group, c.node)
		}
	}
}

// TestTenantAlone: ineffective refills of one tenant, in whatever order of its groups, leave those of the others as
// they are; with a third tenant nothing is refilled.
func TestTenantAlone(t *testing.T) {
	s := NewState(0)
	ids := map[string]workload.ID{}
	for i, name := range []string{"x/a", "x/b", "y/c", "z/d"} {
		id := workload.ID{Path: name, Inode: uint64(i + 1)}
		ids[name], s.groups[id] = id, &memory{owner: tenant.Owner{Pod: name, Namespace: name[:1]}}
	}
	miss := func(names ...string) {
		for _, name := range names {
			s.Refilled(t0, &Refill{Of: ids[name]}, Ineffective)
		}
	}
	miss("x/a", "x/b", "x/a", "x/b", "y/c", "x/a", "y/c")
	if s.Refills(t0, ids["x/a"]) || !s.Refills(t0, ids["y/c"]) || !s.Refills(t0, ids["z/d"]) {
		t.Error("ineffective refills of two tenants have stopped the refills of all")
	}
	if miss("z/d"); s.Refills(t0, ids["z/d"]) {
		t.Error("three tenants are refilled without effect, and the refills go on")
	}
}
