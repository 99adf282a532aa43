package sysfs

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// cpuFiles are the files of one CPU.
func cpuFiles(c, socket int, threads, cache string, capacity int) map[string]string {
	dir := fmt.Sprintf("sys/devices/system/cpu/cpu%d/", c)
	return map[string]string{
		dir + "topology/physical_package_id":  fmt.Sprintf("%d\n", socket),
		dir + "topology/core_cpus_list":       threads + "\n",
		dir + "cache/index0/level":            "1\n",
		dir + "cache/index0/shared_cpu_list":  threads + "\n",
		dir + "cache/index1/level":            "3\n",
		dir + "cache/index1/shared_cpu_list":  cache + "\n",
		dir + "cpu_capacity":                  fmt.Sprintf("%d\n", capacity),
		dir + "topology/thread_siblings_list": "9\n", // the older name of core_cpus_list
	}
}

func TestTopology(t *testing.T) {
	files := map[string]string{
		"sys/devices/system/cpu/online":          "0-1,4-5\n",
		"sys/devices/system/node/node0/cpulist":  "0,4\n",
		"sys/devices/system/node/node0/distance": "10 21\n",
		"sys/devices/system/node/node1/cpulist":  "1,5\n",
		"sys/devices/system/node/node1/distance": "21 10\n",
		"sys/devices/system/node/possible":       "0-1\n",
	}
	maps.Copy(files, cpuFiles(0, 0, "0,4", "0,4", 512))
	maps.Copy(files, cpuFiles(4, 0, "0,4", "0,4", 512))
	maps.Copy(files, cpuFiles(1, 1, "1,5", "1,5", 1024))
	maps.Copy(files, cpuFiles(5, 1, "1,5", "1,5", 1024))
	want := cpu.Topology{
		Places: []cpu.Place{
			{CPU: 0, Core: 0, Cache: 0, Node: 0, Socket: 0, Capacity: 0.5},
			{CPU: 1, Core: 1, Cache: 1, Node: 1, Socket: 1, Capacity: 1},
			{CPU: 4, Core: 0, Cache: 0, Node: 0, Socket: 0, Capacity: 0.5},
			{CPU: 5, Core: 1, Cache: 1, Node: 1, Socket: 1, Capacity: 1},
		},
		Distance: map[int][]int{0: {10, 21}, 1: {21, 10}},
	}
	got, err := write(t, files).Topology()
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestIsolated(t *testing.T) {
	for text, want := range map[string]string{"2-3,8\n": "2-3,8", "\n": "", "": "", "none\n": ""} {
		files := map[string]string{"sys/devices/system/cpu/isolated": text}
		if text == "" {
			files = map[string]string{"sys/devices/system/cpu/online": "0\n"}
		}
		if got := write(t, files).Isolated().String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestTopologyOfLittle: a guest sees almost no topology.
func TestTopologyOfLittle(t *testing.T) {
	got, err := write(t, map[string]string{
		"sys/devices/system/cpu/online":                             "0-1\n",
		"sys/devices/system/cpu/cpu1/topology/thread_siblings_list": "0-1\n",
	}).Topology()
	want := cpu.Topology{Places: []cpu.Place{{CPU: 0, Cache: -1, Capacity: 1}, {CPU: 1, Cache: -1, Capacity: 1}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
}

func TestTopologyErrors(t *testing.T) {
	for name, text := range map[string]string{
		"sys/devices/system/cpu/cpu0/topology/physical_package_id": "x\n",
		"sys/devices/system/cpu/cpu0/topology/core_cpus_list":      "0-\n",
		"sys/devices/system/cpu/cpu0/cache/index0/level":           "3",
		"sys/devices/system/cpu/cpu0/cpu_capacity":                 "much\n",
		"sys/devices/system/node/node0/cpulist":                    "a\n",
		"sys/devices/system/node/node0/distance":                   "10 far\n",
	} {
		_, err := write(t, map[string]string{"sys/devices/system/cpu/online": "0\n", name: text}).Topology()
		if err == nil {
			t.Errorf("%s %q is taken", name, text)
		}
	}
}

// TestTopologyOfThisMachine: every CPU that is online has a place.
func TestTopologyOfThisMachine(t *testing.T) {
	h := NewHost("/")
	online, err := h.Online()
	if err != nil {
		t.Fatal(err)
	}
	got, err := h.Topology()
	if err != nil || !got.Set().Equal(online) {
		t.Errorf("%v: %+v, online %v", err, got, online)
	}
}
