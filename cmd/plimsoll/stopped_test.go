package main

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"

	"plimsoll/internal/config"
	"plimsoll/internal/config/follow"
)

// TestHangup: SIGHUP makes a daemon read its configuration again, and ends a process with a terminal.
func TestHangup(t *testing.T) {
	open := func(file string) *os.File {
		f, err := os.OpenFile(file, os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	for _, c := range []struct {
		stdin *os.File
		ends  bool
	}{{open(os.DevNull), false}, {open("/dev/ptmx"), true}} {
		cmd := &cobra.Command{}
		cmd.SetContext(t.Context())
		ctx, rereads, stop := asDaemon(cmd, c.stdin)
		if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		ended := false
		select {
		case <-ctx.Done():
			ended = true
		case <-rereads:
		}
		if ended != c.ends {
			t.Errorf("%s: it ends: %v, want %v", c.stdin.Name(), ended, c.ends)
		}
		stop()
	}
}

// TestRereads: a request to reread reads the file although it is the same.
func TestRereads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte("strategy: {policy: auto}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		asks := make(chan os.Signal, 1)
		s := source{file: file, rereads: asks}
		ctx, stop := context.WithCancel(t.Context())
		n := 0
		done := make(chan error)
		go func() { done <- s.follow(ctx, turns(ctx), follow.Of(s.file), func(*config.File, error) { n++ }) }()
		for want := range 2 {
			time.Sleep(2 * turnEvery)
			synctest.Wait()
			if n != want {
				t.Errorf("read %d times, %d requests", n, want)
			}
			asks <- syscall.SIGHUP
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
