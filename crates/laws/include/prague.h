/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prague.h - Prague: DCTCP's answer to marks, paced, with a window of fractions, and growth that depends little on the round trip.
 *
 * draft-briscoe-iccrg-prague-congestion-control-04 ("the draft"); the constants and the order of events are those of the reference
 * implementation for Linux (L4STeam/linux, net/ipv4/tcp_prague.c), read for the facts.
 *
 *   each virtual round    alpha = alpha (1 - g) + g marked / delivered,  g = 1/16          section 2.4.2; alpha is 1 at first,
 *                                                                                          and waits for a first mark
 *   a mark                cwnd = cwnd (1 - alpha / 2), once in a virtual round             section 2.4.2
 *   loss, timeout         cwnd = cwnd / 2                                                  section 2.4.1
 *   growth                slow start; then (R / 25 ms)^2 / cwnd, at most 1 / cwnd, for each segment delivered without a mark,
 *                         also while marks reduce the window                               sections 2.4.3, 2.4.4
 *   virtual round         the round trip R, but at least 25 ms after 500 rounds without slow start; until then R, and growth
 *                         of 1 / cwnd                                                      section 2.4.4
 *   pace                  cwnd / R, twice that in the first half of slow start, at least 100 kb/s      section 2.4.5
 *
 * The window is kept in 1/2^20 of a segment; the one that the stack has follows it by one segment for each ACK. Its segments
 * are ECT(1), and the connection needs accurate ECN. Without it there are no marks, and the law grows and halves as NewReno.
 *
 * Differs from the implementation: marks reduce the window whatever the stack's state, for a virtual round that is a little longer than
 * R would else be two; a window need be half full to grow, not full; after a timeout ssthresh is the halved window. The window is kept
 * and paced, as in earlier versions. Later ones keep the rate in virtual rounds of 25 ms, and before pace what is in flight, if it is
 * more; their floors, of the window and of that rate, are here always.
 * What it leaves out: the fall-back to a classic queue's marks (section 2.4.6; off in the implementation), the choice of other
 * ways to depend on the round trip.
 */
#ifndef LASTHOP_LAWS_PRAGUE_H
#define LASTHOP_LAWS_PRAGUE_H

#include "law.h"

#define LH_PRAGUE_HAS_SAMPLED 1
#define LH_PRAGUE_HAS_NOTIFIED 1
#define LH_PRAGUE_HAS_TIMED_OUT 1
#define LH_PRAGUE_HAS_UNDONE 1
#define LH_PRAGUE_IS_L4S 1

#define LH_PRAGUE_SCALE 20 /* of the window and of alpha: PRAGUE_ALPHA_BITS, CWND_UNIT */
#define LH_PRAGUE_ONE (1ULL << LH_PRAGUE_SCALE)
#define LH_PRAGUE_SHIFT_G 4 /* g = 1/16: PRAGUE_SHIFT_G */
#define LH_PRAGUE_ROUND_US 25000U /* the least virtual round: prague_rtt_target */
#define LH_PRAGUE_ROUNDS 500U /* until then R: prague_rtt_transition */
#define LH_PRAGUE_LEAST_WINDOW 2U /* that is sent: MIN_CWND_RTT */
#define LH_PRAGUE_LEAST_PACE 12500U /* bytes per second: MINIMUM_RATE */
#define LH_PRAGUE_LONGEST_US 10000000U /* of a smoothed round trip, so that nothing overflows */

struct lh_prague {
	__u64 cwnd; /* in 1/2^20 segments */
	__u64 prior_cwnd; /* before the last loss */
	__u64 alpha; /* 1/g times alpha, in 1/2^20 */
	__u64 alpha_at_us; /* when it was last updated */
	__u64 reduced_at_us; /* when a mark last reduced the window */
	__u32 round_end; /* snd_nxt when the round began */
	__u32 delivered; /* totals then */
	__u32 marked;
	__u32 marked_before; /* total at the last ACK */
	__u32 rounds; /* without slow start */
	__u32 reduced_end; /* snd_nxt then */
	__u8 has_marks; /* there is a queue that marks */
	__u8 in_loss; /* a loss has reduced the window, and is being repaired */
	__u8 in_slow_start;
	__u8 begun;
	__u8 has_reduced;
};

