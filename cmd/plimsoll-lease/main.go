// Command plimsoll-lease puts the limits back when the agent of this machine is dead or hangs. It runs beside the
// agent, as a container of the same pod or by any supervisor, and is small: it knows nothing but the heartbeat, the
// lock and the journal. What it does, and when, is said in package lease.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
)

// version is set by the linker (-X main.version=...).
var version = "dev"

// flags are those of plimsoll run that matter here.
type flags struct {
	cgroupRoot, stateDir, lockDir, logFormat string
	after                                    time.Duration
	version                                  bool
}

func main() {
	f, err := parse(os.Args[1:], os.Stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return
	case err != nil:
		os.Exit(2) // the flags have said why
	case f.version:
		fmt.Println("plimsoll-lease version", version)
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	context.AfterFunc(ctx, stop) // the second signal ends the process
	if err := run(ctx, f, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "plimsoll-lease: error:", err)
		var h interface{ Hint() string }
		if errors.As(err, &h) && h.Hint() != "" {
			fmt.Fprintln(os.Stderr, "plimsoll-lease: hint:", h.Hint())
		}
		os.Exit(1)
	}
}

// leastAfter leaves a working agent time: the heartbeats of an idle one are up to 1.1 s apart.
const leastAfter = 3 * time.Second

func parse(args []string, w io.Writer) (flags, error) {
	var f flags
	set := flag.NewFlagSet("plimsoll-lease", flag.ContinueOnError)
	set.SetOutput(w)
	set.StringVar(&f.cgroupRoot, "cgroup-root", "/sys/fs/cgroup", "where the control groups are mounted")
	set.StringVar(&f.stateDir, "state-dir", "/run/plimsoll", "where the agent has its journal and its heartbeat")
	set.StringVar(&f.lockDir, "lock-dir", lock.LockDir, "where all agents of this machine have their locks")
	set.StringVar(&f.logFormat, "log-format", "text", "format of the log on standard error: text or json")
	set.DurationVar(&f.after, "after", lease.After, "how old the last heartbeat is when the limits are put back")
	set.BoolVar(&f.version, "version", false, "show the version")
	err := set.Parse(args)
	switch {
	case err != nil:
		return f, err
	case set.NArg() > 0:
		err = fmt.Errorf("unknown argument %q", set.Arg(0))
	case f.after < leastAfter:
		err = fmt.Errorf("--after %v is less than %v", f.after, leastAfter)
	case f.logFormat != "text" && f.logFormat != "json":
		err = fmt.Errorf("--log-format %q is neither text nor json", f.logFormat)
	}
	if err != nil {
		fmt.Fprintln(w, "plimsoll-lease: error:", err)
	}
	return f, err
}

// run looks until the context ends, and on until nothing is left that needs it.
func run(ctx context.Context, f flags, logs io.Writer) error {
	if os.Geteuid() != 0 {
		return errors.New("control groups can be written by root only")
	}
	debug.SetGCPercent(20)         // what a restore of thousands of groups needs is thrown away after it,
	debug.SetMemoryLimit(16 << 20) // and by and by where a busy machine lets the collector wait
	dir := cgroup.NewDir(f.cgroupRoot)
	defer dir.Close()
	tree, err := cgroup.Detect(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", f.cgroupRoot, err)
	}
	var handler slog.Handler = slog.NewTextHandler(logs, nil)
	if f.logFormat == "json" {
		handler = slog.NewJSONHandler(logs, nil)
	}
	g := &watcher{
		place:  lock.Place{Dir: f.lockDir, Root: filepath.Join(f.cgroupRoot, tree.Dir("/")), StateDir: f.stateDir},
		tree:   tree.WithSysctls(cgroup.NewDir("/proc/sys/kernel")),
		memory: lease.Memory{After: f.after},
		log:    slog.New(handler),
	}
	g.log.Info("watching", "version", version, "state_dir", f.stateDir, "after", f.after)
	every := time.NewTicker(g.memory.Every())
	defer every.Stop()
	for ctx.Err() == nil {
		g.look()
		select {
		case <-ctx.Done():
		case <-every.C:
		}
	}
	for parting := g.memory.Part(lease.Clock()); !parting.May(g.memory, g.entries()); <-every.C {
		g.look()
	}
	return nil
}
