// SPDX-License-Identifier: GPL-2.0
// runq.bpf.c: how long the threads of each group run and wait, and what their CPU does in the meantime.
//
// A group's time in a state is kept as two sums: n, threads in it now, and s, the instants at which they came minus
// those at which they left. n * now - s is the thread time in the state up to now, also of threads that are still in
// it, and a thread may come on one CPU and leave on another. When a wait is over, the CPU's last stints show which
// groups ran meanwhile.
//
// Each change of a CPU's queue happens with that queue locked and interrupts off, so a CPU's own row of the tables has
// one writer at a time.
#include "sched.h"

char LICENSE[] SEC("license") = "GPL";

#define DEPTH 12 // levels of groups looked at, from the task upwards
#define STINTS 64 // a CPU remembers; a power of two
#define TURNS 64  // whose ends a CPU remembers; a power of two
#define WORDS 16 // of 64 CPUs
#define MAX_CPUS (64 * WORDS)

enum slot { OTHERS, KERNEL, IDLE };	    // and those of the groups
enum state { AWAY, RUNNING, WAITING, PRIMED };
enum cause { NOBODY, OWN, ABOVE, UNKNOWN }; // whose limit keeps a waiting task
enum { CLASSES = 4, BUCKETS = 24 };

// task is the state of a thread.
struct task {
	u64 group; // address of its task_group when the slot was looked up
	u32 slot;
	u32 generation;
	u32 state; // RUNNING is kept when it goes to sleep: it is so while its CPU says so. PRIMED: it ran at the beginning
	u32 cpu;   // that it waits for, or runs on
	u64 since;
	u64 stood; // of its queue, when the wait began
	u64 dry;   // the group's own throttled time, then
	u32 cause;
	u32 ahead;    // who ran when it woke; IDLE: nobody, or it did not sleep before
	u32 turn;     // of its CPU, then
	u8 spare;     // an allowed CPU was idle when the wait began
	u8 throttled; // by itself
};

#include "cell.h"
#include "spread.h"

// stint is a time for which a CPU ran one group, in one turn or in several.
struct stint {
	u64 end;    // it began at the end of the one before
	u64 forced; // for so long the group had its share on other CPUs already
	u32 slot;
	u32 irq, steal;
};

struct cpu {
	u64 begun; // the present turn
	u32 slot;
	u32 head; // stints so far
	u64 irq, steal; // the kernel's, at begun
	u64 had;	// by its group on all CPUs, at begun: see spread
	u32 idle;
	u32 turn; // switches so far
	u64 thread; // that runs, if it is counted: see id_of
	u64 rq;	    // address of its run queue, once it was switched
	struct stint stints[STINTS];
	u64 ends[TURNS];
};

// face is the turn of a CPU as the core's other hardware thread sees it.
struct face {
	u64 begun;
	u64 ran; // by the same group on this CPU, before
	u64 busy[CLASSES]; // by groups of a class, before
	u32 slot, class;
};

// side is a CPU of a core with two threads. The present turn's face is whole: the next one is written beside it.
struct side {
	u32 turn; // so far
	u32 pad;
	u64 foreign[CLASSES]; // what the sibling had run of other groups when the turn began
	struct face faces[2];
	u64 fill[3]; // to whole cache lines
};

// facts of a group that user space knows.
struct facts {
	u32 share; // CPUs, rounded up
	u32 class;
	u32 watched; // what its threads wait for is wanted
	u32 pad;
	u64 allowed[WORDS];
};

struct pair_key {
	u32 waiter, runner;
};

// pair is how long one group waited for another.
struct pair {
	u64 behind;
	u64 phantom; // of it: an allowed CPU was idle
	u64 forced;  // the other had its share elsewhere
	u64 waking;  // it woke behind a slice that was running
};

