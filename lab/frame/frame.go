// Package frame makes a command of an experiment: an experiment declares its settings, its flags and what it measures,
// and the frame does what all of them have in common.
//
// Problem: the experiments of this folder were programs with a main, a life cycle and a text each. Most of that code
// was the same, and a fault in it had to be corrected a dozen times.
//
// Approach: an experiment is a type that embeds Settings. Main reads its flags, finds the agent, makes a Bench (control
// groups, and all that is started in them), has the experiment measure, takes everything away again, draws, prints, and
// turns missed aims into the exit status. A step that fails ends the measurement there and then (Check, Must), as Fatal
// ends a test, so that a measurement reads as the list of its steps; what is pure returns its errors. What the demo
// needs as well is in internal/experiment: modes that take turns, calibration, clean-up, charts, tables and figures.
//
// Known limits: Check ends the goroutine that Measure was called on, and no other one. The experiment of the demo (Run)
// makes its groups and its server itself, for the shipped command runs it too.
package frame

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"plimsoll/internal/experiment"
	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

// Settings are those that every experiment has. They are no part of a result.
type Settings struct {
	Root     string `json:"-"` // where the control groups are mounted
	Plimsoll string `json:"-"` // the agent's binary
	Groups   Groups `json:"-"` // what groups the bench has
	JSON     bool   `json:"-"` // print the result for programs
	SVG      string `json:"-"` // the file of a picture; "": none is drawn
	Strict   bool   `json:"-"` // a missed aim is a failure
}

// Groups says what control groups a bench has.
type Groups int

const (
	Plain    Groups = iota
	Pinnable        // they can be bound to CPUs too
	NoGroups        // the experiment makes its own
)

func (s *Settings) common() *Settings { return s }

// Findings are what was measured: a page for people, and their exported fields for programs.
type Findings interface{ WriteText(page *bytes.Buffer) }

// Experiment is an experiment whose result is R. Beside these methods it may have
//
//	Part() func() error                            this process is a part of an experiment, and does that instead
//	Guest() (vm *VM, script string)                a virtual machine to measure in instead, by this script, or nil
//
// and a result may have
//
//	Chart() *figure.Canvas                     the picture that -svg asks for
//	Aims() []experiment.Figure                 what was measured beside the aims; with -strict a miss fails
type Experiment[R Findings] interface {
	common() *Settings
	// Flags declares the flags of the experiment. The settings hold the defaults.
	Flags(set *flag.FlagSet)
	// Check completes the settings when the flags are read, and reports the first one that makes no sense.
	Check() error
	// Measure measures on a bench, which is cleaned up afterwards, however it ends.
	Measure(ctx context.Context, b *Bench) (R, error)
}

// Main is the command of an experiment.
func Main[R Findings](name string, e Experiment[R]) {
	os.Exit(fail(name, command(name, e, os.Args[1:])))
}

func command[R Findings](name string, e Experiment[R], args []string) (err error) {
	if err := Parse(name, e, args); err != nil {
		return err
	}
	if part, is := e.(interface{ Part() func() error }); is && part.Part() != nil {
		return Try(func() { Check(part.Part()()) }) // it ends by a signal, at once
	}
	s := e.common()
	if s.Plimsoll, err = findBinary(s.Plimsoll); err != nil {
		return err
	}
	ctx, stop := untilAsked()
	defer stop()
	if there, is := e.(interface{ Guest() (*VM, string) }); is {
		if vm, script := there.Guest(); vm != nil {
			return vm.Run(ctx, "./lab/"+name, script, s.Plimsoll)
		}
	}
	r, err := Run(ctx, name, e, say)
	if err != nil {
		return err
	}
	if s.SVG != "" {
		if err := save(s.SVG, r); err != nil {
			return err
		}
	}
	if err := tell(r, s.JSON); err != nil {
		return err
	}
	return verdict(r, s.Strict)
}

// Parse reads the flags of an experiment.
func Parse[R Findings](name string, e Experiment[R], args []string) error {
	s := e.common()
	set := flag.NewFlagSet(name, flag.ExitOnError)
	s.flags(set)
	e.Flags(set)
	if err := set.Parse(args); err != nil {
		return err
	}
	if s.SVG != "" && figure.Known(s.SVG) != nil {
		return fmt.Errorf("-svg %s: %w", s.SVG, figure.Known(s.SVG))
	}
	return e.Check()
}

