package experiment

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Sleeper starts a process in a group that does nothing: cat sleeps in a read until its standard input ends, which it
// does with this process at the latest.
func (g *Groups) Sleeper(group string) (*Child, error) {
	return Launch(exec.Command("cat"), func(pid int) error { return g.Enter(group, pid) })
}

// Spinner starts a process in a group that wants a whole CPU, for so much CPU time at most. With a file it begins when that
// has come to its end.
func (g *Groups) Spinner(group string, most time.Duration, start *os.File) (*Child, error) {
	wait := ""
	if start != nil {
		wait = "read -r go <&3; "
	}
	spin := fmt.Sprintf("read -r go; %sulimit -t %d; while :; do :; done", wait, int(most.Seconds()))
	cmd := exec.Command("/bin/sh", "-c", spin)
	if start != nil {
		cmd.ExtraFiles = []*os.File{start}
	}
	return Launch(cmd, func(pid int) error { return g.Enter(group, pid) })
}

// Memory reads a line of /proc/PID/status, such as "VmRSS:" or "VmHWM:", in bytes.
func (c *Child) Memory(key string) (int64, error) {
	kib, err := c.Count("status", key)
	return kib << 10, err
}

// Count reads the number in a line of a file of /proc/PID, such as "syscr:" of io.
func (c *Child) Count(file, key string) (int64, error) {
	name := fmt.Sprintf("/proc/%d/%s", c.PID(), file)
	data, err := os.ReadFile(name)
	if err != nil {
		return 0, err
	}
	_, after, found := strings.Cut(string(data), key)
	words := strings.Fields(after)
	if !found || len(words) == 0 {
		return 0, fmt.Errorf("%s: no %s", name, key)
	}
	return strconv.ParseInt(words[0], 10, 64)
}

// ForgetPeak has the kernel count the peak of the memory anew (proc(5), clear_refs).
func (c *Child) ForgetPeak() error {
	return os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", c.PID()), []byte("5"), 0)
}

// Program finds a program that `make setup` installs.
func Program(name string) (string, error) {
	found, err := exec.LookPath(name)
	return found, WithHint(err, "run `make setup`, which installs "+name)
}

// Gated is a program that waits for a line on its standard input before it begins.
func Gated(program string, args ...string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", `read -r go && exec "$@"`, "sh", program}, args...)...)
}
