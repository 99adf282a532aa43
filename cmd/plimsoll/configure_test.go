package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"plimsoll/internal/config"
	"plimsoll/internal/strategy"
)

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
	loaded := s.stamp()
	write("strategy: {policy: auto}\n")
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		var got []strategy.Policy
		var failed error
		done := make(chan error)
		go func() {
			done <- s.follow(ctx, loaded, func(f *config.File, err error) {
				if failed = err; err == nil {
					got = append(got, f.Strategy().Policy)
				}
			})
		}()
		time.Sleep(2 * reloadEvery)
		synctest.Wait()
		if len(got) != 1 || got[0] != strategy.Auto {
			t.Errorf("took %v, want the version that was written while the agent started", got)
		}
		write("strategy: {policy: sometimes}\n")
		time.Sleep(2 * reloadEvery)
		synctest.Wait()
		if failed == nil {
			t.Error("a bad file was taken")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
