package requests

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf/link"
)

// How many connections are traced.
//
// Problem: a connection's state takes about 450 bytes of kernel memory, of the agent's control group, and all that may
// connect on the node make connections.
//
// Approach: the programs have room for so many more, and make no state without it. Where less than half of the bound is
// left, the states that are there are counted, each second or less often, and the rest of the bound is the new room.
// The kernel frees a state with its socket: no event that a program misses makes the count wrong for long.
//
// Known limits: where more than half of the bound come between two counts, some are not traced although there is memory
// for them. Connections that are made during a count may exceed the bound.

const (
	defaultConnections = 65536
	countEvery         = time.Second
	countPart          = 100 // a count may take one part of so many of a CPU
	// connections that are counted without a pause: half a millisecond in which a kernel that is not preemptible runs
	// nothing else on the CPU
	stretch = 1024
)

// keepRoom counts until Close. Without a count the room lasts for the connections that it was made for, and Untraced
// counts the others.
func (r *Requests) keepRoom() {
	for wait := countEvery; ; {
		select {
		case <-r.done:
			return
		case <-time.After(wait):
		}
		begun := time.Now()
		_ = r.makeRoom() // the next time
		wait = max(countEvery, countPart*time.Since(begun))
	}
}

func (r *Requests) makeRoom() error {
	var room int64
	if err := r.objects.Room.Get(&room); err != nil || room > r.bound/2 {
		return err
	}
	n, err := r.traced()
	if err != nil {
		return err
	}
	return r.objects.Room.Set(r.bound - n)
}

// traced counts the connections that are traced now.
func (r *Requests) traced() (int64, error) {
	n, err := walk(link.IterOptions{Program: r.programs.Get(kernelProgCountTraced), Map: r.objects.Connections})
	if err != nil {
		return 0, fmt.Errorf("requests: count the connections: %w", err)
	}
	return n, nil
}

// Untraced is how many connections came when there was no room, so that their requests are in no count.
func (r *Requests) Untraced() int64 {
	var n int64
	if err := r.objects.Untraced.Get(&n); err != nil {
		return 0 // mapped memory, from 5.5 on
	}
	return n
}
