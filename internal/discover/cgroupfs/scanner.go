package cgroupfs

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/fsnotify/fsnotify"

	"plimsoll/internal/cgroup"
	"plimsoll/internal/config"
	"plimsoll/internal/workload"
)

const (
	// defaultEvery is the time between two walks of the whole tree while inotify reports all changes.
	defaultEvery = 30 * time.Second
	// blindEvery is the time between two walks where inotify does not watch all groups.
	blindEvery = time.Second
	// blindMarkEvery is how often all groups count as written to where inotify does not watch them.
	blindMarkEvery = time.Minute
)

// Options are what a Scanner is given besides the tree.
type Options struct {
	Resolver Resolver
	Sources  Sources
	Every    time.Duration // between two walks of the whole tree; 0: 30 s
	Log      *slog.Logger  // nil: silent
	Now      func() time.Time
}

// Scanner knows the containers of a tree. Its methods may be called from several goroutines. Pods, Touched and Counts
// take no lock that is held while files are read or systemd is asked.
type Scanner struct {
	tree    *cgroup.Tree
	base    string // where the root of the hierarchy is mounted
	opt     Options
	queue   *queue
	latest  atomic.Pointer[snapshot]
	rescans atomic.Int64
	lost    atomic.Int64 // times that the kernel dropped events
	watcher watcher      // nil: no inotify
	changes chan fsnotify.Event
	faults  chan error

	mu        sync.Mutex
	root      *node
	nodes     map[string]*node
	chosen    map[workload.ID]*node
	pending   map[*node]bool // to be looked up again
	news      []Event        // to be sent with the next snapshot
	changed   bool           // since the last snapshot
	missed    bool           // inotify has lost events since the last walk: any limit may have been written
	full      bool           // the kernel refused a further watch
	said      bool           // and that was logged
	walked    time.Time      // when the whole tree was, last
	markedAll time.Time      // when all groups were last marked as written to, for lack of watches
	err       error          // of that walk
}

type snapshot struct {
	pods []workload.Pod
	err  error
}

