package node

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"plimsoll/internal/lock"
	"plimsoll/internal/web"
)

// standby is an agent with --stand-by.
type standby struct {
	*Node
	health *web.Client
	passed chan bool // what StandBy returns, once it has the lock
}

// shared is a node of which agents share the directories.
type shared struct {
	t *testing.T
	Dirs
}

func newShared(t *testing.T) *shared {
	t.Helper()
	s := &shared{t, Dirs{CgroupRoot: t.TempDir(), StateDir: t.TempDir(), LockDir: filepath.Join(t.TempDir(), "locks")}}
	root := filepath.Join(s.CgroupRoot, "cpu")
	if err := errors.Join(os.Mkdir(root, 0o755), os.WriteFile(filepath.Join(root, "cgroup.procs"), nil, 0o644),
		os.WriteFile(filepath.Join(root, "cpu.shares"), []byte("1024\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *shared) agent(installation string) *Node {
	s.t.Helper()
	dir, tree, err := s.OpenTree()
	if err != nil {
		s.t.Fatal(err)
	}
	n := &Node{Dirs: s.Dirs, Dir: dir, Tree: tree, Installation: installation}
	s.t.Cleanup(n.Close)
	return n
}

// runs is an agent that has the lock.
func (s *shared) runs(installation string) *Node {
	s.t.Helper()
	n := s.agent(installation)
	if err := n.TakeLock(); err != nil {
		s.t.Fatal(err)
	}
	return n
}

// ends lets go of the lock of an agent.
func (s *shared) ends(n *Node) {
	s.t.Helper()
	if err := n.Lock.Release(); err != nil {
		s.t.Fatal(err)
	}
	n.Lock = nil
}

func (s *shared) standBy(installation string) *standby {
	s.t.Helper()
	socket := filepath.Join(s.t.TempDir(), web.ReadSocket)
	b := &standby{s.agent(installation), web.Dial(socket), make(chan bool, 1)}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		passed, err := b.StandBy(ctx, web.ReadAccess{Socket: socket, Group: web.Nobody}, func() error { return nil },
			slog.New(slog.DiscardHandler))
		if err == nil {
			b.passed <- passed
		} else if !errors.Is(err, context.Canceled) {
			s.t.Errorf("an agent of %s: %v", installation, err)
		}
	}()
	s.t.Cleanup(func() {
		_ = lock.EndHandover(s.StateDir) // of a test that has failed; an agent that ends waits to restore
		stop()
		<-ended
	})
	return b
}

// soon waits until one of two agents has the lock.
func soon(t *testing.T, one, other <-chan bool) (passed bool) {
	t.Helper()
	select {
	case passed = <-one:
	case passed = <-other:
	case <-time.After(10 * time.Second):
		t.Fatal("the lock is free, and not taken")
	}
	return passed
}

// readiness is what /readyz says after a while, or as soon as it is well.
func (b *standby) readiness(within time.Duration) (err error) {
	for end := time.Now().Add(within); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if err = b.health.Healthy(context.Background(), "/readyz"); err == nil {
			return nil
		}
	}
	return err
}

// TestStandByForAnotherInstallation: agents of another installation stand by, all of them ready, or an update of theirs
// would never end. They have no place in line: the installation whose agent runs hands over to its own successor.
func TestStandByForAnotherInstallation(t *testing.T) {
	s := newShared(t)
	holder := s.runs("a/plimsoll")
	others := []*standby{s.standBy("b/plimsoll"), s.standBy("b/plimsoll")}
	for i, b := range others {
		if err := b.readiness(10 * time.Second); err != nil {
			t.Fatalf("agent %d of the other installation: %v", i, err)
		}
	}
	for range 20 {
		next := s.standBy("a/plimsoll")
		if err := next.readiness(10 * time.Second); err != nil {
			t.Fatalf("the successor: %v", err)
		}
		if passed, err := lock.HandOver(s.StateDir); !passed || err != nil {
			t.Fatalf("not handed over: %v", err)
		}
		s.ends(holder)
		if passed := soon(t, next.passed, nil); !passed {
			t.Fatal("the successor restores what was handed over")
		}
		if err := lock.EndHandover(s.StateDir); err != nil {
			t.Fatal(err)
		}
		holder = next.Node
	}
	if passed, err := lock.HandOver(s.StateDir); passed || err != nil {
		t.Errorf("handed over to another installation: %v", err)
	}
	s.ends(holder)
	if soon(t, others[0].passed, others[1].passed) {
		t.Error("nothing was handed over")
	}
}

// TestOneSuccessor: of two agents of the installation that runs, only the first is ready.
func TestOneSuccessor(t *testing.T) {
	s := newShared(t)
	s.runs("a/plimsoll")
	if err := s.standBy("a/plimsoll").readiness(10 * time.Second); err != nil {
		t.Fatal(err)
	}
	err := s.standBy("a/plimsoll").readiness(300 * time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "stands by already") {
		t.Errorf("the second one: %v", err)
	}
}

// TestNoLineBehindABriefHolder: nobody stands in line behind an agent of the own installation that only tries the lock.
func TestNoLineBehindABriefHolder(t *testing.T) {
	s := newShared(t)
	place := s.agent("b/plimsoll").place()
	place.Brief = true
	l, err := lock.Take(place)
	if err != nil {
		t.Fatal(err)
	}
	b := s.standBy("b/plimsoll")
	inLine := func() bool {
		waits, err := lock.SuccessorWaits(s.StateDir)
		if err != nil {
			t.Fatal(err)
		}
		return waits
	}
	for end := time.Now().Add(4 * readyEvery); time.Now().Before(end); time.Sleep(readyEvery / 10) {
		if inLine() {
			t.Fatal("it stands in line behind one that only tries")
		}
	}
	l.Keep()
	for end := time.Now().Add(10 * time.Second); !inLine(); time.Sleep(readyEvery / 10) {
		if time.Now().After(end) {
			t.Fatal("it does not stand in line")
		}
	}
	if err := l.Release(); err != nil {
		t.Fatal(err)
	}
	soon(t, b.passed, nil)
}
