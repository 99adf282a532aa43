package loader

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"plimsoll/internal/scx"
	"plimsoll/internal/web"
)

// socket is where the process that loaded a scheduler answers, in the state directory.
const socket = "sched.sock"

// What can be asked of the process that loaded a scheduler.
const (
	doStatus = "status"
	doSwap   = "swap"
	doUnload = "unload"
)

// request is one question, in JSON, on a connection of its own.
type request struct {
	Do     string        `json:"do"`
	Object []byte        `json:"object,omitempty"` // of a swap
	Most   time.Duration `json:"most,omitempty"`
}

// answer is the answer to it.
type answer struct {
	Status scx.Status `json:"status"`
	Error  string     `json:"error,omitempty"`
}

// ErrNotLoaded says that no process of `plimsoll sched load` runs.
var ErrNotLoaded = errors.New("no scheduler is loaded by `plimsoll sched load`")

const (
	patience   = 2 * time.Minute // of the client: the kernel checks the programs of a swap
	mostObject = 64 << 20        // bytes
)

// server answers questions about a loaded scheduler.
type server struct {
	listener net.Listener
	unload   chan struct{}
	once     sync.Once
}

// listen opens the socket.
func listen(path string) (*server, error) {
	l, err := web.ListenUnix(path, web.Nobody, slog.New(slog.DiscardHandler))
	if errors.Is(err, web.ErrInUse) {
		return nil, fmt.Errorf("another `plimsoll sched load` has loaded a scheduler: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return &server{listener: l, unload: make(chan struct{})}, nil
}

func (s *server) close() { _ = s.listener.Close() } // the process ends, and with it the socket

func (s *server) serve(h *scx.Running) {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		go s.reply(c, h)
	}
}

func (s *server) reply(c net.Conn, h *scx.Running) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience)) // a socket has deadlines
	var q request
	var a answer
	err := json.NewDecoder(io.LimitReader(c, mostObject)).Decode(&q)
	if err == nil {
		a.Status, err = s.do(h, q)
	}
	if err != nil {
		a.Error = err.Error()
	}
	a.Status.PID = os.Getpid()
	_ = json.NewEncoder(c).Encode(a) // the client may have gone
	if q.Do == doUnload && err == nil {
		s.once.Do(func() { close(s.unload) })
	}
}

func (s *server) do(h *scx.Running, q request) (scx.Status, error) {
	switch q.Do {
	case doStatus, doUnload:
		return h.Status()
	case doSwap:
		o, err := scx.Read(bytes.NewReader(q.Object))
		if err != nil {
			return scx.Status{}, err
		}
		return h.Swap(o, q.Most)
	}
	return scx.Status{}, fmt.Errorf("%q is not a known request", q.Do)
}

// Status asks the process that loaded a scheduler how it is.
func Status(stateDir string) (scx.Status, error) { return ask(stateDir, request{Do: doStatus}) }

// Swap has the process that loaded a scheduler replace it.
func Swap(stateDir string, object []byte, most time.Duration) (scx.Status, error) {
	return ask(stateDir, request{Do: doSwap, Object: object, Most: most})
}

// Unload has the process that loaded a scheduler take it out, and waits until the kernel has done so.
func Unload(stateDir string, within time.Duration) (scx.Status, error) {
	s, err := ask(stateDir, request{Do: doUnload})
	if err != nil {
		return s, err
	}
	for end := time.Now().Add(within); ; time.Sleep(20 * time.Millisecond) {
		now, err := scx.ReadState()
		if err != nil || now.Ops != s.Ops || now.Enabled != s.Enabled {
			return s, err
		}
		if time.Now().After(end) {
			return s, fmt.Errorf("%s is still %s after %v", s.Ops, now.State, within)
		}
	}
}

// ask asks the process that loaded a scheduler.
func ask(stateDir string, q request) (scx.Status, error) {
	c, err := net.Dial("unix", filepath.Join(stateDir, socket))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return scx.Status{}, ErrNotLoaded
	}
	if err != nil {
		return scx.Status{}, fmt.Errorf("ask the process that loaded the scheduler: %w", err)
	}
	defer c.Close()
	var a answer
	if err := errors.Join(c.SetDeadline(time.Now().Add(patience)), json.NewEncoder(c).Encode(q)); err != nil {
		return scx.Status{}, fmt.Errorf("ask the process that loaded the scheduler: %w", err)
	}
	if err := json.NewDecoder(c).Decode(&a); err != nil {
		return scx.Status{}, fmt.Errorf("ask the process that loaded the scheduler: %w", err)
	}
	if a.Error != "" {
		return a.Status, errors.New(a.Error)
	}
	return a.Status, nil
}
