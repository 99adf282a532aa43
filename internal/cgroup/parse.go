package cgroup

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"plimsoll/internal/cpu"
)

var errNewline = errors.New("no newline at the end: a torn read")

// line strips the newline that every kernel file of one value ends with.
func line(data []byte) (string, error) {
	text, ok := bytes.CutSuffix(data, []byte("\n"))
	if !ok {
		return "", errNewline
	}
	return string(text), nil
}

func parseInt(data []byte) (int64, error) {
	text, err := line(data)
	if err != nil {
		return 0, err
	}
	return decimal(text)
}

func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	return n, nil
}

// micros is a time of the kernel's microsecond files; negative is unlimited.
func micros(n int64) (time.Duration, error) {
	if n < 0 {
		return cpu.Unlimited, nil
	}
	if n > math.MaxInt64/int64(time.Microsecond)-1 {
		return 0, fmt.Errorf("%d us is out of range", n)
	}
	return time.Duration(n) * time.Microsecond, nil
}

// parseMax reads cpu.max: "max 100000" or "50000 100000".
func parseMax(data []byte) (cpu.Bandwidth, error) {
	text, err := line(data)
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	first, second, ok := strings.Cut(text, " ")
	if !ok {
		return cpu.Bandwidth{}, fmt.Errorf("%q is not \"QUOTA PERIOD\"", text)
	}
	b := cpu.Bandwidth{Quota: cpu.Unlimited}
	if first != "max" {
		if b.Quota, err = parseMicros(first); err != nil {
			return cpu.Bandwidth{}, err
		}
	}
	b.Period, err = parseMicros(second)
	if err != nil {
		return cpu.Bandwidth{}, err
	}
	return b, nil
}

func parseMicros(text string) (time.Duration, error) {
	n, err := decimal(text)
	if err != nil {
		return 0, err
	}
	if n < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return micros(n)
}

// parseStat reads cpu.stat of either version. v1 has throttled_time and burst_time in nanoseconds, v2 has
// throttled_usec, burst_usec and usage_usec. Keys that are not known are skipped: kernels add some.
func parseStat(data []byte) (cpu.Counters, error) {
	var c cpu.Counters
	err := eachKey(data, func(key string, n int64) {
		switch key {
		case "usage_usec":
			c.Usage, c.HasUsage = time.Duration(n)*time.Microsecond, true
		case "nr_periods":
			c.Periods = n
		case "nr_throttled":
			c.Throttled = n
		case "throttled_usec":
			c.ThrottledTime = time.Duration(n) * time.Microsecond
		case "throttled_time":
			c.ThrottledTime = time.Duration(n)
		case "nr_bursts":
			c.Bursts, c.HasBursts = n, true
		case "burst_usec":
			c.BurstTime = time.Duration(n) * time.Microsecond
		case "burst_time":
			c.BurstTime = time.Duration(n)
		}
	})
	return c, err
}

// eachKey walks a flat keyed file ("KEY NUMBER\n" a line).
func eachKey(data []byte, visit func(key string, n int64)) error {
	for len(data) > 0 {
		text, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return errNewline
		}
		key, value, ok := strings.Cut(string(text), " ")
		if !ok {
			return fmt.Errorf("line %q is not \"KEY NUMBER\"", text)
		}
		n, err := decimal(value)
		if err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		if n < 0 {
			return fmt.Errorf("%s: %d is negative", key, n)
		}
		visit(key, n)
		data = rest
	}
	return nil
}

func parseKey(data []byte, want string) (int64, error) {
	found, value := false, int64(0)
	err := eachKey(data, func(key string, n int64) {
		if key == want {
			found, value = true, n
		}
	})
	if err == nil && !found {
		err = fmt.Errorf("no key %q", want)
	}
	return value, err
}

func parsePIDs(data []byte) ([]int, error) {
	var pids []int
	for len(data) > 0 {
		text, rest, ok := bytes.Cut(data, []byte("\n"))
		if !ok {
			return nil, errNewline
		}
		n, err := decimal(string(text))
		if err != nil {
			return nil, err
		}
		pids = append(pids, int(n))
		data = rest
	}
	return pids, nil
}

func formatInt(n int64) string { return strconv.FormatInt(n, 10) }

func formatMicros(d time.Duration) string { return formatInt(int64(d / time.Microsecond)) }

func formatQuotaV1(quota time.Duration) string {
	if quota == cpu.Unlimited {
		return "-1"
	}
	return formatMicros(quota)
}

func formatMax(quota, period time.Duration) string {
	if quota == cpu.Unlimited {
		return "max " + formatMicros(period)
	}
	return formatMicros(quota) + " " + formatMicros(period)
}
