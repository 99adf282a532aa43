package nri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"

	"plimsoll/internal/cpu"
)

// DefaultSocket is where runtimes listen for plugins (api.DefaultSocketPath).
const DefaultSocket = "/var/run/nri/nri.sock"

const (
	// answerWithin is how long a runtime may be made to wait.
	answerWithin = 50 * time.Millisecond
	// greetWithin is how long a runtime may take to configure a plugin. Its own default is 5 s
	// (stub.DefaultRegistrationTimeout).
	greetWithin = 10 * time.Second

	firstGap = 500 * time.Millisecond // after a connection's end
	lastGap  = 30 * time.Second
	lookGap  = 5 * time.Second // between two attempts to find a missing socket
)

// Options are what a Plugin is made of.
type Options struct {
	Socket string
	// PrepareResize has the bursts of a group and its pod lowered before its limit changes;
	// it says whether there were any.
	PrepareResize func(group string, limit cpu.Bandwidth) bool
	Log           *slog.Logger
}

// Plugin is the runtime's partner. Its methods may be called from several goroutines.
type Plugin struct {
	Options
	mu     sync.Mutex
	status Status
}

// Status is how it stands with the runtime.
type Status struct {
	Socket    string
	Connected bool
	Runtime   string // "containerd v2.2.9", while connected
	Fault     string // why it is not connected
	Asked     int64  // updates that the runtime announced, since the start
	Prepared  int64  // of these, those before which bursts or raised quotas were put back
	Late      int64  // of these, those that were answered before that was done
	Lost      int64  // connections that ended
}

// New makes a plugin; Run connects it.
func New(o Options) *Plugin {
	return &Plugin{Options: o, status: Status{Socket: o.Socket, Fault: "not connected yet"}}
}

// Status returns the state of the connection, and its counters.
func (p *Plugin) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.status
}

// Run keeps connected until the context ends. A nil plugin is turned off.
func (p *Plugin) Run(ctx context.Context) error {
	if p == nil {
		return nil
	}
	gap := firstGap
	for ctx.Err() == nil {
		was := p.Status().Lost
		err := p.connect(ctx)
		if ctx.Err() != nil {
			break
		}
		p.ended(err)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			gap = lookGap
		case p.Status().Lost != was: // it was connected
			gap = firstGap
		default:
			gap = min(lastGap, 2*gap)
		}
		select {
		case <-ctx.Done():
		case <-time.After(gap):
		}
	}
	return nil
}

// ended records that there is no connection, and logs it once.
func (p *Plugin) ended(err error) {
	fault := "the runtime closed the connection"
	if err != nil {
		fault = err.Error()
	}
	p.mu.Lock()
	was, said := p.status.Connected, p.status.Fault
	p.status.Connected, p.status.Runtime, p.status.Fault = false, "", fault
	if was {
		p.status.Lost++
	}
	p.mu.Unlock()
	switch {
	case was:
		p.Log.Warn("the runtime announces no more resizes: bursts are lowered only after a resize is seen; "+
			"connecting again", "socket", p.Socket, "error", fault)
	case fault != said:
		p.Log.Info("no NRI: bursts are lowered only after a resize is seen", "socket", p.Socket, "error", fault, "hint",
			"`plimsoll doctor` says whether the socket is absent or NRI is off")
	}
}

// connect registers with the runtime and answers it until the connection ends.
func (p *Plugin) connect(ctx context.Context) error {
	conn, err := net.Dial("unix", p.Socket)
	if err != nil {
		return err
	}
	defer conn.Close()
	s := &session{plugin: p, greeted: make(chan struct{})}
	st, err := stub.New(s, stub.WithPluginName("plimsoll"), stub.WithPluginIdx("90"), stub.WithConnection(conn),
		stub.WithLogger(silent{}), stub.WithOnClose(func() {}))
	if err != nil {
		return fmt.Errorf("nri: %w", err)
	}
	s.stub = st
	end := make(chan error, 1)
	go func() { end <- st.Run(ctx) }()
	select {
	case err := <-end:
		return err
	case <-s.greeted:
		return <-end
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(greetWithin): // the stub waits for ever, also when the connection ends now
		return fmt.Errorf("nri: %s: the runtime does not answer within %v", p.Socket, greetWithin)
	}
}

