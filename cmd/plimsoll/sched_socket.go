package main

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

// What can be asked of the process that loaded a scheduler.
const (
	doStatus = "status"
	doSwap   = "swap"
	doUnload = "unload"
)

// schedRequest is one question, in JSON, on a connection of its own.
type schedRequest struct {
	Do     string        `json:"do"`
	Object []byte        `json:"object,omitempty"` // of a swap
	Most   time.Duration `json:"most,omitempty"`
}

// schedAnswer is the answer to it.
type schedAnswer struct {
	Status scx.Status `json:"status"`
	Error  string     `json:"error,omitempty"`
}

// errNotLoaded says that no process of `plimsoll sched load` runs.
var errNotLoaded = errors.New("no scheduler is loaded by `plimsoll sched load`")

const (
	schedPatience = 2 * time.Minute // of the client: the kernel checks the programs of a swap
	mostObject    = 64 << 20        // bytes
)

// schedServer answers questions about a loaded scheduler.
type schedServer struct {
	listener net.Listener
	unload   chan struct{}
	once     sync.Once
}

// listenSched opens the socket.
func listenSched(path string) (*schedServer, error) {
	l, err := web.ListenUnix(path, web.Nobody, slog.New(slog.DiscardHandler))
	if errors.Is(err, web.ErrInUse) {
		return nil, fmt.Errorf("another `plimsoll sched load` has loaded a scheduler: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return &schedServer{listener: l, unload: make(chan struct{})}, nil
}

func (s *schedServer) close() { _ = s.listener.Close() } // the process ends, and with it the socket

func (s *schedServer) serve(h *scx.Running) {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return // closed
		}
		go s.answer(c, h)
	}
}

func (s *schedServer) answer(c net.Conn, h *scx.Running) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(schedPatience)) // a socket has deadlines
	var q schedRequest
	var a schedAnswer
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

func (s *schedServer) do(h *scx.Running, q schedRequest) (scx.Status, error) {
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

// askSched asks the process that loaded a scheduler.
func (g *globals) askSched(q schedRequest) (scx.Status, error) {
	c, err := net.Dial("unix", filepath.Join(g.stateDir, schedSocket))
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return scx.Status{}, errNotLoaded
	}
	if err != nil {
		return scx.Status{}, fmt.Errorf("ask the process that loaded the scheduler: %w", err)
	}
	defer c.Close()
	var a schedAnswer
	if err := errors.Join(c.SetDeadline(time.Now().Add(schedPatience)), json.NewEncoder(c).Encode(q)); err != nil {
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