// bill is a wait that is being divided. It lies in a map, where the verifier does not track its values.
struct bill {
	u64 from, to;
	u64 idle, irq, steal, done;
	u64 self, behind, phantom, forced, waking;
	u32 waiter, runner;
	u32 spares; // of the wait's two ends, how many saw an idle CPU
	u32 ahead;
	u64 slice; // what was left of the slice of ahead, and is not laid on it yet
	struct pair due; // to runner
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 32768);
	TYPE(key, u64);
	TYPE(value, struct task);
} tasks SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, u64);
	TYPE(value, u32);
} slots SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, struct facts);
} groups SEC(".maps");

// line is a number with a cache line to itself.
struct line {
	u64 n;
	u64 fill[7];
};

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, MAX_CPUS);
	TYPE(key, u32);
	TYPE(value, struct cpu);
} cpus SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, MAX_CPUS);
	NUMBER(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct side);
} sides SEC(".maps");

// bills are one a CPU: interrupts are off while one is written.
struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, MAX_CPUS);
	TYPE(key, u32);
	TYPE(value, struct bill);
} bills SEC(".maps");

// lengths are waits for a CPU by class and length, without what a limit took of them.
struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, CLASSES * BUCKETS);
	TYPE(key, u32);
	TYPE(value, u64);
} lengths SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 65536);
	TYPE(key, struct pair_key);
	TYPE(value, struct pair);
} pairs SEC(".maps");

const volatile u32 words = 1;	  // of CPU masks in use
const volatile u32 named = 1;	  // who waits for whom is wanted
const volatile u32 siblings[MAX_CPUS]; // 0: none, else one more than its number

u32 generation = 1;   // user space raises it when slots have changed
struct line idle[WORDS]; // CPUs that are
u64 unseen, unpaired; // tasks and pairs that the full tables did not take
u64 paired;	      // pairs that the table has taken
u64 missed;	      // switches without an event

// nearest finds the slot of a task of a group: that of the nearest group above it that has one.
static noinline u32 nearest(struct task_struct *p, struct task_group *tg)
{
	if (((struct task_struct___who *)p)->flags & PF_KTHREAD)
		return KERNEL;
	for (int i = 0; i < DEPTH; i++) {
		struct cgroup *c;
		u32 *slot;
		u64 id;

		if (!tg)
			break;
		c = READ(tg, css.cgroup);
		id = c ? READ(READ(c, kn), id) : 0; // an autogroup has none
		slot = bpf_map_lookup_elem(&slots, &id);
		if (slot)
			return *slot;
		tg = READ(tg, parent);
	}
	return OTHERS;
}

static inline u32 slot_of(struct task_struct *p, struct cfs_rq *q, struct task *t)
{
	struct task_group *tg = q->tg;

	if (t->group != (u64)tg || t->generation != generation) {
		t->slot = nearest(p, tg);
		t->group = (u64)tg;
		t->generation = generation;
	}
	return t->slot;
}

// culprit says which limit keeps a task of a throttled queue: that of its container, which has the slot, or one above.
static noinline u32 culprit(struct task_struct *p, u32 slot)
{
	struct sched_entity *se = &p->se;
	u32 cause = OWN;

	for (int i = 0; i < DEPTH; i++) {
		struct cfs_rq *q;
		struct cgroup *c;
		u32 *here;
		u64 id;

		if (!se)
			break;
		q = READ(se, cfs_rq);
		if (READ_BITS(q, throttled))
			return cause;
		c = READ(READ(q, tg), css.cgroup);
		id = c ? READ(READ(c, kn), id) : 0;
		here = bpf_map_lookup_elem(&slots, &id);
		if (here && *here == slot)
			cause = ABOVE;
		se = READ(se, parent);
	}
	return UNKNOWN;
}

static inline u64 dry_time(struct task_group *tg)
{
	return ((struct cfs_bandwidth___time *)&tg->cfs_bandwidth)->throttled_time;
}

static inline struct facts *facts_of(u32 slot)
{
	return bpf_map_lookup_elem(&groups, &slot);
}

