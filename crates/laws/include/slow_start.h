/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* slow_start.h - slow start for any law: RFC 5681's, with Linux's HyStart, or HyStart++ (RFC 9406). */
#ifndef LASTHOP_LAWS_SLOW_START_H
#define LASTHOP_LAWS_SLOW_START_H

#include "hystart.h"
#include "hystart_plus_plus.h"
#include "law.h"

struct lh_slow_start {
	__u32 kind; /* enum lh_slow_start_kind */
	__u32 delay_min_us; /* the lowest RTT that counts, for HyStart and CUBIC; 0: none yet */
	union {
		struct lh_hystart hystart; /* unless it is HyStart++ */
		struct lh_hystart_plus_plus plus_plus;
	};
};

static inline void lh_slow_start_init(struct lh_slow_start *slow_start, const struct lh_start *start)
{
	slow_start->kind = start->slow_start;
	slow_start->delay_min_us = 0;
	if (slow_start->kind == LH_SLOW_START_HYSTART_PLUS_PLUS)
		lh_hystart_plus_plus_begin(&slow_start->plus_plus);
	else
		lh_hystart_begin(&slow_start->hystart, start->now_us, start->snd_nxt);
}

/* HyStart++ applies to the first slow start only: RFC 9406 section 4.3. */
static inline int lh_is_plus_plus(const struct lh_slow_start *slow_start, const struct lh_window *window)
{
	return slow_start->kind == LH_SLOW_START_HYSTART_PLUS_PLUS &&
	       window->ssthresh_segments >= LH_INFINITE_SSTHRESH;
}

static inline void lh_slow_start_sample(struct lh_slow_start *slow_start, __u32 rtt_us)
{
	if (!slow_start->delay_min_us || rtt_us < slow_start->delay_min_us)
		slow_start->delay_min_us = rtt_us;
}

/* For each ACK, even if the window may not grow: may end slow start by setting ssthresh. */
static inline void lh_slow_start_look(struct lh_slow_start *slow_start, const struct lh_acked *acked,
				      struct lh_window *window)
{
	if (lh_is_plus_plus(slow_start, window)) {
		lh_hystart_plus_plus_look(&slow_start->plus_plus, acked, window);
	} else if (slow_start->kind == LH_SLOW_START_HYSTART && acked->rtt_us) {
		lh_slow_start_sample(slow_start, acked->rtt_us);
		if (lh_in_slow_start(window))
			lh_hystart_look(&slow_start->hystart, acked, slow_start->delay_min_us,
					LH_HYSTART_CUSHION_US, window);
	}
}

/*
 * Grows a window in slow start. Returns the acknowledged segments left for congestion avoidance. Segments that
 * HyStart++ does not use are not among them, because it grows the window more slowly on purpose.
 */
static inline __u32 lh_slow_start_grow(struct lh_slow_start *slow_start, const struct lh_acked *acked,
				       struct lh_window *window)
{
	if (lh_is_plus_plus(slow_start, window)) {
		lh_hystart_plus_plus_grow(&slow_start->plus_plus, acked, window);
		return 0;
	}
	return lh_slow_start_by(window, acked->acked_segments);
}

/* A timeout: slow start begins again. */
static inline void lh_slow_start_again(struct lh_slow_start *slow_start, __u64 now_us, __u32 snd_nxt)
{
	slow_start->delay_min_us = 0;
	if (slow_start->kind != LH_SLOW_START_HYSTART_PLUS_PLUS)
		lh_hystart_begin(&slow_start->hystart, now_us, snd_nxt);
}

#endif /* LASTHOP_LAWS_SLOW_START_H */
