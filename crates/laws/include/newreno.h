/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * newreno.h - the congestion control of RFC 5681 and RFC 6582, in segments.
 *
 *   slow start, cwnd < ssthresh    one segment for each acknowledged
 *   congestion avoidance           one segment for each cwnd acknowledged: 1 per round trip, delayed ACKs or not
 *   loss or timeout                ssthresh = max(FlightSize / 2, 2)                      RFC 5681 (4)
 *
 * FlightSize is the stack's, but at most the window: RFC 5681 section 3.2 excludes segments of limited transmit beyond
 * it. What it leaves out: everything that the stack does (recovery, partial ACKs, idleness).
 */
#ifndef LASTHOP_LAWS_NEWRENO_H
#define LASTHOP_LAWS_NEWRENO_H

#include "law.h"
#include "reno.h"
#include "slow_start.h"

struct lh_newreno {
	struct lh_slow_start slow_start;
};

#define LH_NEWRENO_HAS_TIMED_OUT 1

static inline void lh_newreno_init(struct lh_newreno *law, const struct lh_start *start)
{
	lh_slow_start_init(&law->slow_start, start);
}

static inline void lh_newreno_acked(struct lh_newreno *law, const struct lh_acked *acked, struct lh_window *window)
{
	__u32 rest = acked->acked_segments;

	lh_slow_start_look(&law->slow_start, acked, window);
	if (!lh_may_grow(acked))
		return;
	if (lh_in_slow_start(window))
		rest = lh_slow_start_grow(&law->slow_start, acked, window);
	if (rest)
		lh_grow_one_per(window, window->cwnd_segments, rest);
}

static inline void lh_newreno_lost(struct lh_newreno *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)law;
	lh_reno_halve(lost, window);
}

static inline void lh_newreno_timed_out(struct lh_newreno *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_newreno_lost(law, lost, window);
	lh_slow_start_again(&law->slow_start, lost->now_us, lost->snd_nxt);
}

#endif /* LASTHOP_LAWS_NEWRENO_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(newreno, NEWRENO, NewReno, "NewReno", Blue, Circle, Simulated,
	     "RFC 5681 and RFC 6582.")
#endif
