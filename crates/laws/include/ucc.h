/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ucc.h - UCC, the congestion control of [utsumi] sections 3 and 4: a loss halves the window only if the bottleneck was
 * fully used.
 *
 *   one-way delay   owd = TSval - TSecr of an ACK that advances snd_una: the receiver's clock minus ours. Its zero is
 *                   arbitrary, so only its minimum is used. It contains no delay of the ACKs.
 *   window          N samples since the previous loss event, N_min of them at the minimum of the connection
 *   utilisation     rho = (N - N_min) / N: the ratio of samples that found a queue. N = 0: 1
 *   loss            rho > alpha: as NewReno. Else ssthresh = cwnd: the window stays
 *   timeout         as NewReno, whatever rho is
 *   else            as NewReno, with standard slow start
 *
 * One loss event is one recovery: later losses in it are not judged, and N restarts at its beginning. A duplicate ACK
 * echoes the segment before the hole, so it is no sample.
 *
 * If the receiver's ticks are not as long as ours, the measured delay drifts. If it falls, each sample is the lowest
 * yet, and no loss would halve the window. So the speeds of both clocks are compared; while they differ there are no
 * samples, and the law is NewReno.
 */
#ifndef LASTHOP_LAWS_UCC_H
#define LASTHOP_LAWS_UCC_H

#include "newreno.h"

#define LH_UCC_HAS_PARAMETERS 1
#define LH_UCC_PARAMETERS(P) \
	P(Ratio, alpha, 0, 1, 0.99, \
	  "Above this utilisation a loss halves the window ([utsumi] §4: 0.99); 1 never does, 0 does if any sample " \
	  "found a queue.") \
	P(Milliseconds, granularity, 0, 1000, 0, \
	  "Steps in which both clocks are read for the one-way delay; 0, or less than their tick: as they are.") \
	P(Milliseconds, tolerance, 0, 1000, 1, \
	  "How far above the lowest one-way delay another still counts as the lowest. The difference of two clocks with " \
	  "ticks of 1 ms is a tick more or less for one and the same delay; with exact clocks half a packet's time " \
	  "on the bottleneck is enough.") \
	P(Seconds, minimum_expiry, 0, 3600, 0, \
	  "The lowest one-way delay is of the last one to two periods of this length; 0 keeps it for good ([utsumi] " \
	  "names no period).") \
	P(Flag, per_segment, 0, 1, 0, \
	  "An ACK counts as many samples as it acknowledges segments, not as one.") \
	P(Flag, first_loss_halves, 0, 1, 0, \
	  "The first loss, which ends slow start, is not judged.") \
	P(Flag, keep_slow_start, 0, 1, 0, \
	  "A loss that leaves the window as it is does not end slow start either.")

struct lh_ucc_parameters {
	LH_UCC_PARAMETERS(LH_FIELD)
};

/*
 * Both clocks are compared after this time of ours. A delay that changes by less than a third of it in that time is not
 * mistaken for a faster or slower clock.
 */
#define LH_UCC_COMPARED_AFTER_US 4000000

/* A clock of 32 bits, read in steps of several ticks; it may wrap. */
struct lh_coarse_clock {
	__u32 base; /* the beginning of the latest step */
	__u32 steps;
};

#define LH_UCC_HAS_TIMED_OUT 1

struct lh_ucc {
	__u64 expires_us; /* when the minimum is taken anew */
	__u32 timestamp_tick_us;
	__u32 step; /* ticks in one of the steps below; 0: no measurement yet */
	__u32 samples; /* N */
	__u32 minima; /* N_min */
	__u32 min_owd; /* in steps, with an arbitrary zero: compare modulo 2^32 */
	__u32 next_min_owd; /* the minimum since min_owd was last taken anew */
	__u32 has; /* enum lh_ucc_has */
	struct lh_coarse_clock theirs;
	struct lh_coarse_clock ours;
	__u32 compared_theirs; /* the beginning of the comparison */
	__u32 compared_ours;
	__u32 clocks_differ; /* 1: by the latest comparison their ticks differ from ours in length */
	__u32 kept_ssthresh; /* restored after the recovery; 0: none */
	__u32 halved; /* loss events by their outcome */
	__u32 tolerated;
	__u32 unjudged; /* of those halved: without samples */
};

enum lh_ucc_has {
	LH_UCC_HAS_MINIMUM = 1,
	LH_UCC_HAS_NEXT = 2,
};

static inline void lh_ucc_init(struct lh_ucc *law, const struct lh_ucc_parameters *parameters,
			       const struct lh_start *start)
{
	*law = (struct lh_ucc){
		.timestamp_tick_us = lh_max(start->timestamp_tick_us, 1),
		.expires_us = start->now_us + parameters->minimum_expiry_us,
	};
}

/* `ticks` in steps of `step` ticks. Times before the latest have earlier steps. */
static inline __u32 lh_coarse(struct lh_coarse_clock *clock, __u32 ticks, __u32 step)
{
	__u32 ahead = ticks - clock->base;

	if (step <= 1)
		return ticks;
	if ((__s32)ahead < 0)
		return clock->steps - ((clock->base - ticks - 1) / step + 1);
	clock->steps += ahead / step;
	clock->base += ahead / step * step;
	return clock->steps;
}

/* The minimum covers this period and the one before: one to two periods. */
static inline void lh_ucc_expire(struct lh_ucc *law, const struct lh_ucc_parameters *parameters, __u64 now_us)
{
	if (!parameters->minimum_expiry_us)
		return;
	/* an end beyond the period is from a longer period */
	if (now_us < law->expires_us && law->expires_us - now_us <= parameters->minimum_expiry_us)
		return;
	law->expires_us = now_us + parameters->minimum_expiry_us;
	if (law->has & LH_UCC_HAS_NEXT && law->next_min_owd != law->min_owd) {
		law->min_owd = law->next_min_owd;
		law->minima = 0;
	}
	law->has &= ~LH_UCC_HAS_NEXT;
}

