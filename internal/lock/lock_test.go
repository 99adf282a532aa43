package lock

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"plimsoll/internal/cgrouptest"
	"plimsoll/internal/fulldisk"
)

func TestMain(m *testing.M) {
	if how := os.Getenv(lockVar); how != "" {
		lockFor(how)
	}
	os.Exit(m.Run())
}

// placeOf is the place of a lock of a hierarchy that everybody can read, as everybody can /sys/fs/cgroup.
func placeOf(t *testing.T) Place {
	t.Helper()
	root := t.TempDir()
	err := errors.Join(os.Chmod(root, 0o755), os.Chmod(filepath.Dir(root), 0o755), // both are this test's own
		os.WriteFile(filepath.Join(root, markFile), nil, 0o644))
	if err != nil {
		t.Fatal(err)
	}
	return Place{Dir: filepath.Join(t.TempDir(), "locks"), Root: root, StateDir: filepath.Join(t.TempDir(), "state")}
}

// TestStateDirectoryLetsOthersThrough: the directory has the socket of --read-group, also where the lock makes it.
func TestStateDirectoryLetsOthersThrough(t *testing.T) {
	p := placeOf(t)
	held(t, p)
	st, err := os.Stat(p.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if mode := st.Mode().Perm(); mode != 0o711 {
		t.Errorf("mode %o, want 711", mode)
	}
}

func TestLockKeepsOthersOut(t *testing.T) {
	p := placeOf(t)
	first := held(t, p)
	other := p
	other.StateDir += "2"
	for name, c := range map[string]struct {
		place Place
		ours  bool
	}{"with this state directory": {p, true}, "with another one": {other, false}} {
		_, err := Take(c.place)
		var locked *TakenError
		if !errors.As(err, &locked) || locked.PID != os.Getpid() || locked.Root != p.Root || locked.Stranger ||
			locked.OurState != c.ours {
			t.Fatalf("second lock %s: %v", name, err)
		}
		if pid := strconv.Itoa(os.Getpid()); !strings.Contains(err.Error(), pid) ||
			!strings.Contains(locked.Hint(), pid) {
			t.Errorf("error %q, hint %q", err, locked.Hint())
		}
	}
	if held, err := Holder(p); err != nil || held == nil || held.PID != os.Getpid() ||
		held.Start != started(os.Getpid()) {
		t.Errorf("held by %v, %v; want this process", held, err)
	}
	if err := first.Release(); err != nil {
		t.Fatal(err)
	}
	if free, err := Holder(p); err != nil || free != nil {
		t.Fatalf("after the release it is held by %v, %v", free, err)
	}
	if left, err := os.ReadDir(p.Dir); err != nil || len(left) > 0 {
		t.Errorf("after the release there is %v, %v", left, err)
	}
	if err := held(t, p).Release(); err != nil {
		t.Fatal(err)
	}
}

// TestLockIsHeldOnce: of many that take the lock and let go of it, which removes its file, never two have it. The mark,
// which would tell, is not there.
func TestLockIsHeldOnce(t *testing.T) {
	p := placeOf(t)
	if err := errors.Join(p.prepare(), os.Remove(filepath.Join(p.Root, markFile))); err != nil {
		t.Fatal(err)
	}
	var holders, taken atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for tries := 0; tries < 1_000_000 && taken.Load() < 1000; tries++ {
				f, err := p.lockFile()
				if err != nil {
					continue
				}
				if n := holders.Add(1); n != 1 {
					t.Errorf("%d have the lock", n)
				}
				taken.Add(1)
				runtime.Gosched()
				holders.Add(-1)
				if err := (&Lock{file: f}).Release(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if taken.Load() < 1000 {
		t.Errorf("taken %d times: the scenario proves nothing", taken.Load())
	}
}

// TestLockWithoutItsName: an agent that has locked the file and not yet written who it is, is no stranger.
func TestLockWithoutItsName(t *testing.T) {
	p := placeOf(t)
	if err := p.prepare(); err != nil {
		t.Fatal(err)
	}
	file, err := p.lockFile()
	if err != nil {
		t.Fatal(err)
	}
	named := make(chan *Lock, 1)
	go func() {
		time.Sleep(2 * again)
		lock, err := p.own(file)
		if err != nil {
			t.Error(err)
		}
		named <- lock
	}()
	var locked *TakenError
	if _, err := Take(p); !errors.As(err, &locked) || locked.Stranger || locked.Unshared != "" {
		t.Errorf("%v", err)
	}
	if lock := <-named; lock != nil {
		lock.Release()
	}
}

// TestLockOnAFullDisk: where the name cannot be written, the mark does for the lock: the holder is no stranger, and
// writes its name later. Without both there is no lock.
func TestLockOnAFullDisk(t *testing.T) {
	if fulldisk.Elsewhere(t) {
		return
	}
	p := placeOf(t)
	free := fulldisk.Fill(t, 0)
	lock := held(t, p)
	var locked *TakenError
	if _, err := Take(p); !errors.As(err, &locked) || locked.Stranger || locked.PID != 0 {
		t.Errorf("a second process: %v", err)
	}
	if err := lock.Sign(); err == nil {
		t.Error("the disk takes a name: the scenario proves nothing")
	}
	free()
	if err := lock.Sign(); err != nil {
		t.Error(err)
	}
	if by, err := Holder(p); err != nil || by == nil || by.PID != os.Getpid() || by.Stranger || !by.OurState {
		t.Errorf("held by %+v, %v; want this process", by, err)
	}
	if err := errors.Join(lock.Release(), os.Remove(filepath.Join(p.Root, markFile))); err != nil {
		t.Fatal(err)
	}
	fulldisk.Fill(t, 0)
	if _, err := Take(p); err == nil {
		t.Error("a lock without a name and without the mark")
	}
}

// TestLockOfAnotherDirectory: agents that do not share the directory of locks see each other by the mark.
func TestLockOfAnotherDirectory(t *testing.T) {
	p := placeOf(t)
	lock := held(t, p)
	unshared := Place{Dir: t.TempDir(), Root: p.Root, StateDir: p.StateDir}
	_, err := Take(unshared)
	var locked *TakenError
	if !errors.As(err, &locked) || locked.Unshared != unshared.Dir || locked.Stranger ||
		!strings.Contains(err.Error(), unshared.Dir) ||
		!strings.Contains(locked.Hint(), unshared.Dir) {
		t.Errorf("%v", err)
	}
	if held, err := Holder(unshared); err != nil || held == nil || held.Stranger {
		t.Errorf("held by %v, %v", held, err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := held(t, unshared).Release(); err != nil {
		t.Fatal(err)
	}
}

// TestLockFromAnotherPIDNamespace: there the holder has no number, and is known all the same.
func TestLockFromAnotherPIDNamespace(t *testing.T) {
	root(t)
	p := placeOf(t)
	lock := held(t, p)
	defer lock.Release()
	for name, dir := range map[string]string{"one directory": p.Dir, "two directories": t.TempDir()} {
		cmd := locker(t, "apart", dir, p.Root, p.StateDir)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
		if out, err := cmd.Output(); err != nil || !strings.HasPrefix(string(out),
			"locked another plimsoll already runs on "+p.Root) || strings.Contains(string(out), "process") {
			t.Errorf("%s: %q, %v", name, out, err)
		}
	}
}

const lockVar = "PLIMSOLL_TEST_LOCK"

// locker is this program, which locks something in another process.
func locker(t *testing.T, how string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), lockVar+"="+how)
	return cmd
}

// lockFor is that process. It holds what it has locked until the end of its input.
func lockFor(how string) {
	err := func() error {
		if how == "apart" { // in namespaces of its own
			err := errors.Join(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
				unix.Mount("proc", "/proc", "proc", 0, ""))
			if err == nil {
				_, err = Take(Place{Dir: os.Args[1], Root: os.Args[2], StateDir: os.Args[3]})
			}
			return err
		}
		runtime.LockOSThread() // the capabilities are a thread's
		if err := dropCapabilities(); err != nil {
			return err
		}
		return lockAs(how, os.Args[1])
	}()
	fmt.Println("locked", err)
	if err == nil {
		_, _ = io.ReadAll(os.Stdin)
	}
	os.Exit(0)
}

func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	return unix.Capset(&header, &none[0])
}

func lockAs(how, file string) error {
	flags := map[string]int{"write": unix.O_RDWR, "write at the mark": unix.O_RDWR}[how] // else to read
	fd, err := unix.Open(file, flags, 0)
	if err != nil {
		return err
	}
	switch how {
	case "flock":
		return unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	case "flock shared":
		return unix.Flock(fd, unix.LOCK_SH|unix.LOCK_NB)
	case "read":
		return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	case "read by description":
		return unix.FcntlFlock(uintptr(fd), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_RDLCK})
	case "write":
		return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	case "write at the mark": // and all behind it
		return unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Start: markStart})
	}
	return fmt.Errorf("how to lock %q?", how)
}

