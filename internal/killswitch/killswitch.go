// Package killswitch is the file that has the agent write nothing, also while it does not answer.
package killswitch

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// name in the state directory is the kill switch that needs no agent to answer.
const name = "hold"

// In is the kill switch of a state directory.
func In(stateDir string) File { return File(filepath.Join(stateDir, name)) }

// File is a file, so that it works also when the agent does not answer. `hold` writes one line into it,
// the time and the reason; an empty file is enough.
type File string

// Held says whether the agent is to write nothing. It is asked before each refill: os.Stat would allocate.
func (k File) Held() bool {
	var st unix.Stat_t
	return unix.Stat(string(k), &st) == nil
}

// Hold makes the file.
func (k File) Hold(reason string, at time.Time) error {
	f, err := os.OpenFile(string(k), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("hold: %w", err)
	}
	defer f.Close()
	line := strings.Join(strings.Fields(at.Format(time.RFC3339)+" "+reason), " ")
	_, _ = f.WriteString(line + "\n") // on a full disk it holds without a reason
	return nil
}

// Resume removes it.
func (k File) Resume() error {
	if err := os.Remove(string(k)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume: %w", err)
	}
	return nil
}

// mostReason is how much is read of the file.
const mostReason = 4096

// Why reads the line. Of a file that a person has made, by touch or with a line of his own, the time is when it was
// written. A pipe in its place is not waited for.
func (k File) Why() (reason string, since time.Time) {
	info, err := os.Stat(string(k))
	if err != nil {
		return "", time.Time{}
	}
	if info.Mode().IsRegular() {
		reason = firstLine(string(k))
	}
	said, rest, _ := strings.Cut(reason, " ")
	if at, err := time.Parse(time.RFC3339, said); err == nil {
		return rest, at
	}
	return reason, info.ModTime()
}

// firstLine is empty where the file cannot be read.
func firstLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, mostReason))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}
