/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel.h: the parts of the kernel's scheduler that the programs read and call.
 *
 * As in probe/bpf/kernel.h, CO-RE needs only names. Here pointers come from the kernel as trusted ones, so that fields
 * are read directly. struct sched_ext_ops names the members that are set; the loader finds their places by name.
 */
#ifndef PLIMSOLL_SCX_KERNEL_H
#define PLIMSOLL_SCX_KERNEL_H

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
#define bool _Bool
#define true 1
#define false 0
#define NULL ((void *)0)

#define SEC(name) __attribute__((section(name), used))
#define inline __attribute__((always_inline)) inline
#define noinline __attribute__((noinline))
#define TRUSTED __attribute__((btf_decl_tag("arg:trusted"))) // an argument of a function that the verifier looks at once
#define KFUNC extern __attribute__((section(".ksyms")))
#define WEAK __attribute__((weak)) // of a KFUNC: its address is NULL where the kernel has not got it

#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

/* ARG is the n-th argument of an operation. */
#define ARG(type, n) ((type)ctx[n])

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_TIMER_ABS = 1 };
enum { BPF_RB_NO_WAKEUP = 1 };
enum { CLOCK_MONOTONIC = 1 };
struct bpf_timer {
	u64 opaque[2];
} __attribute__((aligned(8)));

static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static long (*const bpf_probe_read_kernel_str)(void *to, u32 size, const void *from) = (void *)115;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;
static long (*const bpf_timer_init)(struct bpf_timer *timer, void *map, u64 flags) = (void *)169;
static long (*const bpf_timer_set_callback)(struct bpf_timer *timer, void *callback) = (void *)170;
static long (*const bpf_timer_start)(struct bpf_timer *timer, u64 ns, u64 flags) = (void *)171;

/* include/linux/sched/ext.h and kernel/sched/ext_internal.h */
#define SCX_DSQ_LOCAL 0x8000000000000002ULL
#define SCX_DSQ_LOCAL_ON 0xc000000000000000ULL
#define SCX_OPS_ENQ_LAST 2
/* These are not the same on all kernels: SCX_ENQ_HEAD is 0x10 before 7.0. The loader puts in the kernel's own values. */
enum scx_enq_flags { SCX_ENQ_HEAD = 0x10000, SCX_ENQ_PREEMPT = 0x100000000ULL };
enum scx_kick_flags { SCX_KICK_IDLE = 1, SCX_KICK_PREEMPT = 2 };
enum scx_pick_idle_cpu_flags { SCX_PICK_IDLE_CORE = 1 };
enum scx_ent_flags { SCX_TASK_QUEUED = 1 };
#define ENUM_VALUE 1
#define VALUE(type, name) __builtin_preserve_enum_value(*(enum type *)name, ENUM_VALUE)
#define SCX_ENQ_HEAD VALUE(scx_enq_flags, SCX_ENQ_HEAD)
#define SCX_ENQ_PREEMPT VALUE(scx_enq_flags, SCX_ENQ_PREEMPT)
#define SCX_KICK_IDLE VALUE(scx_kick_flags, SCX_KICK_IDLE)
#define SCX_KICK_PREEMPT VALUE(scx_kick_flags, SCX_KICK_PREEMPT)
#define SCX_PICK_IDLE_CORE VALUE(scx_pick_idle_cpu_flags, SCX_PICK_IDLE_CORE)
#define SCX_TASK_QUEUED VALUE(scx_ent_flags, SCX_TASK_QUEUED)
#define PF_KTHREAD 0x00200000 /* include/linux/sched.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct cpumask {
	unsigned long bits[1];
};
struct kernfs_node {
	u64 id; /* the inode of the directory */
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
};
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
};
struct task_group {
	struct cgroup_subsys_state css;
};
struct sched_ext_entity {
	u32 flags;
	u32 weight;
	unsigned long runnable_at; /* jiffies: since when it has waited, as the kernel's watchdog counts */
	u64 slice;
	u64 dsq_vtime;
};
struct task_struct {
	u32 flags;
	s32 pid;
	s32 nr_cpus_allowed;
	unsigned short migration_disabled;
	const struct cpumask *cpus_ptr;
	struct sched_ext_entity scx;
	struct task_group *sched_task_group; /* the cpu controller's, on v1 and v2 */
};
enum scx_exit_kind { SCX_EXIT_NONE };
struct scx_exit_info {
	enum scx_exit_kind kind;
	s64 exit_code;
	const char *reason;
	char *msg;
};
struct scx_cgroup_init_args {
	u32 weight;
};
struct scx_cgroup_init_args___bandwidth { /* 6.17: ddceadce63d9 */
	u64 bw_period_us;
	u64 bw_quota_us;
	u64 bw_burst_us;
};

