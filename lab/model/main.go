// Command model holds the contention model against what was published of it and against itself, and times it beside the
// same model in Python. It prints the tables that docs/MODEL.md quotes.
//
//	go run ./lab/model cells    the published cells, with z-scores (28 million periods each; -periods)
//	go run ./lab/model claims   the figures of docs/MODEL.md
//	go run ./lab/model tables   the tables of the article, regenerated
//	go run ./lab/model speed    Go beside numpy and numba (-python: see bench/setup.sh)
package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"plimsoll/internal/loadline"
	"plimsoll/internal/loadline/published"
	"plimsoll/lab/frame"
)

func main() {
	err := run(os.Args[1:], os.Stdout)
	if errors.Is(err, flag.ErrHelp) {
		os.Exit(2)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "model:", err)
		os.Exit(1)
	}
}

// lab is what the sections share.
type lab struct {
	out     io.Writer
	periods int64
	seed    uint64
	python  func() ([]byte, error) // one run of bench/model.py; nil without Python
	rounds  int
}

func run(args []string, out io.Writer) error {
	l := &lab{out: out}
	flags := flag.NewFlagSet("model", flag.ContinueOnError)
	flags.Int64Var(&l.periods, "periods", 28_000_000, "of each cell and claim")
	flags.Uint64Var(&l.seed, "seed", 1, "of the random numbers")
	flags.IntVar(&l.rounds, "rounds", 3, "of each measurement: the best counts")
	python := flags.String("python", "", "Python with numpy and numba, for speed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *python != "" {
		l.python = func() ([]byte, error) { return exec.Command(*python, "bench/model.py").Output() }
	}
	sections := map[string]func(){"cells": l.cells, "claims": l.claims, "tables": l.tables, "speed": l.speed}
	if flags.NArg() == 0 {
		return errors.New("no section; hint: cells, claims, tables or speed")
	}
	for _, name := range flags.Args() {
		section, ok := sections[name]
		if !ok {
			return fmt.Errorf("%s: no such section; hint: cells, claims, tables or speed", name)
		}
		if err := frame.Try(func() { frame.In(name, section) }); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) print(format string, args ...any) { fmt.Fprintf(l.out, format, args...) }

// exponential is a cell of that demand.
func exponential(m int, u, b float64) published.Cell {
	return published.Cell{Kind: published.Exponential, M: m, Utilization: u, Burst: b}
}

// alike is a node of m containers of the same law.
func alike(m int, burst float64, law loadline.Law) loadline.Node {
	return frame.Must(loadline.Homogeneous(m, 1, burst, law))
}

// simulate is a run with the periods and the seed of the command, unless the options say otherwise.
func (l *lab) simulate(n loadline.Node, o loadline.Options) loadline.Result {
	o.Seed, o.Periods = l.seed, cmp.Or(o.Periods, l.periods)
	return frame.Must(loadline.Simulate(n, o))
}

// of simulates a cell under the strict rule.
func (l *lab) of(c published.Cell) loadline.Result {
	return l.simulate(frame.Must(c.Node()), loadline.Options{})
}

// asPublished simulates a cell under the published rule.
func (l *lab) asPublished(c published.Cell) loadline.Result {
	return l.simulate(frame.Must(c.Node()), loadline.Options{Rule: loadline.Published})
}
