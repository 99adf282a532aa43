package scx

import (
	"testing"
	"time"

	"plimsoll/internal/cgrouptest"
)

// Two online tasks on two CPUs leave two offline ones the floor, whoever was there first; when they are gone, the offline
// ones get everything. The floor is a hundredth at most, which a quiet machine keeps (99.0 % measured); the bound is wider,
// for an emulated CPU's ticks come late when its host is busy.
func TestShares(t *testing.T) {
	s := open(t, Options{})
	online, offline := cgrouptest.New(t), cgrouptest.New(t)
	set(t, s, offline, Setting{Class: Offline})
	offline.Spin(2)
	time.Sleep(300 * ms)
	list := online.Spin(2)
	got := used(t, 3*time.Second, online, offline)
	t.Logf("online %.3f, offline %.4f CPUs", got[0], got[1])
	if all := got[0] + got[1]; got[0] < all*0.9 || got[1] < all*0.0005 || all < 1 {
		t.Errorf("online %.3f, offline %.4f CPUs", got[0], got[1])
	}
	for _, p := range list {
		p.Stop()
	}
	if got := used(t, time.Second, offline); got[0] < 0.8 {
		t.Errorf("alone, offline got %.3f CPUs", got[0])
	}
}
