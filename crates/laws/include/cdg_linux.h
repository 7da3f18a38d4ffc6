/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cdg_linux.h - CDG as in Linux (tcp_cdg.c). Its measurements are in gradient.h. Differences from FreeBSD's (cdg.h):
 *
 *   gradient         the sum over the window in us, of g_min if it is positive, else of g_max; in slow start too. Scaled
 *                    up while the window of gradients fills
 *   back-off         probability 1 - e^(-sum * factor / 10^6), cwnd = 0.707 cwnd
 *   ineffectual      none after 5 in a row, until a sum falls to -32 us
 *   reductions       after each, of either kind, one round has no gradient
 *   loss             always heeded, unless use_tolerance is set: shadow = min(shadow / 2, cwnd),
 *                    ssthresh = max(shadow, cwnd / 2)
 *   slow start       also ends by its own HyStart
 *   else             as NewReno
 *
 * Unlike in Linux: a back-off sets the window at once (see cdg.h). The delayed-ACK filter is delay.h's, which passes
 * the last of the ACKs that Linux's removes. The window has at most 16 gradients, not 256. The count of back-offs does
 * not wrap after 65535. Nothing is reset after idleness.
 */
#ifndef LASTHOP_LAWS_CDG_LINUX_H
#define LASTHOP_LAWS_CDG_LINUX_H

#include "cdg.h"

/* hystart_detect */
#define LH_CDG_HYSTART_TRAIN 1
#define LH_CDG_HYSTART_DELAY 2

/* plain numbers in tcp_cdg.c */
#define LH_CDG_TRAIN_GAP_US 3000
#define LH_CDG_HYSTART_MIN_US 125U
#define LH_CDG_HYSTART_SAMPLES 8
#define LH_CDG_EFFECTUAL_US 32

#define LH_CDG_LINUX_HAS_PARAMETERS 1
#define LH_CDG_LINUX_PARAMETERS(P) \
	P(Count, backoff_factor, 0, 100000, 42, \
	  "1000 / (G in ms · window_rounds), so that 42 and 8 are G = 2.98 ms (Linux: 42).") \
	P(Count, window_rounds, 1, 16, 8, \
	  "Over how many rounds gradients are summed (Linux: 8; a power of two up to 256).") \
	P(Ratio, backoff_beta, 0, 1, 0.707031, \
	  "What is left of the window after a back-off (Linux: 724/1024, the root of a half).") \
	P(Count, use_ineff, 0, 1000, 5, \
	  "How many back-offs may not lower the delay before there are none until it falls; 0: no limit (Linux: 5).") \
	P(Flag, use_shadow, 0, 1, 1, \
	  "Losses reduce to half the shadow window (Linux: true).") \
	P(Flag, use_tolerance, 0, 1, 0, \
	  "A loss while the queue is not full leaves the window as it is (Linux: false).") \
	P(Count, hystart_detect, 0, 3, 3, \
	  "How slow start ends beside back-offs and losses: 1 at a train of ACKs, 2 at a risen delay, 3 at either, " \
	  "0 at neither (Linux: 3).")

struct lh_cdg_linux_parameters {
	LH_CDG_LINUX_PARAMETERS(LH_FIELD)
};

struct lh_cdg_linux {
	__u64 random;
	__u64 train_start_us;
	__u64 train_last_us; /* 0: no train */
	struct lh_delay delay;
	struct lh_backoff backoff;
	struct lh_gradients gradients;
	__u32 queue; /* enum lh_queue */
	__u32 begun; /* 1 once the shadow window is set */
	__u32 shadow_segments;
	__u32 congested; /* back-offs in a row, with those left out */
	__u32 reducing;
	__u32 samples; /* ACKs of the current round in slow start, up to LH_CDG_HYSTART_SAMPLES */
};

static inline void lh_cdg_linux_init(struct lh_cdg_linux *law, const struct lh_cdg_linux_parameters *parameters,
				     const struct lh_start *start)
{
	*law = (struct lh_cdg_linux){ .random = start->seed };
	lh_delay_init(&law->delay, start);
	lh_gradients_init(&law->gradients, parameters->window_rounds);
}

static inline int lh_cdg_train(struct lh_cdg_linux *law, const struct lh_acked *acked)
{
	__u32 longest_us = lh_max(law->delay.min_us / 2, LH_CDG_HYSTART_MIN_US);

	if (!law->train_last_us || !(acked->flags & LH_CWND_LIMITED)) {
		law->train_last_us = acked->now_us;
		law->train_start_us = acked->now_us;
		return 0;
	}
	if (acked->now_us >= law->train_last_us + LH_CDG_TRAIN_GAP_US)
		return 0;
	law->train_last_us = acked->now_us;
	return acked->now_us > law->train_start_us + longest_us;
}

static inline int lh_cdg_delayed(struct lh_cdg_linux *law, __u32 round_min_us)
{
	__u32 min_us = law->delay.min_us;

	if (law->samples < LH_CDG_HYSTART_SAMPLES) {
		law->samples++;
		return 0;
	}
	return round_min_us > lh_max(lh_saturating_add(min_us, min_us / 8), LH_CDG_HYSTART_MIN_US);
}

