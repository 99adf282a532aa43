// SPDX-License-Identifier: GPL-2.0
// group.h: the watched groups, and the counters of each.

#define DEPTH 12   // levels of groups looked at, from the task upwards
#define TOPMOST 24 // levels from the root down, on which a group is found that is further above a task
#define BUCKETS 24
#define USES 65	   // 0, and 64 sixteenths of the limit
#define WORDS 16   // of 64 CPUs
#define UNKNOWN -1

// group is a group that user space watches. User space inserts it, and its memory is allocated then.
struct group {
	u64 due;       // when the next begin may be sent, had they come evenly spaced
	u64 due_ahead; // and the next warning ahead of a throttle
	u64 begins;
	u64 ends;
	u64 wall;
	u64 dropped;
	u64 lengths[BUCKETS];
	u64 aheads;	 // warnings ahead of a throttle
	u64 counted;	 // the tick in which running was counted
	u64 running;	 // CPUs that run the group, or on which it is throttled
	u64 sum;	 // CPU time in periods, up to the last one's end
	u64 outside;	 // CPU time in no period
	u64 end;	 // of the last period
	u64 periods;	 // that were seen from their begin to their end
	u64 used;	 // in the last of them
	u64 length;	 // of the periods
	u64 peak;	 // the largest use of a period of that length
	u64 second_from; // when the present second began
	u64 second_sum;	 // the sum at that time
	u64 second_peak; // the largest use of a second
	u64 owed;	 // at the last period's end, see period.h
	u64 above;	 // used above the limit in each period, summed up
	u64 actives;	 // CPUs in active
	u64 first;	 // the word at which a walk begins
	u64 unplaced;	 // its sums are not known: no room in the map of queues, or tasks too far below it
	u64 active[WORDS]; // CPUs that have run the group in this period, see queue.h
	u64 known[WORDS];  // CPUs whose queue of the group is in the map of queues
	u32 uses[USES];	   // periods by their use, see period.h
	u32 expired;	   // periods, as the kernel counts them, with the last one looked at
	u64 recorded; // the end of the last period that was looked at for a record, and what was counted until then
	u64 recorded_begins;
	u64 recorded_lost;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64);
	TYPE(value, struct group);
} groups SEC(".maps");

static inline void add(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

static inline u64 group_of(struct task_group *tg)
{
	struct cgroup *c = READ(tg, css.cgroup);

	return c ? READ(READ(c, kn), id) : 0; // an autogroup has none
}

// id_of does so through pointers that the verifier trusts.
static inline u64 id_of(struct task_group *tg)
{
	return tg->css.cgroup ? tg->css.cgroup->kn->id : 0;
}

// ancestor is the group above a control group on a level.
static inline u64 ancestor(struct cgroup *c, u32 level)
{
	u64 at = 0;

	if (HAS(cgroup___ids, ancestor_ids)) {
		bpf_probe_read_kernel(&at, sizeof(at), (void *)c + FIELD((struct cgroup___ids *)0, ancestor_ids, FIELD_OFFSET) + 8 * level);
		return at;
	}
	if (!HAS(cgroup___pointers, ancestors))
		return 0;
	bpf_probe_read_kernel(&at, sizeof(at), (void *)c + FIELD((struct cgroup___pointers *)0, ancestors, FIELD_OFFSET) + 8 * level);
	return READ(READ((struct cgroup *)at, kn), id);
}

static inline u64 cpu_of(struct cfs_rq *q)
{
	return HAS(rq, cpu) ? READ(READ(q, rq), cpu) : bpf_get_smp_processor_id();
}
