/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gradient.h - the measurements and random draws of both versions of CDG: the gradients of the delay from round to
 * round, what they say about the queue, and the probability of a back-off.
 *
 *   g_min,n = tau_min,n - tau_min,n-1       lowest RTT of this round minus that of the round before      [utsumi] (5)
 *   g_max,n = tau_max,n - tau_max,n-1       highest                                                               (6)
 *   sum_n   = sum_n-1 + g_n - g_n-a         over the last a gradients: a times the mean               (7), (8)
 *
 * [utsumi] (7) adds a + 1 terms and (8) uses a; here it is a. The mean is never computed: sums are exact, and the
 * values compared with them are multiplied by a. A round after a back-off has no gradient; without such rounds the sum
 * is tau_n - tau_n-a.
 */
#ifndef LASTHOP_LAWS_GRADIENT_H
#define LASTHOP_LAWS_GRADIENT_H

#include "delay.h"
#include "exp.h"
#include "random.h"

#define LH_GRADIENT_ROUNDS_MAX 16

/* 134 s: 16 of them add up to less than 2^31 */
#define LH_GRADIENT_MAX_US 0x7ffffff

struct lh_gradient {
	__s32 min_us;
	__s32 max_us;
};

struct lh_gradients {
	struct lh_gradient last[LH_GRADIENT_ROUNDS_MAX]; /* a ring of `rounds` */
	struct lh_gradient sum;
	struct lh_round previous; /* max_us 0: none for comparison */
	__u32 rounds; /* a */
	__u32 filled; /* number of gradients in the ring */
	__u32 next; /* index of the next one */
};

/* The state of the queue on the path, inferred from the gradients. */
enum lh_queue {
	LH_QUEUE_UNKNOWN = 0,
	LH_QUEUE_FULL = 1,
	LH_QUEUE_EMPTY = 2,
	LH_QUEUE_RISING = 3,
	LH_QUEUE_FALLING = 4,
};

/* In these states the queue is not full, so a loss has another cause. */
static inline int lh_queue_has_room(__u32 queue)
{
	return queue >= LH_QUEUE_EMPTY;
}

static inline void lh_gradients_init(struct lh_gradients *gradients, __u32 rounds)
{
	*gradients = (struct lh_gradients){ .rounds = lh_min(lh_max(rounds, 1), LH_GRADIENT_ROUNDS_MAX) };
}

/* The next round has no gradient. */
static inline void lh_gradients_skip(struct lh_gradients *gradients)
{
	gradients->previous.max_us = 0;
}

static inline __s32 lh_difference(__u32 now_us, __u32 before_us)
{
	if (now_us >= before_us)
		return lh_min(now_us - before_us, LH_GRADIENT_MAX_US);
	return -(__s32)lh_min(before_us - now_us, LH_GRADIENT_MAX_US);
}

/* Takes a round. Returns 1 if it has a gradient, which is then in `latest` and in the sums. */
static inline int lh_gradients_look(struct lh_gradients *gradients, const struct lh_round *round,
				    struct lh_gradient *latest)
{
	struct lh_round previous = gradients->previous;
	struct lh_gradient *oldest = &gradients->last[gradients->next & (LH_GRADIENT_ROUNDS_MAX - 1)];

	gradients->previous = *round;
	if (!previous.max_us)
		return 0;
	latest->min_us = lh_difference(round->min_us, previous.min_us);
	latest->max_us = lh_difference(round->max_us, previous.max_us);
	gradients->sum.min_us += latest->min_us - oldest->min_us;
	gradients->sum.max_us += latest->max_us - oldest->max_us;
	*oldest = *latest;
	gradients->next = gradients->next + 1 < gradients->rounds ? gradients->next + 1 : 0;
	gradients->filled = lh_min(gradients->filled + 1, gradients->rounds);
	return 1;
}

/* gradient / scale, for lh_exp_minus(); at most 32, where e^-x is 0. */
static inline __u32 lh_gradient_exponent(__u64 gradient, __u64 scale)
{
	if (!scale || gradient / scale >= 32)
		return 32 * LH_EXP_ONE;
	return gradient * LH_EXP_ONE / scale;
}

/* P = 1 - e^-x */
static inline __u64 lh_gradient_probability(__u32 exponent)
{
	return LH_CERTAIN - lh_exp_minus(exponent);
}

#endif /* LASTHOP_LAWS_GRADIENT_H */
