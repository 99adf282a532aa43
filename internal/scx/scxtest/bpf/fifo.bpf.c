// SPDX-License-Identifier: GPL-2.0
// fifo.bpf.c: the least scheduler, one queue for all. Tests load it beside Plimsoll's own, and two that go wrong: STALL
// forgets tasks after a while, REFUSE does not want to begin.
#include "../../bpf/kernel.h"

char LICENSE[] SEC("license") = "GPL";

#if defined(STALL)
#define NAME "stall"
#elif defined(REFUSE)
#define NAME "refuse"
#else
#define NAME "fifo"
#endif

#define QUEUE 1
#define SLICE 5000000
#define PATIENCE 300000000 // before STALL forgets

u64 begun;

SEC("struct_ops/enqueue")
void enqueue(u64 *ctx)
{
	struct task_struct *p = ARG(struct task_struct *, 0);

#ifdef STALL
	if (!(p->flags & PF_KTHREAD) && bpf_ktime_get_ns() - begun > PATIENCE)
		return;
#endif
	scx_bpf_dsq_insert(p, QUEUE, SLICE, ctx[1]);
}

SEC("struct_ops/dispatch")
void dispatch(u64 *ctx)
{
	scx_bpf_dsq_move_to_local(QUEUE);
}

SEC("struct_ops.s/init")
s32 init(u64 *ctx)
{
	begun = bpf_ktime_get_ns();
#ifdef REFUSE
	return -22;
#endif
	return scx_bpf_create_dsq(QUEUE, -1);
}

SEC(".struct_ops.link")
struct sched_ext_ops scheduler = {
	.enqueue = (void *)enqueue,
	.dispatch = (void *)dispatch,
	.init = (void *)init,
	.timeout_ms = 30000,
	.name = NAME,
};
