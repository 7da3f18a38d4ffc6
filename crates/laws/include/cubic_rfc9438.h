/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cubic_rfc9438.h - CUBIC as in RFC 9438.
 *
 *   W_cubic(t) = C (t - K)^3 + W_max                        K = cbrt((W_max - cwnd_epoch) / C)       Figures 1 and 2
 *   target     = W_cubic(t + SRTT), at least cwnd, at most 1.5 cwnd                                  section 4.2
 *   W_est     += alpha * segments_acked / cwnd              alpha = 9/17, or 1 if W_est >= cwnd_prior  Figure 4
 *   each ACK     cwnd = W_est where W_cubic(t) < W_est      Reno-friendly region                     section 4.3
 *                cwnd += (target - cwnd) / cwnd otherwise, for each segment acknowledged             sections 4.4, 4.5
 *   loss         ssthresh = max(0.7 FlightSize, 2); W_max = cwnd, 0.85 cwnd if less than W_max       sections 4.6, 4.7
 *   timeout      the same ssthresh; the next stage has K = 0 and W_max = cwnd                        section 4.8
 *   spurious     W_max, K, t_epoch, W_est and cwnd_prior are restored                                section 4.9
 *
 * Decisions where the text leaves a choice:
 *  - (target - cwnd) / cwnd is "for each new ACK" in the text. Here it is for each segment acknowledged, so that target
 *    is reached within one round trip also with delayed ACKs.
 *  - A congestion avoidance stage begins with the first growth at or above ssthresh: after a recovery, after a slow start.
 *  - t excludes all time in which the window did not limit the sender, not only "long periods" (sections 4.2 and 5.8).
 *  - FlightSize is at most the window: segments of limited transmit beyond it do not count (RFC 5681 section 3.2).
 *  - Fast convergence is on. A stage that begins above W_max has K = 0 and W_max = cwnd, as after a timeout.
 *
 * Fixed point: windows in 2^-24 segments; time on the curve in 2^-10 s, at most 1024 s from K. The window's cwnd_count
 * holds the fraction of a segment.
 */
#ifndef LASTHOP_LAWS_CUBIC_RFC9438_H
#define LASTHOP_LAWS_CUBIC_RFC9438_H

#include "law.h"
#include "slow_start.h"

#define LH_FRACTION_BITS 24
#define LH_FRACTION_MASK ((1U << LH_FRACTION_BITS) - 1)
#define LH_MAX_OFFSET (1ULL << 20) /* 1024 s */
/* alpha_cubic = 3 (1 - beta) / (1 + beta) = 9/17, and 1, in 2^-48 */
#define LH_ALPHA_CUBIC ((9ULL << 48) / 17)
#define LH_ALPHA_RENO (1ULL << 48)

enum lh_stage {
	LH_STAGE_OPEN = 1, /* t runs */
	LH_STAGE_FRESH = 2, /* the next stage has no W_max: the first one, and after a timeout */
};

struct lh_cubic_stage {
	__u64 t_epoch_us; /* moved forward by the time that does not count */
	__u64 w_max; /* 2^-24 segments */
	__u64 w_est; /* 2^-24 segments */
	__u32 k; /* 2^-10 s */
	__u32 cwnd_prior; /* segments; 0: none */
	__u32 flags; /* enum lh_stage */
	__u32 reserved;
};

#define LH_CUBIC_RFC9438_HAS_TIMED_OUT 1
#define LH_CUBIC_RFC9438_HAS_NOTIFIED 1
#define LH_CUBIC_RFC9438_HAS_SENT 1
#define LH_CUBIC_RFC9438_HAS_UNDONE 1

struct lh_cubic_rfc9438 {
	struct lh_slow_start slow_start;
	struct lh_cubic_stage stage;
	struct lh_cubic_stage undo; /* the stage before the last reduction */
	__u64 last_acked_us;
	__u32 undo_cwnd; /* the window then; 0: nothing to restore */
	__u32 reserved;
};

static inline void lh_cubic_rfc9438_init(struct lh_cubic_rfc9438 *law, const struct lh_start *start)
{
	lh_slow_start_init(&law->slow_start, start);
	law->stage.t_epoch_us = 0;
	law->stage.w_max = 0;
	law->stage.w_est = 0;
	law->stage.k = 0;
	law->stage.cwnd_prior = 0;
	law->stage.flags = LH_STAGE_FRESH;
	law->stage.reserved = 0;
	law->undo = law->stage;
	law->last_acked_us = start->now_us;
	law->undo_cwnd = 0;
	law->reserved = 0;
}

