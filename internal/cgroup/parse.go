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

// decimal reads an amount: the kernel prints no negative ones but the v1 quota's -1.
func decimal(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", text)
	}
	if n < 0 {
		return 0, fmt.Errorf("%q is negative", text)
	}
	return n, nil
}

// parseCount reads a counter that is an int in the kernel (struct cfs_bandwidth), which is negative from 2^31 on: after
// 25 days of periods of 1 ms, or 8 months of 10 ms. Without the sign it goes on growing.
func parseCount(text string) (int64, error) {
	if n, err := strconv.ParseInt(text, 10, 32); err == nil {
		return int64(uint32(n)), nil
	}
	return decimal(text)
}

// parseMicros reads a time of the kernel's microsecond files.
func parseMicros(text string) (time.Duration, error) {
	n, err := decimal(text)
	if err != nil {
		return 0, err
	}
	if n > math.MaxInt64/int64(time.Microsecond) {
		return 0, fmt.Errorf("%d us is out of range", n)
	}
	return time.Duration(n) * time.Microsecond, nil
}

// parseNanos reads a time of the kernel's nanosecond files.
func parseNanos(text string) (time.Duration, error) {
	n, err := decimal(text)
	return time.Duration(n), err
}

// parseQuotaV1 reads cpu.cfs_quota_us: microseconds, or -1 for no limit (kernel/sched/core.c, tg_get_cfs_quota).
func parseQuotaV1(text string) (time.Duration, error) {
	if text == "-1" {
		return cpu.Unlimited, nil
	}
	return parseMicros(text)
}

func parsePeriod(text string) (time.Duration, error) {
	d, err := parseMicros(text)
	if err == nil && d == 0 {
		return 0, errors.New("a period of 0")
	}
	return d, err
}

// parseFlag reads cpu.idle.
func parseFlag(text string) (bool, error) {
	if text != "0" && text != "1" {
		return false, fmt.Errorf("%q is not 0 or 1", text)
	}
	return text == "1", nil
}

// parseMax reads cpu.max: "max 100000" or "50000 100000" (kernel/sched/core.c, cpu_period_quota_print).
func parseMax(text string) (cpu.Bandwidth, error) {
	quota, period, ok := strings.Cut(text, " ")
	if !ok {
		return cpu.Bandwidth{}, fmt.Errorf("%q is not \"QUOTA PERIOD\"", text)
	}
	b := cpu.Bandwidth{Quota: cpu.Unlimited}
	var err error
	if quota != "max" {
		if b.Quota, err = parseMicros(quota); err != nil {
			return cpu.Bandwidth{}, err
		}
	}
	if b.Period, err = parsePeriod(period); err != nil {
		return cpu.Bandwidth{}, err
	}
	return b, nil
}

// parseStat reads cpu.stat of either version. v1 has throttled_time and burst_time in nanoseconds, v2 has
// throttled_usec, burst_usec and usage_usec (kernel/sched/core.c, cpu_cfs_stat_show and cpu_extra_stat_show). Unknown
// keys are skipped, whatever their value: kernels and vendors add some.
func parseStat(data []byte) (cpu.Counters, error) {
	var c cpu.Counters
	err := eachKey(data, func(key, value string) (err error) {
		switch key {
		case "usage_usec":
			c.Usage, err = parseMicros(value)
			c.HasUsage = true
		case "nr_periods":
			c.Periods, err = parseCount(value)
		case "nr_throttled":
			c.Throttled, err = parseCount(value)
		case "throttled_usec":
			c.ThrottledTime, err = parseMicros(value)
		case "throttled_time":
			c.ThrottledTime, err = parseNanos(value)
		case "nr_bursts":
			c.Bursts, err = parseCount(value)
			c.HasBursts = true
		case "burst_usec":
			c.BurstTime, err = parseMicros(value)
		case "burst_time":
			c.BurstTime, err = parseNanos(value)
		}
		return err
	})
	if err != nil {
		return cpu.Counters{}, err
	}
	return c, nil
}

// eachKey walks a flat keyed file ("KEY VALUE\n" a line).
func eachKey(data []byte, visit func(key, value string) error) error {
	rest := string(data) // one string, which keys and values share
	for len(rest) > 0 {
		text, after, ok := strings.Cut(rest, "\n")
		if !ok {
			return errNewline
		}
		key, value, ok := strings.Cut(text, " ")
		if !ok {
			return fmt.Errorf("line %q is not \"KEY VALUE\"", text)
		}
		if err := visit(key, value); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		rest = after
	}
	return nil
}

// parseKey reads one key of a flat keyed file.
func parseKey[T any](data []byte, want string, parse func(string) (T, error)) (T, error) {
	var value T
	found := false
	err := eachKey(data, func(key, text string) (err error) {
		if key == want {
			found = true
			value, err = parse(text)
		}
		return err
	})
	if err == nil && !found {
		err = fmt.Errorf("no key %q", want)
	}
	if err != nil {
		var none T
		return none, err
	}
	return value, nil
}

// maxPID bounds a process or thread number (include/linux/threads.h, PID_MAX_LIMIT).
const maxPID = 4 << 20

// parsePIDs reads a list of tasks. 0 is a task that this PID namespace cannot see.
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
		if n > maxPID {
			return nil, fmt.Errorf("%d is not a process or thread number", n)
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

func formatQuotaV2(quota time.Duration) string {
	if quota == cpu.Unlimited {
		return "max"
	}
	return formatMicros(quota)
}

func formatMax(quota, period time.Duration) string {
	return formatQuotaV2(quota) + " " + formatMicros(period)
}