// spare says whether a CPU that the group may use is idle, other than the one that the task waits for.
static inline bool spare(struct facts *f, u32 cpu)
{
	if (!f)
		return false;
	for (u32 i = 0; i < WORDS; i++) {
		u64 mask;

		if (i >= words)
			break;
		mask = idle[i].n;
		if (i == cpu / 64)
			mask &= ~(1ull << (cpu % 64));
		if (mask && mask & f->allowed[i])
			return true;
	}
	return false;
}

// meet notes the task that runs on the CPU that a task is woken on.
static inline void meet(struct task *t, u32 cpu)
{
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	if (!c || !c->begun)
		return;
	t->ahead = c->slot;
	t->turn = c->turn;
}

// slice_of is how long the slice went on that ran when a task woke.
static inline u64 slice_of(struct task *t, struct cpu *c, u64 now)
{
	u32 since = c->turn - t->turn;
	u64 end = now;

	if (t->ahead == IDLE || since > TURNS)
		return 0;
	if (since)
		end = c->ends[t->turn & (TURNS - 1)];
	return end > t->since ? end - t->since : 0;
}

// await begins a wait.
static inline void await(struct task_struct *p, struct cfs_rq *q, struct task *t, u32 cpu, u64 now, bool woken)
{
	t->state = WAITING;
	t->cpu = cpu;
	t->since = now;
	t->stood = stood(q);
	t->dry = dry_time(q->tg);
	t->ahead = IDLE;
	if (woken)
		meet(t, cpu);
	t->spare = spare(facts_of(t->slot), cpu);
	t->throttled = taken_off(p);
	t->cause = NOBODY;
	if (one_by_one() ? t->throttled : q->throttle_count > 0)
		t->cause = culprit(p, t->slot);
}

static inline void pay(u32 waiter, u32 runner, struct pair *d)
{
	struct pair_key key = {.waiter = waiter, .runner = runner};
	struct pair *v;

	if (!named)
		return;
	v = bpf_map_lookup_elem(&pairs, &key);
	if (!v && !bpf_map_update_elem(&pairs, &key, d, BPF_NOEXIST)) {
		add(&paired, 1);
		return;
	}
	v = v ?: bpf_map_lookup_elem(&pairs, &key); // another CPU was first, or the table is full
	if (!v) {
		add(&unpaired, 1);
		return;
	}
	add(&v->behind, d->behind);
	add(&v->phantom, d->phantom);
	add(&v->forced, d->forced);
	add(&v->waking, d->waking);
}

// flush adds what a bill has gathered to the group that ran.
static inline void flush(struct bill *b)
{
	if (!b->due.behind)
		return;
	if (b->runner == b->waiter) {
		b->self += b->due.behind;
	} else {
		if (b->runner == b->ahead) {
			b->due.waking = b->slice < b->due.behind ? b->slice : b->due.behind;
			b->slice -= b->due.waking;
		}
		b->due.phantom = b->due.behind * b->spares / 2;
		b->behind += b->due.behind;
		b->phantom += b->due.phantom;
		b->forced += b->due.forced;
		b->waking += b->due.waking;
		pay(b->waiter, b->runner, &b->due);
	}
	__builtin_memset(&b->due, 0, sizeof(b->due));
}

// lay divides the part of a wait that a stint covers. Time of interrupts in the stint is not charged to its group.
static inline void lay(struct bill *b, struct stint *s, u64 start, u64 end)
{
	u64 from = start > b->from ? start : b->from, to = end < b->to ? end : b->to, length, whole = end - start;
	u64 irq = s->irq, steal = s->steal, part;

	if (to <= from)
		return;
	length = to - from;
	b->done += length;
	if (s->slot == IDLE) {
		b->idle += length;
		return;
	}
	if (irq + steal && irq + steal <= whole) {
		irq = length * irq / whole;
		steal = length * steal / whole;
		b->irq += irq;
		b->steal += steal;
		length -= irq + steal;
	}
	if (s->slot != b->runner)
		flush(b);
	b->runner = s->slot;
	b->due.behind += length;
	part = s->forced / (whole >> 10 | 1); // of 1024: the product of two long times may not fit
	b->due.forced += part < 1024 ? length * part >> 10 : length;
}

