/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * dctcp.h - DCTCP: reduces its window by the share of marked segments, not by half.
 *
 * RFC 8257; the arithmetic is that of Linux, net/ipv4/tcp_dctcp.c.
 *
 *   each window of data    M = marked / delivered;  alpha = alpha (1 - g) + g M,  g = 1/16         section 3.3, steps 4 to 7
 *   a mark                 ssthresh = max(cwnd (1 - alpha / 2), 2), once in a window                step 9
 *   loss or timeout        ssthresh = max(cwnd / 2, 2)                                             section 3.5
 *   growth                 NewReno's
 *
 * alpha is 1 at first, in units of 1/1024; below 16 of them a window without marks takes it to 0. The receiver echoes each mark for itself
 * (section 3.2): that is the stack's, which also makes all segments markable. Where the other end has no ECN, there are no
 * marks, and the law is NewReno. What it leaves out: the parameters of Linux's module.
 */
#ifndef LASTHOP_LAWS_DCTCP_H
#define LASTHOP_LAWS_DCTCP_H

#include "law.h"
#include "reno.h"

#define LH_DCTCP_HAS_NOTIFIED 1
#define LH_DCTCP_HAS_TIMED_OUT 1
#define LH_DCTCP_ECHOES_MARKS 1

#define LH_DCTCP_ONE 1024U /* DCTCP_MAX_ALPHA: alpha = 1 */
#define LH_DCTCP_SHIFT_G 4 /* g = 1/16: RFC 8257 section 4.2; dctcp_shift_g */

struct lh_dctcp {
	__u32 alpha;
	__u32 window_end; /* the window of data that is observed ends here */
	__u32 delivered; /* segments in it */
	__u32 marked; /* those of them that were marked */
};

static inline void lh_dctcp_observe(struct lh_dctcp *law, __u32 snd_nxt)
{
	law->window_end = snd_nxt;
	law->delivered = 0;
	law->marked = 0;
}

static inline void lh_dctcp_init(struct lh_dctcp *law, const struct lh_start *start)
{
	law->alpha = LH_DCTCP_ONE;
	lh_dctcp_observe(law, start->snd_nxt);
}

/* dctcp_update_alpha() */
static inline void lh_dctcp_update(struct lh_dctcp *law)
{
	__u32 decay = law->alpha >> LH_DCTCP_SHIFT_G;
	__u32 share = 0;

	/* min_not_zero() */
	if (!decay)
		decay = law->alpha;
	if (law->delivered)
		share = (__u32)(((__u64)law->marked * (LH_DCTCP_ONE >> LH_DCTCP_SHIFT_G)) / law->delivered);
	law->alpha = lh_min(law->alpha - decay + share, LH_DCTCP_ONE);
}

static inline void lh_dctcp_acked(struct lh_dctcp *law, const struct lh_acked *acked, struct lh_window *window)
{
	law->delivered = lh_saturating_add(law->delivered, acked->acked_segments);
	law->marked = lh_saturating_add(law->marked, acked->marked_segments);
	if (!lh_after(law->window_end, acked->snd_una)) {
		lh_dctcp_update(law);
		lh_dctcp_observe(law, acked->snd_nxt);
	}
	lh_reno_grow(acked, window);
}

static inline void lh_dctcp_lost(struct lh_dctcp *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)law;
	(void)lost;
	window->ssthresh_segments = lh_max(window->cwnd_segments / 2, LH_MIN_SSTHRESH);
}

static inline void lh_dctcp_timed_out(struct lh_dctcp *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_dctcp_lost(law, lost, window);
}

/* dctcp_ssthresh() */
static inline void lh_dctcp_notified(struct lh_dctcp *law, const struct lh_lost *notice, struct lh_window *window)
{
	__u32 cwnd = window->cwnd_segments;
	__u32 cut = (__u32)(((__u64)cwnd * law->alpha) >> 11);

	(void)notice;
	window->ssthresh_segments = lh_max(cwnd - cut, LH_MIN_SSTHRESH);
}

#endif /* LASTHOP_LAWS_DCTCP_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(dctcp, DCTCP, Dctcp, "DCTCP", Free, Square, Simulated,
	     "DCTCP, RFC 8257: reduces the window by the share of marked segments; Linux's tcp_dctcp.")
#endif
