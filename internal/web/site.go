package web

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"plimsoll/internal/report"
	"plimsoll/internal/view"
)

// Site serves the network from the agent's socket for readers. It needs no privilege.
//
// # Problem
//
// Names, limits and use of all tenants are on the pages. Whoever reaches the address may not be one of those who may
// read them, and may ask as often as the network carries. The agent must not notice.
//
// # Approach
//
// An address of the loopback interface is open to the programs of this machine (in a pod: to those who may forward a
// port to it). Any other address speaks TLS, and asks Access who may read; /healthz, /readyz and /livez have no
// content, and are open. A request names the address that it was sent to, not a domain (Hosts apart), so that no page
// of a browser can read by DNS rebinding. Answers are rendered once a snapshot and shared; a bounded number waits, and
// each address has a share of it.
//
// # Known limits
//
// All programs of the loopback interface are one client. An address behind NAT, or of an IPv6 network of 64 bits,
// shares its part with its neighbours. Many addresses together can ask an API server so much that a reader at an
// address that it does not know yet waits in vain.
type Site struct {
	listeners map[net.Listener]http.Handler
	pages     *side
	asking    clients // whose requests wait for Access
	agent     *Client
	watch     *watcher
	log       *slog.Logger
}

// Access says who may read.
type Access interface {
	// Permit returns nil where the request may read its path; else an *Error with 401 or 403.
	Permit(*http.Request) error
}

// SiteOptions say where a Site listens, and who may read.
type SiteOptions struct {
	Listen []string    // host:port each
	Agent  string      // path of the agent's socket for readers
	TLS    *tls.Config // for addresses beyond the loopback interface
	Access Access      // for these
	Hosts  []string    // names by which requests may come, beside addresses and localhost
	Detail report.Detail
	Node   string         // name of the host
	Page   fs.FS          // index.html and assets/ of the page; nil: there is none
	Always bool           // keep the last 15 minutes also while nobody looks
	From   *view.Snapshot // a recording to show, in place of an agent; nil: there is none
	Now    func() time.Time
	Log    *slog.Logger
}

// OpenSite opens the addresses, so that what cannot be opened is known at once. Serve closes them.
func OpenSite(o SiteOptions) (*Site, error) {
	s := &Site{agent: Dial(o.Agent), log: o.Log, listeners: map[net.Listener]http.Handler{}}
	s.pages = newSide(newAnswers(remote{s.agent}, o.Now, o.Log))
	s.pages.whole.pause = readersPause
	s.watch = newWatcher(s.agent, o)
	for _, address := range o.Listen {
		l, err := net.Listen("tcp", address)
		if err != nil {
			s.close()
			return nil, &Error{Msg: "listen: " + err.Error(), wrapped: err,
				Advice: `is the address in use? --listen chooses another, --listen "" does without`}
		}
		mux, inside := s.handler(o), l.Addr().(*net.TCPAddr).IP.IsLoopback()
		h := http.Handler(mux)
		l = newCrowd(l, maxConnections, inside)
		if !inside {
			if o.TLS == nil || o.Access == nil {
				l.Close()
				s.close()
				return nil, errOpen(address)
			}
			l, h = tls.NewListener(l, o.TLS), s.permit(o.Access, mux)
		}
		s.listeners[l] = atWork(asData(s.checkHost(o.Hosts, h)))
	}
	return s, nil
}

func errOpen(address string) error {
	return &Error{Msg: fmt.Sprintf("listen on %s: names and use of all containers would be open to the network",
		address), Advice: "say who may read: --token-file, --client-ca or --kube-auth (docs/REFERENCE.md)"}
}

func (s *Site) close() {
	for l := range s.listeners {
		l.Close()
	}
}

// Addrs are the addresses that are listened on, in no order.
func (s *Site) Addrs() []string {
	var list []string
	for l := range s.listeners {
		list = append(list, l.Addr().String())
	}
	return list
}

// Serve answers until ctx ends.
func (s *Site) Serve(ctx context.Context) error {
	defer context.AfterFunc(ctx, s.watch.end)() // streams do not end by themselves
	s.watch.begin()
	return serve(ctx, s.listeners, s.log)
}