// reach does so for a stint by its number, and says whether one before it may matter.
static inline bool reach(struct bill *b, struct cpu *c, u32 n)
{
	struct stint *s = &c->stints[n & (STINTS - 1)];
	u64 start = c->stints[(n - 1) & (STINTS - 1)].end;

	if (!start || s->end <= b->from)
		return false;
	lay(b, s, start, s->end);
	return start > b->from;
}

// The functions that are not static are verified by themselves, once, and not anew in each turn of the loop that
// calls them. They take numbers only.

noinline int piece(u32 row, u32 cpu, u32 n)
{
	struct bill *b = bpf_map_lookup_elem(&bills, &row);
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);

	return b && c && reach(b, c, n);
}

// forced is for how much of a CPU's present turn the group had its share on other CPUs. It is measured and not asked at
// the turn's end: that is a tick, at which the other CPUs change turns too. A sum that is far off misjudges one turn.
static inline u64 forced(struct cpu *c, u64 now)
{
	u64 length = now - c->begun, over;
	struct facts *f = facts_of(c->slot);

	if (!f || c->slot <= IDLE)
		return 0;
	over = spread(c->slot, 0, now) - c->had - length * (f->share ? f->share : 1); // this CPU's turn is among them
	if ((s64)over <= 0)
		return 0;
	return over < length ? over : length;
}

// present does so for the turn that a CPU is in.
noinline int present(u32 row, u32 cpu)
{
	struct bill *b = bpf_map_lookup_elem(&bills, &row);
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	struct stint s = {};

	if (!b || !c || !c->begun)
		return 0;
	s.slot = c->slot;
	s.forced = forced(c, b->to);
	lay(b, &s, c->begun, b->to);
	return 0;
}

// throttled is the part of a wait that a limit took, and which limit it was.
static inline u64 throttled(struct task_struct *p, struct task *t, u64 length, u32 *cause)
{
	u64 d;

	*cause = t->cause;
	if (one_by_one() && !t->throttled)
		return 0; // it stood in its queue all the time
	d = stood(p->se.cfs_rq) - t->stood;
	if ((s64)d <= 0)
		return 0;
	if (*cause == NOBODY || *cause == UNKNOWN)
		*cause = dry_time(p->sched_task_group) != t->dry ? OWN : ABOVE;
	return d < length ? d : length;
}

// bucket is the power of two of a length in microseconds.
static inline u32 bucket(u64 ns)
{
	u64 us = ns / 1000;
	u32 n = 0;

	if (us >> (BUCKETS - 1))
		return BUCKETS - 1;
	unroll for (u32 step = 16; step; step /= 2)
		if (us >> step) {
			us >>= step;
			n += step;
		}
	return n;
}

static inline void sort(u32 class, u64 length)
{
	u32 key = (class & (CLASSES - 1)) * BUCKETS + bucket(length);
	u64 *n = bpf_map_lookup_elem(&lengths, &key);

	if (n)
		add(n, 1);
}

// write adds a bill to its group's sums.
static inline void write(struct cell *cell, struct bill *b, u64 unnamed, u64 limit, u32 cause)
{
	cell->version++;
	barrier();
	cell->waits++;
	cell->idle += b->idle;
	cell->self += b->self;
	if (b->behind) {
		cell->behind += b->behind;
		cell->phantom += b->phantom;
		cell->forced += b->forced;
		cell->waking += b->waking;
	}
	if (limit && cause == OWN)
		cell->own += limit;
	else if (limit)
		cell->above += limit;
	if (unnamed)
		cell->unnamed += unnamed;
	if (b->irq + b->steal) {
		cell->waits_irq += b->irq;
		cell->waits_steal += b->steal;
	}
	barrier();
	cell->version++;
}

