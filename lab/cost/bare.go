package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgroup"
	"plimsoll/lab/frame"
)

// every is how often the bare loop reads, as the agent does where a limit may be near.
const every = 90 * time.Millisecond

// readAgainAndAgain is the bare loop: it opens the listed files once, and reads each of them from its start every
// 90 ms, until standard input ends.
func readAgainAndAgain(list string) error {
	var fds []int
	for _, name := range strings.Fields(string(frame.Must(os.ReadFile(list)))) {
		frame.In("open "+name, func() {
			fds = append(fds, frame.Must(unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)))
		})
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // any end of the input ends the process
		os.Exit(0)
	}()
	buf := make([]byte, 4096)
	for range time.Tick(every) {
		for _, fd := range fds {
			if _, err := unix.Pread(fd, buf, 0); err != nil {
				return fmt.Errorf("read again: %w", err)
			}
		}
	}
	return nil
}

// sameFiles lists what the bare loop reads each 90 ms so that it reads so often in a second: cpu.stat and, on v1, the
// CPU time used, of the busy groups first.
func sameFiles(tree *cgroup.Tree, root string, units []unit, perSecond float64) []string {
	var all []string
	for _, busy := range []bool{true, false} {
		for _, u := range units {
			if u.busy != busy {
				continue
			}
			all = append(all, filepath.Join(root, tree.Dir(u.group), "cpu.stat"))
			if tree.Version() == cgroup.V1 {
				dirs := tree.Dirs(u.group)
				all = append(all, filepath.Join(root, dirs[len(dirs)-1], "cpuacct.usage"))
			}
		}
	}
	var list []string
	for range int(perSecond*every.Seconds() + 0.5) {
		list = append(list, all[len(list)%len(all)])
	}
	return list
}
