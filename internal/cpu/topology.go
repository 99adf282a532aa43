package cpu

// Topology is where the CPUs of a machine are, and how far its NUMA nodes are from each other.
type Topology struct {
	Places   []Place       // of the online CPUs, by number
	Distance map[int][]int // of a NUMA node to the nodes in the order of their numbers; nil: not known
}

// Place is where one CPU is. Threads with the same Core are of one core, and so on up to the socket. The numbers mean
// nothing but that.
type Place struct {
	CPU, Core, Cache, Node, Socket int
	Capacity                       float64 // of the fastest CPU's, in (0,1]
}

// Set is the set of the CPUs.
func (t Topology) Set() Set {
	set := make(Set, 0, len(t.Places))
	for _, p := range t.Places {
		set = append(set, p.CPU)
	}
	return set
}

// Siblings pairs the hardware threads of each core.
func (t Topology) Siblings() map[int]int {
	of := map[int]int{}
	for _, a := range t.Places {
		for _, b := range t.Places {
			if _, there := of[a.CPU]; !there && a.CPU != b.CPU && a.Core == b.Core {
				of[a.CPU] = b.CPU
			}
		}
	}
	return of
}
