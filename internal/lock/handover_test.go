package lock

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// held is a lock that a test lets go of.
func held(t *testing.T, p Place) *Lock {
	t.Helper()
	l, err := Take(p)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestNothingIsPassedOnToNobody(t *testing.T) {
	dir := t.TempDir()
	for range 2 {
		if passed, err := HandOver(dir); passed || err != nil {
			t.Fatalf("handed over to nobody: %v, %v", passed, err)
		}
		if _, err := os.Stat(filepath.Join(dir, passFile)); err == nil {
			t.Error("the word that it is handed over stands")
		}
	}
}

func TestWhoStandsInLineTakesOver(t *testing.T) {
	dir, place := t.TempDir(), placeOf(t)
	lock := held(t, place)
	line, err := WaitForHandover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	full, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := WaitForHandover(full, dir); err == nil {
		t.Fatal("two stand in one place")
	}
	passed, err := HandOver(dir)
	if !passed || err != nil {
		t.Fatalf("not handed over: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	next, passed, err := line.Take(t.Context(), place)
	if err != nil || !passed {
		t.Fatalf("taken over: %v, %v", passed, err)
	}
	if err := EndHandover(dir); err != nil {
		t.Fatal(err)
	}
	if passed, err := HandOver(dir); passed || err != nil {
		t.Errorf("nobody stands in line any more, and it is handed over: %v", err)
	}
	if err := next.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestWhoTakesOverFromTheDead: an agent that was killed passed nothing on.
func TestWhoTakesOverFromTheDead(t *testing.T) {
	dir, place := t.TempDir(), placeOf(t)
	lock := held(t, place)
	line, err := WaitForHandover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	next, passed, err := line.Take(t.Context(), place)
	if err != nil || passed {
		t.Fatalf("handed over by the dead: %v, %v", passed, err)
	}
	if err := next.Release(); err != nil {
		t.Fatal(err)
	}
}

// TestOfTwoThatEndTogetherOneIsTheLast: whichever way their steps fall, what is handed over is taken.
func TestOfTwoThatEndTogetherOneIsTheLast(t *testing.T) {
	dir, place := t.TempDir(), placeOf(t)
	chance := rand.New(rand.NewPCG(1, 2))
	outcomes := map[bool]int{}
	for range 300 {
		lock := held(t, place)
		line, err := WaitForHandover(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		type end struct {
			lock *Lock
			err  error
		}
		ended := make(chan end)
		go func() {
			l, _, err := line.Take(ctx, place)
			ended <- end{l, err}
		}()
		early, late := time.Duration(chance.Int64N(300)), time.Duration(chance.Int64N(300))
		go func() {
			time.Sleep(early * time.Microsecond)
			stop()
		}()
		time.Sleep(late * time.Microsecond)
		passed, err := HandOver(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		e := <-ended
		stop()
		if passed && e.lock == nil {
			t.Fatalf("it was handed over, and nobody took it: %v", e.err)
		}
		outcomes[passed]++
		if e.lock != nil {
			if err := e.lock.Release(); err != nil {
				t.Fatal(err)
			}
		}
		if err := EndHandover(dir); err != nil {
			t.Fatal(err)
		}
	}
	if outcomes[true] == 0 || outcomes[false] == 0 {
		t.Errorf("handed over or not: %v; the scenario proves nothing", outcomes)
	}
}

// TestLineBehindAnotherInstallation: an agent of another installation that has taken the lock is not waited for. One
// that only tries the lock is, or it would end a handover.
func TestLineBehindAnotherInstallation(t *testing.T) {
	dir, place := t.TempDir(), placeOf(t)
	other := place
	other.Installation, other.Brief = "b/plimsoll", true
	lock := held(t, other)
	line, err := WaitForHandover(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := line.Take(short, place); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an agent that tries the lock is not waited for: %v", err)
	}
	if line, err = WaitForHandover(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	lock.Keep()
	var taken *TakenError
	if _, _, err := line.Take(t.Context(), place); !errors.As(err, &taken) || !taken.OtherInstallation || taken.Brief {
		t.Errorf("%v; want that the other installation has it", err)
	}
	if again, err := WaitForHandover(t.Context(), dir); err != nil {
		t.Errorf("the place is kept: %v", err)
	} else {
		again.leave()
	}
	if err := lock.Release(); err != nil {
		t.Error(err)
	}
}
