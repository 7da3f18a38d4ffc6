/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reno.h - stateless parts for the laws that build on NewReno: standard slow start, 1 segment per round trip, halving,
 * and tolerating a loss.
 */
#ifndef LASTHOP_LAWS_RENO_H
#define LASTHOP_LAWS_RENO_H

#include "law.h"

static inline void lh_reno_grow(const struct lh_acked *acked, struct lh_window *window)
{
	__u32 rest = acked->acked_segments;

	if (!lh_may_grow(acked))
		return;
	if (lh_in_slow_start(window))
		rest = lh_slow_start_by(window, rest);
	if (rest)
		lh_grow_one_per(window, window->cwnd_segments, rest);
}

static inline void lh_reno_halve(const struct lh_lost *lost, struct lh_window *window)
{
	__u32 flight = lh_min(lost->in_flight_segments, window->cwnd_segments);

	window->ssthresh_segments = lh_max(flight / 2, LH_MIN_SSTHRESH);
}

/* A loss that changes nothing. */
static inline void lh_tolerate(struct lh_window *window)
{
	window->ssthresh_segments = lh_max(window->cwnd_segments, LH_MIN_SSTHRESH);
}

#endif /* LASTHOP_LAWS_RENO_H */