/* Counts `count` samples of this one-way delay. */
static inline void lh_ucc_sample(struct lh_ucc *law, const struct lh_ucc_parameters *parameters, __u32 owd,
				 __u32 step_us, __u32 count)
{
	if (!(law->has & LH_UCC_HAS_NEXT) || (__s32)(owd - law->next_min_owd) < 0)
		law->next_min_owd = owd;
	if (!(law->has & LH_UCC_HAS_MINIMUM) || (__s32)(owd - law->min_owd) < 0) {
		law->min_owd = owd;
		law->minima = 0;
	}
	law->has = LH_UCC_HAS_MINIMUM | LH_UCC_HAS_NEXT;
	/* halving both keeps rho, and N below 2^32 */
	if (law->samples >= 1U << 30) {
		law->samples /= 2;
		law->minima /= 2;
	}
	count = lh_min(count, 1U << 30);
	law->samples += count;
	if (owd - law->min_owd <= parameters->tolerance_us / step_us)
		law->minima += count;
}

/* The measurements are no longer valid: starts again. */
static inline void lh_ucc_measure_anew(struct lh_ucc *law, const struct lh_acked *acked, __u32 step)
{
	law->step = step;
	law->theirs = (struct lh_coarse_clock){ .base = acked->tsval };
	law->ours = (struct lh_coarse_clock){ .base = acked->tsecr };
	law->has = 0;
	law->samples = 0;
	law->minima = 0;
}

static inline void lh_ucc_compare_clocks(struct lh_ucc *law, const struct lh_acked *acked, __u32 tick_us)
{
	__u32 ours = acked->tsecr - law->compared_ours;
	__u64 theirs = (__u32)(acked->tsval - law->compared_theirs);

	if (law->step && ours < lh_max(LH_UCC_COMPARED_AFTER_US / tick_us, 1))
		return;
	/* more than 2^31: an old echo, or a pause too long for a comparison */
	if (law->step && (__s32)ours > 0)
		law->clocks_differ = 2 * theirs > 3 * (__u64)ours || 3 * theirs < 2 * (__u64)ours;
	law->compared_theirs = acked->tsval;
	law->compared_ours = acked->tsecr;
}

static inline void lh_ucc_look(struct lh_ucc *law, const struct lh_ucc_parameters *parameters,
			       const struct lh_acked *acked)
{
	__u32 tick_us = lh_max(law->timestamp_tick_us, 1);
	__u32 step = lh_max(parameters->granularity_us / tick_us, 1);
	__u32 owd;

	if ((acked->flags & (LH_ADVANCED | LH_HAS_TIMESTAMP)) != (LH_ADVANCED | LH_HAS_TIMESTAMP) || !acked->tsecr)
		return;
	lh_ucc_compare_clocks(law, acked, tick_us);
	if (law->step != step || law->clocks_differ)
		lh_ucc_measure_anew(law, acked, step);
	if (law->clocks_differ)
		return;
	lh_ucc_expire(law, parameters, acked->now_us);
	owd = lh_coarse(&law->theirs, acked->tsval, step) - lh_coarse(&law->ours, acked->tsecr, step);
	lh_ucc_sample(law, parameters, owd, step * tick_us, parameters->per_segment ? acked->acked_segments : 1);
}

static inline void lh_ucc_acked(struct lh_ucc *law, const struct lh_ucc_parameters *parameters,
				const struct lh_acked *acked, struct lh_window *window)
{
	lh_ucc_look(law, parameters, acked);
	if (law->kept_ssthresh && !(acked->flags & LH_IN_REDUCTION)) {
		window->ssthresh_segments = lh_max(window->ssthresh_segments, law->kept_ssthresh);
		law->kept_ssthresh = 0;
	}
	lh_reno_grow(acked, window);
}

/* Whether rho > alpha. */
static inline int lh_ucc_is_used_up(const struct lh_ucc *law, const struct lh_ucc_parameters *parameters)
{
	return !law->samples ||
	       (__u64)(law->samples - law->minima) * 1000000 > (__u64)law->samples * parameters->alpha_ppm;
}

static inline void lh_ucc_begin_window(struct lh_ucc *law)
{
	law->samples = 0;
	law->minima = 0;
	law->kept_ssthresh = 0;
}

static inline void lh_ucc_lost(struct lh_ucc *law, const struct lh_ucc_parameters *parameters,
			       const struct lh_lost *lost, struct lh_window *window)
{
	__u32 first = !law->halved && !law->tolerated, kept = 0;

	if (lh_ucc_is_used_up(law, parameters) || (first && parameters->first_loss_halves)) {
		law->halved++;
		law->unjudged += !law->samples;
		lh_reno_halve(lost, window);
	} else {
		law->tolerated++;
		if (parameters->keep_slow_start && lh_in_slow_start(window))
			kept = window->ssthresh_segments;
		lh_tolerate(window);
	}
	lh_ucc_begin_window(law);
	law->kept_ssthresh = kept;
}

static inline void lh_ucc_timed_out(struct lh_ucc *law, const struct lh_ucc_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	lh_reno_halve(lost, window);
	lh_ucc_begin_window(law);
}

#endif /* LASTHOP_LAWS_UCC_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(ucc, UCC, Ucc, "UCC", Sky, Ring, Everywhere,
	     "Halves only when the bottleneck was fully used: [utsumi].")
#endif
