package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"plimsoll/internal/agent"
	"plimsoll/internal/apply"
	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/discover/cgroupfs"
	"plimsoll/internal/doctor"
	"plimsoll/internal/journal"
	"plimsoll/internal/lock"
	"plimsoll/internal/policy"
	"plimsoll/internal/sysfs"
	"plimsoll/internal/task"
)

// machine is what a writing command needs of this node, for this process alone.
type machine struct {
	dir     *cgroup.Dir
	tree    *cgroup.Tree
	lock    *lock.Lock
	journal *journal.Journal
	writer  *apply.Writer
	notify  *cgroup.Notify // nil: not watched
}

// openTree finds the control groups.
func (g *globals) openTree() (*cgroup.Dir, *cgroup.Tree, error) {
	dir := cgroup.NewDir(g.cgroupRoot)
	tree, err := cgroup.Detect(dir)
	if err != nil {
		dir.Close()
		return nil, nil, withHint(fmt.Errorf("%s: %w", g.cgroupRoot, err), "is --cgroup-root where the control groups are mounted? `mount | grep cgroup` shows it")
	}
	return dir, tree.WithSysctls(cgroup.NewDir("/proc/sys/kernel")), nil
}

// findMachine finds the control groups, without the lock.
func (g *globals) findMachine() (*machine, error) {
	if os.Geteuid() != 0 {
		return nil, withHint(errors.New("control groups can be written by root only"), "run it with sudo")
	}
	dir, tree, err := g.openTree()
	if err != nil {
		return nil, err
	}
	return &machine{dir: dir, tree: tree}, nil
}

// openMachine takes the lock, by (*machine).takeLock or takeUnusedLock, and opens the journal, which puts nothing back yet.
func (g *globals) openMachine(take func(*machine, *globals) error) (*machine, error) {
	m, err := g.findMachine()
	if err != nil {
		return nil, err
	}
	if err = take(m, g); err == nil {
		err = m.open(g)
	}
	if err != nil {
		m.close()
		return nil, err
	}
	return m, nil
}

// place is what is locked: the hierarchy with the cpu controller.
func (m *machine) place(g *globals) lock.Place {
	return lock.Place{Dir: g.lockDir, Root: filepath.Join(g.cgroupRoot, m.tree.Dir("/")), StateDir: g.stateDir}
}

func (m *machine) takeLock(g *globals) error {
	var err error
	m.lock, err = lock.Take(m.place(g))
	return err
}

// strangers says who has locked what agents lock, and keeps no agent from running.
func (m *machine) strangers() []string {
	var list []string
	for _, p := range m.lock.Strangers {
		list = append(list, fmt.Sprintf("%v, which is no plimsoll, has locked the control groups: going on all the same", p))
	}
	return list
}

func (m *machine) warnOfStrangers(log *slog.Logger) {
	for _, note := range m.strangers() {
		log.Warn(note)
	}
}

// open opens the journal. The caller must have the lock.
func (m *machine) open(g *globals) error {
	boot, err := journal.BootID()
	if err != nil {
		return err
	}
	if m.journal, err = journal.Open(g.stateDir, boot, time.Now); err != nil {
		return withHint(err, stateHint(err, g.stateDir))
	}
	possible, _ := sysfs.NewHost("/").Possible() // where it cannot be read, those that are online have to do
	m.writer = apply.New(m.tree, m.journal, time.Now)
	m.writer.Tasks, m.writer.Root, m.writer.Possible = &task.Kernel{}, "/", possible
	return nil
}

// stateHint is what to do about a state directory that cannot be written, where that can be said.
func stateHint(err error, dir string) string {
	var said interface{ Hint() string }
	switch {
	case errors.As(err, &said):
		return said.Hint()
	case errors.Is(err, syscall.EROFS), errors.Is(err, syscall.ENOSPC):
		return fmt.Sprintf("a restore can be done from a copy: cp -a %s /tmp/state && plimsoll restore --state-dir /tmp/state", word(dir))
	}
	return ""
}

// watchQuotas makes the writer check for owners' writes that its refills undo.
func (m *machine) watchQuotas(a *agent.Agent, log *slog.Logger) {
	notify, err := cgroup.NewNotify(m.tree, m.dir.Root())
	if err != nil {
		log.Warn("owners' writes that a refill undoes are seen only where the limit is declared", "error", err)
		return
	}
	m.notify = notify
	m.writer.Watching(notify)
	a.Undone, a.Refillable = m.writer.Undone, m.writer.ExpectRefills
}

func (m *machine) close() {
	if m.notify != nil {
		_ = m.notify.Close()
	}
	if m.journal != nil {
		m.journal.Close()
	}
	if m.lock != nil {
		_ = m.lock.Release() // the kernel lets go of it anyway
	}
	m.dir.Close()
}

// scanner discovers the containers of the tree. root is where it is mounted; "" watches nothing.
func scanner(tree *cgroup.Tree, root string, file *config.File, log *slog.Logger) (*cgroupfs.Scanner, error) {
	return cgroupfs.New(tree, root, cgroupfs.Options{Resolver: file, Sources: cgroupfs.HostSources("/"), Log: log, Now: time.Now})
}

// kernelFeatures are what this kernel can do. Whether a rewrite refills takes a fifth of a second to find out, and matters
// only to an agent with throttle events.
func kernelFeatures(dir *cgroup.Dir, subscribed bool) cgroup.Features {
	host := thisHost()
	host.Quick = !subscribed
	return cgroup.Probe(dir, host)
}

// rules are what the policy must know of this kernel. Where it was not possible to try a refill, as on a machine too
// busy for that, it is taken for what each mainline kernel with the burst does (tg_set_cfs_bandwidth, since 5.14).
func rules(found cgroup.Features, tree *cgroup.Tree) policy.Rules {
	return policy.Rules{
		Burst:           found.Has(cgroup.FeatureBurst),
		BurstAboveQuota: found.Has(cgroup.FeatureAboveQuota),
		Nested:          tree.Version() == cgroup.V1,
		Refill:          doctor.Refills(found),
	}
}
