/* SPDX-License-Identifier: GPL-2.0 */
/* socket.h: what is read of sockets beside kernel.h. */
#ifndef PLIMSOLL_SOCKET_H
#define PLIMSOLL_SOCKET_H

#include "../../bpf/kernel.h"

/* include/uapi/linux/bpf.h */
enum { BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
struct seq_file;
struct bpf_spin_lock {
	u32 val;
};
static void (*const bpf_spin_lock)(struct bpf_spin_lock *lock) = (void *)93;
static void (*const bpf_spin_unlock)(struct bpf_spin_lock *lock) = (void *)94;
static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static long (*const bpf_seq_write)(struct seq_file *to, const void *data, u32 size) = (void *)127;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;
static struct socket *(*const bpf_sock_from_file)(void *file) = (void *)162;

enum { AF_INET = 2, AF_INET6 = 10, IPPROTO_TCP = 6, IPPROTO_MPTCP = 262 };
enum { TCP_ESTABLISHED = 1, TCP_SYN_RECV = 3, TCP_LISTEN = 10 }; /* include/net/tcp_states.h */

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct {
	void *net;
} possible_net_t;
struct sock_common {
	u16 skc_num; /* the local port */
	u16 skc_family;
	volatile u8 skc_state;
	possible_net_t skc_net;
};
struct sk_buff_head {
	u32 qlen;
};
struct sock {
	struct sock_common __sk_common;
	struct sk_buff_head sk_receive_queue;
	u16 sk_protocol;
};
struct tcp_sock {
	u32 write_seq;	/* one past the last byte that was sent, or waits to be */
	u32 rcv_nxt;	/* one past the last byte that was received */
	u32 copied_seq; /* one past the last byte that was read */
};
struct socket {
	struct sock *sk;
};
struct bpf_iter_meta {
	struct seq_file *seq;
};
struct bpf_iter__bpf_sk_storage_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
	struct sock *sk;
	void *value;
};
struct bpf_iter__task_file {
	void *meta;
	struct task_struct *task;
	u32 fd;
	struct file *file;
};

#pragma clang attribute pop

static inline bool internet(const struct sock *sk)
{
	u16 family = sk->__sk_common.skc_family;

	return family == AF_INET || family == AF_INET6;
}

static inline bool tcp(const struct sock *sk)
{
	return internet(sk) && sk->sk_protocol == IPPROTO_TCP;
}

#endif
