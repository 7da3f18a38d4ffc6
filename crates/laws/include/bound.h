/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bound.h - limits of the window and the pacing rate, around any law, and of the window that is advertised.
 *
 * The middleware of hayakawa and shimada does not change TCP's congestion control: it "sets the levels of upper and
 * lower limit for the CWND". This header is that limit. The same source is compiled for BPF, around the kernel's own
 * CUBIC, and natively, around the laws of the simulator.
 *
 *   window = law(...)                      the law's own choice
 *   window = min(window, max_segments)     always
 *   window = max(window, min_segments)     except in timeout recovery
 *   pace   = max(min(own, max_pacing_rate), LH_MIN_PACING_RATE)    if there is that limit, or `paced`; own: TCP's rate
 *   advertised window = min(free buffer, max_receive_bytes), its right edge never moved back
 *
 * The third limit is ours. On a short path even a window of two segments may send too fast. Only a pacing rate can
 * allow less than a window a round trip. It is in the unit of Linux's sk_pacing_rate (net/ipv4/tcp_output.c,
 * tcp_update_skb_after_send()): bytes of payload per second, with retransmissions. A limit paces a sender that would
 * not pace, and so does `paced` without any limit: at the rate of tcp_update_pacing_rate() (net/ipv4/tcp_input.c), 1.2
 * windows a smoothed round trip, 2 in the first half of slow start. With `at_once` a window may go and wait below TCP as a
 * whole: TCP small queues and TSO sizes, which follow the pacing rate, get LH_AT_ONCE_RATE for it, unless somebody else
 * paces the sender. Aggregates of 802.11n and later are made of what waits there.
 *
 * The fourth is ours, too: this end's advertised window holds back a sender that knows nothing of us, as in RFC 9840
 * (rLEDBAT). Who advertises keeps the edge: RFC 7323 section 2.4 forbids to take back what was offered.
 *
 * A bound has a lease: from expires_ns on it has no effect. So a process that set it may die without cleaning up.
 *
 * Deliberate exceptions, because a limit must never make a connection worse than without it:
 *  - In timeout recovery (LH_IN_LOSS) the lower limit is off: RFC 5681 section 3.1 asks for a window of one segment.
 *  - At the beginning of fast recovery (LH_FORCE_RETRANSMIT) one segment beyond the flight is allowed, the fast
 *    retransmission. Without it an upper limit below the flight would turn every loss into a timeout.
 *  - No pace is below LH_MIN_PACING_RATE. After a timeout in a long queue, TCP's own rate may be one segment in many
 *    seconds, until the SRTT has fallen.
 *  - An advertised window is never limited to less than two full segments, which are acknowledged at once. So a sender
 *    is never stalled, and a limit that rises or lapses needs no window update.
 *
 * Integer arithmetic only, no clock, no allocation, no state. Windows in segments, but advertised ones in bytes; rates
 * in bytes per second.
 */
#ifndef LASTHOP_BOUND_H
#define LASTHOP_BOUND_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

enum lh_bound_flags {
	LH_IN_LOSS = 1, /* the connection is in timeout recovery (TCP_CA_Loss) */
	LH_FORCE_RETRANSMIT = 2, /* the first segment of a fast recovery has not been retransmitted yet */
};

/* In bytes per second, 10 Gb/s: a millisecond of it is more than any packet for TSO, and more than a bounded window. */
#define LH_AT_ONCE_RATE 1250000000

/* What TCP's own pacing rate is before the first RTT sample. */
#define LH_NO_RATE (~0ULL)

/*
 * The lowest pace: two segments of 1500 bytes in 0.75 s, half the agents' lease. So a sender that
 * waits for its pace when the lease expires continues within half a lease, without being woken.
 */
#define LH_MIN_PACING_RATE 4000

struct lh_bound {
	__u64 expires_ns; /* end of the lease, on the clock that the caller passes as now_ns */
	__u32 min_segments; /* 0 and 1: no lower limit */
	__u32 max_segments; /* 0: no upper limit */
	__u64 max_pacing_rate; /* payload bytes per second; 0: no limit */
	__u64 max_receive_bytes; /* of the window that this end advertises; 0: no limit */
	__u32 paced; /* 1: paced at TCP's own rate */
	__u32 at_once; /* 1: small queues and TSO sizes at LH_AT_ONCE_RATE */
};

/* Whether the lease is running and there is a limit. At expires_ns itself the lease is over. */
static inline int lh_bound_holds(const struct lh_bound *bound, __u64 now_ns)
{
	return now_ns < bound->expires_ns &&
	       (bound->max_segments != 0 || bound->min_segments > 1 || bound->max_pacing_rate != 0 ||
		bound->max_receive_bytes != 0 || bound->paced != 0 || bound->at_once != 0);
}

/* Whether the sender is paced because of the bound, with `at_once` at a rate that holds nothing back. */
static inline int lh_bound_paces(const struct lh_bound *bound, __u64 now_ns)
{
	return now_ns < bound->expires_ns && (bound->paced != 0 || bound->at_once != 0 || bound->max_pacing_rate != 0);
}

/*
 * TCP's own pacing rate, or LH_NO_RATE, as the bound has it: unchanged if the bound does not pace. paced_anyway: 1 if the
 * sender is paced without the bound, too.
 */
static inline __u64 lh_bound_pacing_rate(const struct lh_bound *bound, __u64 now_ns, __u64 rate, int paced_anyway)
{
	if (!lh_bound_paces(bound, now_ns))
		return rate;
	if (bound->at_once != 0 && !bound->paced && !paced_anyway)
		rate = LH_AT_ONCE_RATE;
	if (bound->max_pacing_rate != 0 && bound->max_pacing_rate < rate)
		rate = bound->max_pacing_rate;
	return rate > LH_MIN_PACING_RATE ? rate : LH_MIN_PACING_RATE;
}

/* The window to advertise, limited, in bytes; segment_bytes: the payload of a full segment from the other side. */
static inline __u64 lh_bound_receive_window(const struct lh_bound *bound, __u64 now_ns, __u64 window_bytes,
					    __u64 segment_bytes)
{
	__u64 limit = bound->max_receive_bytes, least = 2 * segment_bytes;

	if (limit == 0 || now_ns >= bound->expires_ns)
		return window_bytes;
	if (limit < least)
		limit = least;
	return limit < window_bytes ? limit : window_bytes;
}

/* The law's window, limited; at least 1. If min_segments exceeds max_segments, max_segments wins. */
static inline __u32 lh_bound_window(const struct lh_bound *bound, __u64 now_ns, __u32 cwnd_segments,
				    __u32 in_flight_segments, __u32 flags)
{
	__u32 window = cwnd_segments;

	if (lh_bound_holds(bound, now_ns)) {
		if (!(flags & LH_IN_LOSS) && window < bound->min_segments)
			window = bound->min_segments;
		if (bound->max_segments != 0 && window > bound->max_segments) {
			window = bound->max_segments;
			if ((flags & LH_FORCE_RETRANSMIT) && window <= in_flight_segments) {
				/* never more than the law's window */
				window = in_flight_segments + 1;
				if (window > cwnd_segments)
					window = cwnd_segments;
			}
		}
	}
	return window ? window : 1;
}

#endif /* LASTHOP_BOUND_H */
