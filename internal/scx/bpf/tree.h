// SPDX-License-Identifier: GPL-2.0
// tree.h: groups that come, go and change, by callbacks of the kernel and by user space.

// read reads the values of the kernel's files, in microseconds; RUNTIME_INF is no quota.
static inline void read(struct bandwidth *to, u64 quota, u64 period, u64 burst)
{
	struct bandwidth b = {};

	if (quota != ~0ULL) {
		b.quota = quota * 1000;
		b.period = period * 1000;
		b.burst = burst * 1000;
	}
	*to = b;
}

// give_up ends the scheduler: all tasks go back to the fair class. An error of cgroup_init would make the mkdir of the group
// fail, and with it the start of a container (kernel/sched/ext.c, scx_cgroup_init).
static s32 give_up(char *format, s64 err)
{
	u64 data[1] = {err};

	scx_bpf_error_bstr(format, data, sizeof(data));
	return 0;
}

char no_room[] = "no room for another control group (%lld)";
char no_timer[] = "no timer for another control group (%lld)";
char no_queue[] = "no queue for another control group (%lld)";

SEC("struct_ops.s/cgroup_init")
s32 cgroup_init(u64 *ctx)
{
	struct cgroup *c = ARG(struct cgroup *, 0);
	struct scx_cgroup_init_args *args = ARG(struct scx_cgroup_init_args *, 1);
	struct scx_cgroup_init_args___bandwidth *b = (void *)args;
	struct cgroup_subsys_state *up = c->self.parent;
	struct group new = {}, *g;
	u64 id = c->kn->id;
	s32 err;

	new.id = id;
	new.weight = args->weight;
	new.share = ONE;
	for (int i = 0; i < LEVELS && up; i++) {
		new.parent = up->cgroup->kn->id;
		if (group_at(new.parent))
			break;
		up = up->parent;
	}
	if (!new.parent)
		top = id;
	if (HAS(scx_cgroup_init_args___bandwidth, bw_quota_us))
		read(&new.file, b->bw_quota_us, b->bw_period_us, b->bw_burst_us);
	new.now = new.file;
	new.runtime = new.snap = new.now.quota;
	err = bpf_map_update_elem(&groups, &id, &new, BPF_ANY);
	g = group_at(id);
	if (err || !g)
		return give_up(no_room, err);
	err = bpf_timer_init(&g->timer, &groups, CLOCK_MONOTONIC);
	if (err)
		return give_up(no_timer, err);
	bpf_timer_set_callback(&g->timer, expired);
	add(generation, 1);
	err = scx_bpf_create_dsq(id, -1);
	return err ? give_up(no_queue, err) : 0;
}

SEC("struct_ops/cgroup_exit")
void cgroup_exit(u64 *ctx)
{
	u64 id = ARG(struct cgroup *, 0)->kn->id;
	struct group *g = group_at(id);

	if (g && __sync_val_compare_and_swap(&g->standing, 1, 0)) // its timer may end the throttle now
		add(standing, -1);
	scx_bpf_destroy_dsq(id);
	bpf_map_delete_elem(&groups, &id);
	add(generation, 1);
}

SEC("struct_ops/cgroup_set_weight")
void cgroup_set_weight(u64 *ctx)
{
	struct group *g = group_at(ARG(struct cgroup *, 0)->kn->id);

	if (g)
		reweigh(g, ARG(u32, 1));
}

SEC("struct_ops/cgroup_set_bandwidth")
void cgroup_set_bandwidth(u64 *ctx)
{
	struct group *g = group_at(ARG(struct cgroup *, 0)->kn->id);
	u64 id = g ? g->id : 0;
	struct setting *s = bpf_map_lookup_elem(&settings, &id);

	if (!g)
		return;
	read(&g->file, ctx[2], ctx[1], ctx[3]);
	if (!s || !s->limited)
		limit(g, &g->file);
}

// apply is called by user space when it has changed the settings of a group.
struct applied {
	u64 id;
};

SEC("syscall")
int apply(struct applied *of)
{
	u64 id = of->id;
	struct setting *s = bpf_map_lookup_elem(&settings, &id);
	struct group *g = group_at(id);
	struct bandwidth *to;

	add(generation, 1);
	if (!g)
		return 2; // ENOENT
	to = s && s->limited ? &s->limit : &g->file;
	if (!same(to, &g->now))
		limit(g, to);
	return 0;
}
