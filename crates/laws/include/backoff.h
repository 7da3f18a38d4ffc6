/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * backoff.h - for laws that reduce the window because of delay: how long a back-off lasts, and the probability g(q) of
 * HD and CHD.
 */
#ifndef LASTHOP_LAWS_BACKOFF_H
#define LASTHOP_LAWS_BACKOFF_H

#include "law.h"
#include "random.h"

/*
 * A back-off lasts until all data in flight at its beginning are acknowledged, as FreeBSD's congestion recovery. Until
 * then the window neither grows nor is reduced again for delay. The stack knows nothing of it.
 */
struct lh_backoff {
	__u32 recover;
	__u32 lasts;
};

static inline int lh_backoff_lasts(struct lh_backoff *backoff, __u32 snd_una)
{
	if (backoff->lasts && !lh_after(backoff->recover, snd_una))
		backoff->lasts = 0;
	return backoff->lasts;
}

static inline void lh_backoff_begin(struct lh_backoff *backoff, const struct lh_acked *acked, __u32 to_segments,
				    struct lh_window *window)
{
	backoff->recover = acked->snd_nxt;
	backoff->lasts = 1;
	/* after a timeout, never raise a window of one segment */
	window->ssthresh_segments = lh_max(to_segments, LH_MIN_SSTHRESH);
	window->cwnd_segments = lh_min(window->cwnd_segments, window->ssthresh_segments);
	window->cwnd_count = 0;
}

/* The parameters of g. */
struct lh_g {
	__u32 queue_min_us;
	__u32 queue_threshold_us;
	__u32 max_probability_ppm;
};

/* The parameters of the laws that use g, except the highest probability. */
#define LH_G_PARAMETERS(P) \
	P(Milliseconds, queue_min, 0, 10000, 5, \
	  "q_min: no back-off up to this queueing delay (FreeBSD: 5).") \
	P(Milliseconds, queue_threshold, 0, 10000, 20, \
	  "q_th: the queueing delay of the highest probability; above it the delay counts as made by others " \
	  "(FreeBSD and [utsumi]: 20).")

/* The struct lh_g of these parameters. */
#define LH_G_OF(parameters)                                               \
	{                                                                 \
		.queue_min_us = (parameters)->queue_min_us,               \
		.queue_threshold_us = (parameters)->queue_threshold_us,   \
		.max_probability_ppm = (parameters)->max_probability_ppm, \
	}

/*
 * The probability of a back-off at the queueing delay q; q_max is the largest one seen [utsumi (1)]:
 *
 *   0                                        q <= q_min
 *   p_max (q - q_min) / (q_th - q_min)       q_min < q < q_th        region A
 *   p_max                                    q = q_th
 *   p_max (q_max - q) / (q_max - q_th)       q_th < q <= q_max       region B
 *
 * In region B it falls again: other senders cause the delay and ignore it. An empty region causes no division.
 */
static inline __u64 lh_g(const struct lh_g *g, __u32 q_us, __u32 q_max_us)
{
	__u64 highest = lh_probability_of_ppm(g->max_probability_ppm);

	if (q_us <= g->queue_min_us)
		return 0;
	if (q_us < g->queue_threshold_us)
		return highest * (q_us - g->queue_min_us) / (g->queue_threshold_us - g->queue_min_us);
	if (q_us == g->queue_threshold_us)
		return highest;
	if (q_us >= q_max_us)
		return 0;
	return highest * (q_max_us - q_us) / (q_max_us - g->queue_threshold_us);
}

#endif /* LASTHOP_LAWS_BACKOFF_H */
