package cgroupfs

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
	godbus "github.com/godbus/dbus/v5"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

func TestSystemdLimit(t *testing.T) {
	const never = math.MaxUint64
	for _, tt := range []struct {
		quota, period uint64
		want          cpu.Bandwidth
	}{
		{never, never, limited(cpu.Unlimited, 100*ms)},
		{500_000, never, limited(50*ms, 100*ms)},
		{2_000_000, 10_000, limited(20*ms, 10*ms)},
		{1_000, never, limited(ms, 1000*ms)},           // 0.1 %: the period grows until the quota is 1 ms
		{5_000, 100_000, limited(ms, 200*ms)},          //
		{500_000, 5_000_000, limited(500*ms, 1000*ms)}, // at most 1 s
		{2_000_000, 100, limited(2*ms, ms)},            // at least 1 ms
		{1, never, limited(ms, 1000*ms)},
		{0, never, limited(cpu.Unlimited, 100*ms)},
		{never - 1, never, limited(cpu.Unlimited, 100*ms)},
	} {
		if got := systemdLimit(tt.quota, tt.period); got != tt.want {
			t.Errorf("systemdLimit(%d, %d) = %+v, want %+v", tt.quota, tt.period, got, tt.want)
		}
	}
}

func TestUnrounded(t *testing.T) {
	round, exact := limited(13*ms, 100*ms), limited(12500*time.Microsecond, 100*ms)
	raise := limited(37500*time.Microsecond, 100*ms)
	for _, tt := range []struct {
		name                    string
		declared, now, old, out cpu.Bandwidth // old is zero: there is none
	}{
		{"125m is rounded to 130m", round, exact, cpu.Bandwidth{}, exact},
		{"exact", limited(50*ms, 100*ms), limited(50*ms, 100*ms), cpu.Bandwidth{}, limited(50*ms, 100*ms)},
		{"raised since", round, raise, exact, exact},
		{"raised since, and not known before", round, raise, cpu.Bandwidth{}, round},
		{"resized", limited(30*ms, 100*ms), raise, exact, limited(30*ms, 100*ms)},
		{"resized within the 10m", round, limited(12700*time.Microsecond, 100*ms), exact,
			limited(12700*time.Microsecond, 100*ms)},
		{"another period", round, limited(6250*time.Microsecond, 50*ms), cpu.Bandwidth{}, round},
		{"another period before", round, raise, limited(6250*time.Microsecond, 50*ms), round},
		{"no limit in force", round, limited(cpu.Unlimited, 100*ms), cpu.Bandwidth{}, round},
		{"no limit declared", limited(cpu.Unlimited, 100*ms), round, exact, limited(cpu.Unlimited, 100*ms)},
	} {
		var old *workload.Declared
		if tt.old.Period > 0 {
			old = &workload.Declared{Bandwidth: tt.old}
		}
		if got := unrounded(tt.declared, tt.now, old); got != tt.out {
			t.Errorf("%s: %+v, want %+v", tt.name, got, tt.out)
		}
	}
}

// manager answers as systemd does, on the wire, without a bus between. The tests that ask it have a time of their own
// (synctest): however slow the machine is, an answer that comes does so in time.
type manager struct {
	dials int
	conn  net.Conn // its end of the last connection

	mu    sync.Mutex
	units map[string]map[string]any // by the escaped name in the object path
	mute  bool
}

// change lets a test change the answers.
func (m *manager) change(f func(*manager)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f(m)
}

const nginx = "nginx_2eservice"

func newManager() *manager {
	return &manager{units: map[string]map[string]any{nginx: {"Service.ControlGroup": "/system.slice/nginx.service",
		"Service.CPUQuotaPerSecUSec": uint64(500_000), "Service.CPUQuotaPeriodUSec": uint64(math.MaxUint64)}}}
}