/*
 * The cube root of `a`, rounded down, by Newton-Raphson from above: stops at the first step that does not go down. From
 * 2^6 times the root it takes some 14 steps. A bitwise method would give BPF's verifier 2^22 paths.
 */
static inline __u32 lh_cube_root(__u64 a)
{
	__u64 root = a < 1ULL << 36 ? 1ULL << 12 : a < 1ULL << 48 ? 1ULL << 16 : 1ULL << 22, next;
	int step;

	for (step = 0; step < 40; step++) {
		next = (2 * root + a / (root * root)) / 3;
		if (next >= root || !next)
			break;
		root = next;
	}
	return a ? root : 0;
}

/* Figure 1, with C = 2/5. */
static inline __u64 lh_w_cubic(const struct lh_cubic_stage *stage, __u64 t_us)
{
	__u64 t, offset, delta;

	if (t_us > 1ULL << 34)
		t_us = 1ULL << 34;
	t = (t_us << 10) / 1000000;
	offset = t < stage->k ? stage->k - t : t - stage->k;
	if (offset > LH_MAX_OFFSET)
		offset = LH_MAX_OFFSET;
	/* (2^-10 s)^3 = 2^-30 s^3, to 2^-24 segments */
	delta = ((offset * offset * offset) >> 6) * 2 / 5;
	if (t < stage->k)
		return delta < stage->w_max ? stage->w_max - delta : 0;
	return stage->w_max + delta;
}

static inline void lh_cubic_rfc9438_open(struct lh_cubic_stage *stage, __u64 cwnd, __u64 now_us)
{
	if ((stage->flags & LH_STAGE_FRESH) || stage->w_max < cwnd)
		stage->w_max = cwnd;
	if (!stage->cwnd_prior)
		stage->cwnd_prior = cwnd >> LH_FRACTION_BITS;
	stage->flags = LH_STAGE_OPEN;
	stage->t_epoch_us = now_us;
	stage->w_est = cwnd;
	/* Figure 2: K^3 = (W_max - cwnd_epoch) 5/2, to (2^-10 s)^3 */
	stage->k = lh_cube_root((stage->w_max - cwnd) * 160);
}

static inline __u64 lh_fixed_point_window(const struct lh_window *window)
{
	return ((__u64)window->cwnd_segments << LH_FRACTION_BITS) + (window->cwnd_count & LH_FRACTION_MASK);
}

/* Congestion avoidance. `cwnd` and the result in 2^-24 segments. */
static inline __u64 lh_cubic_rfc9438_avoid(struct lh_cubic_stage *stage, const struct lh_acked *acked, __u64 cwnd,
					   __u32 acked_segments)
{
	__u64 t_us, target, step, limit = (__u64)LH_INFINITE_SSTHRESH << LH_FRACTION_BITS;

	if (!(stage->flags & LH_STAGE_OPEN))
		lh_cubic_rfc9438_open(stage, cwnd, acked->now_us);
	t_us = acked->now_us > stage->t_epoch_us ? acked->now_us - stage->t_epoch_us : 0;

	/* Figure 4 */
	if (stage->w_est < limit) {
		step = stage->w_est >= (__u64)stage->cwnd_prior << LH_FRACTION_BITS ? LH_ALPHA_RENO : LH_ALPHA_CUBIC;
		stage->w_est += step / cwnd * acked_segments;
	}
	if (lh_w_cubic(stage, t_us) < stage->w_est)
		return stage->w_est > cwnd ? stage->w_est : cwnd;

	target = lh_w_cubic(stage, t_us + acked->srtt_us);
	if (target <= cwnd)
		return cwnd;
	if (target > cwnd + cwnd / 2)
		target = cwnd + cwnd / 2;
	step = target - cwnd;
	/* step / cwnd, in 2^-24; the second form for windows whose fraction does not matter */
	step = step < 1ULL << 40 ? (step << LH_FRACTION_BITS) / cwnd : step / (cwnd >> LH_FRACTION_BITS);
	step *= acked_segments;
	return step < target - cwnd ? cwnd + step : target;
}

