/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * copa.h - Copa: aims at a rate of 1 / (delta times the queueing delay), and paces. The worked example of a law that sets
 * window and pace (docs/guide/own-law.md).
 *
 * V. Arun and H. Balakrishnan, "Copa: Practical delay-based congestion control for the Internet", USENIX NSDI 2018.
 *
 *   queueing delay   d = RTTstanding - RTTmin: the lowest of the last half smoothed round trip, and of the last 10 s
 *   target           1 / (delta d) segments a second; current: cwnd / RTTstanding
 *   each ACK         cwnd rises by v / (delta cwnd) below the target, and falls by as much above it
 *   velocity v       1; twice as large after each window that moved as the one before, from the third in a row on
 *   slow start       cwnd doubles in a round trip, until the current rate is above the target
 *   pace             2 cwnd / RTTstanding
 *
 * What it leaves out: the competitive mode, which changes delta beside flows that fill the queue. A loss changes nothing.
 */
#ifndef COPA_H
#define COPA_H

#include "law.h"

#define LH_COPA_HAS_SAMPLED 1
#define LH_COPA_HAS_PARAMETERS 1
#define LH_COPA_PARAMETERS(P) \
	P(Ratio, delta, 0.01, 1, 0.5, \
	  "What a segment of queue costs: 1 / delta segments wait for each flow (section 2: 0.5).")

struct lh_copa_parameters {
	LH_COPA_PARAMETERS(LH_FIELD)
};

/* A minimum over a time: of the current and of the previous half of it. */
struct lh_copa_lowest {
	__u64 began_us; /* of the current half */
	__u32 now_us; /* the lowest in it; 0: none yet */
	__u32 before_us; /* in the half before; 0: none */
};

struct lh_copa {
	struct lh_copa_lowest standing;
	struct lh_copa_lowest min;
	__u64 cwnd; /* in 1/65536 of a segment */
	__u32 window_ends; /* delivered segments at which the current window ends */
	__u32 cwnd_at_begin; /* segments */
	__u32 velocity;
	__u32 same_way; /* windows in a row that moved one way */
	__u32 rises; /* 1: this window began rising */
	__u32 past_slow_start; /* 1 */
};

static inline void lh_copa_init(struct lh_copa *law, const struct lh_copa_parameters *parameters,
				const struct lh_start *start)
{
	(void)parameters;
	*law = (struct lh_copa){ .velocity = 1, .standing.began_us = start->now_us, .min.began_us = start->now_us };
}

static inline __u32 lh_copa_least(__u32 a, __u32 b)
{
	return !a ? b : !b ? a : lh_min(a, b);
}

/* The lowest round trip of the last `window_us`, roughly: of half of it to all of it. */
static inline __u32 lh_copa_lowest(struct lh_copa_lowest *lowest, __u32 rtt_us, __u64 window_us, __u64 now_us)
{
	if (now_us - lowest->began_us > window_us / 2) {
		lowest->before_us = lowest->now_us;
		lowest->now_us = 0;
		lowest->began_us = now_us;
	}
	lowest->now_us = lh_copa_least(lowest->now_us, rtt_us);
	return lh_copa_least(lowest->now_us, lowest->before_us);
}

/* Section 2.1, 3: once a window. The velocity doubles where three windows in a row moved as the one before. */
static inline void lh_copa_end_window(struct lh_copa *law, const struct lh_rate_sample *sample)
{
	__u32 cwnd = law->cwnd >> 16, rises = cwnd > law->cwnd_at_begin;

	if ((__s32)(sample->all_delivered_segments - law->window_ends) < 0)
		return;
	law->same_way = rises == law->rises ? law->same_way + 1 : 0;
	if (law->same_way >= 3)
		law->velocity = lh_min(2 * law->velocity, 1U << 16);
	else
		law->velocity = 1;
	law->rises = rises;
	law->cwnd_at_begin = cwnd;
	law->window_ends = sample->all_delivered_segments + cwnd;
}

static inline void lh_copa_sampled(struct lh_copa *law, const struct lh_copa_parameters *parameters,
				   const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	__u32 standing, least, queue_us, below;
	__u64 step;

	if (!law->cwnd)
		law->cwnd = (__u64)steering->cwnd_segments << 16;
	if (sample->rtt_us && sample->acked_segments) {
		standing = lh_copa_lowest(&law->standing, sample->rtt_us, sample->srtt_us / 2, sample->now_us);
		least = lh_copa_lowest(&law->min, sample->rtt_us, 10000000, sample->now_us);
		queue_us = standing > least ? standing - least : 0;
		/* current < target: cwnd / standing < 1 / (delta queue), with delta in millionths */
		below = (law->cwnd >> 16) * queue_us / 1000 * parameters->delta_ppm / 1000 < standing;
		if (!below)
			law->past_slow_start = 1;
		if (below && 2 * sample->prior_in_flight_segments < law->cwnd >> 16) {
			/* the window does not limit the flight, so it must not grow */
		} else if (!law->past_slow_start) {
			law->cwnd += (__u64)sample->acked_segments << 16;
		} else {
			lh_copa_end_window(law, sample);
			/* a window that turns falls back to the velocity of 1 */
			if (below != law->rises)
				law->velocity = 1;
			step = ((__u64)law->velocity * sample->acked_segments << 32) / lh_max(law->cwnd, 65536) * 1000000 /
			       parameters->delta_ppm;
			if (below)
				law->cwnd += step;
			else
				law->cwnd -= step < law->cwnd ? step : law->cwnd;
		}
		if (law->cwnd < 2 << 16)
			law->cwnd = 2 << 16;
		if (law->cwnd > 1ULL << 34)
			law->cwnd = 1ULL << 34;
		if (standing)
			steering->pace = 2 * (law->cwnd >> 8) * sample->segment_bytes * 1000000 / standing >> 8;
	}
	steering->cwnd_segments = law->cwnd >> 16;
}

static inline void lh_copa_lost(struct lh_copa *law, const struct lh_copa_parameters *parameters,
				const struct lh_lost *lost, struct lh_window *window)
{
	(void)law;
	(void)parameters;
	(void)lost;
	(void)window;
}

#endif /* COPA_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(copa, COPA, Copa, "Copa", Free, Circle, Everywhere,
	     "Copa: aims at a rate of 1 / (delta times the queueing delay), and paces.")
#endif