// session is one connection. It implements the handlers of the stub.
type session struct {
	plugin  *Plugin
	stub    stub.Stub
	greeted chan struct{}
	runtime string
}

// Configure subscribes to events. A runtime that does not know one of them refuses them all: events of pods exist since
// NRI 0.10 (Event_UPDATE_POD_SANDBOX).
func (s *session) Configure(_ context.Context, _, runtime, version string) (api.EventMask, error) {
	close(s.greeted)
	s.runtime = runtime + " " + version
	return events(s.stub.RuntimeNRIVersion()), nil
}

// Synchronize is called when the runtime has registered the plugin. It ignores the running pods: the agent finds their
// groups.
func (s *session) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	p := s.plugin
	p.mu.Lock()
	p.status.Connected, p.status.Runtime, p.status.Fault = true, s.runtime, ""
	p.mu.Unlock()
	p.Log.Info("the runtime announces resizes before it makes them", "socket", p.Socket, "runtime", s.runtime)
	return nil, nil
}

func events(version string) api.EventMask {
	var mask api.EventMask
	mask.Set(api.Event_UPDATE_CONTAINER)
	var major, minor int
	if n, _ := fmt.Sscanf(version, "v%d.%d", &major, &minor); n == 2 && (major > 0 || minor >= 10) {
		mask.Set(api.Event_UPDATE_POD_SANDBOX)
	}
	return mask
}

// UpdateContainer is called before the runtime writes a container's limit.
func (s *session) UpdateContainer(_ context.Context, _ *api.PodSandbox, c *api.Container,
	r *api.LinuxResources) ([]*api.ContainerUpdate, error) {
	s.plugin.ask(c.GetLinux().GetCgroupsPath(), r.GetCpu())
	return nil, nil
}

// UpdatePodSandbox is called with a pod's new limit.
func (s *session) UpdatePodSandbox(_ context.Context, pod *api.PodSandbox, _, r *api.LinuxResources) error {
	s.plugin.ask(pod.GetLinux().GetCgroupParent(), r.GetCpu())
	return nil
}

// ask has the agent prepare for a resize. It returns when that is done, or after answerWithin. A quota of 0 changes
// nothing: CRI-O sends it with an update of other values, such as CPUs of the static CPU manager. No limit is -1.
func (p *Plugin) ask(name string, to *api.LinuxCPU) {
	group := groupOf(name)
	if group == "" || to.GetQuota().GetValue() == 0 {
		return
	}
	limit := cpu.Bandwidth{Quota: cpu.Unlimited, Period: time.Duration(to.GetPeriod().GetValue()) * time.Microsecond}
	if q := to.GetQuota().GetValue(); q > 0 {
		limit.Quota = time.Duration(q) * time.Microsecond
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if p.PrepareResize(group, limit) {
			p.count(&p.status.Prepared)
		}
	}()
	p.count(&p.status.Asked)
	timer := time.NewTimer(answerWithin)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		p.count(&p.status.Late)
		p.Log.Warn("the runtime was answered before bursts were lowered", "cgroup", group, "within", answerWithin)
	}
}

func (p *Plugin) count(n *int64) {
	p.mu.Lock()
	*n++
	p.mu.Unlock()
}

// silent keeps the stub quiet: what matters is said above.
type silent struct{}

func (silent) Debugf(context.Context, string, ...any) {}
func (silent) Infof(context.Context, string, ...any)  {}
func (silent) Warnf(context.Context, string, ...any)  {}
func (silent) Errorf(context.Context, string, ...any) {}
