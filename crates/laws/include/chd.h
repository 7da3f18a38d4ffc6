/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * chd.h - CHD, the CAIA-Hamilton delay-based congestion control (Hayes and Armitage 2010), as in FreeBSD (cc_chd) and
 * [utsumi]. w is cwnd; h is the highest RTT of a round trip (use_max; else the last) minus the lowest of all.
 *
 *   each round trip  back off with probability g(h)                                       backoff.h, [utsumi] (2)
 *   back-off         w = ssthresh = max(w / 2, 2), rounded up                                       [utsumi] (2)
 *                    first s, the shadow window: max(w, s) if h > q_th (loss_fair) or h > h_b, else 0        (3)
 *                    h_b, the h of the back-off before this one, becomes h
 *   loss, h > q_th   w = max(w, s) / 2, rounded up; s counts if h > q_th at the last back-off, and not below since
 *   other losses     tolerated: w stays. It also stays until the data in flight at a back-off are acknowledged      (4)
 *   every loss       s = max(s / 2, 2), if there is one
 *   else             w and s grow as NewReno, with standard slow start; a timeout is NewReno's
 *
 * s begins as w. It is NewReno's window, for paths where others fill the queue. It may exceed 2 w; then a loss grows w.
 * (3) says s = 0 in each round trip without a back-off; FreeBSD keeps s, and so do we.
 */
#ifndef LASTHOP_LAWS_CHD_H
#define LASTHOP_LAWS_CHD_H

#include "backoff.h"
#include "delay.h"
#include "newreno.h"

#define LH_CHD_HAS_PARAMETERS 1
#define LH_CHD_PARAMETERS(P) \
	LH_G_PARAMETERS(P) \
	P(Ratio, max_probability, 0, 1, 0.5, \
	  "p_max: the highest probability of a back-off, for each round trip (FreeBSD: 0.5).") \
	P(Flag, use_max, 0, 1, 1, \
	  "Go by the highest RTT of each round trip ([utsumi] (2)), not by the last.") \
	P(Flag, loss_fair, 0, 1, 1, \
	  "Where others fill the queue, halve the shadow window at a loss, if it is larger than the window " \
	  "([utsumi] (4)).") \
	LH_RTT_TICK_PARAMETER(P)

struct lh_chd_parameters {
	LH_CHD_PARAMETERS(LH_FIELD)
};

#define LH_CHD_HAS_TIMED_OUT 1

struct lh_chd {
	__u64 random;
	struct lh_delay delay;
	struct lh_backoff backoff;
	__u32 shadow_segments; /* s; 0: none */
	__u32 backoff_queue_us; /* h_b */
	__u32 competes; /* others fill the queue: the last back-off was above q_th */
};

static inline void lh_chd_init(struct lh_chd *law, const struct lh_chd_parameters *parameters,
			       const struct lh_start *start)
{
	(void)parameters;
	*law = (struct lh_chd){ .random = start->seed };
	lh_delay_init(&law->delay, start);
}

static inline __u32 lh_halved_up(__u32 segments)
{
	return segments - segments / 2;
}

/* At the end of a round trip: returns whether to back off, and stores whether others fill the queue. */
static inline int lh_chd_backs_off(struct lh_chd *law, const struct lh_chd_parameters *parameters, __u32 h_us)
{
	const struct lh_delay *delay = &law->delay;
	struct lh_g g = LH_G_OF(parameters);
	int fires = lh_happens(&law->random, lh_g(&g, h_us, delay->max_us - delay->min_us));

	if (h_us <= lh_max(parameters->queue_min_us, parameters->queue_threshold_us))
		law->competes = 0;
	else if (fires && parameters->loss_fair)
		law->competes = 1;
	return fires;
}

static inline void lh_chd_back_off(struct lh_chd *law, __u32 h_us, const struct lh_acked *acked,
				   struct lh_window *window)
{
	if (law->competes || h_us > law->backoff_queue_us)
		law->shadow_segments = lh_max(window->cwnd_segments, law->shadow_segments);
	else
		law->shadow_segments = 0;
	law->backoff_queue_us = h_us;
	lh_backoff_begin(&law->backoff, acked, lh_halved_up(window->cwnd_segments), window);
}

static inline void lh_chd_acked(struct lh_chd *law, const struct lh_chd_parameters *parameters,
				const struct lh_acked *acked, struct lh_window *window)
{
	struct lh_delay *delay = &law->delay;
	struct lh_round round = { 0, 0 };
	__u32 before, h_us;
	int lasts;

	if (!delay->min_us)
		law->shadow_segments = window->cwnd_segments; /* without measurements yet: s begins as w */
	lasts = lh_backoff_lasts(&law->backoff, acked->snd_una);
	if (lh_delay_look(delay, acked, parameters->rtt_tick_us, &round) && !lasts &&
	    !(acked->flags & LH_IN_REDUCTION)) {
		h_us = (parameters->use_max ? round.max_us : delay->last_us) - delay->min_us;
		if (lh_chd_backs_off(law, parameters, h_us))
			return lh_chd_back_off(law, h_us, acked, window);
	}
	before = window->cwnd_segments;
	lh_reno_grow(acked, window);
	if (law->shadow_segments)
		law->shadow_segments = lh_saturating_add(law->shadow_segments, window->cwnd_segments - before);
}

static inline void lh_chd_lost(struct lh_chd *law, const struct lh_chd_parameters *parameters,
			       const struct lh_lost *lost, struct lh_window *window)
{
	const struct lh_delay *delay = &law->delay;
	__u32 h_us = lh_max(delay->last_us, delay->round_max_us) - delay->min_us;
	__u32 from = lh_min(lost->in_flight_segments, window->cwnd_segments);

	if (lh_backoff_lasts(&law->backoff, lost->snd_una) || h_us <= parameters->queue_threshold_us) {
		lh_tolerate(window);
	} else {
		if (law->competes)
			from = lh_max(from, law->shadow_segments);
		window->ssthresh_segments = lh_max(lh_halved_up(from), LH_MIN_SSTHRESH);
	}
	if (law->shadow_segments)
		law->shadow_segments = lh_max(law->shadow_segments / 2, LH_MIN_SSTHRESH);
	law->backoff.lasts = 0;
}

static inline void lh_chd_timed_out(struct lh_chd *law, const struct lh_chd_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	lh_reno_halve(lost, window);
	law->backoff.lasts = 0;
}

#endif /* LASTHOP_LAWS_CHD_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(chd, CHD, Chd, "CHD", Green, Triangle, Everywhere,
	     "The CAIA-Hamilton delay-based control, as FreeBSD has it: one decision for each round trip, and losses without "
	     "queueing are tolerated.")
#endif
