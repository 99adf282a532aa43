package frame

import (
	"errors"
	"io"
	"net"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cpu"
	"plimsoll/internal/experiment"
	"plimsoll/internal/probe"
	"plimsoll/internal/strategy"
)

// The ring has room for all events of a run: they are read after it, so that reading does not disturb the measurement.
const (
	ringSize = 8 << 20
	patience = 3 * time.Second // for an event that comes after the run
)

// Listen subscribes to the throttles of the groups.
func Listen(groups []uint64) (*probe.Probe, error) {
	return experiment.WatchThrottles(probe.Options{Ring: ringSize, Use: true}, groups...)
}

// Collect reads the events up to an instant that has passed: until one is later, or none comes.
func Collect(p *probe.Probe, until time.Duration) ([]probe.Event, error) {
	watchdog := time.AfterFunc(patience, func() { _ = p.Close() }) // it is closed again, and returns errors then
	defer watchdog.Stop()
	var all []probe.Event
	for {
		batch, err := p.Read(time.Time{})
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, batch...)
		if batch[len(batch)-1].At > until {
			return all, nil
		}
	}
}

// Cap is the most that a group of this limit a period may use in one, by the default strategy.
func Cap(limit time.Duration) time.Duration {
	return cpu.Percent(limit, strategy.Default().CFSQuotaBurstPercent)
}

// AtCap says of a throttle's begin, in a group that may use so much a period, that a refill would exceed that: the use
// in the period, with the runtime in pool and on CPUs, is too near to it. Where the use is not known, the throttle
// counts as one that may be ended.
func AtCap(f probe.Facts, most time.Duration) bool {
	return f.Used >= 0 && f.Used+f.Runtime+f.OnCPUs+f.Quota > most
}

// Quantile is the least value that a share q of all does not exceed.
func Quantile(sorted []time.Duration, q float64) time.Duration {
	for i, d := range sorted {
		if float64(i+1) >= q*float64(len(sorted)) {
			return d
		}
	}
	return 0
}

// Dial opens a connection whose system calls are the caller's: no other goroutine has to run to wake it. Reads and
// writes block.
func Dial(address string) (fd int, err error) {
	to, err := net.ResolveTCPAddr("tcp4", address)
	if err != nil {
		return -1, err
	}
	if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
		return -1, err
	}
	at := &unix.SockaddrInet4{Port: to.Port, Addr: [4]byte(to.IP.To4())}
	err = errors.Join(unix.Connect(fd, at), unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1))
	if err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}
