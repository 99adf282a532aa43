package requests

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"

	"plimsoll/internal/probe/programs"
)

// Clock is where the throttled time of groups is read: a probe.Probe, which must watch the same groups.
type Clock interface {
	ClockMaps() map[string]*ebpf.Map
}

// Options of the programs; the zero value is a good one.
type Options struct {
	Stats       bool // the kernel measures what the programs cost, for all programs of the machine: see Cost
	Connections int  // how many are traced at a time; 0: 65536
}

// Requests is a set of programs in the kernel. They are gone with the process that opened it.
type Requests struct {
	objects  objects
	programs *programs.Set
	watched  map[uint64]bool
	bound    int64         // of connections
	done     chan struct{} // closed by Close; nil before Start
	counting sync.WaitGroup
}

type objects struct {
	kernelMaps
	kernelVariables
}

// ErrKernel is an error of Open: the kernel lacks the tracepoints.
var ErrKernel = errors.New("this kernel has no tracepoints at which requests could be seen (sk_data_ready, " +
	"sock_send_length: not in 6.1, tested from 6.12 on)")

// supported says whether the running kernel has the tracepoints; nil if it does.
func supported(types *btf.Cache) error {
	kernel, err := types.Kernel()
	if err != nil {
		return fmt.Errorf("read the type information of the kernel: %w", err)
	}
	for _, name := range []string{kernelProgSkDataReady, kernelProgSockSendLength, kernelProgInetSockSetState} {
		var f *btf.Typedef
		if kernel.TypeByName("btf_trace_"+name, &f) != nil {
			return ErrKernel
		}
	}
	return nil
}

// Open loads the programs. probe.Explain says what can be done about its error.
func Open(clock Clock, o Options) (*Requests, error) {
	r := &Requests{watched: map[uint64]bool{}, bound: int64(cmp.Or(o.Connections, defaultConnections))}
	if err := r.open(clock, o); err != nil {
		return nil, errors.Join(fmt.Errorf("requests: %w", err), r.Close())
	}
	return r, nil
}

func (r *Requests) open(clock Clock, o Options) error {
	types := btf.NewCache()
	if err := supported(types); err != nil {
		return err
	}
	spec, err := loadKernel()
	if err != nil {
		return err
	}
	shared := clock.ClockMaps()
	for name, m := range shared {
		spec.Maps[name].MaxEntries = m.MaxEntries()
	}
	if err := spec.Variables[kernelVarRoom].Set(r.bound); err != nil {
		return err
	}
	r.programs, err = programs.Load(spec, &r.objects, programs.Options{Stats: o.Stats, Types: types, Maps: shared})
	return err
}

// Start attaches the programs, and takes over the sockets that are there, for the groups that are watched.
func (r *Requests) Start() error {
	if err := r.attach(); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	for _, listening := range []uint32{1, 0} {
		if err := r.takeOver(listening); err != nil {
			return fmt.Errorf("requests: take over the sockets: %w", err)
		}
	}
	if r.done == nil {
		r.done = make(chan struct{})
		r.counting.Go(r.keepRoom)
	}
	return nil
}

// attach attaches the programs at tracepoints.
func (r *Requests) attach() error {
	return r.programs.Attach(kernelProgTakeOver, kernelProgCountTraced)
}

func (r *Requests) takeOver(listening uint32) error {
	if err := r.objects.Listening.Set(listening); err != nil {
		return err
	}
	_, err := walk(link.IterOptions{Program: r.programs.Get(kernelProgTakeOver)})
	return err
}

// walk runs an iterator to its end, and says how many bytes it gave.
func walk(o link.IterOptions) (int64, error) {
	l, err := link.AttachIter(o)
	if err != nil {
		return 0, err
	}
	defer l.Close()
	all, err := l.Open()
	if err != nil {
		return 0, err
	}
	defer all.Close()
	return drain(all)
}

// drain reads to the end in pieces of stretch bytes, a byte a socket. A file that could copy itself would do so in
// larger ones.
func drain(all io.Reader) (int64, error) {
	return io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{all}, make([]byte, stretch))
}

// Watch says whose requests are counted, all of them by inode:
// one that is not named any more is forgotten with its counts.
func (r *Requests) Watch(groups []uint64) error {
	wanted := make(map[uint64]bool, len(groups))
	for _, id := range groups {
		wanted[id] = true
	}
	for id := range r.watched {
		if wanted[id] {
			continue
		}
		if err := r.objects.Watched.Delete(id); err != nil {
			return fmt.Errorf("requests: forget group %d: %w", id, err)
		}
		delete(r.watched, id)
	}
	for id := range wanted {
		if r.watched[id] {
			continue
		}
		if err := r.objects.Watched.Put(id, kernelResponses{}); err != nil {
			return fmt.Errorf("requests: watch group %d beside %d others: %w", id, len(r.watched), err)
		}
		r.watched[id] = true
	}
	return nil
}

// Close removes the programs from the kernel.
func (r *Requests) Close() error {
	if r.done != nil {
		close(r.done)
		r.counting.Wait()
	}
	return errors.Join(r.programs.Close(), r.objects.Close())
}

// Cost is what each program has cost since Open. It needs Options.Stats.
func (r *Requests) Cost() ([]programs.Cost, error) { return r.programs.Cost() }
