package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"plimsoll/internal/report"
	"plimsoll/internal/strategy"
)

// row is one way to have the two on the machine. Those with a mechanism bear its name.
type row string

const (
	baseline row = "baseline" // nginx alone
	control  row = "control"  // both, equal shares
)

// allRows are all that there may be, in the order of the table.
func allRows() []row {
	rows := []row{baseline, control}
	for _, m := range strategy.Mechanisms() {
		if m != strategy.MechanismAuto && m != strategy.MechanismNone {
			rows = append(rows, row(m))
		}
	}
	return rows
}

// beside says whether ffmpeg runs.
func (r row) beside() bool { return r != baseline }

// prefers says whether the online task is put first.
func (r row) prefers() bool { return r != baseline && r != control }

// mechanism is what the agent is asked for.
func (r row) mechanism() strategy.Mechanism {
	if r.prefers() {
		return strategy.Mechanism(r)
	}
	return strategy.MechanismNone
}

func parseRows(names []string) ([]row, error) {
	var list []row
	for _, name := range names {
		r := row(strings.TrimSpace(name))
		if !slices.Contains(allRows(), r) {
			return nil, fmt.Errorf("row %q is none of %v", name, allRows())
		}
		if slices.Contains(list, r) {
			return nil, fmt.Errorf("row %q is given twice", name)
		}
		list = append(list, r)
	}
	if !slices.Contains(list, baseline) {
		return nil, fmt.Errorf("row %q is missing: all others are compared with it", baseline)
	}
	return list, nil
}

// present are the rows that this machine has, as the agent says. Whether a scheduler can be loaded it finds out only when
// it is asked to load one: that is left to the kernel to say.
func present(list []report.Mechanism, schedExt bool) []row {
	return slices.DeleteFunc(allRows(), func(r row) bool {
		if r.mechanism() == strategy.MechanismSchedExt {
			return !schedExt
		}
		return r.prefers() && !slices.ContainsFunc(list, func(m report.Mechanism) bool { return m.Name == r.mechanism() && m.Usable })
	})
}

// hasSchedExt says whether the kernel takes schedulers (kernel/sched/ext.c, 6.12 with CONFIG_SCHED_CLASS_EXT).
func hasSchedExt() bool {
	_, err := os.Stat("/sys/kernel/sched_ext")
	return err == nil
}