#pragma clang attribute pop

struct bpf_iter_scx_dsq {
	u64 opaque[6];
} __attribute__((aligned(8)));
struct bpf_iter_num {
	u64 opaque[1];
} __attribute__((aligned(8)));

KFUNC void scx_bpf_error_bstr(char *format, u64 *data, u32 data__sz);
KFUNC s32 scx_bpf_create_dsq(u64 dsq, s32 node);
KFUNC void scx_bpf_destroy_dsq(u64 dsq);
KFUNC s32 scx_bpf_dsq_nr_queued(u64 dsq);
KFUNC s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev, u64 flags, bool *idle);
KFUNC s32 scx_bpf_pick_idle_cpu(const struct cpumask *allowed, u64 flags);
KFUNC WEAK bool scx_bpf_task_set_slice(struct task_struct *p, u64 slice); /* 6.19 */
KFUNC bool scx_bpf_test_and_clear_cpu_idle(s32 cpu);
KFUNC void scx_bpf_kick_cpu(s32 cpu, u64 flags);
KFUNC s32 scx_bpf_task_cpu(const struct task_struct *p);
KFUNC void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq, u64 slice, u64 flags);
KFUNC void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq, u64 slice, u64 vtime, u64 flags);
KFUNC bool scx_bpf_dsq_move_to_local(u64 dsq);
KFUNC bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq, u64 flags);
KFUNC bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq, u64 flags);
KFUNC void scx_bpf_dsq_move_set_vtime(struct bpf_iter_scx_dsq *it__iter, u64 vtime);
KFUNC int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq, u64 flags);
KFUNC struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it);
KFUNC void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it);
KFUNC int bpf_iter_num_new(struct bpf_iter_num *it, int begin, int end);
KFUNC int *bpf_iter_num_next(struct bpf_iter_num *it);
KFUNC void bpf_iter_num_destroy(struct bpf_iter_num *it);
KFUNC bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *mask);
KFUNC void bpf_rcu_read_lock(void);
KFUNC void bpf_rcu_read_unlock(void);

struct sched_ext_ops {
	s32 (*select_cpu)(struct task_struct *p, s32 prev, u64 flags);
	void (*enqueue)(struct task_struct *p, u64 flags);
	void (*dispatch)(s32 cpu, struct task_struct *prev);
	void (*tick)(struct task_struct *p);
	void (*runnable)(struct task_struct *p, u64 flags);
	void (*running)(struct task_struct *p);
	void (*stopping)(struct task_struct *p, bool runnable);
	void (*quiescent)(struct task_struct *p, u64 flags);
	s32 (*cgroup_init)(struct cgroup *c, struct scx_cgroup_init_args *args);
	void (*cgroup_exit)(struct cgroup *c);
	void (*cgroup_set_weight)(struct cgroup *c, u32 weight);
	void (*cgroup_set_bandwidth)(struct cgroup *c, u64 period_us, u64 quota_us, u64 burst_us);
	void (*cpu_online)(s32 cpu);
	void (*cpu_offline)(s32 cpu);
	s32 (*init)(void);
	void (*exit)(struct scx_exit_info *info);
	u64 flags;
	u32 timeout_ms;
	char name[128];
};

#define FIELD_EXISTS 2
#define HAS(type, field) __builtin_preserve_field_info(((struct type *)0)->field, FIELD_EXISTS)

#endif
