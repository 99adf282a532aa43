// Command figures draws the pictures of docs/figures from the model and from a recording that is kept there. The same
// code draws the same files on every machine: with --check it draws nothing, and fails if one of them is not what it
// would draw.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"plimsoll/internal/figure"
)

// draw draws all pictures by name; dir has the recording.
func draw(dir string) (map[string]*figure.Canvas, error) {
	all := map[string]*figure.Canvas{}
	for name, l := range map[string]law{"exponential": exponential(), "pareto": pareto()} {
		t, err := tableOf(l)
		if err != nil {
			return nil, err
		}
		all[name+"-time"], all[name+"-met"] = t.expectedTime(), t.met()
		if all["risk-"+name], err = riskMap(l); err != nil {
			return nil, err
		}
	}
	var err1, err2 error
	all["throttled"], err1 = throttled()
	all["second-and-period"], err2 = secondAndPeriod(dir)
	return all, errors.Join(err1, err2)
}

func main() {
	check := flag.Bool("check", false, "draw nothing, and fail if a picture is not what would be drawn")
	png := flag.Bool("png", false, "draw PNG instead of SVG")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "figures: name the folder: go run ./lab/figures docs/figures")
		os.Exit(2)
	}
	ending := ".svg"
	if *png {
		ending = ".png"
	}
	if err := run(flag.Arg(0), ending, *check); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(dir, ending string, check bool) error {
	all, err := draw(dir)
	if err != nil {
		return err
	}
	for name, c := range all {
		var b bytes.Buffer
		file := filepath.Join(dir, name+ending)
		if err := c.Write(&b, file); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if !check {
			if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
				return err
			}
			continue
		}
		old, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if !bytes.Equal(old, b.Bytes()) {
			return errors.New(file + " is not what the code draws; hint: make figures, and look at it")
		}
	}
	return nil
}
