package main

import (
	"log/slog"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"plimsoll/internal/lease"
	"plimsoll/internal/lock"
)

// heart sends the agent's heartbeats: into the file that plimsoll-lease reads, and to a service manager with a watchdog
// (sd_notify(3), WatchdogSec=).
func (g *globals) heart(log *slog.Logger) *lease.Heart {
	pid, start := lock.Self()
	sinks := []lease.Sink{lease.File(g.StateDir, lease.Process{PID: pid, Start: start})}
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