static inline void lh_prague_init(struct lh_prague *law, const struct lh_start *start)
{
	*law = (struct lh_prague){
		.alpha = LH_PRAGUE_ONE << LH_PRAGUE_SHIFT_G,
		.alpha_at_us = start->now_us,
		.round_end = start->snd_nxt,
		.in_slow_start = 1,
	};
}

/* prague_frac_cwnd_to_snd_cwnd() */
static inline __u32 lh_prague_window(const struct lh_prague *law)
{
	__u64 segments = (law->cwnd + LH_PRAGUE_ONE - 1) >> LH_PRAGUE_SCALE;

	return lh_max((__u32)segments, LH_PRAGUE_LEAST_WINDOW);
}

/* prague_is_rtt_indep() */
static inline int lh_prague_has_virtual_rounds(const struct lh_prague *law)
{
	return !law->in_slow_start && law->rounds >= LH_PRAGUE_ROUNDS;
}

/* The growth of a window by a segment for each delivered in it, in 1/2^20: prague_rate_scaled_ai_ack_increase(). */
static inline __u64 lh_prague_growth(const struct lh_prague *law, __u32 srtt_us)
{
	__u64 square = (__u64)LH_PRAGUE_ROUND_US * LH_PRAGUE_ROUND_US;

	if (law->rounds < LH_PRAGUE_ROUNDS || !srtt_us || srtt_us >= LH_PRAGUE_ROUND_US)
		return LH_PRAGUE_ONE;
	return (((__u64)srtt_us * srtt_us << LH_PRAGUE_SCALE) + square / 2) / square;
}

/* prague_update_cwnd(), for `delivered` segments of which `marked` were marked */
static inline void lh_prague_grow(struct lh_prague *law, const struct lh_rate_sample *sample, __u32 marked,
				  struct lh_steering *steering)
{
	__u32 unmarked = sample->acked_segments > marked ? sample->acked_segments - marked : 0;
	__u32 window;

	/* a window that is not half used does not grow; the pace keeps a used one from being full */
	if (2 * sample->prior_in_flight_segments < steering->cwnd_segments)
		return;
	if (law->in_loss || !unmarked)
		return;
	if (law->in_slow_start) {
		__u32 room = steering->ssthresh_segments > steering->cwnd_segments ?
				     steering->ssthresh_segments - steering->cwnd_segments :
				     0;
		__u32 step = lh_min(unmarked, room);

		steering->cwnd_segments += step;
		law->cwnd += (__u64)step << LH_PRAGUE_SCALE;
		unmarked -= step;
		if (!unmarked)
			return;
	}
	window = lh_prague_window(law);
	law->cwnd += (unmarked * lh_prague_growth(law, sample->srtt_us) + window / 2) / window;
}

/* prague_update_alpha(), prague_new_round() */
static inline void lh_prague_observe(struct lh_prague *law, const struct lh_rate_sample *sample)
{
	__u32 delivered = sample->all_delivered_segments - law->delivered;
	__u32 marked = sample->all_marked_segments - law->marked;
	__u64 share;

	if (lh_after(law->round_end, sample->snd_una))
		return;
	if (lh_prague_has_virtual_rounds(law) && sample->now_us - law->alpha_at_us < LH_PRAGUE_ROUND_US)
		return;
	if (law->has_marks) {
		share = ((__u64)marked << LH_PRAGUE_SCALE) / (delivered ? delivered : 1);
		law->alpha = law->alpha - (law->alpha >> LH_PRAGUE_SHIFT_G) + share;
		if (law->alpha > LH_PRAGUE_ONE << LH_PRAGUE_SHIFT_G)
			law->alpha = LH_PRAGUE_ONE << LH_PRAGUE_SHIFT_G;
		law->alpha_at_us = sample->now_us;
	}
	law->round_end = sample->snd_nxt;
	law->delivered = sample->all_delivered_segments;
	law->marked = sample->all_marked_segments;
	if (!law->in_slow_start && law->rounds < ~0U)
		law->rounds++;
}

/* prague_update_pacing_rate() */
static inline void lh_prague_pace(const struct lh_prague *law, const struct lh_rate_sample *sample,
				  struct lh_steering *steering)
{
	__u32 srtt_us = lh_min(sample->srtt_us, LH_PRAGUE_LONGEST_US);
	__u64 rate = (__u64)sample->segment_bytes * 1000000;

