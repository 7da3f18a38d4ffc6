/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copa.h - Copa: a rate of 1 / (delta d) segments a second, where d is the delay in the queue.
 *
 * Arun and Balakrishnan, "Copa: Practical delay-based congestion control for the Internet", NSDI 2018; the numbers are its
 * sections'.
 *
 *   standing      the lowest RTT of the latest half smoothed round trip; lowest: of the latest 10 s         section 2.1
 *   target        1 / (delta (standing - lowest)) segments a second; the rate now is cwnd / standing
 *   each ACK      cwnd + v / (delta cwnd) below the target, else - v / (delta cwnd), for each segment       step 3
 *   velocity v    1; doubles each round trip in which the window went the same way, from the third on; 1 after a turn
 *   slow start    twice the window each round trip, until the rate is above the target
 *   pace          2 cwnd / standing
 *   losses        change nothing; after a timeout slow start begins anew                                      section 2.2
 *
 * Leaves out the competitive mode, which takes a smaller delta where the queue is never nearly empty. Built and tried, it
 * mistook its own queue for others' behind delayed ACKs, and filled it: a lone download over 40 ms had round trips of 98 ms in the mean.
 * So it is beside loss-based laws what Vegas is.
 */
#ifndef LASTHOP_LAWS_COPA_H
#define LASTHOP_LAWS_COPA_H

#include "law.h"

#define LH_COPA_HAS_SAMPLED 1
#define LH_COPA_HAS_TIMED_OUT 1

#define LH_COPA_ONE 65536ULL /* a segment in `window` */
#define LH_COPA_LOWEST_FOR_US 10000000ULL
#define LH_COPA_LEAST_WINDOW 4U /* two packets wait at least: a window that delayed ACKs do not stop */
#define LH_COPA_INVERSE_DELTA 2U
#define LH_COPA_VELOCITY_ROUNDS 3U
#define LH_COPA_MOST_VELOCITY 4096U

/* The lowest RTT of a time, by two halves of it. */
struct lh_copa_lowest {
	__u64 began_us; /* of the current half */
	__u32 now_us; /* of the current half; 0: none */
	__u32 before_us; /* of the one before */
};

struct lh_copa {
	__u64 window; /* in 1/LH_COPA_ONE of a segment */
	struct lh_copa_lowest standing;
	struct lh_copa_lowest lowest;
	__u32 round_end; /* the data sent when the round began */
	__u32 round_window; /* the window then, in segments */
	__u32 velocity;
	__u32 same_way; /* rounds that went the same way, one after the other */
	__u8 rises; /* the way of the latest round */
	__u8 starts; /* slow start */
	__u8 reserved[2];
};

static inline void lh_copa_init(struct lh_copa *law, const struct lh_start *start)
{
	*law = (struct lh_copa){
		.round_end = start->snd_nxt,
		.velocity = 1,
		.starts = 1,
	};
}

static inline void lh_copa_take(struct lh_copa_lowest *lowest, __u64 now_us, __u64 half_us, __u32 rtt_us)
{
	if (now_us - lowest->began_us >= half_us) {
		lowest->before_us = now_us - lowest->began_us >= 2 * half_us ? 0 : lowest->now_us;
		lowest->now_us = 0;
		lowest->began_us = now_us;
	}
	if (!lowest->now_us || rtt_us < lowest->now_us)
		lowest->now_us = rtt_us;
}

static inline __u32 lh_copa_lowest_of(const struct lh_copa_lowest *lowest)
{
	return lowest->before_us ? lh_min(lowest->now_us, lowest->before_us) : lowest->now_us;
}

/* A round trip is over. */
static inline void lh_copa_end_round(struct lh_copa *law, __u32 snd_nxt, __u32 cwnd)
{
	__u8 rises = cwnd > law->round_window;

	law->same_way = rises == law->rises ? law->same_way + 1 : 0;
	if (!law->same_way)
		law->velocity = 1;
	else if (law->same_way >= LH_COPA_VELOCITY_ROUNDS)
		law->velocity = lh_min(law->velocity * 2, LH_COPA_MOST_VELOCITY);
	law->rises = rises;
	law->round_end = snd_nxt;
	law->round_window = cwnd;
}

