package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Nobody is no group: only root, and the user who runs the agent, may connect to a socket.
const Nobody = -1

// maxSocketPath is what sockaddr_un holds, less the final zero (include/uapi/linux/un.h, UNIX_PATH_MAX).
const maxSocketPath = 107

// ListenUnix opens a socket that its owner may connect to, and a group's members unless the group is Nobody. A file
// left by a dead process is replaced, a live process's is not.
//
// Who connects is checked twice: by the mode of the file, and by who the kernel says the peer is (unix(7),
// SO_PEERCRED and SO_PEERGROUPS), so that a file whose mode was changed opens nothing.
func ListenUnix(path string, group int, log *slog.Logger) (net.Listener, error) {
	if len(path) > maxSocketPath {
		return nil, fmt.Errorf("socket path %s is longer than %d bytes", path, maxSocketPath)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// The kernel gives the file the mode of the socket's own inode (net/unix/af_unix.c, unix_bind_bsd), so the
	// file is never open to others, not even between bind and chmod.
	restrict := func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); e != nil {
			return e
		}
		return err
	}
	l, err := (&net.ListenConfig{Control: restrict}).Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	if group != Nobody {
		if err := openTo(path, group); err != nil {
			l.Close()
			return nil, err
		}
	}
	return &peers{Listener: l, group: group, log: log, refused: map[uint32]bool{}}, nil
}

// openTo lets the members of a group connect.
func openTo(path string, group int) error {
	if err := os.Lchown(path, -1, group); err != nil {
		return fmt.Errorf("give the socket to group %d: %w", group, err)
	}
	return os.Chmod(path, 0o660)
}

// peers accepts the connections of those who may connect.
type peers struct {
	net.Listener
	group int
	log   *slog.Logger

	mu      sync.Mutex
	refused map[uint32]bool // users of whom it was logged
}

// maxRefused bounds the users of whom a refusal is logged.
const maxRefused = 16

func (p *peers) Accept() (net.Conn, error) {
	for {
		conn, err := p.Listener.Accept()
		if err != nil {
			return nil, err
		}
		peer, groups, err := credentials(conn)
		if err == nil && p.may(peer, groups) {
			return conn, nil
		}
		conn.Close()
		p.logRefused(peer, err)
	}
}

func (p *peers) may(peer *unix.Ucred, groups []uint32) bool {
	return peer.Uid == 0 || int(peer.Uid) == os.Geteuid() ||
		p.group != Nobody && slices.Contains(append(groups, peer.Gid), uint32(p.group))
}

func (p *peers) logRefused(peer *unix.Ucred, err error) {
	if err != nil {
		p.log.Warn("a connection was refused: its process is not known", "socket", p.Addr(), "error", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused[peer.Uid] || len(p.refused) >= maxRefused {
		return
	}
	p.refused[peer.Uid] = true
	p.log.Warn("a connection was refused", "socket", p.Addr(), "pid", peer.Pid, "user", peer.Uid, "group", peer.Gid)
}

// credentials says which process has connected, and its supplementary groups.
func credentials(conn net.Conn) (peer *unix.Ucred, groups []uint32, err error) {
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return nil, nil, err
	}
	if e := raw.Control(func(fd uintptr) {
		if peer, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			groups, err = peerGroups(fd)
		}
	}); e != nil {
		return nil, nil, e
	}
	return peer, groups, err
}

// peerGroups reads SO_PEERGROUPS. For a list that is too short the kernel returns ERANGE and the size that it needs
// (net/core/sock.c, sk_getsockopt). Before Linux 4.13 it does not know the option: then no groups are known.
func peerGroups(fd uintptr) ([]uint32, error) {
	list := make([]uint32, 32)
	for {
		size := uint32(len(list)) * 4
		_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_PEERGROUPS,
			uintptr(unsafe.Pointer(&list[0])), uintptr(unsafe.Pointer(&size)), 0)
		switch {
		case errno == 0:
			return list[:size/4], nil
		case errno == unix.ENOPROTOOPT:
			return nil, nil
		case errno != unix.ERANGE || int(size/4) <= len(list):
			return nil, errno
		}
		list = make([]uint32, size/4)
	}
}

func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is in the way and is not a socket", path)
	}
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
		return fmt.Errorf("%s: %w", path, ErrInUse)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) { // a full backlog, for one, is a live process
		return err
	}
	return os.Remove(path)
}
