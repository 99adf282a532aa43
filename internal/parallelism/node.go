package parallelism

import (
	"fmt"
	"strconv"
	"strings"
)

// The threads of libuv's pool (src/threadpool.c).
const (
	defaultPool = 4
	largestPool = 1024
)

// nodeDegree is on how many threads JavaScript runs.
func (p Process) nodeDegree() degree {
	if p.Workers < 0 {
		return unknown("its worker threads cannot be counted")
	}
	from := "JavaScript runs on one thread"
	if p.Workers > 0 {
		from = "JavaScript runs on one thread and on those of " + plural(p.Workers, "worker")
	}
	if p.Env != nil {
		from += fmt.Sprintf("; files, DNS, crypto and zlib have a pool of %d", p.pool())
	}
	return degree{threads: 1 + p.Workers, from: from, strict: true}
}

// pool is how many threads libuv's pool has. As atoi does it, what is no number is 0, which counts as 1.
func (p Process) pool() int {
	text, ok := p.Env["UV_THREADPOOL_SIZE"]
	if !ok {
		return defaultPool
	}
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[0] == '-' || text[0] == '+')) {
		end++
	}
	n, err := strconv.Atoi(text[:end])
	switch {
	case n == 0 && err == nil, end == 0, text[:end] == "-", text[:end] == "+":
		return 1
	case err != nil || n < 0 || n > largestPool: // it is unsigned
		return largestPool
	}
	return n
}