// New walks the tree once. The directory root is the root of the tree's FS, such as /sys/fs/cgroup. With an empty root
// there is no real file system, and nothing is watched.
func New(tree *cgroup.Tree, root string, opt Options) (*Scanner, error) {
	if opt.Every <= 0 {
		opt.Every = defaultEvery
	}
	if opt.Resolver == nil {
		opt.Resolver = &config.File{}
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Now == nil {
		opt.Now = time.Now
	}
	s := &Scanner{tree: tree, base: filepath.Join(root, tree.Dir("/")), opt: opt, queue: newQueue(),
		nodes: map[string]*node{}, chosen: map[workload.ID]*node{}, pending: map[*node]bool{}}
	if root != "" {
		s.openWatcher()
	}
	if err := s.start(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Scanner) start() error {
	inode, err := s.tree.Inode("/")
	if err != nil {
		return fmt.Errorf("scan control groups: %w", err)
	}
	s.changed, s.markedAll = true, s.opt.Now()
	s.root = s.add(nil, "/", inode)
	return s.Rescan()
}

// Run keeps up with the tree until the context ends, and then stops watching.
func (s *Scanner) Run(ctx context.Context) error {
	defer s.Close()
	changes, faults := s.changes, s.faults
	last := s.opt.Now() // when it looked around by itself
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(s.idle(last))
		select {
		case <-ctx.Done():
			return nil
		case e, ok := <-changes:
			if !ok {
				changes = nil
			}
			s.notice(e)
		case err, ok := <-faults:
			if !ok {
				faults = nil
				continue
			}
			s.fault(err)
		case <-timer.C:
			last = s.opt.Now()
			s.lookUpPending()
			if s.walkIn() <= 0 {
				s.walk()
			}
		}
	}
}

// walk is a Rescan of the Scanner's own accord. Pods gives its error, too.
func (s *Scanner) walk() {
	if err := s.Rescan(); err != nil {
		s.opt.Log.Warn("rescan", "error", err)
	}
}

// Close stops watching. The last snapshot stays.
func (s *Scanner) Close() {
	if s.watcher != nil {
		s.watcher.Close()
	}
}

// Pods are the managed containers, in their pods, sorted by path. Pods returns the same slice until something changes
// or the tree is walked; it must not be written to. The error is that of the last walk, and the pods are then those
// known before.
func (s *Scanner) Pods() ([]workload.Pod, error) {
	l := s.latest.Load()
	return l.pods, l.err
}

// Wake has a value when there are events to take.
func (s *Scanner) Wake() <-chan struct{} { return s.queue.wake }

// Events takes what has happened since it was last called.
func (s *Scanner) Events() []Event { return s.queue.take() }

// Counts returns how often the tree was walked and how often events were lost.
func (s *Scanner) Counts() (rescans, lost int64) { return s.rescans.Load(), s.lost.Load() }

// Groups lists the groups that may be managed. Unnamed lists those of them that are not, because no engine made them
// and the configuration does not name them; sorted.
func (s *Scanner) Groups() []string { return s.groupsThat(func(n *node) bool { return n != s.root }) }

// Unnamed: see Groups.
func (s *Scanner) Unnamed() []string {
	return s.groupsThat(func(n *node) bool { return n != s.root && !n.wanted() })
}

func (s *Scanner) groupsThat(are func(*node) bool) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for p, n := range s.nodes {
		if are(n) {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// Configure replaces the configuration.
func (s *Scanner) Configure(r Resolver) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opt.Resolver = r
	for _, n := range s.nodes {
		n.effective = s.resolve(n)
	}
	s.renew()
}

// Rescan walks the whole tree, for changes without an event.
func (s *Scanner) Rescan() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rescans.Add(1)
	s.walked = s.opt.Now()
	s.full = false // the kernel may accept watches again
	before := s.err
	if s.err = s.walkDown(); s.err != nil {
		s.err = fmt.Errorf("scan control groups: %w", s.err)
	}
	marks := s.blind() && s.walked.Sub(s.markedAll) >= blindMarkEvery
	for _, n := range s.chosen {
		if marks || s.missed || n.facts.declared == nil || n.facts.file != "" || n.facts.unanswered {
			s.changed = s.ask(n) || s.changed
		}
	}
	s.missed = false
	if s.changed || before != nil || s.err != nil {
		s.renew()
	}
	if marks {
		s.markedAll = s.walked
		s.queue.put(Lost, "", "")
	}
	return s.err
}

// notice handles an event of inotify. The event is only a hint to look: the name may by now belong to another group.
func (s *Scanner) notice(e fsnotify.Event) {
	dir, name := filepath.Split(e.Name)
	below, ok := strings.CutPrefix(filepath.Clean(dir), s.base)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[path.Join("/", below)]
	if n == nil {
		return
	}
	switch {
	case e.Op.Has(fsnotify.Write):
		s.written(n, name)
	case e.Op.Has(fsnotify.Create), e.Op.Has(fsnotify.Remove), e.Op.Has(fsnotify.Rename):
		if err := s.look(n, name); err != nil {
			s.opt.Log.Warn("scan control groups", "error", err)
		}
		if s.changed { // unmanaged groups come and go on some machines without end
			s.renew()
		}
	}
}

func (s *Scanner) written(n *node, file string) {
	if limitFile(file) && s.measure(n) {
		s.renew()
	}
	if s.chosen[n.ID] == nil {
		return
	}
	switch {
	case limitFile(file):
		s.queue.put(Written, n.Path, file)
		if burstFile(file) {
			return // which no owner declares
		}
		s.doubt(n)
		if s.opt.Now().Sub(n.lookup.asked) >= lookupEvery && s.ask(n) {
			s.renew()
		}
	case taskFile(file):
		s.queue.put(Attached, n.Path, file)
	}
}

// fault handles an error of inotify.
func (s *Scanner) fault(err error) {
	if errors.Is(err, fsnotify.ErrEventOverflow) {
		s.lost.Add(1)
	}
	s.opt.Log.Warn("inotify lost events: the tree is walked again", "error", err)
	s.mu.Lock()
	s.missed = true
	s.mu.Unlock()
	s.walk()
	s.queue.put(Lost, "", "")
}

// renew makes a new snapshot, and sends the events after that: a woken reader finds the snapshot.
func (s *Scanner) renew() {
	groups := choose(s.root)
	chosen := map[workload.ID]*node{}
	var came []*node
	for _, g := range groups {
		for _, n := range g.nodes() {
			chosen[n.ID] = n
			if s.chosen[n.ID] == nil {
				came = append(came, n)
			}
		}
	}
	for _, id := range sortedIDs(s.chosen) {
		if chosen[id] == nil {
			delete(s.pending, s.chosen[id])
			s.news = append(s.news, Event{Kind: Vanished, Path: id.Path})
		}
	}
	s.chosen, s.changed = chosen, false
	for _, n := range came {
		s.ask(n)
		s.doubt(n) // the engine may write its files after the group's
		s.news = append(s.news, Event{Kind: Appeared, Path: n.Path})
	}
	pods := workloads(groups, s.opt.Resolver.Node().Colocation)
	if old := s.latest.Load(); old != nil && slices.EqualFunc(old.pods, pods, workload.Pod.Equal) {
		pods = old.pods // the same snapshot means that nothing changed
	}
	s.latest.Store(&snapshot{pods, s.err})
	for _, e := range s.news {
		s.queue.put(e.Kind, e.Path, e.File)
	}
	s.news = nil
}