static inline void lh_copa_sampled(struct lh_copa *law, const struct lh_rate_sample *sample,
				   struct lh_steering *steering)
{
	__u32 standing_us, lowest_us, waits_us;
	int is_below, is_used;
	__u64 step;

	law->window = law->window % LH_COPA_ONE + steering->cwnd_segments * LH_COPA_ONE;
	if (sample->rtt_us) {
		lh_copa_take(&law->standing, sample->now_us, lh_max(sample->srtt_us / 4, 1), sample->rtt_us);
		lh_copa_take(&law->lowest, sample->now_us, LH_COPA_LOWEST_FOR_US / 2, sample->rtt_us);
	}
	standing_us = lh_copa_lowest_of(&law->standing);
	lowest_us = lh_copa_lowest_of(&law->lowest);
	if (!standing_us || !lowest_us)
		return;
	waits_us = standing_us > lowest_us ? standing_us - lowest_us : 0;
	if (lh_after(sample->snd_una, law->round_end))
		lh_copa_end_round(law, sample->snd_nxt, steering->cwnd_segments);

	/* cwnd / standing <= 1 / (delta waits) */
	is_below = (__u64)steering->cwnd_segments * waits_us <= LH_COPA_INVERSE_DELTA * (__u64)standing_us;
	if (law->starts && !is_below) {
		law->starts = 0;
		law->round_window = steering->cwnd_segments;
		law->rises = 0;
		law->same_way = 0;
		law->velocity = 1;
	}
	/* a window that nothing fills must not grow: the application, or the host's own queue, limits the flight */
	is_used = !sample->app_limited && 2 * (__u64)sample->prior_in_flight_segments >= steering->cwnd_segments;
	if (law->starts) {
		if (is_used)
			law->window += sample->acked_segments * LH_COPA_ONE;
	} else {
		/* a turn */
		if (law->velocity > 1 && law->rises != is_below) {
			law->rises = is_below;
			law->same_way = 0;
			law->velocity = 1;
			law->round_window = steering->cwnd_segments;
		}
		step = (__u64)law->velocity * LH_COPA_INVERSE_DELTA * sample->acked_segments * LH_COPA_ONE /
		       lh_max(steering->cwnd_segments, 1);
		/* no more than the window in a round trip: half of it down */
		if (step > sample->acked_segments * LH_COPA_ONE / 2)
			step = sample->acked_segments * LH_COPA_ONE / 2;
		if (!is_below)
			law->window = law->window > step ? law->window - step : 0;
		else if (is_used)
			law->window += step;
	}
	if (law->window < LH_COPA_LEAST_WINDOW * LH_COPA_ONE)
		law->window = LH_COPA_LEAST_WINDOW * LH_COPA_ONE;
	if (law->window > (__u64)LH_MAX_WINDOW * LH_COPA_ONE)
		law->window = (__u64)LH_MAX_WINDOW * LH_COPA_ONE;
	steering->cwnd_segments = (__u32)(law->window / LH_COPA_ONE);
	steering->ssthresh_segments = law->starts ? LH_INFINITE_SSTHRESH : steering->cwnd_segments;
	steering->pace = 2 * law->window / LH_COPA_ONE * sample->segment_bytes * 1000000ULL / standing_us;
}

static inline void lh_copa_lost(struct lh_copa *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)law;
	(void)lost;
	(void)window;
}

static inline void lh_copa_timed_out(struct lh_copa *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	(void)window;
	law->starts = 1;
	law->velocity = 1;
}

#endif /* LASTHOP_LAWS_COPA_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(copa, COPA, Copa, "Copa", Free, OpenTriangle, Everywhere,
	     "Copa: a rate in inverse proportion to the delay in the queue; NSDI 2018.")
#endif
