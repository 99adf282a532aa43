// SPDX-License-Identifier: GPL-2.0
// responses.h: the responses of each watched group, counted by how long they took.

#define LENGTHS 448 // 0, and 16 of each power of two from 1,024 ns on

// responses are those of a group that user space watches. User space inserts it.
struct responses {
	u64 requests;
	u64 doubtful;  // and not counted elsewhere
	u64 overtaken; // sends of which it is not known what they answer: see late
	u64 time;      // of all requests
	u64 split;     // requests whose throttled time is known
	u64 throttled; // that time
	u32 response[LENGTHS];
	u32 first[LENGTHS];  // up to the first byte of the response
	u32 upload[LENGTHS]; // from the first piece of the request to the last
	u32 rest[LENGTHS];   // the response without throttled time
};

struct {
	NUMBER(type, BPF_MAP_TYPE_HASH);
	NUMBER(max_entries, 8192);
	NUMBER(map_flags, BPF_F_NO_PREALLOC);
	TYPE(key, u64);
	TYPE(value, struct responses);
} watched SEC(".maps");

// length is the class of a time. It is global for the verifier, which would follow each of its 64 ways through all that comes after
// a call.
global u32 length(u64 ns)
{
	u64 rest = ns;
	u32 power = 0, n;

	if (ns < 1024)
		return 0;
	unroll for (u32 step = 32; step; step /= 2)
		if (rest >> step) {
			rest >>= step;
			power += step;
		}
	n = (power - 10) * 16 + ((ns >> (power - 4)) & 15) + 1;
	return n < LENGTHS ? n : LENGTHS - 1;
}

static inline void put(u32 *lengths, u64 ns)
{
	u32 n = length(ns);

	if (n < LENGTHS)
		__sync_fetch_and_add(&lengths[n], 1);
}

// move counts a length in place of a shorter one. A group that is watched anew since the shorter one has not counted that.
static inline void move(u32 *lengths, u64 from, u64 to)
{
	u32 was = length(from), is = length(to);

	if (was == is || was >= LENGTHS || is >= LENGTHS || !lengths[was])
		return;
	__sync_fetch_and_add(&lengths[was], -1);
	__sync_fetch_and_add(&lengths[is], 1);
}

// send is one of a thread of a group, and what it says of a response: how long that has taken so far, and what had been
// counted of it before.
struct send {
	u64 now, group;
	u64 clock; // the group's throttled time
	u32 from;  // the write_seq at which its data begins
	u32 read;  // copied_seq: more than has arrived, where an arrival was missed
	bool split;
	u64 time, rest, upload;
	u64 counted_time, counted_rest;
};

enum meaning { NOTHING, BEGINS, GOES_ON, DOUBTFUL, OVERTAKEN };

// count counts a response at its first send, and moves it at the next ones.
static inline void count(struct responses *a, enum meaning m, struct send *s)
{
	switch (m) {
	case DOUBTFUL:
		add(&a->doubtful, 1);
		break;
	case OVERTAKEN:
		add(&a->overtaken, 1);
		break;
	case BEGINS:
		add(&a->requests, 1);
		add(&a->time, s->time);
		put(a->response, s->time);
		put(a->first, s->time);
		put(a->upload, s->upload);
		if (!s->split)
			break;
		add(&a->split, 1);
		add(&a->throttled, s->time - s->rest);
		put(a->rest, s->rest);
		break;
	case GOES_ON:
		add(&a->time, s->time - s->counted_time);
		move(a->response, s->counted_time, s->time);
		if (!s->split)
			break;
		add(&a->throttled, (s->time - s->rest) - (s->counted_time - s->counted_rest));
		move(a->rest, s->counted_rest, s->rest);
		break;
	case NOTHING:
		break;
	}
}
