package lease

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// fileName is in the state directory.
const fileName = "heartbeat"

// Clock is CLOCK_MONOTONIC.
func Clock() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // there is no Linux without it
	}
	return time.Duration(now.Nano())
}

// File is a Sink: it writes the heartbeats of a process into the file in a state directory. It does not wait for the
// disk: a heartbeat need not outlive the machine. It opens the file each time, for another one may be there by now.
func File(stateDir string, by Process) Sink {
	return func(at time.Duration) error {
		f, err := os.OpenFile(filepath.Join(stateDir, fileName), os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = f.WriteAt([]byte(Beat{at, by}.String()), 0)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return fmt.Errorf("write a heartbeat: %w", err)
		}
		return nil
	}
}

// Read reads the last heartbeat in a state directory; the zero one if there is none.
func Read(stateDir string) (Beat, error) {
	text, err := os.ReadFile(filepath.Join(stateDir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return Beat{}, nil
	}
	if err != nil {
		return Beat{}, err
	}
	b, ok := parse(string(text))
	if !ok {
		return Beat{}, fmt.Errorf("%s: not a heartbeat: %.40q", filepath.Join(stateDir, fileName), text)
	}
	return b, nil
}

// ErrOther is met when the process that was to be killed is another one by now.
var ErrOther = errors.New("it is another process by now")

// End kills a process and waits until nothing of it is left. still is asked once more whether it is the right one, when
// no other process can take its number any more.
func End(pid int, still func() bool, patience time.Duration) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("open process %d: %w", pid, err)
	}
	defer unix.Close(fd)
	if !still() {
		return fmt.Errorf("process %d: %w", pid, ErrOther)
	}
	if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("kill process %d: %w", pid, err)
	}
	gone := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for end := time.Now().Add(patience); ; {
		n, err := unix.Poll(gone, int(max(0, time.Until(end))/time.Millisecond))
		switch {
		case n > 0:
			return nil
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the end of process %d: %w", pid, err)
		case err == nil:
			return fmt.Errorf("process %d was killed and has not ended after %v", pid, patience)
		}
	}
}
