// SPDX-License-Identifier: GPL-2.0
// requests.bpf.c: how long each container takes to answer a request, by the data that its sockets receive and send.
//
// A server's connection carries one request after the other (HTTP/1, memcached, most binary protocols). A request
// arrives with sk_data_ready (net/core/sock.c), once for each piece of it. It is answered with sock_send_length
// (net/socket.c), once for each write, after the data is in the socket's send buffer. So the response time is known at
// each send. It is counted at the first one, and each further one moves what was counted to where it belongs now. No
// end of a response needs to be found.
//
// Server sockets are those that come from a listening socket: such a socket alone is established out of TCP_SYN_RECV
// (net/ipv4/tcp_input.c, tcp_rcv_state_process). For sockets that are older than the programs see take_over.
#include "socket.h"

char LICENSE[] SEC("license") = "GPL";

#include "../../bpf/group.h"
#include "../../bpf/standing.h"
#include "responses.h"

enum phase { IDLE, ARRIVING, RESPONDED }; // of the last request of a connection

// request is one as far as it has arrived, and its response.
struct request {
	u64 first; // when its first piece arrived
	u64 at;	   // and the last one so far
	u64 clock; // the group's throttled time, then, or NO_CLOCK
	u64 time;  // of the response so far, as it is counted
	u64 rest;  // of it: without throttled time
	u32 wrote; // write_seq when the last piece arrived
	u32 until; // and rcv_nxt
	u8 overlaps; // pieces that arrived after all before them had been read, and before the response
	u8 counted;
	u8 split; // its throttled time is known
};

// connection is a server's. It is created zero. The client may read a response, and its next request arrive on another
// CPU, before the program at the response's last send has run, and while it does: hence the lock.
struct connection {
	struct bpf_spin_lock lock;
	u64 group; // whose threads answer on it; 0: not known yet
	u64 tg;	   // address of the task_group of the thread that answered last
	struct request now;
	struct request before; // as now was before the last piece arrived
	u8 phase;
	u8 responses; // so far, up to SETTLED
	u8 strikes; // overlaps of earlier requests
	u8 several; // it carries several requests at a time
};

struct {
	NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	NUMBER(max_entries, 0);
	TYPE(key, int);
	TYPE(value, struct connection);
} connections SEC(".maps");

// A connection that has carried several requests at a time may look like one with one at a time later: requests and
// responses alternate, and belong to other ones. So it is not trusted again. The handshake of TLS 1.3 ends with a message of the
// client that has no response, and so looks like one overlap in the second exchange of a connection.
#define SETTLED 2
#define MOST_STRIKES 1

// port is a listening one.
struct port {
	u64 net; // address of its network namespace
	u64 number;
};

// owners are the groups that answer at a port, so that the throttled time of a connection's first request is known.
struct {
	NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	NUMBER(max_entries, 8192);
	TYPE(key, struct port);
	TYPE(value, u64);
} owners SEC(".maps");

#define TOGETHER 100000 // ns in which the pieces of one request arrive

u32 listening; // take_over looks for ports; else for their connections
u32 unmarked;  // listening sockets whose connections take_over cannot find
s64 room;      // connections that may be traced in addition: user space counts them anew now and then
u64 untraced;  // connections without room

#define NO_CLOCK (~0ull)

// throttled is how long a group has been throttled up to now; NO_CLOCK where package probe does not watch it.
static noinline u64 throttled(u64 id, u64 now)
{
	struct group *g = bpf_map_lookup_elem(&groups, &id);
	struct throttle *t;
	struct task_group *tg;
	u64 sum, end;

	if (!g)
		return NO_CLOCK;
	sum = g->wall;
	t = bpf_map_lookup_elem(&standing, &id);
	if (!t)
		return sum;
	tg = READ((struct cfs_rq *)t->origin, tg);
	end = latest_end(t, &tg->cfs_bandwidth);
	if (end > now)
		end = now;
	return end > t->since ? sum + end - t->since : sum;
}

// watched_group is the watched group that a thread belongs to: the nearest one above it. 0: there is none.
static noinline u64 watched_group(struct task_struct *p)
{
	struct task_group *tg = p->sched_task_group;

	for (int i = 0; i < DEPTH && tg; i++) {
		u64 id = group_of(tg);

		if (id && bpf_map_lookup_elem(&watched, &id))
			return id;
		tg = READ(tg, parent);
	}
	return 0;
}

