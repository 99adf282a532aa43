package requests

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Adopt takes over the connections that are older than the programs, in the network namespace of this process and in those
// of other processes. The kernel lists the sockets of one namespace at a time, that of the thread which asks
// (kernel/bpf/bpf_iter.c, bpf_iter_init_seq_net). The error is of namespaces that cannot be entered, which takes
// CAP_SYS_ADMIN: their connections are followed as they begin.
func (p *Probe) Adopt(processes ...int) error {
	own, _ := namespace("self") // not known: it is listed twice
	seen := map[uint64]bool{own: true}
	list := []error{p.adoptHere()}
	for _, pid := range processes {
		id, err := namespace(fmt.Sprint(pid))
		if err != nil || seen[id] {
			continue // it is gone
		}
		seen[id] = true
		list = append(list, p.adoptIn(fmt.Sprintf("/proc/%d/ns/net", pid)))
	}
	if err := errors.Join(list...); err != nil {
		return fmt.Errorf("requests: %w", err)
	}
	return nil
}

func namespace(process string) (uint64, error) {
	var s unix.Stat_t
	err := unix.Stat("/proc/"+process+"/ns/net", &s)
	return s.Ino, err
}

// adoptIn enters another namespace on a thread of its own, which ends with it.
func (p *Probe) adoptIn(file string) error {
	f, err := os.Open(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the process has ended
	}
	if err != nil {
		return fmt.Errorf("open a network namespace: %w", err)
	}
	defer f.Close()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with this function
		if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("enter %s: %w", file, err)
			return
		}
		done <- p.adoptHere()
	}()
	return <-done
}

func (p *Probe) adoptHere() error {
	l, err := link.AttachIter(link.IterOptions{Program: p.programs.Get(kernelProgAdopt)})
	if err != nil {
		return fmt.Errorf("attach %s: %w", kernelProgAdopt, err)
	}
	defer l.Close()
	sockets, err := l.Open()
	if err != nil {
		return fmt.Errorf("open the list of sockets: %w", err)
	}
	defer sockets.Close()
	if _, err := io.Copy(io.Discard, sockets); err != nil {
		return fmt.Errorf("walk the sockets: %w", err)
	}
	return nil
}
