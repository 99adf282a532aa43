// SPDX-License-Identifier: GPL-2.0
// relief.h: the end of a throttle, seen by the switch to a task below it. While any group is throttled each switch
// checks for that, so a CPU remembers where it found nothing.
//
// Known limits: the count of throttles is incremented after one is inserted, and a CPU of another kind than x86 may see
// that in the other order. Then an end is reported at the next begin, even of another group.

// free is a group, by its id, above which no group was throttled when so many throttles had begun: there is nothing to
// end until the next one begins.
struct free {
	u64 group;
	u64 begun;
};

#define FREES 8

struct {
	NUMBER(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	NUMBER(max_entries, FREES);
	TYPE(key, u32);
	TYPE(value, struct free);
} frees SEC(".maps");

// relieved ends the throttles above a task that begins to run. Another CPU may still have a part of its slice while
// the throttle lasts.
static inline void relieved(struct task_struct *p)
{
	struct task_group *tg = p->sched_task_group;
	u64 own = id_of(tg), seen = *(volatile u64 *)&begun; // before it looks
	u32 slot = own % FREES;
	struct free *f = bpf_map_lookup_elem(&frees, &slot);
	bool stands = false;

	if (p->se.cfs_rq->throttle_count > 0 || !f || (f->group == own && f->begun == seen))
		return;
	unroll for (int i = 0; i < DEPTH; i++) {
		struct throttle *t;
		u64 id;

		if (!tg || !tg->parent)
			break;
		id = id_of(tg);
		t = bpf_map_lookup_elem(&standing, &id);
		if (t) {
			stands = true;
			if (!lasts(t, tg->cfs_bandwidth.period_timer._softexpires))
				finish(&tg->cfs_bandwidth, id, bpf_ktime_get_ns());
		}
		tg = tg->parent;
	}
	if (!stands)
		*f = (struct free){own, seen};
}
