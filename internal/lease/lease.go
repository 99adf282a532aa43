// Package lease decides when a raise has outlived the agent that answers for it.
//
// # Problem
//
// A raised quota is right only while somebody watches what comes of it. An agent that is killed, out of memory, stopped
// or deadlocked lowers nothing: the quota would stay until a person calls `plimsoll restore`. A process that puts
// limits back must not do so beside an agent that works, nor write the journal of one that only seems to be dead.
//
// # Approach
//
// A raise is a lease of ten seconds. The thread that writes sends a heartbeat when it has taken a turn, under the
// agent's lock, so that whatever keeps it from lowering a quota keeps it from that, too. The heartbeat is one line in
// the state directory: when it was sent, and by which process.
//
// Another process, plimsoll-lease, looks every second at the heartbeat and at the lock of the machine (package apply).
// When the last heartbeat is older than the lease, and the journal has entries:
//
//	the lock is                                 it
//	free                                        takes the lock, and restores
//	held by the process of the last heartbeat   kills that process first: it hangs
//	held by another one of this state directory gives that one as long for its first heartbeat: it starts, or hangs
//	held by one of another state directory      does nothing: the heartbeat of that one is elsewhere
//
// It writes only when it has the lock. So an agent that stands by can be faster, and then restores by itself.
//
// A heartbeat of a process that is dead counts as well: an agent that is killed again right after each start never gets
// to one, and nothing but the age of the last one tells.
//
// The clock is CLOCK_MONOTONIC, which all processes of a machine share, which nobody sets, and which stands still while
// the machine is suspended. It does not stand still while a hypervisor stops the machine, or a freezer both processes.
// So a process that has just begun to look, or has not looked for a while, first looks for three tenths of the lease.
//
// A pod's containers are asked to end at the same time. Who watches then stays as long as the agent that was there, for
// one that hangs does not end by itself.
//
// # Known limits
//
// A process that the kernel does not let die (state D) keeps the lock, and the limits stay. A lease that is itself
// starved of CPU is late. The tasks in a shield of the cpuset root (package apply) are not in the journal, and go back
// only with something that is. On a host without systemd and without plimsoll-lease, `plimsoll restore` and the agent's
// next start put limits back; any supervisor can run plimsoll-lease.
package lease

import "time"

// After is how old the last heartbeat is when the limits are put back.
const After = 10 * time.Second

// Process is one of this machine.
type Process struct {
	PID   int    // in the namespace of whoever says it
	Start uint64 // in clock ticks since boot, which tells it from another process of this PID; 0: nobody
}

// Beat is a heartbeat; the zero one is none.
type Beat struct {
	At time.Duration // by CLOCK_MONOTONIC
	By Process
}

// Holder is who holds the lock of the machine; the zero one is nobody.
type Holder struct {
	Process
	Ours bool // the holder has the state directory of the heartbeat
}

// Action is what is to be done now.
type Action int

// The actions.
const (
	Wait    Action = iota // nothing
	Restore               // take the lock, and restore
	Kill                  // kill the holder of the lock, and then the same
)

// Memory is what was seen so far. The zero one has seen nothing.
type Memory struct {
	After   time.Duration // 0: as the constant
	begun   bool
	looked  time.Duration // the last look
	late    time.Duration // since the look before it, where that is a gap
	awake   time.Duration // since when the looks have no gap
	beat    Beat
	holder  Holder
	held    time.Duration // since when the holder holds the lock, as far as was seen
	retried time.Duration // of the last action that left something; 0: none
}

// Every is how often to look.
func (m Memory) Every() time.Duration { return m.after() / 10 }

func (m Memory) after() time.Duration {
	if m.After == 0 {
		return After
	}
	return m.After
}

// grace is how long a gap between two looks may be, and for how long to look after one before anybody is judged.
func (m Memory) grace() time.Duration { return 3 * m.Every() }

// Look takes in what is seen now.
func (m Memory) Look(now time.Duration, beat Beat, holder Holder) Memory {
	if beat.At > now { // of an earlier boot
		beat = Beat{}
	}
	if beat == (Beat{}) { // its file has gone, which makes the last one no older
		beat = m.beat
	}
	m.late = 0
	if m.begun && now-m.looked > m.grace() {
		m.late = now - m.looked
	}
	gap := !m.begun || m.late > 0
	if gap {
		m.awake = now
	}
	if gap || holder != m.holder {
		m.held = now
	}
	if beat != m.beat {
		m.retried = 0
	}
	m.begun, m.looked, m.beat, m.holder = true, now, beat, holder
	return m
}

// Late is how long there was no look before the last one, where that was so long that nobody is judged for a while; 0:
// it was in time.
func (m Memory) Late() time.Duration { return m.late }

// Silent says whether the lease has run out at the last look: whether it matters what the journal has.
func (m Memory) Silent() bool {
	return m.begun && m.looked-m.awake >= m.grace() && (m.beat == Beat{} || m.looked-m.beat.At >= m.after())
}

// Judge says what to do after the last look, if the journal has entries or not.
func (m Memory) Judge(entries bool) Action {
	switch {
	case !entries || !m.Silent():
		return Wait
	case m.retried != 0 && m.looked-m.retried < m.after():
		return Wait
	case m.holder.Start == 0:
		return Restore
	case !m.holder.Ours:
		return Wait
	case m.holder.Start == m.beat.By.Start, m.looked-m.held >= m.after():
		return Kill
	}
	return Wait
}

// Parting is what was seen when who looks was asked to end.
type Parting struct {
	asked  time.Duration
	looked bool // it had looked before, and so knows who held the lock
	holder Holder
}

// Part takes in that who looks is asked to end.
func (m Memory) Part(now time.Duration) Parting { return Parting{now, m.begun, m.holder} }

// May says whether who looks may end after the last look: there is nothing to put back, or nothing more that the kernel
// takes, or another agent has taken over, which has a lease of its own, or the agent goes on, for a heartbeat comes
// when it would have ended. A holder in another PID namespace is seen as nobody, and known by its heartbeats.
func (p Parting) May(m Memory, entries bool) bool {
	beats := m.beat.At-p.asked >= m.grace()
	switch {
	case m.holder.Start == 0:
		return !entries || m.retried != 0 || beats && m.beat.By.Start != p.holder.Start
	case p.looked && m.holder != p.holder:
		return true
	}
	return beats && m.beat.By.Start == m.holder.Start
}

// Tried takes in that an action has left something, as a value that the kernel refused: the next one is put off.
func (m Memory) Tried() Memory {
	m.retried = m.looked
	return m
}
