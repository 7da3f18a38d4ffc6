// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * record_law - a law as it is loaded (law.bpf.c, with LH_LAW), and a record of every call: what the law is told, and the window
 * before and after. For tests only.
 *
 * Hooks: as law.bpf.c. A call that finds no room in the ring is made all the same, and counted.
 */
#define LH_RECORDS
#include "law.bpf.c"

/* tests/recorded_laws.rs mirrors it. */
struct recorded_call {
	__u64 socket; /* its address */
	__u32 call; /* enum call */
	struct lh_window before;
	struct lh_window after;
	__u32 padding;
	__u8 event[56]; /* the struct that the law is told, lh_acked being the longest */
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 24);
} calls SEC(".maps");

__u64 lost_calls;

static __always_inline void record(__u32 call, struct tcp_sock *tp, const struct lh_flow *flow, const void *event,
				   __u32 event_bytes, const struct lh_window *before, const struct lh_window *after)
{
	struct recorded_call *recorded = bpf_ringbuf_reserve(&calls, sizeof(*recorded), 0);

	if (!recorded) {
		__sync_fetch_and_add(&lost_calls, 1);
		return;
	}
	__builtin_memset(recorded, 0, sizeof(*recorded));
	recorded->socket = (__u64)tp;
	recorded->call = call;
	recorded->before = *before;
	recorded->after = *after;
	__builtin_memcpy(recorded->event, event, event_bytes);
	bpf_ringbuf_submit(recorded, BPF_RB_NO_WAKEUP);
}
