package nri

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/adaptation"
	"github.com/containerd/nri/pkg/api"
	"github.com/google/go-cmp/cmp"

	"plimsoll/internal/cpu"
)

// runtime is a container runtime's side of NRI, the real one.
type runtime struct{ *adaptation.Adaptation }

func startRuntime(t *testing.T, socket string) runtime {
	t.Helper()
	nothing := func(_ context.Context, sync adaptation.SyncCB) error {
		_, err := sync(context.Background(), nil, nil)
		return err
	}
	update := func(context.Context, []*adaptation.ContainerUpdate) ([]*adaptation.ContainerUpdate, error) {
		return nil, errors.New("no subscription to updates")
	}
	a, err := adaptation.New("containerd", "v2.2.9", nothing, update, adaptation.WithSocketPath(socket),
		adaptation.WithPluginPath(filepath.Join(filepath.Dir(socket), "plugins")),
		adaptation.WithPluginConfigPath(filepath.Dir(socket)))
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	return runtime{a}
}

// resize calls the plugins as a runtime does before it writes a container's limit, and returns how long that took.
func (r runtime) resize(t *testing.T, group string, quota, period time.Duration) time.Duration {
	t.Helper()
	begin := time.Now()
	answer, err := r.UpdateContainer(t.Context(), &adaptation.UpdateContainerRequest{
		Pod:       &api.PodSandbox{Id: "p"},
		Container: &api.Container{Id: "c", PodSandboxId: "p", Linux: &api.LinuxContainer{CgroupsPath: group}},
		LinuxResources: &api.LinuxResources{Cpu: &api.LinuxCPU{Quota: api.Int64(quota.Microseconds()),
			Period: api.UInt64(period.Microseconds())}},
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(begin)
	for _, u := range answer.GetUpdate() {
		if q := u.GetLinux().GetResources().GetCpu().GetQuota(); q != nil && q.GetValue() != quota.Microseconds() {
			t.Errorf("the plugin changes the runtime's write to %d us", q.GetValue())
		}
	}
	return took
}

// knows waits until the runtime calls the plugin: the runtime registers it a little after the plugin is configured.
func (r runtime) knows(t *testing.T, p *Plugin) {
	t.Helper()
	was := p.Status().Asked
	for end := time.Now().Add(30 * time.Second); p.Status().Asked == was; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not called: %+v", p.Status())
		}
		r.resize(t, "/first", time.Millisecond, time.Millisecond)
	}
	if s := p.Status(); !s.Connected || s.Fault != "" || s.Runtime != "containerd v2.2.9" {
		t.Errorf("%+v", s)
	}
}

// asked records the calls of the agent.
type asked struct {
	mu   sync.Mutex
	list map[string]cpu.Bandwidth
	wait chan struct{} // closed: answers at once
}

func (a *asked) prepareResize(group string, limit cpu.Bandwidth) bool {
	<-a.wait
	a.mu.Lock()
	defer a.mu.Unlock()
	a.list[group] = limit
	return true
}

// plugin runs one until the end of the test.
func plugin(t *testing.T, socket string) (*Plugin, *asked) {
	t.Helper()
	a := &asked{list: map[string]cpu.Bandwidth{}, wait: make(chan struct{})}
	p := New(Options{Socket: socket, PrepareResize: a.prepareResize, Log: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return p, a
}

func await(t *testing.T, p *Plugin, what string, is func(Status) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !is(p.Status()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not %s: %+v", what, p.Status())
		}
	}
}

// socketIn is a path short enough for a socket.
func socketIn(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "nri")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "nri.sock")
}

// TestPreparesBeforeTheRuntimeWrites: the agent is called with the group and its new limit, and the runtime goes on
// after it.
func TestPreparesBeforeTheRuntimeWrites(t *testing.T) {
	socket := socketIn(t)
	r := startRuntime(t, socket)
	defer r.Stop()
	p, a := plugin(t, socket)
	close(a.wait)
	r.knows(t, p)
	const ms = time.Millisecond
	r.resize(t, "/kubepods/pod1/c1", 20*ms, 100*ms)
	r.resize(t, "kubepods-pod2.slice:cri-containerd:c2", 5*ms, 10*ms)
	want := map[string]cpu.Bandwidth{
		"/first":            {Quota: ms, Period: ms},
		"/kubepods/pod1/c1": {Quota: 20 * ms, Period: 100 * ms},
		"/kubepods.slice/kubepods-pod2.slice/cri-containerd-c2.scope": {Quota: 5 * ms, Period: 10 * ms},
	}
	if diff := cmp.Diff(want, a.list); diff != "" {
		t.Error(diff)
	}
	s := Status{Socket: socket, Connected: true, Runtime: "containerd v2.2.9", Asked: 3, Prepared: 3}
	if diff := cmp.Diff(s, p.Status()); diff != "" {
		t.Error(diff)
	}
}

