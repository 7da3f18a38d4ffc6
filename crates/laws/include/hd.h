/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hd.h - HD, the Hamilton delay-based congestion control (Budzisz, Stanojevic, Shorten and Baker 2009), as in FreeBSD
 * (cc_hd) and [utsumi].
 *
 *   each ACK         back off with probability g(q), q = last RTT - lowest RTT            backoff.h, [utsumi] (1)
 *   back-off         cwnd = ssthresh = max(cwnd / 2, 2); no further one, and no growth, for a round trip
 *   loss             as NewReno; within the round trip of a back-off the window stays
 *   else             as NewReno, with standard slow start
 */
#ifndef LASTHOP_LAWS_HD_H
#define LASTHOP_LAWS_HD_H

#include "backoff.h"
#include "delay.h"
#include "newreno.h"

#define LH_HD_HAS_PARAMETERS 1
#define LH_HD_PARAMETERS(P) \
	LH_G_PARAMETERS(P) \
	P(Ratio, max_probability, 0, 1, 0.05, \
	  "p_max: the highest probability of a back-off, for each ACK (FreeBSD: 0.05).") \
	LH_RTT_TICK_PARAMETER(P)

struct lh_hd_parameters {
	LH_HD_PARAMETERS(LH_FIELD)
};

#define LH_HD_HAS_TIMED_OUT 1

struct lh_hd {
	__u64 random;
	struct lh_delay delay;
	struct lh_backoff backoff;
};

static inline void lh_hd_init(struct lh_hd *law, const struct lh_hd_parameters *parameters,
			      const struct lh_start *start)
{
	(void)parameters;
	*law = (struct lh_hd){ .random = start->seed };
	lh_delay_init(&law->delay, start);
}

static inline void lh_hd_acked(struct lh_hd *law, const struct lh_hd_parameters *parameters,
			       const struct lh_acked *acked, struct lh_window *window)
{
	struct lh_g g = LH_G_OF(parameters);
	struct lh_delay *delay = &law->delay;
	struct lh_round round = { 0, 0 };

	lh_delay_look(delay, acked, parameters->rtt_tick_us, &round);
	if (lh_backoff_lasts(&law->backoff, acked->snd_una))
		return;
	if (delay->last_us && (acked->flags & LH_ADVANCED) && !(acked->flags & LH_IN_REDUCTION) &&
	    lh_happens(&law->random, lh_g(&g, delay->last_us - delay->min_us, delay->max_us - delay->min_us)))
		lh_backoff_begin(&law->backoff, acked, window->cwnd_segments / 2, window);
	else
		lh_reno_grow(acked, window);
}

static inline void lh_hd_lost(struct lh_hd *law, const struct lh_hd_parameters *parameters,
			      const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	if (lh_backoff_lasts(&law->backoff, lost->snd_una))
		lh_tolerate(window);
	else
		lh_reno_halve(lost, window);
	law->backoff.lasts = 0;
}

static inline void lh_hd_timed_out(struct lh_hd *law, const struct lh_hd_parameters *parameters,
				   const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	lh_reno_halve(lost, window);
	law->backoff.lasts = 0;
}

#endif /* LASTHOP_LAWS_HD_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(hd, HD, Hd, "HD", Vermillion, Square, Everywhere,
	     "The Hamilton delay-based control, as FreeBSD has it.")
#endif
