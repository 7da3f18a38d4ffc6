/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cdg.h - CDG, the CAIA delay-gradient congestion control (Hayes and Armitage 2011), as in FreeBSD (cc_cdg) and
 * [utsumi]. Linux's version is in cdg_linux.h.
 *
 *   each round       gradients and their means                                    gradient.h, [utsumi] (5) to (8)
 *                    back off with probability 1 - e^(-g/G); always above 5 G
 *   back-off         cwnd = ssthresh = max(0.7 cwnd, 2); the next round gives no gradient
 *                    after more than 5 in a row without a falling delay, 5 are left out: others ignore the delay
 *   shadow window    Reno's window: grows with cwnd, and is not reduced by back-offs
 *   loss             queue full or unknown: shadow /= 2, ssthresh = max(shadow, cwnd / 2)                        (9)
 *                    else, and within the round trip of a back-off: the window stays
 *   else             slow start; 1 segment per round; timeout as NewReno
 *
 * A back-off sets the window at once, in both versions: nothing is sent until the flight is smaller. Linux enters CWR
 * instead, where PRR reduces the window over a round trip. Both end at the same window a round trip later.
 *
 * Unlike in FreeBSD, ssthresh is at most cwnd, so that no loss grows the window.
 */
#ifndef LASTHOP_LAWS_CDG_H
#define LASTHOP_LAWS_CDG_H

#include "backoff.h"
#include "gradient.h"
#include "newreno.h"

/* cc_cdg: MAXGRAD 5, the end of its table */
#define LH_CDG_CERTAIN_FROM 5

#define LH_CDG_HAS_PARAMETERS 1
#define LH_CDG_PARAMETERS(P) \
	P(Milliseconds, backoff_scale, 0.1, 1000, 3, \
	  "G: a round with the gradient g backs off with probability 1 - e^(-g/G), above 5 G always (FreeBSD's " \
	  "code: 3, its manual: 2).") \
	P(Count, smoothing_rounds, 1, 16, 8, \
	  "a: over how many rounds gradients are means (FreeBSD: 8); 1 is none.") \
	P(Ratio, beta_delay, 0.01, 1, 0.7, \
	  "What is left of the window after a back-off (FreeBSD: 0.7).") \
	P(Ratio, beta_loss, 0.01, 1, 0.5, \
	  "What is left of it after a loss that is heeded, if the shadow window does not say more (FreeBSD and " \
	  "[utsumi] (9): 0.5).") \
	P(Count, ineffectual_backoffs, 0, 1000, 5, \
	  "How many back-offs may not lower the delay before the next ones are left out: others fill the queue " \
	  "(FreeBSD: 5).") \
	P(Count, hold_backoffs, 0, 1000, 5, \
	  "How many are left out then (FreeBSD: 5).") \
	P(Count, alpha_increase, 0, 1000, 0, \
	  "The growth per round in congestion avoidance begins at 0 and rises by one segment after each such number of rounds; " \
	  "0: it is one segment (FreeBSD: 0).") \
	P(Flag, loss_tolerance, 0, 1, 1, \
	  "A loss while the queue is not full leaves the window as it is (FreeBSD: always).") \
	LH_RTT_TICK_PARAMETER(P)

struct lh_cdg_parameters {
	LH_CDG_PARAMETERS(LH_FIELD)
};

#define LH_CDG_HAS_TIMED_OUT 1

struct lh_cdg {
	__u64 random;
	struct lh_delay delay;
	struct lh_backoff backoff;
	struct lh_gradients gradients;
	__u32 queue; /* enum lh_queue */
	__u32 begun; /* 1 once the shadow window is set */
	__u32 shadow_segments; /* 0: none */
	__u32 congested; /* rounds in a row that called for a back-off */
	__u32 step_segments; /* per round, with alpha_increase */
	__u32 step_rounds; /* rounds since step_segments grew */
};

static inline __u32 lh_scaled(__u32 segments, __u32 ppm)
{
	return (__u64)segments * lh_min(ppm, 1000000) / 1000000;
}

static inline void lh_cdg_init(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
			       const struct lh_start *start)
{
	*law = (struct lh_cdg){ .random = start->seed };
	lh_delay_init(&law->delay, start);
	lh_gradients_init(&law->gradients, parameters->smoothing_rounds);
}

static inline __u32 lh_cdg_queue(const struct lh_gradient *sum, __u32 queue)
{
	if (sum->min_us > 0 && sum->max_us <= 0)
		return LH_QUEUE_FULL;
	if (sum->min_us >= 0 && sum->max_us < 0)
		return LH_QUEUE_EMPTY;
	if (sum->min_us > 0 && sum->max_us > 0)
		return LH_QUEUE_RISING;
	if (sum->min_us < 0 && sum->max_us < 0)
		return LH_QUEUE_FALLING;
	return queue;
}

/* a times the gradient that decides on a back-off; 0 if the delay does not rise. */
static inline __u64 lh_cdg_gradient(const struct lh_gradients *gradients, const struct lh_gradient *latest,
				    int in_slow_start)
{
	if (in_slow_start && latest->min_us > 0)
		return (__u64)latest->min_us * gradients->rounds;
	if (gradients->sum.min_us > 0)
		return gradients->sum.min_us;
	if (in_slow_start && latest->max_us > 0)
		return (__u64)latest->max_us * gradients->rounds;
	return gradients->sum.max_us > 0 ? gradients->sum.max_us : 0;
}

