package web

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func options(socket string) Options {
	return Options{Control: socket, Now: time.Now, Log: quiet()}
}

// TestSocketIsItsOwnersOnly, and its group's where it has one, whatever the umask is.
func TestSocketIsItsOwnersOnly(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	for group, mode := range map[int]os.FileMode{Nobody: 0o600, os.Getegid(): 0o660} {
		socket := filepath.Join(t.TempDir(), ControlSocket)
		l, err := ListenUnix(socket, group, quiet())
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		info, err := os.Stat(socket)
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("group %d: got mode %v, %v; want %v", group, info.Mode(), err, mode)
		}
	}
}

func TestStaleSocketIsReplaced(t *testing.T) {
	socket := filepath.Join(t.TempDir(), ControlSocket)
	dead, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	dead.SetUnlinkOnClose(false) // as kill -9 leaves it
	dead.Close()
	l, err := ListenUnix(socket, Nobody, quiet())
	if err != nil {
		t.Fatalf("a dead process's socket is in the way: %v", err)
	}
	l.Close()
}

func TestLiveSocketIsNotReplaced(t *testing.T) {
	a := &fake{status: healthy()}
	_, c := open(t, a, nil)
	if _, err := Listen(a, options(c.socket)); !errors.Is(err, ErrInUse) {
		t.Errorf("got %v, want ErrInUse", err)
	}
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("the first agent does not answer any more: %v", err)
	}
}

func TestOtherFilesAreNotReplaced(t *testing.T) {
	file := filepath.Join(t.TempDir(), ControlSocket)
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ListenUnix(file, Nobody, quiet()); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("got %v, want a refusal", err)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "mine" {
		t.Errorf("the file was changed: %q, %v", data, err)
	}
}

func TestLongSocketPathIsExplained(t *testing.T) {
	if _, err := ListenUnix("/tmp/"+strings.Repeat("a", maxSocketPath), Nobody, quiet()); err == nil ||
		!strings.Contains(err.Error(), "longer than") {
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
	_, tcp := OpenSite(SiteOptions{Listen: []string{taken.Addr().String()}, Now: time.Now, Log: quiet()})
	_, socket := Listen(&fake{}, options("/tmp/"+strings.Repeat("a", maxSocketPath)))
	for flag, err := range map[string]error{"--listen": tcp, "--state-dir": socket} {
		var hinted interface{ Hint() string }
		if !errors.As(err, &hinted) || !strings.Contains(hinted.Hint(), flag) {
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
	socket := filepath.Join(t.TempDir(), ControlSocket)
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
	socket := filepath.Join(t.TempDir(), ControlSocket)
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

// TestPeers: who may connect, by the file's mode and by what the kernel says of the peer. The test runs itself as
// another user, who tries to read the agent's state.
func TestPeers(t *testing.T) {
	if socket := os.Getenv("PEER_SOCKET"); socket != "" {
		_, err := Dial(socket).Status(t.Context())
		t.Log(err)
		if err != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	if os.Geteuid() != 0 {
		t.Fatal("only root can become another user; hint: run the tests as root")
	}
	dir, err := os.MkdirTemp("", "peers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	const group, stranger = 64_001, 64_002
	control, read := filepath.Join(dir, ControlSocket), filepath.Join(dir, ReadSocket)
	s, err := Listen(&fake{status: healthy()}, Options{Control: control, Read: ReadAccess{read, group}, Now: later,
		Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	during(t, s.Serve)
	may := func(what, socket string, user, group uint32, want bool, groups ...uint32) {
		t.Helper()
		peer := exec.Command("/proc/self/exe", "-test.run", "^TestPeers$")
		peer.Env = append(os.Environ(), "PEER_SOCKET="+socket)
		peer.Dir = "/"
		peer.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group, Groups: groups}}
		if err := peer.Run(); (err == nil) != want {
			t.Errorf("%s: %v, want %v", what, err, want)
		}
	}
	may("root controls", control, 0, 0, true)
	may("root reads", read, 0, 0, true)
	may("the group reads", read, stranger, group, true)
	may("the group controls", control, stranger, group, false)
	long := make([]uint32, 100) // more than what is asked for first
	for i := range long {
		long[i] = group + 10 + uint32(i)
	}
	may("a member reads", read, stranger, stranger, true, 64_003, group)
	may("a member of many groups reads", read, stranger, stranger, true, append(long, group)...)
	may("a member controls", control, stranger, stranger, false, group)
	may("a stranger reads", read, stranger, stranger, false)
	for _, socket := range []string{control, read} {
		if err := os.Chmod(socket, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	may("the group controls, the mode is open", control, stranger, group, false)
	may("a stranger reads, the mode is open", read, stranger, stranger, false)
	may("the group reads, the mode is open", read, stranger, group, true)
	may("a member controls, the mode is open", control, stranger, stranger, false, group)
	may("a stranger of many groups reads, the mode is open", read, stranger, stranger, false, long...)
}
