/* SPDX-License-Identifier: GPL-2.0 */
/* net.h: the fields of sockets that the programs read, beside those of kernel.h, and the helpers for them. */
#ifndef PLIMSOLL_NET_H
#define PLIMSOLL_NET_H

#include "../../bpf/kernel.h"

enum { BPF_MAP_TYPE_ARRAY = 2, BPF_MAP_TYPE_LRU_HASH = 9, BPF_MAP_TYPE_SK_STORAGE = 24 };
enum { BPF_F_MMAPABLE = 1 << 10 };
enum { BPF_SK_STORAGE_GET_F_CREATE = 1 };
enum { TCP_ESTABLISHED = 1, TCP_SYN_RECV = 3, TCP_CLOSE = 7, TCP_LISTEN = 10 }; /* include/net/tcp_states.h */
enum { RCV_SHUTDOWN = 1 };							  /* include/net/sock.h */

static void *(*const bpf_sk_storage_get)(void *map, void *sk, void *value, u64 flags) = (void *)107;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;
static struct task_struct *(*const bpf_get_current_task_btf)(void) = (void *)158;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct net;
typedef struct {
	struct net *net;
} possible_net_t;
struct sock_common {
	u16 skc_num; /* the local port */
	volatile u8 skc_state;
	possible_net_t skc_net;
};
struct sock {
	struct sock_common __sk_common;
	u8 sk_shutdown;
};
struct inet_sock {
	struct sock sk;
};
struct inet_connection_sock {
	struct inet_sock icsk_inet;
};
struct tcp_sock {
	struct inet_connection_sock inet_conn;
	u32 write_seq; /* the next byte that is sent */
	u32 rcv_nxt;   /* the next byte that is expected */
};
struct bpf_iter__tcp {
	void *meta;
	struct sock_common *sk_common;
};
struct task_struct___who {
	int pid;
};

#pragma clang attribute pop

#endif
