// SPDX-License-Identifier: GPL-2.0
// state.h: what is kept of groups and connections.

// counts are those of one group. The first bucket of THROTTLED is not counted: it has the requests that no other one has. User space takes differences, so that nothing is ever reset.
struct counts {
	u32 times[KINDS][BUCKETS];
	u64 response;  // the sum of the times of RESPONSE, in ns
	u64 throttled; // of it
	u64 clockless; // of RESPONSE: requests whose throttled part is not known, and the sum of their times
	u64 clockless_time;
	u64 doubtful;  // not in times: more arrived while the answer was owed, now or before on this connection
	u64 opening;   // not in times: the same, in a connection's first exchanges
	u64 overtaken; // not in times: the next one arrived before the answer's send was reported
};

// clock is the time in which a group was throttled: it runs from when a task is kept from running by a limit of the
// group, or by one above it, until a task of the group runs.
struct clock {
	u64 wall;  // up to since
	u64 since; // 0: it stands
	u64 fill[6];
};

struct conn {
	u64 group;    // address of the task_group that sent last, and the generation in which its slot was looked up
	u64 first;    // arrival of the open request, or of the one that is answered
	u64 at;	      // its last arrival
	u64 began;    // first send of the answer
	u64 sent;     // last send
	u64 clock_at; // the group's clock at these times
	u64 clock_sent;
	u32 generation;
	u32 slot;
	u32 clock_slot; // whose clock clock_at is; 0: of none
	u32 received;	// rcv_nxt at the last arrival
	u32 written;	// write_seq then
	u32 last;	// bytes of the last arrival
	u32 exchanges;
	u8 phase;
	u8 early; // arrivals while the answer was owed
	u8 pieces; // it arrived in several
	u8 doubt;  // several requests were open at once
	u32 fill;
};

struct place {
	u64 net;
	u64 port;
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 512);
	TYPE(key, u64); // a group's inode
	TYPE(value, u32);
} slots SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 512);
	NUMBER(map_flags, BPF_F_MMAPABLE);
	TYPE(key, u32);
	TYPE(value, struct counts);
} groups SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_ARRAY);
	NUMBER(max_entries, 512);
	TYPE(key, u32);
	TYPE(value, struct clock);
} clocks SEC(".maps");

struct {
	NUMBER(type, BPF_MAP_TYPE_SK_STORAGE);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, int);
	TYPE(value, struct conn);
} conns SEC(".maps");

// owners are the groups that answer at a port: the clock of a connection's first request is that of such a group.
struct {
	NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, struct place);
	TYPE(value, u32);
} owners SEC(".maps");

// listening are the ports at which the sockets of the iterator's network namespace listen.
struct {
	NUMBER(type, BPF_MAP_TYPE_LRU_HASH);
	NUMBER(max_entries, 4096);
	TYPE(key, struct place);
	TYPE(value, u8);
} listening SEC(".maps");