// remote is the agent behind its socket, as the source of snapshots.
type remote struct{ *Client }

func (r remote) Status(ctx context.Context) (report.Status, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	return r.Client.Status(ctx)
}

// Health is not needed: the site asks for the agent's own judgement.
func (r remote) Health(ctx context.Context) (report.Status, error) { return r.Status(ctx) }

// fetchTimeout bounds the wait for the agent's answer, which may queue behind those of other readers.
const fetchTimeout = 5 * time.Second

func (s *Site) handler(o SiteOptions) *http.ServeMux {
	mux := http.NewServeMux()
	s.look(mux, o.Page)
	mux.HandleFunc("/", s.pages.readOnly)
	if o.From != nil { // no agent
		alive := func(w http.ResponseWriter, _ *http.Request) { sayHealth(w, nil) }
		for _, path := range []string{"/healthz", "/readyz", "/livez"} {
			mux.HandleFunc("GET "+path, alive)
		}
		return mux
	}
	mux.HandleFunc("GET /healthz", s.health("/healthz"))
	mux.HandleFunc("GET /readyz", s.health("/readyz"))
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { sayHealth(w, nil) }) // this process
	mux.HandleFunc("GET /metrics", s.pages.show(metricsFormat(o.Detail)))
	mux.HandleFunc("GET /api/v1/status", s.pages.show(statusFormat()))
	mux.HandleFunc("GET /api/v1/report", s.pages.show(reportFormat()))
	return mux
}

// health passes the agent's judgement on, without a word about it: the path is open to everybody. So all requests that
// wait share one question to the agent.
func (s *Site) health(path string) http.HandlerFunc {
	judgements := &snapshots{pause: readersPause, take: func(ctx context.Context) (report.Status, error) {
		ctx, cancel := context.WithTimeout(ctx, s.pages.patience)
		defer cancel()
		return report.Status{}, s.agent.Healthy(ctx, path)
	}}
	return func(w http.ResponseWriter, r *http.Request) {
		_, err := s.pages.ask(r.Context(), judgements)
		if err != nil {
			s.log.Debug("not healthy", "path", path, "error", err)
			err = errors.New(notHealthy)
		}
		sayHealth(w, err)
	}
}

// notHealthy is what everybody may know of an agent that is not well.
const notHealthy = "not ok: the agent's log and `plimsoll status` say why"

// permit lets only those read who may. Access is asked about the path of the handler, "/assets/" for all files below:
// so there are few questions about one token. Where there is no handler ("/"), the answer is the same for everybody.
func (s *Site) permit(access Access, next *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, pattern := next.Handler(r)
		path, _, _ := strings.Cut(strings.TrimPrefix(pattern, "GET "), "{")
		if pattern != "/" && !slices.Contains([]string{"/healthz", "/readyz", "/livez"}, path) {
			asked := r.WithContext(r.Context())
			asked.URL = &url.URL{Path: path}
			if err := s.mayRead(access, asked); err != nil {
				s.pages.fail(w, err)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mayRead asks Access, for a part of a client's requests at a time: an API server is asked a few questions a second,
// and whoever sends many tokens that nobody knows would otherwise keep all others waiting.
func (s *Site) mayRead(access Access, r *http.Request) error {
	client := cmp.Or(clientOf(r), "this machine")
	leave, ok := s.asking.enter(client)
	if !ok {
		return busy("too many requests of " + client + " wait for a permission")
	}
	defer leave()
	return access.Permit(r)
}

// asData keeps a browser from making a page of an answer, whose names anybody may have chosen.
func asData(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		next.ServeHTTP(w, r)
	})
}

// checkHost refuses requests for a domain that is not known: a browser sends them for a page of somebody else's.
func (s *Site) checkHost(names []string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !knownHost(r.Host, names) {
			s.pages.fail(w, &Error{Msg: fmt.Sprintf("%.80q is not a name of this server", r.Host),
				Code: http.StatusMisdirectedRequest, Advice: "ask by its address, or name the host with --host"})
			return
		}
		next.ServeHTTP(w, r)
	})
}
