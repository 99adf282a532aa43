package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"plimsoll/internal/report"
)

// Options say where the agent listens.
type Options struct {
	Control string     // path of the socket for control
	Read    ReadAccess // the socket for readers
	Now     func() time.Time
	Log     *slog.Logger
	Plan    DryRun  // nil: there is none
	Periods Periods // nil: there are none
}

// ReadAccess is the socket for readers, and the group that may connect to it, or Nobody.
type ReadAccess struct {
	Socket string // "": there is none
	Group  int
}

// ErrInUse says that another process answers on a socket.
var ErrInUse = errors.New("another process answers there")

// Server serves one agent on its sockets.
type Server struct {
	agent          Agent
	dryRun         DryRun
	dryRuns        dryRuns
	owner, readers *side
	feed           *feed
	listeners      map[net.Listener]http.Handler
	log            *slog.Logger
}

// local is the agent in this process, as the source of snapshots.
type local struct{ Agent }

func (l local) Status(context.Context) (report.Status, error) { return l.Agent.Status(), nil }

func (l local) Health(context.Context) (report.Status, error) { return l.Agent.Health(), nil }

// readersPause has readers cost the agent at most a fifth of its time, however many they are.
const readersPause = 4

// Listen opens the sockets, so that what cannot be opened is known before the agent starts. Serve closes them.
func Listen(agent Agent, o Options) (*Server, error) {
	s := &Server{agent: agent, log: o.Log, dryRun: o.Plan, listeners: map[net.Listener]http.Handler{}}
	s.owner = newSide(newAnswers(local{agent}, o.Now, o.Log))
	s.readers = newSide(newAnswers(local{agent}, o.Now, o.Log))
	s.readers.whole.pause = readersPause
	s.feed = newFeed(s.readers, agent, o.Periods)
	for _, socket := range []struct {
		path    string
		group   int
		most    int // connections
		handler http.Handler
	}{{o.Control, Nobody, maxConnections, s.control()}, {o.Read.Socket, o.Read.Group, maxReaders, s.reading()}} {
		if socket.path == "" {
			continue
		}
		l, err := ListenUnix(socket.path, socket.group, o.Log)
		if err != nil {
			s.close()
			return nil, &Error{Msg: "listen: " + err.Error(), wrapped: err,
				Advice: "--state-dir chooses another directory for the sockets"}
		}
		s.listeners[newCrowd(l, socket.most, false)] = atWork(socket.handler)
	}
	return s, nil
}

func (s *Server) close() {
	for l := range s.listeners {
		l.Close()
	}
}

// Serve answers until ctx ends, lets the requests under way finish for a moment, and removes the sockets.
func (s *Server) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.feed.end)() // streams do not end by themselves
	return serve(ctx, s.listeners, s.log)
}

const (
	maxHeader     = 16 << 10
	maxBody       = 64 << 10
	readTimeout   = 10 * time.Second
	writeTimeout  = time.Minute // a restore of every container must fit
	idleTimeout   = time.Minute
	graceShutdown = 3 * time.Second
)

// bounded is a server whose requests have a bounded size and time.
func bounded(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: readTimeout, ReadTimeout: readTimeout,
		WriteTimeout: writeTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ConnContext: withMember,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug)}
}

// serve answers on listeners until ctx ends, and lets the requests under way finish for a moment.
func serve(ctx context.Context, listeners map[net.Listener]http.Handler, log *slog.Logger) error {
	var servers []*http.Server
	var serving sync.WaitGroup
	failed := make(chan error, len(listeners))
	for l, h := range listeners {
		server := bounded(h, log)
		servers = append(servers, server)
		serving.Go(func() { failed <- server.Serve(l) })
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), graceShutdown)
	defer cancel()
	for _, server := range servers {
		if e := server.Shutdown(grace); e != nil {
			server.Close()
		}
	}
	serving.Wait() // until then a socket's file may still be there
	if err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}