// account_wait accounts a wait that is over. c is the CPU that it was for; its last stint has ended now, or open is the
// present one. Most waits are covered by the last stint, which is handled here, without the cost of a call.
static noinline int account_wait(struct task_struct *p, struct task *t, struct cpu *c, u64 now, bool open)
{
	u64 length = now - t->since, limit;
	u32 row = bpf_get_smp_processor_id(), slot = t->slot, cause;
	struct facts *f = facts_of(slot);
	struct bill *b = bpf_map_lookup_elem(&bills, &row);
	struct cell *cell = cell_of(row, slot);

	if (!cell || !b || !f || !f->watched || (s64)length <= 0)
		return 0;
	__builtin_memset(b, 0, sizeof(*b));
	b->waiter = slot;
	b->ahead = t->ahead;
	b->slice = slice_of(t, c, now);
	b->from = t->since;
	b->to = now;
	limit = throttled(p, t, length, &cause);
	if (f->class && length > limit)
		sort(f->class, length - limit);
	b->from += limit;
	if (limit)
		b->slice = 0;
	if (b->from < b->to) {
		b->spares = t->spare + spare(f, t->cpu);
		if (open)
			present(row, t->cpu);
		if (reach(b, c, c->head - 1))
			for (u32 i = 2; i < STINTS; i++)
				if (!piece(row, t->cpu, c->head - i))
					break;
		flush(b);
	}
	write(cell, b, length - limit - b->done, limit, cause);
	return 0;
}

// note remembers a turn that has ended. Turns of one group in a row are one stint.
static inline void note(struct cpu *c, u64 now, u32 irq, u32 steal)
{
	struct stint *s = &c->stints[(c->head - 1) & (STINTS - 1)];

	c->ends[c->turn & (TURNS - 1)] = now;
	c->turn++;
	if (!c->head || s->slot != c->slot) {
		s = &c->stints[c->head & (STINTS - 1)];
		s->slot = c->slot;
		s->forced = 0;
		s->irq = 0;
		s->steal = 0;
		c->head++;
	}
	s->end = now;
	s->forced += forced(c, now);
	s->irq += irq;
	s->steal += steal;
}

// turn ends a CPU's turn with one thread.
static inline void turn(struct cpu *c, u32 cpu, struct cfs_rq *q, u64 now)
{
	u64 irq = irq_time(q), steal = steal_time(q);
	struct cell *cell;

	if (!c->turn) { // the turn that first_turn found: what it was interrupted for is not known
		c->irq = irq;
		c->steal = steal;
	}
	if (c->begun) {
		note(c, now, irq - c->irq, steal - c->steal);
		cell = cell_of(cpu, c->slot);
		if (c->slot != IDLE && cell && (irq != c->irq || steal != c->steal)) {
			cell->version++;
			barrier();
			cell->irq += irq - c->irq;
			cell->steal += steal - c->steal;
			barrier();
			cell->version++;
		}
	}
	c->irq = irq;
	c->steal = steal;
}

static inline u32 class_of(u32 slot)
{
	struct facts *f = facts_of(slot);

	return f ? f->class & (CLASSES - 1) : 0;
}

// foreign is how long a CPU has run other groups than one up to now, by class: the sum of its face, without the turns
// of that group itself. While the group's own turn is shown, its cell is being written, and is not read.
static inline void foreign(u64 *sums, u32 cpu, u32 slot, u32 class, u64 now)
{
	struct side *side = bpf_map_lookup_elem(&sides, &cpu);
	struct face *f;
	u64 ran, lasts;

	if (!side)
		return;
	f = &side->faces[side->turn & 1];
	ran = f->slot == slot ? f->ran : ran_on(cpu, slot);
	lasts = f->begun && f->slot != slot && f->slot != IDLE && now > f->begun ? now - f->begun : 0;
	unroll for (u32 i = 0; i < CLASSES; i++)
		sums[i] = f->busy[i] - (i == class ? ran : 0) + (i == f->class ? lasts : 0);
}