func root(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		cgrouptest.Skip(t, "cannot be another user: not root")
	}
}

const nobody = 65534

// stranger is another user's process, or one of root's without capabilities, that has locked a file.
func stranger(t *testing.T, user int, how, file string) *exec.Cmd {
	t.Helper()
	cmd := locker(t, how, file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	said := make([]byte, 200)
	if n, err := out.Read(said); err != nil || string(said[:n]) != "locked <nil>\n" {
		t.Fatalf("the stranger: %q, %v", said[:n], err)
	}
	return cmd
}

// TestLockInSpiteOfStrangers: whatever any user locks, the lock can be taken, also by who stands by, and two agents do
// not have it at a time. Who is in the way of the mark is named.
func TestLockInSpiteOfStrangers(t *testing.T) {
	root(t)
	for _, user := range []int{nobody, 0} {
		for _, c := range []struct {
			how, file string
			named     bool
		}{
			{"flock", "", false},
			{"flock shared", "", false},
			{"flock", markFile, false},
			{"flock shared", markFile, false},
			{"read", markFile, true},
			{"read by description", markFile, true},
			{"write", markFile, true},
			{"write at the mark", markFile, true},
		} {
			if strings.HasPrefix(c.how, "write") && user != 0 {
				continue // it cannot: TestStrangersCannotLock
			}
			t.Run(fmt.Sprintf("user %d, %s %s", user, c.how, c.file), func(t *testing.T) {
				p := placeOf(t)
				cmd := stranger(t, user, c.how, filepath.Join(p.Root, c.file))
				if by, err := Holder(p); by != nil || err != nil {
					t.Errorf("with a stranger alone it is held by %v, %v", by, err)
				}
				lock := held(t, p)
				if c.named && (len(lock.Strangers) != 1 || lock.Strangers[0].PID != cmd.Process.Pid ||
					lock.Strangers[0].User != user) {
					t.Errorf("in the way are %v, not process %d of user %d", lock.Strangers, cmd.Process.Pid, user)
				}
				if !c.named && len(lock.Strangers) > 0 {
					t.Errorf("in the way are %v", lock.Strangers)
				}
				var locked *TakenError
				if _, err := Take(p); !errors.As(err, &locked) || locked.PID != os.Getpid() {
					t.Errorf("a second agent: %v", err)
				}
				if err := lock.Release(); err != nil {
					t.Fatal(err)
				}
				takenInLine(t, p)
			})
		}
	}
}

// takenInLine has an agent that stands by take the lock.
func takenInLine(t *testing.T, p Place) {
	t.Helper()
	line, err := WaitForHandover(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	lock, _, err := line.Take(ctx, p)
	if err != nil {
		t.Fatalf("an agent that stands by: %v", err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}
