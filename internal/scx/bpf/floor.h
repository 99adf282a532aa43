// SPDX-License-Identifier: GPL-2.0
// floor.h: the least CPU time of offline tasks beside busy online ones: else the kernel's watchdog ends the scheduler.

const volatile u64 floor_slice = 3000000;
const volatile u64 floor_rest = 332 * 64; // the floor's time, 64 times, by which it rests after it: 3 ms in 1 s

// floor_due says whether offline tasks have waited long enough on a CPU. A floor that overran its slice, to the tick that
// found it, lengthens the pause after it, so that the floor is its share in the long run. Where many tasks wait the floor
// rises, so that each of them runs before the kernel's watchdog ends the scheduler. There tasks count as waiting for all CPUs.
// Where many are bound to a few CPUs, their waiting time shows it (late), and the pause is one slice until they have run.
static inline bool floor_due(struct cpu *own, u64 now)
{
	u64 owed = own->owed > floor_slice ? own->owed : floor_slice, rest = owed * floor_rest / 64;
	s32 waiting = scx_bpf_dsq_nr_queued(OFFLINE);

	if (waiting <= 0)
		return false;
	if (rest > PATIENCE)
		rest = PATIENCE;
	if (rest * waiting > PATIENCE * cpus)
		rest = PATIENCE * cpus / waiting;
	if (own->late && rest > floor_slice)
		rest = floor_slice;
	return now - own->last > rest;
}

// begin_floor records the pause before a floor, which pays for the floors before.
static inline void begin_floor(struct cpu *own)
{
	u64 paid = (own->began - own->last) * 64 / floor_rest;

	own->owed -= own->owed < paid ? own->owed : paid;
	own->runs = RUNS_FLOOR;
	own->floors++;
}

// waited is since when the offline task has waited, in jiffies, that has waited longest of those that may run on a CPU; 0: there
// is none.
static noinline u64 waited(s32 c)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	u64 since = 0;

	if (!bpf_iter_scx_dsq_new(&it, OFFLINE, 0)) {
		while ((p = bpf_iter_scx_dsq_next(&it))) {
			if ((!since || before(p->scx.runnable_at, since)) && may(p, c))
				since = p->scx.runnable_at;
		}
	}
	bpf_iter_scx_dsq_destroy(&it);
	return since;
}

// serve_floor takes the next offline task by the floor: the task that has waited longest, if that is too long. The
// order of the queue is that of the groups, and a group with little weight may come last for minutes. And where floors
// are so rare that all wait too long, the first ones would be first again each time.
static noinline bool serve_floor(s32 c)
{
	struct bpf_iter_scx_dsq it;
	struct task_struct *p;
	bool taken = false;
	u64 since = waited(c);

	cpu[SLOT(c)].late = since && bpf_jiffies64() - since > PATIENCE * 5 / 2 / tick_ns;
	if (!bpf_iter_scx_dsq_new(&it, OFFLINE, 0)) {
		while (!taken && (p = bpf_iter_scx_dsq_next(&it)))
			taken = p->scx.runnable_at == since && aged(p) && may(p, c) && scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
	}
	bpf_iter_scx_dsq_destroy(&it);
	return taken || scx_bpf_dsq_move_to_local(OFFLINE);
}

// relieve wakes idle threads beside a task that expels, for offline tasks that have waited too long there. Tasks that
// may also run elsewhere get the floor of the busy CPUs; an idle CPU picks no next task by itself.
static noinline int relieve(s32 c, u64 now)
{
	u32 other = SLOT(c);
	u64 since;

	for (int i = 0; i < 7; i++) {
		struct cpu *idle;

		other = SLOT(sibling[other]);
		if (other == SLOT(c))
			break;
		idle = &cpu[other];
		if (idle->runs || now - idle->looked < PATIENCE / 8 || !floor_due(idle, now))
			continue;
		since = waited(other);
		if (since && overdue(since))
			scx_bpf_kick_cpu(other, SCX_KICK_IDLE);
		else
			idle->looked = now;
	}
	return 0;
}
