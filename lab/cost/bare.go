package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
)

// every is how often the bare loop reads, as the agent does where a limit may be near.
const every = 90 * time.Millisecond

// readAgainAndAgain is the bare loop: it opens the listed files once, and reads each of them from its start every
// 90 ms, until standard input ends.
func readAgainAndAgain(ctx context.Context, list string) error {
	text, err := os.ReadFile(list)
	if err != nil {
		return err
	}
	var fds []int
	for _, name := range strings.Fields(string(text)) {
		fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("open %s: %w", name, err)
		}
		fds = append(fds, fd)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer stop()
		_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it, it has ended
	}()
	tick := time.NewTicker(every)
	defer tick.Stop()
	buf := make([]byte, 4096)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		for _, fd := range fds {
			if _, err := unix.Pread(fd, buf, 0); err != nil {
				return fmt.Errorf("read again: %w", err)
			}
		}
	}
}

// sameFiles lists what the bare loop reads so that it reads the same as often: with so many readings of cpu.stat a
// second at one each 90 ms, the pods', then those of containers in a pod with a busy one, then the others'. Where
// containers are throttled, the CPU time used of these and their pods comes on top.
func sameFiles(tree *cgroup.Tree, root string, units []unit, perSecond float64, throttled bool) []string {
	var list []string
	stats := int(perSecond*every.Seconds() + 0.5)
	near := map[string]bool{}
	for _, u := range units {
		near[u.pod] = near[u.pod] || u.busy
	}
	for _, isNext := range []func(unit) bool{
		func(u unit) bool { return u.pod == "" },
		func(u unit) bool { return u.pod != "" && near[u.pod] },
		func(u unit) bool { return u.pod != "" && !near[u.pod] },
	} {
		for _, u := range units {
			if isNext(u) && len(list) < stats {
				list = append(list, filepath.Join(root, tree.Dir(u.group), "cpu.stat"))
			}
		}
	}
	for _, u := range units {
		if u.busy && throttled && tree.Version() == cgroup.V1 {
			list = append(list, usageFile(tree, root, u.group))
		}
	}
	return list
}

// usageFile is where v1 counts the CPU time used: beside cpu.stat, or in a hierarchy of its own.
func usageFile(tree *cgroup.Tree, root, group string) string {
	together := filepath.Join(root, tree.Dir(group), "cpuacct.usage")
	if _, err := os.Stat(together); err == nil {
		return together
	}
	return filepath.Join(root, path.Join(path.Dir(tree.Dir("/")), "cpuacct"), group, "cpuacct.usage")
}