// TestNeverDelaysAPod: an agent that does not answer does not keep the runtime waiting.
func TestNeverDelaysAPod(t *testing.T) {
	socket := socketIn(t)
	r := startRuntime(t, socket)
	defer r.Stop()
	p, a := plugin(t, socket)
	r.knows(t, p)
	took := r.resize(t, "/kubepods/pod1/c1", 20*time.Millisecond, 100*time.Millisecond)
	if s := p.Status(); took > time.Second || s.Late != 2 || s.Prepared != 0 {
		t.Errorf("answered after %v: %+v", took, s)
	}
	close(a.wait)
	await(t, p, "done all the same", func(s Status) bool { return s.Prepared == 2 })
}

// forward passes connections on until it is cut: a runtime that ends closes them, and Stop of the adaptation does not.
func forward(t *testing.T, from, to string) (cut func()) {
	t.Helper()
	l, err := net.Listen("unix", from)
	if err != nil {
		t.Fatal(err)
	}
	conns := make(chan net.Conn, 100)
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("unix", to)
			if err != nil {
				near.Close()
				continue
			}
			conns <- near
			conns <- far
			go io.Copy(near, far)
			go io.Copy(far, near)
		}
	}()
	return func() {
		l.Close()
		for len(conns) > 0 {
			(<-conns).Close()
		}
	}
}

// TestConnectsAgain: the plugin does not block while there is no runtime, and connects to a restarted runtime again.
func TestConnectsAgain(t *testing.T) {
	inner, socket := socketIn(t), socketIn(t)
	r := startRuntime(t, inner)
	defer r.Stop()
	cut := forward(t, socket, inner)
	p, a := plugin(t, socket)
	close(a.wait)
	r.knows(t, p)
	cut()
	await(t, p, "disconnected", func(s Status) bool { return !s.Connected && s.Lost == 1 && s.Fault != "" })
	defer forward(t, socket, inner)()
	r.knows(t, p)
	r.resize(t, "/kubepods/pod1/c1", 20*time.Millisecond, 100*time.Millisecond)
	if s := p.Status(); s.Asked != s.Prepared || s.Lost != 1 {
		t.Errorf("%+v", s)
	}
}

// TestWithoutARuntime: a missing runtime is no error, and the plugin ends when its context does.
func TestWithoutARuntime(t *testing.T) {
	p, _ := plugin(t, socketIn(t))
	await(t, p, "said", func(s Status) bool { return !s.Connected && s.Lost == 0 && s.Fault != "not connected yet" })
}

// TestEvents: a runtime refuses a plugin that subscribes to an event which the runtime does not know.
func TestEvents(t *testing.T) {
	for version, pods := range map[string]bool{"v0.6.1": false, "v0.8.0": false, "v0.10.0": true, "v0.11.0": true,
		"v1.0.0": true, "unknown": false, "": false} {
		mask := events(version)
		if !mask.IsSet(api.Event_UPDATE_CONTAINER) || mask.IsSet(api.Event_UPDATE_POD_SANDBOX) != pods {
			t.Errorf("%q: %s", version, mask.PrettyString())
		}
	}
}

// TestOnlyQuotasAreResizes: an update of CPU numbers has no quota, or with CRI-O a quota of 0, and is no resize.
func TestOnlyQuotasAreResizes(t *testing.T) {
	a := &asked{list: map[string]cpu.Bandwidth{}, wait: make(chan struct{})}
	close(a.wait)
	p := New(Options{PrepareResize: a.prepareResize})
	period := api.UInt64(100_000)
	for group, quota := range map[string]*api.OptionalInt64{"/absent": nil, "/zero": api.Int64(0),
		"/none": api.Int64(-1), "/some": api.Int64(20_000)} {
		p.ask(group, &api.LinuxCPU{Cpus: "0-3", Quota: quota, Period: period})
	}
	want := map[string]cpu.Bandwidth{"/none": {Quota: cpu.Unlimited, Period: 100 * time.Millisecond},
		"/some": {Quota: 20 * time.Millisecond, Period: 100 * time.Millisecond}}
	if diff := cmp.Diff(want, a.list); diff != "" || p.Status().Asked != 2 {
		t.Errorf("asked %d times: %s", p.Status().Asked, diff)
	}
}