static inline void lh_cdg_hystart(struct lh_cdg_linux *law, __u32 detect, const struct lh_acked *acked,
				  __u32 round_min_us, struct lh_window *window)
{
	if (!lh_in_slow_start(window) || !(acked->flags & LH_MAY_GROW) || !law->delay.min_us ||
	    window->cwnd_segments < LH_MIN_SSTHRESH)
		return;
	if (((detect & LH_CDG_HYSTART_TRAIN) && lh_cdg_train(law, acked)) ||
	    ((detect & LH_CDG_HYSTART_DELAY) && lh_cdg_delayed(law, round_min_us)))
		window->ssthresh_segments = window->cwnd_segments;
}

/* From sums: less than 32 us is no change. */
static inline __u32 lh_cdg_linux_queue(const struct lh_gradient *sum, __u32 queue)
{
	if (sum->min_us >= LH_CDG_EFFECTUAL_US && sum->max_us < LH_CDG_EFFECTUAL_US)
		return LH_QUEUE_FULL;
	if (sum->min_us >= LH_CDG_EFFECTUAL_US)
		return LH_QUEUE_RISING;
	if (sum->max_us <= -LH_CDG_EFFECTUAL_US)
		return LH_QUEUE_FALLING;
	return queue;
}

/* A round has ended: returns whether to reduce the window. */
static inline int lh_cdg_linux_look(struct lh_cdg_linux *law, const struct lh_cdg_linux_parameters *parameters,
				    const struct lh_round *round)
{
	struct lh_gradients *gradients = &law->gradients;
	struct lh_gradient latest;
	__u64 gradient;
	__s32 sum_us;

	if (!lh_gradients_look(gradients, round, &latest))
		return 0;
	if (gradients->sum.min_us <= -LH_CDG_EFFECTUAL_US || gradients->sum.max_us <= -LH_CDG_EFFECTUAL_US)
		law->congested = 0;
	law->queue = lh_cdg_linux_queue(&gradients->sum, law->queue);
	sum_us = gradients->sum.min_us > 0 ? gradients->sum.min_us : gradients->sum.max_us;
	if (sum_us <= 0)
		return 0;
	gradient = (__u64)sum_us * gradients->rounds / lh_max(gradients->filled, 1);
	if (!lh_happens(&law->random, lh_gradient_probability(lh_gradient_exponent(
					      gradient * parameters->backoff_factor, 1000000))))
		return 0;
	law->congested = lh_saturating_add(law->congested, 1);
	return !parameters->use_ineff || law->congested <= parameters->use_ineff;
}

static inline void lh_cdg_linux_acked(struct lh_cdg_linux *law, const struct lh_cdg_linux_parameters *parameters,
				      const struct lh_acked *acked, struct lh_window *window)
{
	int lasts = lh_backoff_lasts(&law->backoff, acked->snd_una) || (acked->flags & LH_IN_REDUCTION);
	struct lh_delay *delay = &law->delay;
	struct lh_round round = { 0, 0 };
	__u32 before;
	int ended;

	if (!law->begun) {
		law->begun = 1;
		law->shadow_segments = window->cwnd_segments;
	}
	/* a reduction's round ends with it, below */
	law->reducing |= lasts;
	if (law->reducing)
		delay->round_end = acked->snd_nxt;
	/* an ACK that the filter takes for delayed also lowers the round's minimum */
	if (acked->rtt_us && acked->rtt_us < delay->round_min_us)
		delay->round_min_us = acked->rtt_us;
	ended = lh_delay_look(delay, acked, 0, &round);
	if (lasts)
		return;
	if (law->reducing) {
		law->reducing = 0;
		law->queue = LH_QUEUE_UNKNOWN;
		lh_delay_end_round(delay, acked, &law->gradients.previous);
	}
	lh_cdg_hystart(law, parameters->hystart_detect, acked, ended ? round.min_us : delay->round_min_us, window);
	if (ended) {
		law->train_last_us = 0;
		law->samples = 0;
		if (lh_cdg_linux_look(law, parameters, &round)) {
			law->shadow_segments = lh_max(law->shadow_segments, window->cwnd_segments);
			lh_backoff_begin(&law->backoff, acked,
					 lh_scaled(window->cwnd_segments, parameters->backoff_beta_ppm), window);
			law->reducing = 1;
			return;
		}
	}
	if (!(acked->flags & LH_CWND_LIMITED))
		law->shadow_segments = lh_min(law->shadow_segments, window->cwnd_segments);
	before = window->cwnd_segments;
	lh_reno_grow(acked, window);
	law->shadow_segments = lh_saturating_add(law->shadow_segments, window->cwnd_segments - before);
}

/* Losses and timeouts. */
static inline void lh_cdg_linux_lost(struct lh_cdg_linux *law, const struct lh_cdg_linux_parameters *parameters,
				     const struct lh_lost *lost, struct lh_window *window)
{
	__u32 reduced = window->cwnd_segments / 2;

	if (lh_backoff_lasts(&law->backoff, lost->snd_una) ||
	    (parameters->use_tolerance && lh_queue_has_room(law->queue))) {
		lh_tolerate(window);
	} else {
		law->shadow_segments = lh_min(law->shadow_segments / 2, window->cwnd_segments);
		if (parameters->use_shadow)
			reduced = lh_max(reduced, law->shadow_segments);
		window->ssthresh_segments = lh_max(reduced, LH_MIN_SSTHRESH);
	}
	law->backoff.lasts = 0;
}

#endif /* LASTHOP_LAWS_CDG_LINUX_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(cdg_linux, CDG_LINUX, CdgLinux, "CDG (Linux)", Orange, Down, Everywhere,
	     "CAIA delay-gradient, as Linux has it.")
#endif
