package cpu

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// maxCPU bounds a CPU number in a list: NR_CPUS is at most 8192 on every architecture.
const maxCPU = 8192

// Set is an ordered set of CPU numbers in the kernel's list format ("0-3,8").
type Set []int

// ParseSet reads the kernel's list format; the empty string is the empty set.
func ParseSet(text string) (Set, error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, nil
	}
	seen := map[int]bool{}
	for _, part := range strings.Split(text, ",") {
		lo, hi, err := parseRange(part)
		if err != nil {
			return nil, fmt.Errorf("cpu list %q: %w", text, err)
		}
		for c := lo; c <= hi; c++ {
			seen[c] = true
		}
	}
	set := make(Set, 0, len(seen))
	for c := range seen {
		set = append(set, c)
	}
	sort.Ints(set)
	return set, nil
}

func parseRange(part string) (lo, hi int, err error) {
	from, to, isRange := strings.Cut(part, "-")
	if lo, err = parseCPU(from); err != nil {
		return 0, 0, err
	}
	if !isRange {
		return lo, lo, nil
	}
	if hi, err = parseCPU(to); err != nil {
		return 0, 0, err
	}
	if hi < lo {
		return 0, 0, fmt.Errorf("range %q runs backwards", part)
	}
	return lo, hi, nil
}

func parseCPU(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= maxCPU {
		return 0, fmt.Errorf("%q is not a CPU number", text)
	}
	return int(n), nil
}

// String is the kernel's list format.
func (s Set) String() string {
	var b strings.Builder
	for i := 0; i < len(s); {
		j := i
		for j+1 < len(s) && s[j+1] == s[j]+1 {
			j++
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(s[i]))
		if j > i {
			b.WriteByte('-')
			b.WriteString(strconv.Itoa(s[j]))
		}
		i = j + 1
	}
	return b.String()
}
