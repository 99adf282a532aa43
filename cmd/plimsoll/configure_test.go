package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/config/follow"
	"plimsoll/internal/strategy"
)

// settled is how long a version is unchanged before it is taken (internal/config/follow).
const settled = 50 * time.Millisecond

// TestFollow: every version of the file is taken up, also one that was written while the agent was starting.
func TestFollow(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("strategy: {policy: none}\n")
	s := source{file: file}
	loaded := follow.Of(file)
	write("strategy: {policy: auto}\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var got []strategy.Policy
		var failed error
		done := make(chan error)
		go func() {
			done <- s.follow(ctx, turns(ctx), loaded, func(f *config.File, err error) {
				if failed = err; err == nil {
					got = append(got, f.Node().Policy)
				}
			})
		}()
		time.Sleep(2 * turnEvery)
		synctest.Wait()
		if len(got) != 1 || got[0] != strategy.Auto {
			t.Errorf("took %v, want the version that was written while the agent started", got)
		}
		write("strategy: {policy: sometimes}\n")
		time.Sleep(2 * turnEvery)
		synctest.Wait()
		if failed == nil {
			t.Error("a bad file was taken")
		}
		time.Sleep(turnEvery - settled/4) // before a check
		err := os.WriteFile(file, nil, 0o600)
		time.Sleep(settled / 2) // after it
		if err := errors.Join(err, os.WriteFile(file, []byte("strategy: {policy: cpuBurstOnly}\n"),
			0o600)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * turnEvery)
		synctest.Wait()
		if len(got) != 2 || got[1] != strategy.CPUBurstOnly {
			t.Errorf("took %v, want what was written in place, and nothing of it before it was whole", got)
		}
		if err := errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o600)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * turnEvery)
		synctest.Wait()
		if failed == nil || !strings.Contains(failed.Error(), "not a regular file") {
			t.Errorf("a pipe in its place: %v", failed)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// turnEvery is how often the agent of these tests takes a turn.
const turnEvery = time.Second

// turns are those of an agent.
func turns(ctx context.Context) <-chan struct{} {
	taken := make(chan struct{}, 1)
	go func() {
		for tick := time.NewTicker(turnEvery); ; {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				taken <- struct{}{}
			}
		}
	}()
	return taken
}
