// SPDX-License-Identifier: GPL-2.0
// standing.h: the throttles that last, one a group.

// throttle is one that lasts. The last four members distinguish it from the next one of the same group.
struct throttle {
	u64 since;
	u64 sent;
	u64 origin;  // address of the queue that it was seen on
	u64 clock;   // the origin's throttled_clock; 0: not known
	u64 expires; // the end of the period that it began in
	u64 ends;    // of periods through which the group stood still, up to then
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, u64);
	TYPE(value, struct throttle);
} standing SEC(".maps");

// latest_end is when a throttle ended at the latest. A group that sleeps after its release, instead of running, was not
// throttled: at most one period is taken for a wait for a CPU.
static inline u64 latest_end(struct throttle *t, struct cfs_bandwidth *b)
{
	return t->expires + (u32)(READ(b, nr_throttled) - t->ends) * (u64)READ(b, period);
}
