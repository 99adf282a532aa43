package main

import (
	"bytes"
	"fmt"
	"io"

	"plimsoll/lab/experiment"
)

const threeSchema = "plimsoll.lab.reservation.three/v1"

// threeResult is what the table came to.
type threeResult struct {
	Schema  string      `json:"schema"`
	Kernel  string      `json:"kernel"`
	Cgroup  string      `json:"cgroup"`
	Seconds float64     `json:"seconds"`
	Cases   []threeCase `json:"cases"`
}

// figures hold each row against what is expected.
func (r *threeResult) figures() []experiment.Figure {
	var list []experiment.Figure
	for _, c := range r.Cases {
		list = append(list, experiment.Figure{Name: "target, " + c.name(), Value: c.Got, Measured: true,
			AtLeast: c.Expected - tolerance, AtMost: c.Expected + tolerance})
	}
	return list
}

func (r *threeResult) writeText(w io.Writer) error {
	var page bytes.Buffer
	fmt.Fprintf(&page, "Three CPUs; the target has one thread and reserved 1 CPU, its neighbour three threads and 2 CPUs. %g s a row, kernel %s, cgroup %s.\n",
		r.Seconds, r.Kernel, r.Cgroup)
	fmt.Fprintln(&page, "What the target received, of what it had reserved:")
	if err := experiment.WriteFigures(&page, r.figures()); err != nil {
		return err
	}
	_, err := w.Write(page.Bytes())
	return err
}