/* A round has ended: returns whether to back off. */
static inline int lh_cdg_look(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
			      const struct lh_round *round, const struct lh_window *window)
{
	struct lh_gradients *gradients = &law->gradients;
	struct lh_gradient latest;
	__u32 exponent;
	__u64 gradient;

	if (!lh_gradients_look(gradients, round, &latest))
		return 0;
	law->queue = lh_cdg_queue(&gradients->sum, law->queue);
	if (law->queue == LH_QUEUE_EMPTY && gradients->sum.max_us < 0)
		law->shadow_segments = 0;
	if (gradients->sum.min_us < 0 || gradients->sum.max_us < 0)
		law->congested = 0;
	gradient = lh_cdg_gradient(gradients, &latest, lh_in_slow_start(window));
	if (!gradient)
		return 0;
	exponent = lh_gradient_exponent(gradient, (__u64)parameters->backoff_scale_us * gradients->rounds);
	return exponent > LH_CDG_CERTAIN_FROM * LH_EXP_ONE ||
	       lh_happens(&law->random, lh_gradient_probability(exponent));
}

static inline void lh_cdg_back_off(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
				   const struct lh_acked *acked, struct lh_window *window)
{
	__u32 held_to = lh_saturating_add(parameters->ineffectual_backoffs, parameters->hold_backoffs);

	if (law->congested <= parameters->ineffectual_backoffs) {
		lh_backoff_begin(&law->backoff, acked, lh_scaled(window->cwnd_segments, parameters->beta_delay_ppm),
				 window);
		law->step_segments = 0;
		law->step_rounds = 0;
	} else if (law->congested >= held_to) {
		law->congested = 0;
	}
	lh_gradients_skip(&law->gradients);
	law->shadow_segments = lh_max(law->shadow_segments, window->cwnd_segments);
}

/* The step of congestion avoidance after one more round. */
static inline __u32 lh_cdg_step(struct lh_cdg *law, __u32 alpha_increase)
{
	if (!alpha_increase)
		return 1;
	law->step_rounds = lh_saturating_add(law->step_rounds, 1);
	if (law->step_rounds >= alpha_increase) {
		law->step_segments = lh_saturating_add(law->step_segments, 1);
		law->step_rounds = 0;
	}
	return law->step_segments;
}

static inline void lh_cdg_grow(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
			       const struct lh_acked *acked, int round_ended, struct lh_window *window)
{
	__u32 shadow_step = 0, step;

	if (!lh_may_grow(acked))
		return;
	if (lh_in_slow_start(window)) {
		shadow_step = acked->acked_segments - lh_slow_start_by(window, acked->acked_segments);
		law->step_segments = 0;
		law->step_rounds = 0;
	} else if (round_ended) {
		shadow_step = 1;
		step = lh_cdg_step(law, parameters->alpha_increase);
		window->cwnd_segments = lh_saturating_add(window->cwnd_segments, step);
	}
	if (law->shadow_segments)
		law->shadow_segments = lh_saturating_add(law->shadow_segments, shadow_step);
}

static inline void lh_cdg_acked(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
				const struct lh_acked *acked, struct lh_window *window)
{
	struct lh_round round = { 0, 0 };
	int ended = lh_delay_look(&law->delay, acked, parameters->rtt_tick_us, &round);
	int lasts = lh_backoff_lasts(&law->backoff, acked->snd_una) || (acked->flags & LH_IN_REDUCTION);

	if (!law->begun) {
		law->begun = 1;
		law->shadow_segments = window->cwnd_segments;
	}
	if (ended && lh_cdg_look(law, parameters, &round, window)) {
		law->congested = lh_saturating_add(law->congested, 1);
		if (!lasts)
			lh_cdg_back_off(law, parameters, acked, window);
	} else {
		lh_cdg_grow(law, parameters, acked, ended, window);
	}
}

static inline void lh_cdg_lost(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
			       const struct lh_lost *lost, struct lh_window *window)
{
	__u32 reduced = lh_scaled(window->cwnd_segments, parameters->beta_loss_ppm);

	if (lh_backoff_lasts(&law->backoff, lost->snd_una) ||
	    (parameters->loss_tolerance && lh_queue_has_room(law->queue))) {
		lh_tolerate(window);
	} else {
		law->shadow_segments /= 2;
		reduced = lh_min(lh_max(law->shadow_segments, reduced), window->cwnd_segments);
		window->ssthresh_segments = lh_max(reduced, LH_MIN_SSTHRESH);
		law->step_segments = 0;
		law->step_rounds = 0;
	}
	law->backoff.lasts = 0;
}

static inline void lh_cdg_timed_out(struct lh_cdg *law, const struct lh_cdg_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	lh_reno_halve(lost, window);
	law->backoff.lasts = 0;
}

#endif /* LASTHOP_LAWS_CDG_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(cdg, CDG, Cdg, "CDG", Purple, Diamond, Everywhere,
	     "CAIA delay-gradient, as FreeBSD has it.")
#endif
