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
	"plimsoll/lab/frame"
)

// draw draws all pictures by name; dir has the recording.
func draw(dir string) map[string]*figure.Canvas {
	all := map[string]*figure.Canvas{"throttled": throttled(), "second-and-period": secondAndPeriod(dir)}
	for name, l := range map[string]law{"exponential": exponential(), "pareto": pareto()} {
		t := tableOf(l)
		all[name+"-time"], all[name+"-met"], all["risk-"+name] = t.expectedTime(), t.met(), riskMap(l)
	}
	return all
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
	if err := frame.Try(func() { run(flag.Arg(0), ending, *check) }); err != nil {
		fmt.Fprintln(os.Stderr, "figures:", err)
		os.Exit(1)
	}
}

func run(dir, ending string, check bool) {
	for name, c := range draw(dir) {
		var b bytes.Buffer
		file := filepath.Join(dir, name+ending)
		frame.In(file, func() { frame.Check(c.Write(&b, file)) })
		if !check {
			frame.Check(os.WriteFile(file, b.Bytes(), 0o644))
		} else if !bytes.Equal(frame.Must(os.ReadFile(file)), b.Bytes()) {
			frame.Check(errors.New(file + " is not what the code draws; hint: make figures, and look at it"))
		}
	}
}