// close adds a turn that ends now to the group's run time, and to its time beside others. A switch that the sibling has
// not shown yet makes one turn too long and a later one too short: hence a negative difference counts too.
static inline void close(struct side *side, struct face *f, u32 cpu, u32 other, u64 now)
{
	struct cell *cell = cell_of(cpu, f->slot);
	u64 sums[CLASSES] = {};
	s64 length = now - f->begun, d;

	if (!cell || !f->begun || f->slot == IDLE)
		return;
	foreign(sums, other, f->slot, f->class, now);
	cell->version++;
	barrier();
	cell->ran += length;
	unroll for (u32 i = 0; i < CLASSES; i++) {
		d = sums[i] - side->foreign[i];
		cell->beside[i] += d > length ? length : d < -length ? -length : d;
	}
	barrier();
	cell->version++;
}

// face ends a turn of a CPU whose core has another thread, and begins the next. At the ends of its turns each CPU reads
// how long the other one has run other groups meanwhile: whenever that one switches, the overlap is exact.
noinline int face(u32 cpu, u32 slot, u64 now)
{
	struct side *side = bpf_map_lookup_elem(&sides, &cpu);
	u32 other = siblings[cpu & (MAX_CPUS - 1)] - 1;
	struct cell *cell = cell_of(cpu, slot);
	struct face *was, *is;

	if (!side || !cell)
		return 0;
	was = &side->faces[side->turn & 1];
	is = &side->faces[(side->turn + 1) & 1];
	close(side, was, cpu, other, now);
	unroll for (u32 i = 0; i < CLASSES; i++)
		is->busy[i] = was->busy[i] + (was->begun && was->slot != IDLE && i == was->class ? now - was->begun : 0);
	is->begun = now;
	is->slot = slot;
	is->class = class_of(slot);
	is->ran = cell->ran;
	foreign(side->foreign, other, slot, is->class, now);
	barrier();
	side->turn++;
	return 0;
}

// id_of distinguishes threads by the address of their task_struct. The pid does not serve: a thread that calls exec
// takes over the pid of its process (fs/exec.c, de_thread).
static inline u64 id_of(struct task_struct *p)
{
	return (u64)p;
}

static noinline int make(u64 id)
{
	struct task fresh = {};

	bpf_map_update_elem(&tasks, &id, &fresh, BPF_NOEXIST); // or another CPU was first
	add(&unseen, !bpf_map_lookup_elem(&tasks, &id));
	return 0;
}

static inline struct task *known(struct task_struct *p, bool wanted)
{
	u64 id = id_of(p);
	struct task *t = bpf_map_lookup_elem(&tasks, &id);

	if (t || !wanted)
		return t;
	make(id);
	return bpf_map_lookup_elem(&tasks, &id);
}

static inline bool is_idle(struct task_struct *p)
{
	return ((struct task_struct___who *)p)->pid == 0;
}

// counted is the state that a group's sums hold of a thread that is not on a CPU, or was primed.
static inline u32 counted(struct task *t)
{
	return t->state == WAITING ? WAITING : t->state == PRIMED ? RUNNING : AWAY;
}

// out takes a task off its CPU. A task that goes to sleep need not be looked up.
static inline void out(struct task_struct *p, struct cfs_rq *q, struct cpu *c, u32 cpu, u64 now)
{
	u64 id = id_of(p);
	u32 slot, was;
	bool wants = runnable(p), known_here = c->thread == id;
	struct task *t = NULL;

	if (known_here && !wants) {
		change(cpu, c->slot, RUNNING, c->slot, AWAY, now);
	} else {
		t = known(p, wants);
		if (!t)
			return;
		slot = t->slot;
		was = known_here ? RUNNING : counted(t);
		if (was == WAITING)
			account_wait(p, t, c, now, false); // it was given the CPU in a switch that was missed
		if (wants) {
			slot_of(p, q, t);
			await(p, q, t, cpu, now, false);
			change(cpu, slot, was, t->slot, WAITING, now);
			return;
		}
		change(cpu, slot, was, slot, AWAY, now);
		t->state = AWAY;
	}
	if (((struct task_struct___who *)p)->exit_state)
		bpf_map_delete_elem(&tasks, &id);
}

