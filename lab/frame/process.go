package frame

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"plimsoll/internal/experiment"
	"plimsoll/internal/figure"
	"plimsoll/internal/report"
)

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
