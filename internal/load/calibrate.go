package load

import (
	"fmt"
	"time"
)

// calibrationTries bounds the search; each try that misses gets about ten times nearer.
const calibrationTries = 12

// Calibrate finds the size of a request that costs target of CPU time, within the tolerance, and looks twice: the
// first look at a size may have been lucky. Measure tells the CPU time of a request of a size; it is never wall time,
// which would count what neighbours take.
func Calibrate(target, tolerance time.Duration, size int, measure func(size int) (time.Duration, error)) (int, time.Duration, error) {
	var last time.Duration
	for range calibrationTries {
		cost, err := measure(size)
		if err != nil {
			return 0, 0, fmt.Errorf("calibrate: %w", err)
		}
		if last = cost; off(cost, target) <= tolerance/2 {
			again, err := measure(size)
			if err != nil {
				return 0, 0, fmt.Errorf("calibrate: %w", err)
			}
			if last = (cost + again) / 2; off(again, target) <= tolerance {
				return size, last, nil
			}
		}
		size = scale(size, target, last)
	}
	return 0, 0, fmt.Errorf("calibrate: a request cannot be held at %v +- %v of CPU time, the last one took %v", target, tolerance, last)
}

func off(cost, target time.Duration) time.Duration { return (cost - target).Abs() }

// scale follows the rule of three, at most by a factor of 8 either way: a cost that was not measured right must not
// lead to a request that never ends.
func scale(size int, target, cost time.Duration) int {
	factor := 8.0
	if cost > 0 {
		factor = min(max(float64(target)/float64(cost), 1.0/8), 8)
	}
	return max(1, int(float64(size)*factor))
}
