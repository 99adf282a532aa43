package scx

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/cpu"
)

// The kernel ends a scheduler under which a task waits for longer than the watchdog's time: open's end finds it alive.
const watchdog = 2 * time.Second

// Many threads below a small quota wait long for their turn each, but none too long.
func TestManyBelowASmallQuota(t *testing.T) {
	s := open(t, Options{Watchdog: watchdog})
	g := cgrouptest.New(t)
	set(t, s, g, Setting{Limit: &cpu.Bandwidth{Quota: ms, Period: 100 * ms}})
	g.Spin(60)
	time.Sleep(4 * watchdog)
	if c := group(t, s, g); c.Throttled == 0 {
		t.Errorf("no throttled period: %+v", c)
	}
}

// An online group of little weight waits long for its turn beside a heavy one, but not too long.
func TestLightOnlineGroup(t *testing.T) {
	s := open(t, Options{Watchdog: watchdog})
	light, heavy := cgrouptest.New(t), cgrouptest.New(t)
	weigh(t, light, "1")
	weigh(t, heavy, "1000")
	light.Spin(2)
	heavy.Spin(2)
	time.Sleep(4 * watchdog)
	if c := count(t, s, light, heavy); c.groups[0] == 0 || c.groups[1] < 10*c.groups[0] {
		t.Errorf("%+v", c)
	}
}

// An offline group of little weight waits long for its turn beside a heavy one, while online tasks leave nothing but
// the floor, but not too long.
func TestLightOfflineGroup(t *testing.T) {
	s := open(t, Options{Watchdog: watchdog})
	online, light, heavy := cgrouptest.New(t), cgrouptest.New(t), cgrouptest.New(t)
	for g, weight := range map[*cgrouptest.Group]string{light: "1", heavy: "1000"} {
		set(t, s, g, Setting{Class: Offline})
		weigh(t, g, weight)
		g.Spin(2)
	}
	online.Spin(2)
	time.Sleep(4 * watchdog)
	if c := count(t, s, light, heavy); c.Floors == 0 || c.groups[0] == 0 {
		t.Errorf("%+v", c)
	}
}