static inline void lh_cubic_rfc9438_acked(struct lh_cubic_rfc9438 *law, const struct lh_acked *acked,
					  struct lh_window *window)
{
	__u32 rest = acked->acked_segments;
	__u64 cwnd;

	lh_slow_start_look(&law->slow_start, acked, window);
	if (!(acked->flags & LH_CWND_LIMITED) && acked->now_us > law->last_acked_us)
		law->stage.t_epoch_us += acked->now_us - law->last_acked_us;
	law->last_acked_us = acked->now_us;

	/* if the stage went on under a bound, the window would jump when the bound ends */
	if (acked->flags & LH_HELD)
		law->stage.flags &= ~LH_STAGE_OPEN;
	if (!lh_may_grow(acked))
		return;
	if (lh_in_slow_start(window)) {
		law->stage.flags &= ~LH_STAGE_OPEN;
		rest = lh_slow_start_grow(&law->slow_start, acked, window);
	}
	if (!rest || !window->cwnd_segments)
		return;

	cwnd = lh_cubic_rfc9438_avoid(&law->stage, acked, lh_fixed_point_window(window), rest);
	if (cwnd >> LH_FRACTION_BITS > LH_INFINITE_SSTHRESH)
		return;
	window->cwnd_segments = cwnd >> LH_FRACTION_BITS;
	window->cwnd_count = cwnd & LH_FRACTION_MASK;
}

/* Sections 4.6 and 4.9: saves the stage, and does what every reduction does. */
static inline void lh_cubic_rfc9438_reduce(struct lh_cubic_rfc9438 *law, const struct lh_lost *lost,
					   struct lh_window *window)
{
	__u64 flight = lh_min(lost->in_flight_segments, window->cwnd_segments);

	law->undo = law->stage;
	law->undo_cwnd = window->cwnd_segments;
	law->stage.cwnd_prior = window->cwnd_segments;
	window->ssthresh_segments = lh_max(flight * 7 / 10, LH_MIN_SSTHRESH);
}

static inline void lh_cubic_rfc9438_lost(struct lh_cubic_rfc9438 *law, const struct lh_lost *lost,
					 struct lh_window *window)
{
	__u64 cwnd = lh_fixed_point_window(window);

	lh_cubic_rfc9438_reduce(law, lost, window);
	/* section 4.7, fast convergence: W_max = cwnd (1 + beta) / 2 */
	law->stage.w_max = cwnd < law->stage.w_max ? cwnd / 20 * 17 : cwnd;
	law->stage.flags = 0;
}

static inline void lh_cubic_rfc9438_timed_out(struct lh_cubic_rfc9438 *law, const struct lh_lost *lost,
					      struct lh_window *window)
{
	lh_cubic_rfc9438_reduce(law, lost, window);
	law->stage.flags = LH_STAGE_FRESH;
	lh_slow_start_again(&law->slow_start, lost->now_us, lost->snd_nxt);
}

/* Section 4.6: ECN counts as a loss. */
static inline void lh_cubic_rfc9438_notified(struct lh_cubic_rfc9438 *law, const struct lh_lost *notice,
					     struct lh_window *window)
{
	lh_cubic_rfc9438_lost(law, notice, window);
}

/* The first transmission after idleness. The idleness began with the last ACK. */
static inline void lh_cubic_rfc9438_sent(struct lh_cubic_rfc9438 *law, const struct lh_sent *sent)
{
	if (sent->in_flight_before_segments || sent->now_us <= law->last_acked_us)
		return;
	law->stage.t_epoch_us += sent->now_us - law->last_acked_us;
	law->last_acked_us = sent->now_us;
}

/* Section 4.9: unless the window has meanwhile grown beyond its former value. */
static inline void lh_cubic_rfc9438_undone(struct lh_cubic_rfc9438 *law, const struct lh_undone *undone,
					   const struct lh_window *window)
{
	(void)undone;
	if (window->cwnd_segments > law->undo_cwnd)
		return;
	law->stage = law->undo;
	law->undo_cwnd = 0;
}

#endif /* LASTHOP_LAWS_CUBIC_RFC9438_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(cubic_rfc9438, CUBIC_RFC9438, CubicRfc9438, "CUBIC (RFC 9438)", Free, Circle, Simulated,
	     "CUBIC as RFC 9438 has it.")
#endif
