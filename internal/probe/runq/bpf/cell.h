// SPDX-License-Identifier: GPL-2.0
// cell.h: the sums of each group on each CPU.

// cell has the times of a group's threads on one CPU. It is whole while version is even. A switch touches the first of
// its three cache lines only.
//
// Only on small machines does a CPU have as many cells as there are groups. On large ones groups share a cell: slot
// names the group that has it, and the sums of the other groups are added to their shared cells (fold). In a shared
// cell version counts the folds that began and slot those that ended.
struct cell {
	u32 version;
	u32 slot;
	u64 running_n, running_s;
	u64 waiting_n, waiting_s;
	// Waits that are over, by what was in the way:
	u64 waits;
	u64 idle;    // nothing, its CPU was idle: it was waking up
	u64 self;    // threads of the same group
	u64 behind;  // those of others
	u64 phantom; // of behind: an allowed CPU was idle
	u64 forced;  // of behind: the other group had its share elsewhere
	u64 waking;  // of behind: it woke while a slice was running
	u64 own;     // the limit of the group itself or of one inside it
	u64 above;   // a limit above it
	u64 unnamed; // longer ago than the CPU remembers
	u64 waits_irq, waits_steal; // the CPU was interrupted, or taken away
	u64 irq, steal;		    // so it was while a thread of the group had it
	u64 beside[CLASSES];	    // it ran while the sibling ran another group, of that class
	u64 ran;		    // turns that are over, on CPUs that have a sibling
};

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 4096);
	NUMBER(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct cell);
} cells SEC(".maps");

// shared are one a group: see struct cell. Programs that may be interrupted write here too.
struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 4096);
	NUMBER(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct cell);
} shared SEC(".maps");

const volatile u32 row_cells = 4096; // cells of a CPU
const volatile u32 possible = 1;     // CPUs; as a row it stands for the shared cells

static inline void add(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

static inline struct cell *shared_of(u32 slot)
{
	return bpf_map_lookup_elem(&shared, &slot);
}

// place_of is where the cell of a slot is. The slots that belong to no group share their cells with none.
static inline u32 place_of(u32 row, u32 slot)
{
	u32 first = IDLE + 1;

	return row * row_cells + (slot < first ? slot : first + (slot - first) % (row_cells - first));
}

#define CELL_SUMS ((sizeof(struct cell) - 2 * sizeof(u32)) / sizeof(u64))

// fold gives a cell to another group. Only the cell's CPU writes a cell; all CPUs write a shared cell.
noinline int fold(u32 place, u32 slot)
{
	struct cell *c = bpf_map_lookup_elem(&cells, &place), *to;
	u64 *from, *sum;

	if (!c)
		return 0;
	to = shared_of(c->slot);
	if (!to)
		return 0;
	__sync_fetch_and_add(&to->version, 1);
	c->version++;
	barrier();
	from = &c->running_n;
	sum = &to->running_n;
	unroll for (u32 i = 0; i < CELL_SUMS; i++) {
		if (from[i])
			add(&sum[i], from[i]);
		from[i] = 0;
	}
	c->slot = slot;
	barrier();
	c->version++;
	__sync_fetch_and_add(&to->slot, 1);
	return 0;
}

// cell_of is the cell of a group on the CPU that runs the program.
static inline struct cell *cell_of(u32 row, u32 slot)
{
	u32 place = place_of(row, slot);
	struct cell *c = bpf_map_lookup_elem(&cells, &place);

	if (c && c->slot != slot)
		fold(place, slot);
	return c;
}

// ran_on is how long a CPU, possibly another one, has run a group in turns that are over, since the group has its cell
// there.
static inline u64 ran_on(u32 row, u32 slot)
{
	u32 place = place_of(row, slot);
	struct cell *c = bpf_map_lookup_elem(&cells, &place);

	return c && c->slot == slot ? c->ran : 0;
}

// count changes the number of threads in a state by n, 1 or -1, in a shared cell.
static inline void count(u32 slot, u32 state, u64 now, s64 n)
{
	struct cell *c = shared_of(slot);

	if (!c)
		return;
	if (state == RUNNING) {
		add(&c->running_n, n);
		add(&c->running_s, n * now);
	} else if (state == WAITING) {
		add(&c->waiting_n, n);
		add(&c->waiting_s, n * now);
	}
}

static inline void enter(struct cell *c, u32 state, u64 now)
{
	if (state == RUNNING) {
		c->running_n++;
		c->running_s += now;
	} else if (state == WAITING) {
		c->waiting_n++;
		c->waiting_s += now;
	}
}

static inline void leave(struct cell *c, u32 state, u64 now)
{
	if (state == RUNNING) {
		c->running_n--;
		c->running_s -= now;
	} else if (state == WAITING) {
		c->waiting_n--;
		c->waiting_s -= now;
	}
}

// change takes a thread from one state to another, in the groups' sums.
static inline void change(u32 row, u32 from_slot, u32 from, u32 to_slot, u32 to, u64 now)
{
	struct cell *c;

	if (row == possible) {
		count(from_slot, from, now, -1);
		count(to_slot, to, now, 1);
		return;
	}
	c = cell_of(row, from_slot);
	if (!c)
		return;
	c->version++;
	barrier();
	leave(c, from, now);
	if (from_slot == to_slot)
		enter(c, to, now);
	barrier();
	c->version++;
	if (from_slot == to_slot)
		return;
	c = cell_of(row, to_slot);
	if (!c)
		return;
	c->version++;
	barrier();
	enter(c, to, now);
	barrier();
	c->version++;
}