static inline struct port port_of(const struct sock *sk)
{
	struct port p = {.net = (u64)sk->__sk_common.skc_net.net, .number = sk->__sk_common.skc_num};

	return p;
}

static inline u64 owner_of(const struct sock *sk)
{
	struct port p = port_of(sk);
	u64 *group = bpf_map_lookup_elem(&owners, &p);

	return group ? *group : 0;
}

// trace makes a server's connection a traced one. The kernel frees its state with the socket, and charges it to the
// control group of the agent, whoever connects: hence the bound. NULL: there is no room.
static inline struct connection *trace(struct sock *sk)
{
	struct connection *c;

	if (room <= 0)
		return NULL;
	c = bpf_sk_storage_get(&connections, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (c)
		__sync_fetch_and_add(&room, -1);
	return c;
}

// arrived makes the piece that has just arrived the first one of a request.
static inline void arrived(struct request *r)
{
	r->first = r->at;
	r->overlaps = 0;
	r->counted = 0;
}

// sk_data_ready runs where data is added to a socket's queue, in interrupt context most of the time. Listening sockets, and
// the end of a connection, have an empty queue.
SEC("tp_btf/sk_data_ready") int sk_data_ready(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	u32 queued = sk->sk_receive_queue.qlen, wrote, until, read;
	struct connection *c;
	u64 now, group, clock;
	bool sent, overlaps;

	if (!queued || !tcp(sk))
		return 0;
	c = bpf_sk_storage_get(&connections, sk, NULL, 0);
	if (!c && unmarked) {
		struct port p = port_of(sk);

		if (bpf_map_lookup_elem(&owners, &p))
			c = trace(sk);
	}
	if (!c)
		return 0;
	now = bpf_ktime_get_ns();
	wrote = READ((struct tcp_sock *)sk, write_seq);
	until = READ((struct tcp_sock *)sk, rcv_nxt);
	read = READ((struct tcp_sock *)sk, copied_seq);
	group = c->group ? c->group : owner_of(sk);
	clock = throttled(group, now);
	bpf_spin_lock(&c->lock);
	sent = wrote != c->now.wrote;
	overlaps = (s32)(read - c->now.until) >= 0; // all that had arrived was read
	c->before = c->now;
	c->now.at = now;
	c->now.wrote = wrote;
	c->now.until = until;
	c->now.clock = clock;
	if (!c->group)
		c->group = group;
	if (c->phase != ARRIVING || sent) { // a response was sent, although the program at the send has not run, or never will
		c->phase = ARRIVING;
		arrived(&c->now);
	} else if (overlaps && now - c->now.first > TOGETHER && c->now.overlaps <= MOST_STRIKES) {
		c->now.overlaps++;
	}
	bpf_spin_unlock(&c->lock);
	return 0;
}

// sender_group finds the watched group of the thread that sends.
static inline u64 sender_group(struct sock *sk, struct connection *c)
{
	struct task_struct *p = bpf_get_current_task_btf();
	u64 tg = (u64)p->sched_task_group, group = c->group;

	if (tg == c->tg && bpf_map_lookup_elem(&watched, &group))
		return group;
	c->tg = tg;
	group = watched_group(p);
	if (group && group != c->group) {
		struct port p = port_of(sk);

		bpf_map_update_elem(&owners, &p, &group, BPF_ANY);
	}
	return group;
}

// trusted says whether requests come one at a time on a connection, as far as is known with this one.
static inline bool trusted(struct connection *c, struct request *r)
{
	c->strikes += r->overlaps;
	if (c->strikes > MOST_STRIKES || (r->overlaps && c->responses == SETTLED)) {
		c->several = 1;
		c->strikes = 0;
	}
	if (c->responses < SETTLED)
		c->responses++;
	return !r->overlaps && !c->several;
}

// took notes how long a response has taken up to a send.
static inline void took(struct request *r, struct send *s)
{
	u64 waited = s->clock > r->clock ? s->clock - r->clock : 0;

	if (s->clock == NO_CLOCK || r->clock == NO_CLOCK)
		r->split = 0;
	s->counted_time = r->time;
	s->counted_rest = r->rest;
	r->time = s->now - r->at;
	r->rest = r->time > waited ? r->time - waited : 0;
	s->split = r->split;
	s->time = r->time;
	s->rest = r->rest;
}

// begin is a response's first send.
static inline enum meaning begin(struct connection *c, struct request *r, struct send *s)
{
	r->split = c->group == s->group;
	c->group = s->group;
	if (!trusted(c, r))
		return DOUBTFUL;
	took(r, s);
	s->upload = r->at - r->first;
	r->counted = 1;
	return BEGINS;
}

// go_on is a later one.
static inline enum meaning go_on(struct connection *c, struct request *r, struct send *s)
{
	if (!r->counted || c->group != s->group)
		return NOTHING;
	took(r, s);
	return GOES_ON;
}

// responds_to says whether a send may answer a request: its data was queued after the request arrived.
static inline bool responds_to(struct request *r, struct send *s)
{
	return r->at && (s32)(s->from - r->wrote) >= 0 && s->now >= r->at;
}

// late is a send whose data the client had read, and followed with its next request, before this program ran: on one
// machine that happens. The send belongs to the request before.
static inline enum meaning late(struct connection *c, struct send *s)
{
	arrived(&c->now);
	if (!responds_to(&c->before, s))
		return OVERTAKEN;
	return c->before.counted ? go_on(c, &c->before, s) : begin(c, &c->before, s);
}

// meaning_of says what a send is, and notes that it was. The connection is locked.
static inline enum meaning meaning_of(struct connection *c, struct send *s)
{
	if ((s32)(s->read - c->now.until) > 1) { // the end of a stream is one, and does not arrive here
		c->phase = IDLE;
		return OVERTAKEN;
	}
	if (c->phase == RESPONDED)
		return s->now >= c->now.at ? go_on(c, &c->now, s) : OVERTAKEN;
	if (!responds_to(&c->now, s))
		return late(c, s);
	c->phase = RESPONDED;
	return begin(c, &c->now, s);
}

SEC("tp_btf/sock_send_length") int sock_send_length(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];
	struct send s = {};
	struct responses *a;
	struct connection *c;
	int sent = ctx[1];
	enum meaning m;

	if (sent <= 0 || !tcp(sk))
		return 0;
	c = bpf_sk_storage_get(&connections, sk, NULL, 0);
	if (!c || c->phase == IDLE)
		return 0;
	s.now = bpf_ktime_get_ns();
	s.from = READ((struct tcp_sock *)sk, write_seq) - sent;
	s.read = READ((struct tcp_sock *)sk, copied_seq);
	s.group = sender_group(sk, c);
	s.clock = throttled(s.group, s.now);
	bpf_spin_lock(&c->lock);
	m = meaning_of(c, &s);
	bpf_spin_unlock(&c->lock);
	a = bpf_map_lookup_elem(&watched, &s.group);
	if (a)
		count(a, m, &s);
	return 0;
}

