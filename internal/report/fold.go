package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// fold is a container with the pod's own group, if the pod has one.
type fold struct {
	Container
	pod *Container
}

// folded gives each container one row. A pod has a row of its own where it alone has a limit: a limit on the pod and
// none on any of its containers, or no container that is known.
func folded(containers []Container) []fold {
	pods, limited := map[string]*Container{}, map[string]bool{}
	for i, c := range containers {
		switch {
		case c.Level == "pod":
			pods[c.Name] = &containers[i]
		case c.Pod != "" && c.Limited():
			limited[c.Pod] = true
		}
	}
	var list []fold
	for _, c := range containers {
		switch {
		case c.Level != "pod":
			pod := pods[c.Pod]
			if !limited[c.Pod] {
				pod = nil // it has a row
			}
			list = append(list, fold{c, pod})
		case !limited[c.Name]:
			list = append(list, fold{c, nil})
		}
	}
	return list
}

// Order is how containers are sorted for a person.
type Order string

// The orders.
const (
	ByLost      Order = "lost" // wall time throttled, the most first
	ByUse       Order = "use"  // mean CPUs
	ByThrottled Order = "throttled"
	ByName      Order = "name"
)

// Orders lists them.
func Orders() []Order { return []Order{ByName, ByLost, ByUse, ByThrottled} }

// ParseOrder reads the name of an order.
func ParseOrder(text string) (Order, error) {
	if slices.Contains(Orders(), Order(text)) {
		return Order(text), nil
	}
	return "", fmt.Errorf("%q is not one of name, lost, use, throttled", text)
}

// Sorted is the snapshot with its containers in this order. Those that are equal are sorted by name.
func (s Status) Sorted(by Order) Status {
	weight := func(c Container) float64 {
		switch by {
		case ByLost:
			return float64(c.Totals.ThrottledWall)
		case ByUse:
			return ratio(c.Totals.Usage, s.Now.Sub(c.Since))
		case ByThrottled:
			return float64(c.Totals.Throttled) / float64(max(1, c.Totals.Periods))
		}
		return 0
	}
	s.Containers = slices.Clone(s.Containers)
	slices.SortStableFunc(s.Containers, func(a, b Container) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), strings.Compare(a.Name, b.Name),
			strings.Compare(a.Cgroup, b.Cgroup))
	})
	return s
}

// Named is the snapshot with the containers only that a person means: by a part of the container's name, of its pod's
// or of its path. It is an UnknownError where there is none.
func (s Status) Named(arg string) (Status, error) {
	all := s.Containers
	s.Containers = nil
	pods := map[string]bool{}
	for _, c := range all {
		if c.Level != "pod" && c.has(arg) {
			pods[c.Pod] = true
		}
	}
	for _, c := range all {
		if c.has(arg) || c.Level == "pod" && pods[c.Name] {
			s.Containers = append(s.Containers, c)
		}
	}
	if len(s.Containers) == 0 {
		return s, &UnknownError{Arg: arg, Candidates: candidates(all, arg)}
	}
	return s, nil
}

func (c Container) has(part string) bool {
	part = strings.ToLower(part)
	return strings.Contains(strings.ToLower(c.Name), part) || strings.Contains(strings.ToLower(c.Pod), part) ||
		strings.Contains(strings.ToLower(c.Cgroup), part)
}

// byPath is a copy in the order of the paths, so that a pod precedes its containers.
func byPath(containers []Container) []Container {
	sorted := slices.Clone(containers)
	slices.SortStableFunc(sorted, func(a, b Container) int { return strings.Compare(a.Cgroup, b.Cgroup) })
	return sorted
}
