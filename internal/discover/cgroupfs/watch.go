package cgroupfs

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

// watcher is the part of fsnotify that a Scanner needs.
type watcher interface {
	Add(dir string) error
	Remove(dir string) error
	Close() error
}

func (s *Scanner) openWatcher() {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.say("no inotify: changes are seen up to a second late", err, "raise fs.inotify.max_user_instances")
		return
	}
	s.watcher, s.changes, s.faults = w, w.Events, w.Errors
}

// watch adds a group's directory to inotify, and says whether it is watched from now on. Writes to its files, by any
// process, come as events of the directory.
func (s *Scanner) watch(n *node) (begun bool) {
	if n.watched || s.watcher == nil || s.full {
		return false
	}
	err := s.watcher.Add(s.dir(n))
	switch {
	case err == nil:
		n.watched = true
	case errors.Is(err, fs.ErrNotExist): // gone already
	case errors.Is(err, unix.ENOSPC):
		s.full = true
		s.say("no inotify watches left: changes are seen up to a second late", err, "raise fs.inotify.max_user_watches")
	default:
		s.full = true
		s.say("inotify refuses a watch: changes are seen up to a second late", err, "")
	}
	return n.watched
}

// unwatch is needed though the kernel drops the watch with the directory: fsnotify names watches by path, and would
// take those of two groups of one name, one after the other, for the same.
func (s *Scanner) unwatch(n *node) {
	if !n.watched {
		return
	}
	n.watched = false
	s.watcher.Remove(s.dir(n)) // the error says that it was gone
}

func (s *Scanner) dir(n *node) string { return filepath.Join(s.base, n.Path) }

// say logs the first loss of sight.
func (s *Scanner) say(msg string, err error, hint string) {
	if s.said {
		return
	}
	s.said = true
	s.opt.Log.Warn(msg, "error", err, "hint", hint)
}

// blind says whether some groups are not watched.
func (s *Scanner) blind() bool { return s.watcher == nil || s.full }

// idle is for how long there is nothing to do, if no event comes. A node on which nothing happens is not to wake up
// each second for it.
func (s *Scanner) idle(last time.Time) time.Duration {
	wait := s.walkIn()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.pending) > 0 {
		wait = min(wait, last.Add(lookupEvery).Sub(s.opt.Now()))
	}
	return wait
}

// walkIn is the time until the next walk of the whole tree.
func (s *Scanner) walkIn() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	every := s.opt.Every
	if s.blind() {
		every = min(every, blindEvery)
	}
	return s.walked.Add(every).Sub(s.opt.Now())
}