SEC("tp_btf/inet_sock_set_state") int inet_sock_set_state(u64 *ctx)
{
	struct sock *sk = (void *)ctx[0];

	if ((int)ctx[1] == TCP_SYN_RECV && (int)ctx[2] == TCP_ESTABLISHED && tcp(sk) && !trace(sk))
		add(&untraced, 1);
	return 0;
}

// count_traced gives a byte for each traced connection that is there: so a walk is as long as what its reader asks for.
SEC("iter/bpf_sk_storage_map") int count_traced(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	u8 one = 1;

	if (ctx->sk)
		bpf_seq_write(ctx->meta->seq, &one, sizeof(one));
	return 0;
}

// take_over visits the open files of all tasks, twice: first for listening sockets, then for the connections at their
// ports. The sockets of Multipath TCP (as Go's servers have) stand behind that of the file, out of reach here: older
// connections of such a server are recognized by their port when data arrives.
SEC("iter/task_file") int take_over(struct bpf_iter__task_file *ctx)
{
	struct file *file = ctx->file;
	struct task_struct *task = ctx->task;
	struct connection *c;
	struct socket *socket;
	struct sock *sk;
	struct port p;
	u64 group;

	if (!file || !task)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk || !internet(sk))
		return 0;
	p = port_of(sk);
	if (listening) {
		if (sk->__sk_common.skc_state != TCP_LISTEN)
			return 0;
		if (sk->sk_protocol == IPPROTO_MPTCP)
			unmarked++;
		group = watched_group(task);
		bpf_map_update_elem(&owners, &p, &group, BPF_ANY);
		return 0;
	}
	if (sk->__sk_common.skc_state != TCP_ESTABLISHED || !tcp(sk) || !bpf_map_lookup_elem(&owners, &p))
		return 0;
	if (bpf_sk_storage_get(&connections, sk, NULL, 0)) // another file of the same socket
		return 0;
	c = trace(sk);
	if (c)
		c->responses = SETTLED;
	else
		add(&untraced, 1);
	return 0;
}
