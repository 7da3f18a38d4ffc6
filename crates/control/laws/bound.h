/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bound.h - limits put around the window of any law.
 *
 * The middleware of hayakawa and shimada does not change TCP's congestion control: it "sets the levels of upper and
 * lower limit for the CWND". This header is that limit. It is compiled twice from this one source: for BPF, around the
 * kernel's own CUBIC, and natively, around the laws of the simulator.
 *
 *   window = law(...)                      whatever the law wants
 *   window = min(window, max_segments)     always
 *   window = max(window, min_segments)     except in timeout recovery
 *
 * A bound has a lease: past expires_ns it is as if it were not there, so whoever set it may die without a trace.
 *
 * Deliberate exceptions, each because a limit must never make a connection worse than it was:
 *  - In timeout recovery (LH_IN_LOSS) the lower limit is off: RFC 5681 section 3.1 asks for a window of one segment.
 *  - On entering fast recovery (LH_FORCE_RETRANSMIT) one segment beyond those in flight may always go: it is the fast
 *    retransmission, and without it an upper limit below the flight would turn every loss into a timeout.
 *
 * Integer arithmetic only, no clock, no allocation, no state. Windows in segments.
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

struct lh_bound {
	__u64 expires_ns; /* end of the lease, on the clock that the caller passes as now_ns */
	__u32 min_segments; /* 0 and 1: no lower limit */
	__u32 max_segments; /* 0: no upper limit */
};

/* Whether the lease still runs and anything is limited. At expires_ns itself it is over. */
static inline int lh_bound_holds(const struct lh_bound *bound, __u64 now_ns)
{
	return now_ns < bound->expires_ns && (bound->max_segments != 0 || bound->min_segments > 1);
}

/* The window of the law, limited. Never below 1. Where min_segments exceeds max_segments, max_segments wins. */
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
				/* never more than the law itself allows */
				window = in_flight_segments + 1;
				if (window > cwnd_segments)
					window = cwnd_segments;
			}
		}
	}
	return window ? window : 1;
}

#endif /* LASTHOP_BOUND_H */
