package main

import (
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"plimsoll/internal/agent"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/diagnose/meter"
	"plimsoll/internal/host"
	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
)

// openMeters makes those of --waits and --requests.
func (f *runFlags) openMeters(tree *cgroup.Tree, found agent.Discoverer, throttles host.Throttles,
	log *slog.Logger) meter.Beside {
	var m meter.Beside
	if f.waits {
		m.Waits = meter.NewWaits(tree, found, log)
	}
	if !f.requests {
		return m
	}
	if k := throttles.Events; k != nil {
		m.Requests = meter.NewRequestTimes(found, k.Probe, log)
		k.Requests = m.Requests.Throttled // for the receipts
	} else {
		m.Requests = meter.NewRequestTimes(found, nil, log)
	}
	return m
}

// watchAll has the groups watched that no policy changes: while somebody reads their periods, and with --requests
// always, for the throttled time of their requests.
func (f *runFlags) watchAll(a *agent.Agent) func(all bool) {
	if !f.requests {
		return a.WatchAll
	}
	a.WatchAll(true)
	return func(bool) {}
}

// heart sends the agent's heartbeats: into the file that plimsoll-lease reads, and to a service manager with a watchdog
// (sd_notify(3), WatchdogSec=). With each it signs the lock, for which the disk may have been full.
func (g *globals) heart(held *lock.Lock, log *slog.Logger) *lease.Heart {
	pid, start := lock.Self()
	sinks := []lease.Sink{lease.File(g.StateDir, lease.Process{PID: pid, Start: start}), func(time.Duration) error {
		_ = held.Sign() // tried again with the next one
		return nil
	}}
	if every, err := systemd.SdWatchdogEnabled(false); err != nil {
		log.Warn("the service manager's watchdog is not notified", "error", err)
	} else if every > 0 {
		sinks = append(sinks, notifyWatchdog)
	}
	return lease.NewHeart(lease.Clock, func(err error) {
		log.Warn("a heartbeat is not sent: limits may be put back as if the agent hung", "error", err)
	}, sinks...)
}

func notifyWatchdog(time.Duration) error {
	_, err := systemd.SdNotify(false, systemd.SdNotifyWatchdog)
	return err
}
