package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	godbus "github.com/godbus/dbus/v5"

	"plimsoll/internal/cpu"
	"plimsoll/internal/workload"
)

const (
	// busTimeout bounds one question. Discovery waits for it.
	busTimeout = 500 * time.Millisecond
	// busBackOff is how long systemd is left alone after it did not answer.
	busBackOff = 30 * time.Second
)

// Systemd asks the system manager for the limits of units over D-Bus. It may be used from several goroutines.
type Systemd struct {
	dial func(context.Context) (*godbus.Conn, error)
	now  func() time.Time

	mu    sync.Mutex
	conn  *godbus.Conn
	end   func()    // of the connection's life
	until time.Time // no question before
}

// NewSystemd connects at the first question, to the system bus or, as root, to the manager itself.
func NewSystemd() *Systemd { return &Systemd{dial: dial, now: time.Now} }

// dial does without the connections of go-systemd: one whose first question is not answered leaves a goroutine behind
// (NewConnection, v22.7.0).
func dial(ctx context.Context) (*godbus.Conn, error) {
	conn, err := godbus.ConnectSystemBus(godbus.WithContext(ctx))
	if err == nil || os.Geteuid() != 0 {
		return conn, err
	}
	if conn, err = godbus.Dial("unix:path=/run/systemd/private", godbus.WithContext(ctx)); err != nil {
		return nil, err
	}
	if err := conn.Auth([]godbus.Auth{godbus.AuthExternal("0")}); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

var errBackingOff = errors.New("systemd did not answer lately")

// Limit is the CPUQuota= and CPUQuotaPeriodSec= of the unit whose group this is. It is not known where the system
// manager has no such unit there: those of a user's manager have the same names.
func (s *Systemd) Limit(group string) (limit cpu.Bandwidth, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now().Before(s.until) {
		return cpu.Bandwidth{}, false, errBackingOff
	}
	ctx, cancel := context.WithTimeout(context.Background(), busTimeout)
	defer cancel()
	limit, known, err = s.ask(ctx, group)
	var reply godbus.Error
	if errors.As(err, &reply) {
		return cpu.Bandwidth{}, false, nil // an answer: no such unit, or nothing of the kind
	}
	if err != nil {
		s.close()
		s.until = s.now().Add(busBackOff)
		return cpu.Bandwidth{}, false, fmt.Errorf("ask systemd about %s: %w", group, err)
	}
	return limit, known, nil
}

// Close ends the connection. The next question makes a new one.
func (s *Systemd) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

func (s *Systemd) close() {
	if s.conn != nil {
		s.conn.Close()
		s.end()
		s.conn = nil
	}
}

func (s *Systemd) ask(ctx context.Context, group string) (cpu.Bandwidth, bool, error) {
	if s.conn != nil && !s.conn.Connected() { // closed by a systemd that was executed again, or by a bus that restarted
		s.close()
	}
	if s.conn == nil {
		if err := s.connect(ctx); err != nil {
			return cpu.Bandwidth{}, false, err
		}
	}
	unit, kind := path.Base(group), unitType(group)
	where, err := property[string](ctx, s.conn, unit, kind, "ControlGroup")
	if err != nil || where != group {
		return cpu.Bandwidth{}, false, err
	}
	quota, err := property[uint64](ctx, s.conn, unit, kind, "CPUQuotaPerSecUSec")
	if err != nil {
		return cpu.Bandwidth{}, false, err
	}
	period, err := property[uint64](ctx, s.conn, unit, kind, "CPUQuotaPeriodUSec")
	if err != nil {
		return cpu.Bandwidth{}, false, err
	}
	return systemdLimit(quota, period), true, nil
}

// connect waits no longer than ctx lasts. The context of the dial itself bounds the life of the connection.
func (s *Systemd) connect(ctx context.Context) error {
	life, end := context.WithCancel(context.Background())
	type dialled struct {
		conn *godbus.Conn
		err  error
	}
	done := make(chan dialled, 1)
	go func() {
		conn, err := s.dial(life)
		done <- dialled{conn, err}
	}()
	select {
	case d := <-done:
		if d.err != nil {
			end()
		}
		s.conn, s.end = d.conn, end
		return d.err
	case <-ctx.Done():
		end() // closes what comes late
		return ctx.Err()
	}
}

func property[T any](ctx context.Context, conn *godbus.Conn, unit, kind, name string) (value T, err error) {
	object := conn.Object("org.freedesktop.systemd1",
		godbus.ObjectPath("/org/freedesktop/systemd1/unit/"+dbus.PathBusEscape(unit)))
	var answer godbus.Variant
	err = object.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, "org.freedesktop.systemd1."+kind,
		name).Store(&answer)
	if err != nil {
		return value, err
	}
	value, ok := answer.Value().(T)
	if !ok {
		return value, *godbus.MakeFailedError(fmt.Errorf("%s of %s is a %T", name, unit, answer.Value()))
	}
	return value, nil
}

// unitType is the last part of the unit's interface name: Service for a .service.
func unitType(group string) string {
	suffix := strings.TrimPrefix(path.Ext(group), ".")
	if suffix == "" {
		return ""
	}
	return strings.ToUpper(suffix[:1]) + suffix[1:]
}

// systemdLimit is what systemd writes for its two properties (src/core/cgroup.c, cgroup_cpu_adjust_period: the quota
// is at least 1 ms, and the period at most 1 s).
func systemdLimit(quotaPerSec, period uint64) cpu.Bandwidth {
	const second, milli = uint64(1_000_000), uint64(1_000)
	b := cpu.Bandwidth{Quota: cpu.Unlimited, Period: cpu.DefaultPeriod}
	if period == math.MaxUint64 {
		period = second / 10
	}
	if quotaPerSec == math.MaxUint64 || quotaPerSec == 0 || quotaPerSec > uint64(maxMicros)/second {
		return b
	}
	period = min(max(period, milli, milli*second/quotaPerSec), second)
	b.Period = time.Duration(period) * time.Microsecond
	b.Quota = time.Duration(max(quotaPerSec*period/second, milli)) * time.Microsecond
	return b
}

// unrounded undoes what runc and crun do to the limit of a container or pod before they hand it to systemd: they round
// it up (workload.RoundedUp), and then write the exact one themselves. Where the limit in force rounds to systemd's, it
// is the declared one. Else, as while a raise of ours is in force, it is the old declared one, if that does.
func unrounded(declared, now cpu.Bandwidth, old *workload.Declared) cpu.Bandwidth {
	if roundsTo(declared, now) {
		now.Burst = declared.Burst
		return now
	}
	if old != nil && roundsTo(declared, old.Bandwidth) {
		return old.Bandwidth
	}
	return declared
}

// roundsTo says whether systemd gets a limit as this one.
func roundsTo(declared, b cpu.Bandwidth) bool {
	return declared.Limited() && b.Limited() && b.Period == declared.Period &&
		workload.RoundedUp(b) == int64(declared.CPUs()*1e6+0.5)
}
