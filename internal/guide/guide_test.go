package guide

import (
	"strings"
	"testing"
	"time"
)

func TestNext(t *testing.T) {
	hot := []Throttled{{Name: "/lab/it's hot", Include: "/lab/it's hot", Ratio: 0.41}, {Name: "default/b", Ratio: 0.1}}
	for name, c := range map[string]struct {
		facts Facts
		state string
		first string // command
	}{
		"nothing": {Facts{Root: true}, "No agent runs, and no group has a CPU limit: there is nothing to gain now.",
			"plimsoll demo"},
		"calm": {Facts{Root: true, Limited: 1}, "No agent runs. 1 group has a CPU limit, and none was throttled: " +
			"there is nothing to gain now.", "plimsoll demo"},
		"throttled": {Facts{Root: true, Limited: 3, Throttled: hot},
			"No agent runs. 2 groups were throttled at their limits; the worst is /lab/it's hot, in 41.0 % of " +
				"its periods.",
			`plimsoll plan --policy auto --include '/lab/it'\''s hot'`},
		"nobody": {Facts{Limited: 3, Throttled: hot[1:]}, "No agent runs. 1 group was throttled at its limit; the " +
			"worst is default/b, in 10.0 % of its periods.", "sudo plimsoll plan --policy auto"},
		"no groups": {Facts{Root: true, Groups: "/sys/fs/cgroup is not mounted"},
			"No agent runs, and there is nothing to look after: /sys/fs/cgroup is not mounted.", "plimsoll doctor"},
		"left": {Facts{Root: true, Left: 2, Throttled: hot},
			"No agent runs, and 2 containers are still changed by one that is gone.", "plimsoll restore"},
		"elsewhere": {Facts{Elsewhere: "give --state-dir /x"},
			"An agent runs that does not answer here: give --state-dir /x.", ""},
		"denied": {Facts{Agent: Agent{Denied: true}},
			"An agent runs, and only root and the group of its socket may read it.", "sudo plimsoll status"},
		"runs": {Facts{Agent: Agent{Runs: true, Containers: 3, Changed: 2,
			Worst: Throttled{Name: "a", Lost: 4 * time.Second}}},
			"An agent looks after 3 containers, of which 2 are changed now; a has lost the most, 4s at its limit.",
			"plimsoll top"},
		"problems": {Facts{Agent: Agent{Runs: true, Containers: 1, Problems: 1}},
			"An agent looks after 1 container. It reports 1 problem.", "plimsoll status"},
		"held": {Facts{Agent: Agent{Runs: true, Held: true, Reason: "incident\x1b[2J"}},
			"An agent runs and is held (incident\ufffd[2J): it measures and writes nothing.", "plimsoll resume"},
	} {
		state, steps := Next(c.facts)
		first := ""
		if len(steps) > 0 {
			first = steps[0].Command
		}
		if state != c.state || first != c.first || len(steps) > 3 {
			t.Errorf("%s: %q and %q, want %q and %q", name, state, first, c.state, c.first)
		}
		if text := Text(state, steps); strings.Count(text, "\n") > 8 || !strings.HasPrefix(text, state) {
			t.Errorf("%s: more than a few lines:\n%s", name, text)
		}
	}
}