// in gives a CPU to a task, and returns its slot.
static inline u32 in(struct task_struct *p, struct cpu *c, u32 cpu, u64 now)
{
	struct task *t = known(p, true);
	u32 slot, was;

	if (!t)
		return OTHERS;
	slot = t->slot;
	was = counted(t);
	if (was == WAITING)
		account_wait(p, t, c, now, false);
	t->state = RUNNING;
	t->cpu = cpu;
	slot_of(p, p->se.cfs_rq, t);
	change(cpu, slot, was, t->slot, RUNNING, now);
	c->thread = id_of(p);
	return t->slot;
}

static inline void rest(struct cpu *c, u32 cpu, bool idles)
{
	u64 bit = 1ull << (cpu % 64);

	if (c->idle == idles || cpu >= MAX_CPUS)
		return;
	c->idle = idles;
	add(&idle[(cpu / 64) & (WORDS - 1)].n, idles ? bit : -bit);
}

// mend takes the thread off its CPU that ran at the last event, if another one runs: a switch was missed.
static inline void mend(struct task_struct *prev, struct cpu *c, u32 cpu, u64 now)
{
	if (!c->begun || !c->thread || c->thread == id_of(prev))
		return;
	change(cpu, c->slot, RUNNING, c->slot, AWAY, now);
	c->thread = 0;
	add(&missed, 1);
}

// start begins a CPU's turn. The first one begins the stints.
static inline void start(struct cpu *c, u32 cpu, u32 slot, u64 now)
{
	s64 n = 0;

	rest(c, cpu, slot == IDLE);
	if (slot != c->slot || !c->begun) {
		if (c->begun)
			spread(c->slot, -1, now);
		else
			c->stints[STINTS - 1].end = now;
		n = 1;
	}
	c->slot = slot;
	c->begun = now;
	c->had = spread(slot, n, now);
	if (siblings[cpu & (MAX_CPUS - 1)])
		face(cpu, slot, now);
}

// The queue is read before the paths part: for each pointer that is read from a tracepoint's argument the verifier
// searches the names of all kernel types, on each path (kernel/bpf/verifier.c, check_ptr_to_btf_access).
SEC("tp_btf/sched_switch") int sched_switch(u64 *ctx)
{
	struct task_struct *prev = (void *)ctx[1], *next = (void *)ctx[2];
	struct cfs_rq *q = prev->se.cfs_rq;
	u32 cpu = bpf_get_smp_processor_id(), slot = IDLE;
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	u64 now = bpf_ktime_get_ns();

	if (!c)
		return 0;
	c->rq = (u64)q->rq;
	turn(c, cpu, q, now);
	mend(prev, c, cpu, now);
	if (!is_idle(prev))
		out(prev, q, c, cpu, now);
	c->thread = 0;
	if (!is_idle(next))
		slot = in(next, c, cpu, now);
	start(c, cpu, slot, now);
	return 0;
}

static inline u32 cpu_of(struct cfs_rq *q)
{
	return q->rq->cpu;
}

// runs says whether a thread has not gone to sleep since it was given a CPU.
static inline bool runs(struct task_struct *p, struct task *t)
{
	u32 cpu = t->cpu;
	struct cpu *c;

	if (t->state == PRIMED)
		return on_cpu(p);
	c = bpf_map_lookup_elem(&cpus, &cpu);
	return t->state == RUNNING && c && c->thread == id_of(p);
}

