package web

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func options(socket string) Options {
	return Options{Socket: socket, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
}

func TestSocketIsItsOwnersOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	socket := filepath.Join(t.TempDir(), SocketName)
	l, err := ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v; want 0600", info.Mode(), err)
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	socket := filepath.Join(t.TempDir(), SocketName)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as kill -9 leaves it
	dead.Close()
	l, err := ListenUnix(socket)
	if err != nil {
		t.Fatalf("a dead process's socket is in the way: %v", err)
	}
	l.Close()
}

func TestLiveSocketIsNotReplaced(t *testing.T) {
	a := &fake{status: healthy()}
	_, c := serve(t, a, nil)
	if _, err := Listen(a, options(c.socket)); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("the first agent does not answer any more: %v", err)
	}
}

func TestOtherFilesAreNotReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), SocketName)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(file); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v, want a refusal", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file was changed: %q, %v", data, err)
	}
}

func TestLongSocketPathIsExplained(t *testing.T) {
	if _, err := ListenUnix("/tmp/" + strings.Repeat("a", maxSocketPath)); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("got %v, want the limit", err)
	}
}

// TestListenSaysWhatToChoose: the advice is about the address that could not be opened.
func TestListenSaysWhatToChoose(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	tcp := options("")
	tcp.Listen = taken.Addr().String()
	for flag, o := range map[string]Options{"--listen": tcp, "--state-dir": options("/tmp/" + strings.Repeat("a", maxSocketPath))} {
		var hinted interface{ Hint() string }
		if _, err := Listen(&fake{}, o); !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), flag) {
			t.Errorf("got %v, want a hint at %s", err, flag)
		}
	}
}

// slow is an agent whose hold takes until it is let go.
type slow struct {
	*fake
	entered, letGo chan struct{}
}

func (s *slow) Resume(context.Context) error {
	close(s.entered)
	<-s.letGo
	return nil
}

func TestShutdownLetsRequestsFinishAndRemovesTheSocket(t *testing.T) {
	a := &slow{&fake{status: healthy()}, make(chan struct{}), make(chan struct{})}
	socket := filepath.Join(t.TempDir(), SocketName)
	s, err := Listen(a, options(socket))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served, called := make(chan error, 1), make(chan error, 1)
	go func() { served <- s.Serve(ctx) }()
	go func() { called <- Dial(socket).Resume(t.Context()) }()
	<-a.entered
	stop()
	close(a.letGo)
	if err := <-called; err != nil {
		t.Errorf("the request under way failed: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}

func TestServeEndsAtOnceWhenItsContextHasEnded(t *testing.T) {
	socket := filepath.Join(t.TempDir(), SocketName)
	s, err := Listen(&fake{}, options(socket))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := s.Serve(ctx); err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := os.Lstat(socket); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is left behind: %v", err)
	}
}
