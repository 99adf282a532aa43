package experiment

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// FindBinary finds the plimsoll binary: the one that was named, the one that `make build` leaves, or the one that is
// installed.
func FindBinary(named string) (string, error) {
	if named != "" {
		if !executable(named) {
			return "", advised{fmt.Errorf("%s is not a program", named), "run `make build` in the project's folder: it leaves bin/plimsoll"}
		}
		return filepath.Abs(named)
	}
	if built := filepath.Join("bin", "plimsoll"); executable(built) {
		return filepath.Abs(built)
	}
	installed, err := exec.LookPath("plimsoll")
	if err != nil {
		return "", advised{fmt.Errorf("find the plimsoll binary: %w", err), "run `make build` in the project's folder, or name it with -plimsoll"}
	}
	return installed, nil
}

func executable(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

// AgentFlags are those of every lab that starts the agent: where the groups are, and the program.
func AgentFlags(set *flag.FlagSet, cgroupRoot, plimsoll *string) {
	set.StringVar(cgroupRoot, "cgroup-root", "/sys/fs/cgroup", "where the control groups are mounted")
	set.StringVar(plimsoll, "plimsoll", "", "the plimsoll binary (default: bin/plimsoll, or the installed one)")
}

// Fail prints an error and its hint, as all commands do, and returns the exit status.
func Fail(name string, err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintf(os.Stderr, "%s: error: %v\n", name, err)
	var h interface{ Hint() string }
	if errors.As(Advise(err), &h) {
		fmt.Fprintf(os.Stderr, "%s: hint: %s\n", name, h.Hint())
	}
	return 1
}
