package main

import (
	"bytes"
	"fmt"

	"plimsoll/lab/experiment"
)

const tableSchema = "plimsoll.lab.reservation.table/v1"

// tableResult is what the table came to.
type tableResult struct {
	Schema  string      `json:"schema"`
	Kernel  string      `json:"kernel"`
	Cgroup  string      `json:"cgroup"`
	CPUs    int         `json:"cpus"`
	Seconds float64     `json:"seconds"`
	Cases   []tableCase `json:"cases"`
}

// Aims compare each row with the expected value.
func (r *tableResult) Aims() []experiment.Figure {
	var list []experiment.Figure
	for _, c := range r.Cases {
		list = append(list, experiment.Figure{Name: "target, " + c.name(), Value: c.Got, Measured: true,
			AtLeast: c.Expected - tolerance, AtMost: c.Expected + tolerance})
	}
	return list
}

// WriteText writes the table for people.
func (r *tableResult) WriteText(page *bytes.Buffer) {
	fmt.Fprintf(page, "%d CPUs; the target has one thread and reserved 1, its neighbour has %d threads, one on each CPU, and reserved %d.\n",
		r.CPUs, r.CPUs, r.CPUs-1)
	fmt.Fprintf(page, "%g s a row, kernel %s, cgroup %s. What the target received, of what it had reserved:\n", r.Seconds, r.Kernel, r.Cgroup)
	experiment.WriteFigures(page, r.Aims())
}
