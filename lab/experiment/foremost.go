package experiment

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// lowestRealTime comes before all ordinary tasks, and after whatever else is real-time on the machine.
const lowestRealTime = 1

// Foremost makes this process come before all ordinary ones, with every thread that it has by now: a load generator
// stands for other machines, whose CPUs the experiment does not take. What the threads start is ordinary again.
func Foremost() error {
	ids, err := threads(self)
	if err != nil {
		return err
	}
	for _, id := range ids {
		attr := unix.SchedAttr{Policy: unix.SCHED_FIFO, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: lowestRealTime}
		if err := unix.SchedSetAttr(id, &attr, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("make process %d a real-time one: %w", os.Getpid(), err)
		}
	}
	return nil
}
