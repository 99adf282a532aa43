// SPDX-License-Identifier: GPL-2.0
// spread.h: on how many CPUs a group runs at once.

// spread has the number of CPUs that run a group now, and the sum of the instants at which they began: see runq.bpf.c.
// It has a cache line to itself.
struct spread {
	u64 n, s;
	u64 fill[6];
};

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 4096);
	TYPE(key, u32);
	TYPE(value, struct spread);
} spreads SEC(".maps");

// spread is the CPU time that a group has had on all CPUs. While another CPU changes the two numbers it is far off. A
// turn of a CPU with the group begins with n = 1 and ends with -1.
static inline u64 spread(u32 slot, s64 n, u64 now)
{
	struct spread *s = slot > IDLE ? bpf_map_lookup_elem(&spreads, &slot) : NULL;

	if (!s)
		return 0;
	if (n) {
		add(&s->s, n * now);
		add(&s->n, n);
	}
	return s->n * now - s->s;
}