// verdict says why a result is a failure.
func verdict(r any, strict bool) (err error) {
	if a, is := r.(interface{ Aims() []experiment.Figure }); is && strict {
		for _, f := range a.Aims() {
			if f.Promised() && !f.Met() {
				err = errors.Join(err, fmt.Errorf("aim missed: %s", f.Name))
			}
		}
	}
	return err
}

// WriteAims writes the conclusions, and then each figure beside its aim.
func WriteAims(page *bytes.Buffer, say []string, aims []experiment.Figure) {
	experiment.Lines(page, say)
	page.WriteByte('\n')
	experiment.WriteFigures(page, aims)
}

// Within is an error where the value of a flag is out of its bounds.
func Within[T cmp.Ordered](name string, value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%s %v: must be from %v to %v", name, value, least, most)
	}
	return nil
}

// SecondsVar declares a flag in seconds. The variable holds the default.
func SecondsVar(set *flag.FlagSet, d *time.Duration, name, usage string) {
	set.Var((*seconds)(d), name, usage)
}

// seconds is a duration that is written as a number.
type seconds time.Duration

// String implements flag.Value.
func (s *seconds) String() string { return fmt.Sprint(time.Duration(*s).Seconds()) }

// Set implements flag.Value.
func (s *seconds) Set(text string) error {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return errors.New("not a number of seconds")
	}
	*s = seconds(experiment.Seconds(n))
	return nil
}

// findBinary finds the plimsoll binary: the one that was named, the one that `make build` leaves, or the one that is
// installed.
func findBinary(named string) (string, error) {
	if named != "" {
		if !executable(named) {
			err := fmt.Errorf("%s is not a program", named)
			return "", experiment.WithHint(err, "run `make build` in the project's folder: it leaves bin/plimsoll")
		}
		return filepath.Abs(named)
	}
	if built := filepath.Join("bin", "plimsoll"); executable(built) {
		return filepath.Abs(built)
	}
	installed, err := exec.LookPath("plimsoll")
	if err != nil {
		err = fmt.Errorf("find the plimsoll binary: %w", err)
	}
	return installed, experiment.WithHint(err, "run `make build` in the project's folder, or name it with -plimsoll")
}

func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// flags declares those of every experiment.
func (s *Settings) flags(set *flag.FlagSet) {
	set.StringVar(&s.Root, "cgroup-root", "/sys/fs/cgroup", "where the control groups are mounted")
	set.StringVar(&s.Plimsoll, "plimsoll", "", "the plimsoll binary (default: bin/plimsoll, or the installed one)")
	set.BoolVar(&s.JSON, "json", false, "print the result as JSON")
	set.BoolVar(&s.Strict, "strict", false, "fail where an aim was missed")
}

// untilAsked is a context that ends with a signal to end the process, so that the process can remove what it has made.
// The end of its output's reader does not end it before.
func untilAsked() (context.Context, context.CancelFunc) {
	signal.Ignore(syscall.SIGPIPE)
	return signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
}

// fail prints an error and its hint, as all commands do, and returns the exit status.
func fail(name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
	var h interface{ Hint() string }
	if errors.As(experiment.Advise(err), &h) {
		fmt.Fprintf(os.Stderr, "%s: hint: %s\n", name, h.Hint())
	}
	return 1
}

// tell writes a result to standard output, as JSON or for people.
func tell(f Findings, asJSON bool) error {
	if asJSON {
		return report.WriteJSON(os.Stdout, f)
	}
	var page bytes.Buffer
	f.WriteText(&page)
	_, err := os.Stdout.Write(page.Bytes())
	return err
}

// say tells of progress, on standard error.
func say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// save draws the picture of a result, in the format that the file's name tells.
func save(file string, r any) error {
	drawn, is := r.(interface{ Chart() *figure.Canvas })
	if !is {
		return fmt.Errorf("-svg %s: there is no picture of this result", file)
	}
	var picture bytes.Buffer
	if err := drawn.Chart().Write(&picture, file); err != nil {
		return fmt.Errorf("draw %s: %w", file, err)
	}
	if err := os.WriteFile(file, picture.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the chart: %w", err)
	}
	return nil
}
