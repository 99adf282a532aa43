package scx

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"

	"plimsoll/internal/cpu"
)

// siblings gives each CPU the next thread of its core, around. A CPU that has none, or that is not online,
// is not named.
func siblings(sys string) (map[int]int, error) {
	list, err := filepath.Glob(filepath.Join(sys, "devices/system/cpu/cpu*/topology/thread_siblings_list"))
	if err != nil {
		return nil, err
	}
	next := map[int]int{}
	name := regexp.MustCompile(`/cpu(\d+)/topology/`)
	for _, file := range list {
		own, err := strconv.Atoi(name.FindStringSubmatch(file)[1])
		if err != nil {
			return nil, fmt.Errorf("read the threads of a core: %s: %w", file, err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the threads of a core: %w", err)
		}
		set, err := cpu.ParseSet(string(data))
		if err != nil {
			return nil, fmt.Errorf("read the threads of a core: %s: %w", file, err)
		}
		for i, c := range set {
			if c == own && len(set) > 1 {
				next[own] = set[(i+1)%len(set)]
			}
		}
	}
	return next, nil
}
