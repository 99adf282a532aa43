package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"plimsoll/internal/cgroup"
)

// row is one way to have the two on the machine.
type row string

const (
	baseline row = "baseline" // nginx alone
	control  row = "control"  // both, equal shares
	weight   row = "weight"   // the least weight for ffmpeg
	idle     row = "cpu.idle" // ffmpeg runs when nothing else wants to
)

func allRows() []row { return []row{baseline, control, weight, idle} }

// beside says whether ffmpeg runs.
func (r row) beside() bool { return r != baseline }

// mechanism says whether the online task is put first.
func (r row) mechanism() bool { return r != baseline && r != control }

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

// present are the rows that this machine has.
func present(tree *cgroup.Tree, group string) ([]row, error) {
	rows := []row{baseline, control, weight}
	switch _, err := tree.Idle(group); {
	case err == nil:
		rows = append(rows, idle)
	case !errors.Is(err, fs.ErrNotExist): // below 5.15
		return nil, err
	}
	return rows, nil
}
