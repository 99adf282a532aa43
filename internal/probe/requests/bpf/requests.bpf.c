// SPDX-License-Identifier: GPL-2.0
// requests.bpf.c: how long the requests of each group take, seen at the sockets of its servers.
//
// A connection that a server accepted has an open request from the arrival of data until the answer's last send: the
// one before the next arrival, or before the connection ends. Three times are kept of it: from the last arrival to the
// last send (response), to the first send (first byte), and from the first arrival to the last (upload).
//
// sk_data_ready fires in the kernel's network softirq, whatever runs there; sock_send_length fires in the task that
// sends, after the data left. The group is that task's.
#include "net.h"

char LICENSE[] SEC("license") = "GPL";

#define DEPTH 12    // levels of groups looked at, from the task upwards
#define BUCKETS 448 // of a histogram: see bucket
#define SHORT 1200  // bytes: an arrival of fewer ends a message, of more may be a part (IPv6 carries 1,220 at least)
#define OPENING 2   // exchanges in which a connection is opened: TLS

enum kind { RESPONSE, FIRST, UPLOAD, THROTTLED, KINDS };
enum phase { QUIET, REQUEST, ANSWER };

#include "state.h"

u32 generation = 1;  // user space raises it when slots have changed
u64 running, stopped; // clocks that were started and stopped so far
u64 adopted;	     // sockets that the iterator took over
u64 unseen;	     // connections that the kernel gave no memory for

static inline void add(u64 *counter, u64 n)
{
	__sync_fetch_and_add(counter, n);
}

// bucket is the place of a time: 0 below 1,024 ns, then 16 for each power of two.
static inline u32 bucket(u64 ns)
{
	u64 rest = ns;
	u32 power = 0, n;

	if (ns < 1024)
		return 0;
	unroll for (u32 step = 32; step; step /= 2) {
		if (rest >> step) {
			rest >>= step;
			power += step;
		}
	}
	n = (power - 10) * 16 + ((ns >> (power - 4)) & 15) + 1;
	return n < BUCKETS ? n : BUCKETS - 1;
}

static inline void put(struct counts *g, u32 kind, u64 ns)
{
	u32 n = bucket(ns);

	if (n < BUCKETS)
		__sync_fetch_and_add(&g->times[kind][n], 1);
}

// nearest finds the slot of the nearest group above a task that has one; 0: none.
static noinline u32 nearest(struct task_group *tg)
{
	unroll for (int i = 0; i < DEPTH; i++) {
		struct cgroup *c;
		u32 *slot;
		u64 id;

		if (!tg)
			return 0;
		c = READ(tg, css.cgroup);
		id = c ? READ(READ(c, kn), id) : 0;
		slot = bpf_map_lookup_elem(&slots, &id);
		if (slot)
			return *slot;
		tg = READ(tg, parent);
	}
	return 0;
}

static inline u64 clock_of(u32 slot, u64 now)
{
	struct clock *c = bpf_map_lookup_elem(&clocks, &slot);
	u64 since;

	if (!c || !slot)
		return 0;
	since = c->since;
	return c->wall + (since && now > since ? now - since : 0);
}

// less is a difference of two readings that other CPUs may have made: 0 where it would be negative.
static inline u64 less(u64 a, u64 b)
{
	return (s64)(a - b) > 0 ? a - b : 0;
}

// finish counts an answered request.
static inline void finish(struct conn *c)
{
	bool doubtful, opening = false;
	struct counts *g;
	u64 took, part;

	if (c->phase != ANSWER)
		return;
	doubtful = c->early || c->doubt;
	if (c->early == 1 && !c->doubt && c->exchanges < OPENING)
		opening = true;
	else if (c->early)
		c->doubt = 1;
	c->exchanges++;
	c->phase = QUIET;
	g = bpf_map_lookup_elem(&groups, &c->slot);
	if (!g || !c->slot)
		return;
	if (doubtful) {
		add(opening ? &g->opening : &g->doubtful, 1);
		return;
	}
	took = less(c->sent, c->at);
	put(g, RESPONSE, took);
	put(g, FIRST, less(c->began, c->at));
	add(&g->response, took);
	if (c->pieces)
		put(g, UPLOAD, less(c->at, c->first));
	if (c->clock_slot != c->slot) {
		add(&g->clockless, 1);
		add(&g->clockless_time, took);
		return;
	}
	part = less(c->clock_sent, c->clock_at);
	if (!part)
		return;
	if (part > took)
		part = took;
	if (bucket(part))
		put(g, THROTTLED, part);
	add(&g->throttled, part);
}

static inline void place_of(struct place *p, struct sock *sk)
{
	p->net = (u64)sk->__sk_common.skc_net.net;
	p->port = sk->__sk_common.skc_num;
}

