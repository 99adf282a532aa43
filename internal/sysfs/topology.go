package sysfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"plimsoll/internal/cpu"
)

// Topology reads where the online CPUs are. A missing file (no NUMA, no caches shown to a guest)
// leaves its level out: then everything is in one node, or each socket has one cache.
func (h *Host) Topology() (cpu.Topology, error) {
	online, err := h.Online()
	if err != nil {
		return cpu.Topology{}, err
	}
	var t cpu.Topology
	nodes, err := h.nodes(&t)
	if err != nil {
		return t, err
	}
	fastest := 0.0
	for _, c := range online {
		p, err := h.place(c)
		if err != nil {
			return t, err
		}
		p.Node = nodes[c]
		fastest = max(fastest, p.Capacity)
		t.Places = append(t.Places, p)
	}
	for i := range t.Places {
		t.Places[i].Capacity /= fastest
	}
	return t, nil
}

// Isolated are the CPUs that boot parameters keep out of the load balancing (isolcpus=);
// none where the file is missing.
func (h *Host) Isolated() cpu.Set {
	set, err := h.list("sys/devices/system/cpu/isolated")
	if err != nil {
		return nil
	}
	return set
}

// place reads the files of one CPU. Cores and caches are named by their first CPU: core_id is unique only in a socket.
func (h *Host) place(c int) (cpu.Place, error) {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", c)
	p := cpu.Place{CPU: c, Core: c, Capacity: 1}
	socket, err := h.number(dir+"topology/physical_package_id", 0)
	if err != nil {
		return p, err
	}
	p.Socket = int(socket)
	threads, err := h.list(dir + "topology/core_cpus_list")
	if len(threads) == 0 && err == nil { // below 5.2
		threads, err = h.list(dir + "topology/thread_siblings_list")
	}
	if err != nil {
		return p, err
	}
	if len(threads) > 0 {
		p.Core = threads[0]
	}
	if p.Cache, err = h.lastCache(dir, -1-p.Socket); err != nil {
		return p, err
	}
	capacity, err := h.number(dir+"cpu_capacity", 1024)
	p.Capacity = float64(max(1, capacity))
	return p, err
}

// lastCache is the first CPU of those that share the cache of the highest level, 3 or more.
func (h *Host) lastCache(dir string, none int) (int, error) {
	found, highest := none, int64(2)
	for i := 0; ; i++ {
		index := fmt.Sprintf("%scache/index%d/", dir, i)
		level, err := h.number(index+"level", -1)
		if err != nil || level < 0 {
			return found, err
		}
		if level <= highest {
			continue
		}
		shared, err := h.list(index + "shared_cpu_list")
		if err != nil {
			return found, err
		}
		if len(shared) > 0 {
			found, highest = shared[0], level
		}
	}
}

// nodes reads which NUMA node each CPU is in, and the distances.
func (h *Host) nodes(t *cpu.Topology) (map[int]int, error) {
	const dir = "sys/devices/system/node"
	entries, err := os.ReadDir(filepath.Join(h.root, dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	of := map[int]int{}
	for _, e := range entries {
		text, isNode := strings.CutPrefix(e.Name(), "node")
		n, err := strconv.Atoi(text)
		if !isNode || err != nil {
			continue
		}
		name := filepath.Join(dir, e.Name())
		cpus, err := h.list(name + "/cpulist")
		if err != nil {
			return nil, err
		}
		for _, c := range cpus {
			of[c] = n
		}
		if err := h.distance(t, n, name+"/distance"); err != nil {
			return nil, err
		}
	}
	return of, nil
}

func (h *Host) distance(t *cpu.Topology, node int, name string) error {
	text, err := h.optional(name)
	if err != nil || text == "" {
		return err
	}
	var row []int
	for _, field := range strings.Fields(text) {
		d, err := strconv.Atoi(field)
		if err != nil {
			return h.wrap(name, fmt.Errorf("%q is not a distance", field))
		}
		row = append(row, d)
	}
	if t.Distance == nil {
		t.Distance = map[int][]int{}
	}
	t.Distance[node] = row
	return nil
}

// optional reads a file of one line, "" where there is none.
func (h *Host) optional(name string) (string, error) {
	data, err := h.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := firstLine(data)
	return text, h.wrap(name, err)
}

func (h *Host) number(name string, otherwise int64) (int64, error) {
	text, err := h.optional(name)
	if err != nil || text == "" {
		return otherwise, err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, h.wrap(name, err)
}

func (h *Host) list(name string) (cpu.Set, error) {
	text, err := h.optional(name)
	if err != nil {
		return nil, err
	}
	set, err := cpu.ParseSet(text)
	return set, h.wrap(name, err)
}
