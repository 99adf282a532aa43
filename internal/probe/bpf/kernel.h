/* SPDX-License-Identifier: GPL-2.0 */
/*
 * kernel.h: the fields of the kernel's scheduler that the programs read, and the few helpers that they call.
 *
 * A dumped vmlinux.h has a hundred thousand lines of one kernel. CO-RE needs only names: the loader finds each field's
 * offset in the running kernel's BTF (preserve_access_index). A name after three underscores is a flavour: the loader
 * ignores the suffix, so that a field of some kernels only has a struct of its own, asked for by HAS first.
 */
#ifndef PLIMSOLL_KERNEL_H
#define PLIMSOLL_KERNEL_H

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
/* The verifier walks a static function at each call, and a global one once; its arguments are numbers, before 5.12. */
#define global __attribute__((__noinline__))
#define unroll _Pragma("clang loop unroll(full)")
#define barrier() __asm__ volatile("" ::: "memory")

/* Maps are described by the types of a struct's members (BTF maps). */
#define NUMBER(name, value) int(*name)[value]
#define TYPE(name, type) type *name

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_HASH = 1, BPF_MAP_TYPE_PERCPU_ARRAY = 6, BPF_MAP_TYPE_RINGBUF = 27 };
enum { BPF_ANY = 0, BPF_NOEXIST = 1, BPF_F_NO_PREALLOC = 1 };
enum { BPF_RB_NO_WAKEUP = 1, BPF_RB_FORCE_WAKEUP = 2 };
static void *(*const bpf_map_lookup_elem)(void *map, const void *key) = (void *)1;
static long (*const bpf_map_update_elem)(void *map, const void *key, const void *value, u64 flags) = (void *)2;
static long (*const bpf_map_delete_elem)(void *map, const void *key) = (void *)3;
static u64 (*const bpf_ktime_get_ns)(void) = (void *)5;
static u32 (*const bpf_get_smp_processor_id)(void) = (void *)8;
static struct task_struct *(*const bpf_get_current_task)(void) = (void *)35;
static long (*const bpf_probe_read_kernel)(void *to, u32 size, const void *from) = (void *)113;
static u64 (*const bpf_jiffies64)(void) = (void *)118;
static void *(*const bpf_ringbuf_reserve)(void *ring, u64 size, u64 flags) = (void *)131;
static void (*const bpf_ringbuf_submit)(void *data, u64 flags) = (void *)132;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct kernfs_node {
	u64 id; /* the inode of the directory */
};
struct cgroup {
	struct kernfs_node *kn;
	int level; /* 0: the root */
};
struct cgroup___ids { /* of the groups above, from the root down */
	u64 ancestor_ids[1];
};
struct cgroup___pointers { /* 6.1, in place of their ids: 7f203bc89eb6 */
	struct cgroup *ancestors[1];
};
struct cgroup_subsys_state {
	struct cgroup *cgroup;
};
struct hrtimer {
	s64 _softexpires; /* equal to node.expires: the period timer has no slack */
	void *function;
};
struct cfs_bandwidth {
	s64 period;
	u64 quota;
	u64 runtime;
	u8 period_active;
	struct hrtimer period_timer;
	int nr_periods;
	int nr_throttled; /* periods at whose end a queue stood still */
};
struct cfs_bandwidth___burst { /* 5.14: f4183717b370 */
	u64 burst;
};
struct cfs_bandwidth___snap { /* 5.16: bcb1704a1ed2 */
	u64 runtime_snap;
};
struct rq {
	u64 clock;	/* at its last tick or switch */
	u64 clock_task; /* the same without what interrupts and the host took, so far behind by a number of its own */
	int cpu;
};
struct cfs_rq {
	struct rq *rq;
	struct task_group *tg;
	struct sched_entity *curr; /* since 7.3 on a CPU's own queue only */
	s64 runtime_remaining;
	u64 throttled_clock;
	int runtime_enabled;
	int throttled; /* a bit-field since 6.18: read it with READ_BITS */
	int throttle_count;
};
struct cfs_rq___level { /* 7.3: the running entity of this level */
	struct sched_entity *h_curr;
};
struct cfs_rq___running {
	unsigned int nr_running;
};
struct cfs_rq___queued { /* its name since 6.14 */
	unsigned int nr_queued;
};
struct task_group {
	struct cgroup_subsys_state css;
	struct task_group *parent;
	struct cfs_bandwidth cfs_bandwidth;
};
struct task_group___arrays { /* before 7.2, one element a CPU */
	struct sched_entity **se;
	struct cfs_rq **cfs_rq;
};
struct sched_entity {
	u64 exec_start; /* clock_task when it was last accounted for */
	u64 sum_exec_runtime;
	struct sched_entity *parent;
	struct cfs_rq *cfs_rq;
};
struct sched_entity___delayed { /* 6.12: sleeps, but still stands in the queue */
	u8 sched_delayed;
};
struct task_struct {
	int on_rq;
	int prio; /* with what it inherits of a task that waits for it */
	struct sched_entity se;
	struct task_group *sched_task_group;
};
struct task_struct___throttled { /* 6.18: tasks are throttled one by one, on their way to user space */
	bool throttled;
};

#pragma clang attribute pop

/* What __builtin_preserve_field_info is asked for (llvm, BPFCORE.h). */
enum { FIELD_OFFSET = 0, FIELD_SIZE = 1, FIELD_EXISTS = 2, FIELD_LSHIFT = 4, FIELD_RSHIFT = 5 };
#define FIELD(p, field, what) __builtin_preserve_field_info((p)->field, what)

#define HAS(type, field) FIELD((struct type *)0, field, FIELD_EXISTS)

/* READ reads a field through a pointer that the verifier does not trust. */
#define READ(p, field)                                                        \
	({                                                                    \
		typeof((p)->field) value_ = 0;                                \
		bpf_probe_read_kernel(&value_, sizeof(value_), &(p)->field);  \
		value_;                                                       \
	})

/* OPTIONAL reads a field that a program can do without: a kernel that lacks it gives the other value. */
#define OPTIONAL(p, field, other) (FIELD(p, field, FIELD_EXISTS) ? READ(p, field) : (typeof((p)->field))(other))

/* READ_BITS does so for an unsigned number or bit-field of any size, on a little-endian machine. */
#define READ_BITS(p, field)                                                                          \
	({                                                                                           \
		u64 value_ = 0;                                                                      \
		bpf_probe_read_kernel(&value_, FIELD(p, field, FIELD_SIZE),                          \
				      (const void *)(p) + FIELD(p, field, FIELD_OFFSET));            \
		value_ <<= FIELD(p, field, FIELD_LSHIFT);                                            \
		value_ >>= FIELD(p, field, FIELD_RSHIFT);                                            \
		value_;                                                                              \
	})

#endif
