/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives the inline functions of bound.h a symbol, so that Rust can call the same source that the kernel runs. */
#include "bound.h"

_Static_assert(sizeof(struct lh_bound) == 24, "the Rust face lays struct lh_bound out in 24 bytes");

int lasthop_bound_holds(const struct lh_bound *bound, __u64 now_ns)
{
	return lh_bound_holds(bound, now_ns);
}

__u32 lasthop_bound_window(const struct lh_bound *bound, __u64 now_ns, __u32 cwnd_segments, __u32 in_flight_segments,
			   __u32 flags)
{
	return lh_bound_window(bound, now_ns, cwnd_segments, in_flight_segments, flags);
}

__u64 lasthop_bound_pacing_limit(const struct lh_bound *bound, __u64 now_ns)
{
	return lh_bound_pacing_limit(bound, now_ns);
}

__u64 lasthop_bound_pacing_rate(const struct lh_bound *bound, __u64 now_ns, __u64 rate)
{
	return lh_bound_pacing_rate(bound, now_ns, rate);
}