// follow begins to follow a connection.
static inline struct conn *follow(struct sock *sk, struct tcp_sock *tp, struct place *at)
{
	struct conn *c = bpf_sk_storage_get(&conns, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	u32 *owner;

	if (!c) {
		add(&unseen, 1);
		return NULL;
	}
	c->received = tp->rcv_nxt;
	owner = bpf_map_lookup_elem(&owners, at);
	if (owner)
		c->slot = *owner;
	return c;
}

SEC("tp_btf/inet_sock_set_state") int inet_sock_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	s32 was = ctx[1], now = ctx[2];
	struct tcp_sock *tp;
	struct place at;
	struct conn *c;

	if (was == TCP_SYN_RECV && now == TCP_ESTABLISHED) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (!tp)
			return 0;
		place_of(&at, sk);
		follow(sk, tp, &at);
	} else if (now == TCP_CLOSE) {
		c = bpf_sk_storage_get(&conns, sk, NULL, 0);
		if (c)
			finish(c);
	}
	return 0;
}

SEC("tp_btf/sk_data_ready") int sk_data_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct conn *c = bpf_sk_storage_get(&conns, sk, NULL, 0);
	struct tcp_sock *tp;
	u32 next, bytes;
	u64 now;

	if (!c || sk->sk_shutdown & RCV_SHUTDOWN) // the end of the peer's data is no request
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	next = tp->rcv_nxt;
	bytes = next - c->received;
	if (!bytes)
		return 0;
	now = bpf_ktime_get_ns();
	c->received = next;
	if (c->phase == REQUEST && (s32)(tp->write_seq - c->written) > 0) {
		// The answer left, and its send is not reported yet: on one host the peer may be that quick.
		struct counts *g = bpf_map_lookup_elem(&groups, &c->slot);

		if (g && c->slot)
			add(&g->overtaken, 1);
		c->phase = QUIET;
	}
	if (c->phase == REQUEST) {
		if (c->last < SHORT && c->early < 255)
			c->early++;
		c->pieces = 1;
	} else {
		finish(c);
		c->first = now;
		c->early = 0;
		c->pieces = 0;
		c->phase = REQUEST;
	}
	c->at = now;
	c->last = bytes;
	c->written = tp->write_seq;
	c->clock_slot = c->slot;
	c->clock_at = clock_of(c->slot, now);
	return 0;
}

SEC("tp_btf/sock_send_length") int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	s32 bytes = ctx[1];
	struct task_group *tg;
	struct tcp_sock *tp;
	struct place at;
	struct conn *c;
	u64 now;

	if (bytes <= 0)
		return 0;
	c = bpf_sk_storage_get(&conns, sk, NULL, 0);
	if (!c || c->phase == QUIET)
		return 0;
	now = bpf_ktime_get_ns();
	if (c->phase == REQUEST) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (!tp || (s32)(tp->write_seq - (u32)bytes - c->written) < 0 || (s64)(now - c->at) < 0)
			return 0; // it left before the request arrived
		tg = bpf_get_current_task_btf()->sched_task_group;
		if (c->group != (u64)tg || c->generation != generation) {
			c->generation = generation;
			c->group = (u64)tg;
			c->slot = nearest(tg);
			place_of(&at, sk);
			bpf_map_update_elem(&owners, &at, &c->slot, BPF_ANY);
		}
		c->began = now;
		c->phase = ANSWER;
	}
	c->sent = now;
	c->clock_sent = clock_of(c->slot, now);
	return 0;
}

// adopt takes over the sockets that are older than the programs. The kernel lists those that listen first
// (net/ipv4/tcp_ipv4.c, tcp_seek_last_pos).
SEC("iter/tcp") int adopt(struct bpf_iter__tcp *ctx)
{
	struct sock_common *skc = ctx->sk_common;
	struct tcp_sock *tp;
	struct place at;
	u8 one = 1;

	if (!skc)
		return 0;
	tp = bpf_skc_to_tcp_sock(skc);
	if (!tp)
		return 0;
	at.net = (u64)skc->skc_net.net;
	at.port = skc->skc_num;
	if (skc->skc_state == TCP_LISTEN) {
		bpf_map_update_elem(&listening, &at, &one, BPF_ANY);
		return 0;
	}
	if (skc->skc_state != TCP_ESTABLISHED || !bpf_map_lookup_elem(&listening, &at))
		return 0;
	if (bpf_sk_storage_get(&conns, tp, NULL, 0))
		return 0;
	if (follow((struct sock *)tp, tp, &at))
		add(&adopted, 1);
	return 0;
}

#include "switch.h"
