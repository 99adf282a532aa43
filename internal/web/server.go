package web

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"time"
)

// Options say where to listen. Both addresses may be empty: nothing is opened there.
type Options struct {
	Listen string // TCP, host:port
	Socket string // path of the control socket
	Now    func() time.Time
	Log    *slog.Logger
	Plan   DryRun // nil: there is none
}

// ErrInUse says that another process answers on a socket.
var ErrInUse = errors.New("another process answers there")

// Server serves one agent.
type Server struct {
	agent     Agent
	now       func() time.Time
	log       *slog.Logger
	tcp       net.Listener // nil: off
	unix      net.Listener // nil: off
	snapshots snapshots
	// patience is how long the agent may take to give a snapshot. A longer answer means that its loop hangs.
	patience time.Duration
	dryRun   DryRun
	// Requests over TCP do not delay requests through the socket.
	overTCP, overUnix *side
}

const (
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
	readTimeout   = 10 * time.Second
	writeTimeout  = time.Minute // a restore of every container must fit
	idleTimeout   = time.Minute
	graceShutdown = 3 * time.Second
)

// Listen opens the addresses, so that what cannot be opened is known before the agent starts. Serve closes them.
func Listen(agent Agent, o Options) (*Server, error) {
	s := &Server{agent: agent, now: o.Now, log: o.Log, snapshots: snapshots{take: agent.Status}, patience: 2 * time.Second,
		dryRun: o.Plan, overTCP: newSide(o.Now, tcpPause), overUnix: newSide(o.Now, 0)}
	var err error
	if o.Listen != "" {
		if s.tcp, err = net.Listen("tcp", o.Listen); err != nil {
			return nil, &Error{Msg: "listen for metrics: " + err.Error(), wrapped: err,
				Advice: `is the address in use? --listen chooses another, --listen "" does without`}
		}
	}
	if o.Socket != "" {
		if s.unix, err = ListenUnix(o.Socket); err != nil {
			if s.tcp != nil {
				s.tcp.Close()
			}
			return nil, &Error{Msg: "listen for control: " + err.Error(), wrapped: err, Advice: "--state-dir chooses another directory for the socket"}
		}
	}
	return s, nil
}

// Addr is the TCP address that is listened on; empty when it is off.
func (s *Server) Addr() string {
	if s.tcp == nil {
		return ""
	}
	return s.tcp.Addr().String()
}

// Serve answers until ctx ends, lets the requests under way finish for a moment, and removes the socket.
func (s *Server) Serve(ctx context.Context) error {
	var servers []*http.Server
	var serving sync.WaitGroup
	failed := make(chan error, 2)
	start := func(l net.Listener, h http.Handler) {
		if l == nil {
			return
		}
		srv := &http.Server{Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn)}
		servers = append(servers, srv)
		serving.Go(func() { failed <- srv.Serve(l) })
	}
	start(s.tcp, s.public())
	start(s.unix, s.control())

	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceShutdown)
	defer cancel()
	for _, srv := range servers {
		if e := srv.Shutdown(grace); e != nil {
			srv.Close()
		}
	}
	serving.Wait() // until then the socket's file may still stand
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// maxSocketPath is what sockaddr_un holds, less the final zero (include/uapi/linux/un.h, UNIX_PATH_MAX).
const maxSocketPath = 107

// ListenUnix opens a socket that only its owner may connect to. A file left by a dead process is replaced, a live
// process's is not.
func ListenUnix(path string) (net.Listener, error) {
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
	return l, nil
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
