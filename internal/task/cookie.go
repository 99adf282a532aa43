package task

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Tasks with different core-scheduling cookies never run on the threads of one core at the same time. Where no task
// with the same cookie is runnable, the sibling is forced idle (Documentation/admin-guide/hw-vuln/core-scheduling.rst).
// Tasks without a cookie share cores with each other. Since 5.14, with CONFIG_SCHED_CORE, where cores have two threads.

// core is prctl(PR_SCHED_CORE) of a single thread.
func core(call, tid int, to *uint64) error {
	return unix.PrctlArg5Ptr(unix.PR_SCHED_CORE, uintptr(call), uintptr(tid), unix.PR_SCHED_CORE_SCOPE_THREAD,
		unsafe.Pointer(to))
}

// cookie is a cookie that a thread of this process has: only a thread that has a cookie can give it to others.
type cookie struct {
	id   uint64
	give chan gift
}

type gift struct {
	tid  int
	done chan error
}

// NewCookie makes the cookie that SetCookie gives, if there is none yet, and says which it is. It is there until the
// last task that has it ends.
func (k *Kernel) NewCookie() (id uint64, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.cookie != nil {
		return k.cookie.id, nil
	}
	c := &cookie{give: make(chan gift)}
	made := make(chan error)
	go func() {
		_ = onOneThread(func(tid int) error { return c.serve(tid, made) })
	}()
	if err := <-made; err != nil {
		return 0, fmt.Errorf("make a core-scheduling cookie: %w", err)
	}
	k.cookie = c
	return c.id, nil
}

// serve runs on the thread that has the cookie, and gives it to tasks, as long as the process lives.
func (c *cookie) serve(tid int, made chan<- error) error {
	err := core(unix.PR_SCHED_CORE_CREATE, 0, nil)
	if err == nil {
		c.id, err = (&Kernel{}).Cookie(tid)
	}
	made <- err
	if err != nil {
		return err
	}
	for g := range c.give {
		g.done <- core(unix.PR_SCHED_CORE_SHARE_TO, g.tid, nil)
	}
	return nil
}

// Cookie reads the cookie of a task, 0 for none. The kernel returns a hash of it.
func (*Kernel) Cookie(tid int) (id uint64, err error) {
	return id, wrap("cookie", tid, core(unix.PR_SCHED_CORE_GET, tid, &id))
}

// SetCookie gives a task our cookie, or removes its cookie: 0. To remove it, a thread without a cookie shares that with
// the task.
func (k *Kernel) SetCookie(tid int, id uint64) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case id == 0:
		return wrap("take the cookie", tid, onOneThread(func(int) error {
			return core(unix.PR_SCHED_CORE_SHARE_TO, tid, nil)
		}))
	case k.cookie == nil || k.cookie.id != id:
		return fmt.Errorf("cookie %d is not one of ours to give", id)
	}
	g := gift{tid, make(chan error)}
	k.cookie.give <- g
	return wrap("give the cookie", tid, <-g.done)
}

// HasCookies says whether the kernel has them, and lets us give them.
func (k *Kernel) HasCookies() (has bool, why string) {
	id, err := k.Cookie(unix.Gettid())
	switch {
	case errors.Is(err, unix.EINVAL):
		return false, "the kernel has no core scheduling (CONFIG_SCHED_CORE, 5.14)"
	case errors.Is(err, unix.ENODEV):
		return false, "no core here has a second thread"
	case err != nil:
		return false, err.Error()
	case id != 0:
		return false, "somebody has given Plimsoll itself a core-scheduling cookie"
	}
	if why := cookieWhy(); why != "" {
		return false, why
	}
	return true, "core scheduling, and cores with several threads"
}