// A task that runs may be woken too, before it has gone to sleep.
static inline void woken(struct task_struct *p)
{
	struct cfs_rq *q = p->se.cfs_rq;
	struct task *t = known(p, true);
	u64 now;
	u32 slot, was;

	if (!t || t->state == WAITING || runs(p, t))
		return;
	now = bpf_ktime_get_ns();
	slot = t->slot;
	was = counted(t);
	slot_of(p, q, t);
	await(p, q, t, cpu_of(q), now, true);
	change(bpf_get_smp_processor_id(), slot, was, t->slot, WAITING, now);
}

SEC("tp_btf/sched_wakeup") int sched_wakeup(u64 *ctx)
{
	woken((void *)ctx[0]);
	return 0;
}

SEC("tp_btf/sched_wakeup_new") int sched_wakeup_new(u64 *ctx)
{
	woken((void *)ctx[0]);
	return 0;
}

// A waiting task that is moved has waited for one CPU, and goes on for another. Its queue is still the old one's here.
SEC("tp_btf/sched_migrate_task") int sched_migrate_task(u64 *ctx)
{
	struct task_struct *p = (void *)ctx[0];
	struct task *t = known(p, false);
	struct cpu *c;
	u64 now;
	u32 cpu;

	if (!t || t->state != WAITING)
		return 0;
	now = bpf_ktime_get_ns();
	cpu = t->cpu;
	c = bpf_map_lookup_elem(&cpus, &cpu);
	if (c)
		account_wait(p, t, c, now, true);
	t->since = now;
	t->cpu = cpu = ctx[1];
	c = bpf_map_lookup_elem(&cpus, &cpu);
	t->stood = stood_on(p, cpu, c ? c->rq : 0);
	t->ahead = IDLE;
	return 0;
}

// prime counts the tasks that run or wait when the programs have just been attached: a task that runs alone on its CPU
// may cause no other event.
SEC("iter/task") int prime(struct bpf_iter__task *ctx)
{
	struct task_struct *p = ctx->task;
	struct task fresh = {};
	u64 now = bpf_ktime_get_ns();
	struct cfs_rq *q;
	u64 id;

	if (!p)
		return 0;
	q = p->se.cfs_rq;
	id = id_of(p);
	fresh.state = on_cpu(p) ? PRIMED : runnable(p) ? WAITING : AWAY;
	if (fresh.state == AWAY)
		return 0;
	slot_of(p, q, &fresh);
	fresh.since = now;
	fresh.cpu = cpu_of(q);
	fresh.stood = stood(q);
	fresh.dry = dry_time(q->tg);
	if (!bpf_map_update_elem(&tasks, &id, &fresh, BPF_NOEXIST))
		change(possible, fresh.slot, AWAY, fresh.slot, counted(&fresh), now);
	return 0;
}

// first_turn begins the first turn of a CPU that has not switched since the programs were attached, with its current
// task. prime has counted that task, and cannot begin the turn: the CPU may switch while another CPU reads it. User
// space runs this program on the CPU itself, where no switch comes between: bpf_prog_test_run_raw_tp, 5.10,
// 1b4d60ec162f. No tracepoint calls it.
SEC("raw_tp/sched_switch") int first_turn(void *ctx)
{
	u32 cpu = bpf_get_smp_processor_id(), slot = OTHERS;
	struct cpu *c = bpf_map_lookup_elem(&cpus, &cpu);
	u64 id = (u64)bpf_get_current_task();
	struct task *t = bpf_map_lookup_elem(&tasks, &id);
	u64 now = bpf_ktime_get_ns();

	if (!c || c->begun)
		return 0;
	if (!(u32)bpf_get_current_pid_tgid()) {
		slot = IDLE;
	} else if (t) {
		slot = t->slot;
		change(possible, slot, counted(t), slot, RUNNING, now);
		t->state = RUNNING;
		t->cpu = cpu;
		c->thread = id;
	}
	start(c, cpu, slot, now);
	return 0;
}