	if (!srtt_us)
		return;
	if (steering->cwnd_segments < steering->ssthresh_segments / 2)
		rate *= 2;
	rate /= srtt_us;
	steering->pace = (__u64)(((rate >> 10) * (law->cwnd >> 10)) + ((rate & 1023) * (law->cwnd >> 10) >> 10));
	if (steering->pace < LH_PRAGUE_LEAST_PACE)
		steering->pace = LH_PRAGUE_LEAST_PACE;
}

/* Section 2.4.2: by alpha / 2, once in a virtual round. */
static inline void lh_prague_reduce(struct lh_prague *law, __u64 now_us, __u32 snd_una, __u32 snd_nxt)
{
	__u64 alpha = law->alpha >> LH_PRAGUE_SHIFT_G;

	/* one ACK both gives notice and is a sample; before the first sample there is no window to reduce */
	if (!law->begun || (law->has_reduced && now_us == law->reduced_at_us))
		return;
	if (law->has_reduced && lh_after(law->reduced_end, snd_una))
		return;
	if (law->has_reduced && lh_prague_has_virtual_rounds(law) && now_us - law->reduced_at_us < LH_PRAGUE_ROUND_US)
		return;
	law->has_reduced = 1;
	law->reduced_at_us = now_us;
	law->reduced_end = snd_nxt;
	/* in two steps, so that 64 bits do */
	law->cwnd -= ((law->cwnd >> 10) * (alpha >> 1) + (1 << 9)) >> 10;
}

static inline void lh_prague_sampled(struct lh_prague *law, const struct lh_rate_sample *sample,
				     struct lh_steering *steering)
{
	__u32 marked = sample->all_marked_segments - law->marked_before;
	__u32 window;

	if (!law->begun) {
		law->begun = 1;
		law->cwnd = (__u64)steering->cwnd_segments << LH_PRAGUE_SCALE;
	}
	law->marked_before = sample->all_marked_segments;
	if (marked) {
		law->has_marks = 1;
		lh_prague_reduce(law, sample->now_us, sample->snd_una, sample->snd_nxt);
	}
	if (sample->state == LH_STATE_OPEN)
		law->in_loss = 0;
	law->in_slow_start = steering->cwnd_segments < steering->ssthresh_segments;
	lh_prague_grow(law, sample, marked, steering);
	/* the window that is sent follows, a segment for each ACK */
	window = lh_prague_window(law);
	if (steering->cwnd_segments > window) {
		steering->cwnd_segments--;
		steering->ssthresh_segments = steering->cwnd_segments;
	} else if (steering->cwnd_segments < window) {
		steering->cwnd_segments++;
	}
	if (sample->state == LH_STATE_LOSS)
		steering->ssthresh_segments = window;
	lh_prague_observe(law, sample);
	lh_prague_pace(law, sample, steering);
}

/* prague_enter_loss() */
static inline void lh_prague_lost(struct lh_prague *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	(void)window;
	law->prior_cwnd = law->cwnd;
	law->cwnd -= law->cwnd >> 1;
	law->in_loss = 1;
}

static inline void lh_prague_timed_out(struct lh_prague *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_prague_lost(law, lost, window);
}

/* The stack's own notice: a mark, which sampled() sees as well, or a full queue of this host. */
static inline void lh_prague_notified(struct lh_prague *law, const struct lh_lost *notice, struct lh_window *window)
{
	(void)window;
	lh_prague_reduce(law, notice->now_us, notice->snd_una, notice->snd_nxt);
}

/* prague_cwnd_undo() */
static inline void lh_prague_undone(struct lh_prague *law, const struct lh_undone *undone, struct lh_window *window)
{
	(void)undone;
	(void)window;
	law->in_loss = 0;
	if (law->cwnd < law->prior_cwnd)
		law->cwnd = law->prior_cwnd;
}

#endif /* LASTHOP_LAWS_PRAGUE_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(prague, PRAGUE, Prague, "Prague", Free, Triangle, Simulated,
	     "Prague, for L4S: DCTCP's answer to marks, paced, with growth that depends little on the round trip.")
#endif