func (m *manager) dial(ctx context.Context) (*godbus.Conn, error) {
	m.dials++
	ours, theirs := net.Pipe()
	m.conn = theirs
	go m.serve(theirs)
	conn, err := godbus.NewConn(ours, godbus.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	return conn, conn.Auth([]godbus.Auth{godbus.AuthExternal("0")})
}

// serve plays the server's part of the handshake (D-Bus specification, Authentication Protocol), and then answers.
func (m *manager) serve(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		answer := ""
		switch line = strings.Trim(line, "\x00\r\n"); {
		case line == "AUTH":
			answer = "REJECTED EXTERNAL\r\n"
		case strings.HasPrefix(line, "AUTH EXTERNAL"):
			answer = "OK 0123456789abcdef0123456789abcdef\r\n"
		case line == "BEGIN":
			m.answer(conn, in)
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
	}
}

func (m *manager) answer(conn net.Conn, in io.Reader) {
	for {
		call, err := godbus.DecodeMessage(in)
		if err != nil {
			return
		}
		var reply *godbus.Message
		m.change(func(m *manager) {
			if !m.mute {
				reply = m.reply(call)
			}
		})
		if reply == nil {
			continue
		}
		if err := reply.EncodeTo(conn, binary.LittleEndian); err != nil {
			return
		}
	}
}

// reply answers org.freedesktop.DBus.Properties.Get.
func (m *manager) reply(call *godbus.Message) *godbus.Message {
	at, _ := call.Headers[godbus.FieldPath].Value().(godbus.ObjectPath)
	unit := m.units[strings.TrimPrefix(string(at), "/org/freedesktop/systemd1/unit/")]
	var kind, name string
	if len(call.Body) == 2 { // the library's own questions have other forms
		kind, _ = call.Body[0].(string)
		name, _ = call.Body[1].(string)
	}
	r := &godbus.Message{Headers: map[godbus.HeaderField]godbus.Variant{
		godbus.FieldReplySerial: godbus.MakeVariant(call.Serial())}}
	if v, ok := unit[strings.TrimPrefix(kind, "org.freedesktop.systemd1.")+"."+name]; ok {
		r.Type, r.Body = godbus.TypeMethodReply, []any{godbus.MakeVariant(v)}
		r.Headers[godbus.FieldSignature] = godbus.MakeVariant(godbus.SignatureOf(r.Body...))
		return r
	}
	r.Type = godbus.TypeError
	r.Headers[godbus.FieldErrorName] = godbus.MakeVariant("org.freedesktop.DBus.Error.UnknownProperty")
	return r
}

func TestSystemdIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager()
		s := &Systemd{dial: m.dial, now: newClock().Now}
		defer s.Close()
		for _, tt := range []struct {
			group string
			known bool
		}{
			{"/system.slice/nginx.service", true},
			{"/user.slice/user-1.slice/user@1.service/app.slice/nginx.service", false}, // of another manager
			{"/system.slice/other.service", false},
			{"/nginx.slice", false},
		} {
			limit, known, err := s.Limit(tt.group)
			if err != nil || known != tt.known || known && limit != limited(50*ms, 100*ms) {
				t.Errorf("%s: %+v, %v, %v", tt.group, limit, known, err)
			}
		}
		if m.dials != 1 {
			t.Errorf("%d connections", m.dials)
		}
		m.change(func(m *manager) { m.units[nginx]["Service.CPUQuotaPerSecUSec"] = "text" })
		if _, known, err := s.Limit("/system.slice/nginx.service"); known || err != nil {
			t.Errorf("a property of another type: %v, %v", known, err)
		}
	})
}

func TestSystemdIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := newManager(), newClock()
		s := &Systemd{dial: m.dial, now: clock.Now}
		defer s.Close()
		m.change(func(m *manager) { m.mute = true })
		ask := func() (bool, error) {
			_, known, err := s.Limit("/system.slice/nginx.service")
			return known, err
		}
		begin := time.Now()
		if _, err := ask(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("no answer: %v", err)
		}
		if took := time.Since(begin); took != busTimeout {
			t.Errorf("waited %v", took)
		}
		m.change(func(m *manager) { m.mute = false })
		clock.pass(busBackOff - 1)
		if _, err := ask(); !errors.Is(err, errBackingOff) {
			t.Errorf("too early: %v", err)
		}
		clock.pass(1)
		if known, err := ask(); !known || err != nil {
			t.Errorf("back again: %v, %v", known, err)
		}
	})
}

// TestSystemdClosesTheConnection: the next question makes a new one, and does not wait for that.
func TestSystemdClosesTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newManager()
		s := &Systemd{dial: m.dial, now: newClock().Now}
		defer s.Close()
		for dials := 1; dials <= 2; dials++ {
			if _, known, err := s.Limit("/system.slice/nginx.service"); !known || err != nil || m.dials != dials {
				t.Errorf("%v, %v after %d connections, want %d", known, err, m.dials, dials)
			}
			m.conn.Close()
			synctest.Wait()
		}
	})
}

func TestSystemdIsNotThere(t *testing.T) {
	s := &Systemd{now: newClock().Now, dial: func(context.Context) (*godbus.Conn, error) {
		return nil, errors.New("no bus")
	}}
	if _, _, err := s.Limit("/a.service"); err == nil || errors.Is(err, errBackingOff) {
		t.Errorf("the first: %v", err)
	}
	if _, _, err := s.Limit("/a.service"); !errors.Is(err, errBackingOff) {
		t.Errorf("the second: %v", err)
	}
}

