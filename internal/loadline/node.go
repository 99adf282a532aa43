package loadline

import (
	"errors"
	"fmt"
	"math"
)

// Container is one group of the node. All its figures are CPU time in a period, in one unit of the caller's choice:
// with the node's capacity in CPUs, a quota of 0.5 is half a CPU.
type Container struct {
	Quota  float64 // math.Inf(1): no limit
	Burst  float64 // runtime that may be saved; math.Inf(1): without bound
	Demand Law
	// Clock, if it is not 0, names the clock that the recording was taken on: containers with the same clock are
	// replayed from the same moment, and keep what their demands have to do with each other.
	Clock int
}

// Node is a machine and what runs on it.
type Node struct {
	Capacity   float64
	Containers []Container
}

// What is refused, and why. The errors say which value it was.
var (
	ErrInput = errors.New("not a case for the model")
	// ErrUnstable: more is demanded than can ever be done. There is no stationary law then, the backlog only grows.
	ErrUnstable = errors.New("the demand is not below what may be used: the backlog grows for ever, and there is no " +
		"steady state")
)

func refuse(hint, format string, args ...any) error {
	return fmt.Errorf("%s: %w; hint: %s", fmt.Sprintf(format, args...), ErrInput, hint)
}

func unstable(hint, format string, args ...any) error {
	return fmt.Errorf("%s: %w; hint: %s", fmt.Sprintf(format, args...), ErrUnstable, hint)
}

// Homogeneous is the node of the published model: m containers that share a capacity in equal quotas, with a burst in
// quotas.
func Homogeneous(m int, capacity, burst float64, demand Law) (Node, error) {
	if m < 1 {
		return Node{}, refuse("one container or more", "%d containers", m)
	}
	quota := capacity / float64(m)
	list := make([]Container, m)
	for i := range list {
		list[i] = Container{Quota: quota, Burst: burst * quota, Demand: demand}
	}
	n := Node{Capacity: capacity, Containers: list}
	return n, n.Check()
}

// Check refuses what has no meaning.
func (n Node) Check() error {
	if !positive(n.Capacity) {
		return refuse("the CPUs of the node", "capacity %v", n.Capacity)
	}
	if len(n.Containers) == 0 {
		return refuse("one container or more", "0 containers")
	}
	lengths := map[int]int{}
	for i, c := range n.Containers {
		if err := c.check(n.Capacity); err != nil {
			return fmt.Errorf("container %d: %w", i, err)
		}
		if c.Clock == 0 {
			continue
		}
		r, ok := c.Demand.(*Recording)
		if !ok {
			return refuse("only recordings have a clock", "container %d: clock %d with %v", i, c.Clock, c.Demand)
		}
		if known, ok := lengths[c.Clock]; ok && known != r.Len() {
			return refuse("record them together", "container %d: %d samples on a clock with %d", i, r.Len(), known)
		}
		lengths[c.Clock] = r.Len()
	}
	return nil
}

// mostRatio bounds a container's figures against the capacity: beyond it the integers of the simulation could overflow.
const mostRatio = 1 << 12

func (c Container) check(capacity float64) error {
	switch {
	case !(c.Quota > 0):
		return refuse("a quota above 0, or +Inf for no limit", "quota %v", c.Quota)
	case !(c.Burst >= 0):
		return refuse("a burst of 0 or more", "burst %v", c.Burst)
	case c.Demand == nil:
		return refuse("a law or a recording", "no demand")
	case !math.IsInf(c.Quota, 1) && (c.Quota > capacity*mostRatio || c.Quota < capacity/maxContainers):
		return refuse("is the quota in the capacity's unit?", "quota %v on a capacity of %v", c.Quota, capacity)
	case !math.IsInf(c.Burst, 1) && c.Burst > capacity*mostRatio:
		return refuse("use +Inf for a burst without bound", "burst %v on a capacity of %v", c.Burst, capacity)
	case c.Demand.Mean() > capacity*mostRatio:
		return refuse("is the demand in the capacity's unit?", "mean demand %v on a capacity of %v", c.Demand.Mean(),
			capacity)
	}
	if r, ok := c.Demand.(*Recording); ok && r.Max() > capacity*mostRatio {
		return refuse("is the recording in the capacity's unit?", "a sample of %v on a capacity of %v", r.Max(),
			capacity)
	}
	return nil
}

// maxContainers bounds how small a quota may be against the capacity, so that it stays far above the grid of the
// integers.
const maxContainers = 1 << 16

// limited says whether the container has a quota.
func (c Container) limited() bool { return !math.IsInf(c.Quota, 1) }

// use is the mean that the container can use: its demand, bounded by its quota.
func (c Container) use() float64 { return min(c.Demand.Mean(), c.Quota) }

// stable refuses containers and nodes that can never do what is demanded of them.
func (n Node) stable() error {
	total := 0.0
	for i, c := range n.Containers {
		if c.Demand.Mean() >= c.Quota {
			return unstable("raise the limit, or lower the utilization below 1",
				"container %d: mean demand %.6g of a quota of %.6g", i, c.Demand.Mean(), c.Quota)
		}
		total += c.Demand.Mean()
	}
	if total >= n.Capacity {
		return unstable("fewer containers, or more CPUs", "mean demand %.6g of a capacity of %.6g", total, n.Capacity)
	}
	return nil
}

// Committed is the sum of the quotas. While it is within the capacity and nobody bursts, every container can use its
// quota in every period.
func (n Node) Committed() float64 {
	sum := 0.0
	for _, c := range n.Containers {
		sum += c.Quota
	}
	return sum
}

// alike groups the containers that are the same and independent of all others: the index of the first of each kind,
// and how many there are.
func (n Node) alike() (first []int, count []int) {
	seen := map[Container]int{}
	for i, c := range n.Containers {
		if k, ok := seen[c]; ok && c.Clock == 0 {
			count[k]++
			continue
		}
		seen[c] = len(first)
		first, count = append(first, i), append(count, 1)
	}
	return first, count
}

// positive says whether a figure is above 0 and finite.
func positive(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