// While systemd does not answer, its last limit stays valid. It does not after an answer without a limit.
func TestUnitsKeepTheirLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, clock := newManager(), newClock()
		src := Sources{Systemd: &Systemd{dial: m.dial, now: clock.Now}}
		defer src.Systemd.Close()
		group := "/system.slice/nginx.service"
		at := Classify(group)
		f := src.lookUp(at, group, limited(50*ms, 100*ms), facts{})
		want := workload.Declared{Bandwidth: limited(50*ms, 100*ms), Source: "systemd CPUQuota= of nginx.service"}
		if f.declared == nil || *f.declared != want {
			t.Fatalf("%+v", f.declared)
		}
		m.change(func(m *manager) { m.mute = true })
		if f = src.lookUp(at, group, limited(50*ms, 100*ms), f); f.declared == nil || *f.declared != want {
			t.Errorf("without an answer: %+v", f.declared)
		}
		m.change(func(m *manager) { m.mute = false })
		clock.pass(busBackOff)
		m.change(func(m *manager) { delete(m.units, nginx) })
		if f = src.lookUp(at, group, limited(50*ms, 100*ms), f); f.declared != nil {
			t.Errorf("without a unit: %+v", f.declared)
		}
	})
}

// The limit of a pod's slice comes from systemd, but runc rounded it before. The limit of a service is exact.
func TestRoundedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slice = "/kubepods.slice/kubepods-pod1_2.slice"
		m := newManager()
		m.units["kubepods_2dpod1_5f2_2eslice"] = map[string]any{"Slice.ControlGroup": slice,
			"Slice.CPUQuotaPerSecUSec": uint64(130_000), "Slice.CPUQuotaPeriodUSec": uint64(100_000)}
		m.units[nginx]["Service.CPUQuotaPerSecUSec"] = uint64(130_000)
		src := Sources{Systemd: &Systemd{dial: m.dial, now: newClock().Now}}
		defer src.Systemd.Close()
		exact := limited(12500*time.Microsecond, 100*ms)
		for group, want := range map[string]cpu.Bandwidth{slice: exact,
			"/system.slice/nginx.service": limited(13*ms, 100*ms)} {
			var f facts
			// the second is a raise
			for _, now := range []cpu.Bandwidth{exact, limited(37500*time.Microsecond, 100*ms), exact} {
				f = src.lookUp(Classify(group), group, now, f)
				if f.declared == nil || f.declared.Bandwidth != want || f.declared.Rounded != (group == slice) {
					t.Errorf("%s at %v: %+v, want %+v", group, now.Quota, f.declared, want)
				}
			}
		}
	})
}

// TestSystemdIsAskedAgain: a change of a property is seen although systemd did not answer at the time, or although no
// event told of the write.
func TestSystemdIsAskedAgain(t *testing.T) {
	const group = "/system.slice/nginx.service"
	for name, c := range map[string]struct {
		watcher watcher
		told    bool // of the write
		then    func(s *Scanner, m *manager, c *clock)
	}{
		"no answer": {&scarce{free: 100, watched: map[string]bool{}}, true, func(s *Scanner, m *manager, c *clock) {
			c.pass(2 * lookupEvery)
			s.lookUpPending()
			m.change(func(m *manager) { m.mute = false })
			c.pass(busBackOff)
			s.walk()
		}},
		"no inotify": {nil, false, func(s *Scanner, m *manager, c *clock) {
			m.change(func(m *manager) { m.mute = false })
			c.pass(blindMarkEvery)
			s.walk()
		}},
		"lost events": {&scarce{free: 100, watched: map[string]bool{}}, false, func(s *Scanner, m *manager, _ *clock) {
			m.change(func(m *manager) { m.mute = false })
			s.fault(fsnotify.ErrEventOverflow)
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			m, clock, tree := newManager(), newClock(), newMemory(group)
			tree.limit(group, 50_000, 100_000)
			bus := &Systemd{dial: m.dial, now: clock.Now}
			defer bus.Close()
			s := scanner(t, tree, Options{Resolver: include(t, group), Sources: Sources{Systemd: bus}, Now: clock.Now})
			s.watcher = c.watcher
			quota := func() time.Duration {
				pods, err := s.Pods()
				if err != nil || pods[0].Containers[0].Declared == nil {
					t.Fatalf("%s: %+v, %v", name, pods, err)
				}
				return pods[0].Containers[0].Declared.Bandwidth.Quota
			}
			clock.pass(2 * lookupEvery)
			s.lookUpPending() // nothing is in doubt any more
			m.change(func(m *manager) {
				m.mute, m.units[nginx]["Service.CPUQuotaPerSecUSec"] = true, uint64(1_000_000)
			})
			tree.limit(group, 100_000, 100_000)
			if c.told {
				s.mu.Lock()
				s.written(s.nodes[group], "cpu.cfs_quota_us")
				s.mu.Unlock()
			}
			if got := quota(); got != 50*ms {
				t.Errorf("%s: %v, and systemd has not said it", name, got)
			}
			if c.then(s, m, clock); quota() != 100*ms {
				t.Errorf("%s: %v is declared", name, quota())
			}
		})
	}
}
