/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cubic.h - CUBIC as in Linux (net/ipv4/tcp_cubic.c 2.3), number by number, newly written.
 *
 *   growth      one segment for each cnt acknowledged; cnt is recomputed when the window has changed, at most once per
 *               jiffy, and otherwise every 31 ms:
 *                 target = origin_point + C (t + delay_min - K)^3        K = cbrt((last_max_cwnd - cwnd) / C)
 *                 cnt    = cwnd / (target - cwnd), 100 cwnd if target <= cwnd; at most 20 before the first loss, at
 *                          most what Reno's estimate needs, at least 2
 *   reduction   ssthresh = 717/1024 cwnd; last_max_cwnd = cwnd, or 1741/2048 cwnd if it was less than the last
 *   timeout     the same, and everything else is reset
 *   idleness    t stops
 *
 * Time is in jiffies of 1/hz s and, on the curve, in units of 2^-10 s (BICTCP_HZ). C = 410/1024 / s^3.
 *
 * Differences from RFC 9438: delay_min in place of the smoothed RTT; cwnd in place of FlightSize in the reduction;
 * Reno's estimate always grows with alpha = 0.53; cnt is clamped, not the target; after a spurious reduction only the
 * window is restored.
 *
 * Differences from the kernel, only outside the range of the kernel's arithmetic (10^6 segments): its cube wraps 346 s
 * past K and its reduction above 5,990,000 segments; ours do not. There is no snd_cwnd_clamp here.
 */
#ifndef LASTHOP_LAWS_CUBIC_H
#define LASTHOP_LAWS_CUBIC_H

#include "law.h"
#include "slow_start.h"

#define LH_CUBIC_BETA 717 /* beta, in 1/1024: 0.7 */
#define LH_CUBIC_C 410 /* cube_rtt_scale = 10 * bic_scale, in 1/1024: 0.4 */
#define LH_CUBIC_SHIFT 10 /* BICTCP_HZ: time in 2^-10 s */
#define LH_CUBIC_CUBE_FACTOR ((1ULL << 40) / LH_CUBIC_C) /* cube_factor: 1/C, for time in 2^-10 s */
/* beta_scale = 8 (1024 + beta) / 3 / (1024 - beta): Reno's estimate grows by 1 per 15/8 windows acknowledged */
#define LH_CUBIC_RENO_SCALE (8 * (1024 + LH_CUBIC_BETA) / 3 / (1024 - LH_CUBIC_BETA))
#define LH_CUBIC_HZ 250 /* CONFIG_HZ of Debian, and of the kernels of our kernel hosts */
/* A larger offset would wrap the cube: (2^64 / 410)^(1/3) units, 346 s, where the target is 2^24 segments away. */
#define LH_CUBIC_MAX_OFFSET 355000

#define LH_CUBIC_HAS_TIMED_OUT 1
#define LH_CUBIC_HAS_NOTIFIED 1
#define LH_CUBIC_HAS_SENT 1

struct lh_cubic {
	struct lh_slow_start slow_start; /* its delay_min_us excludes the first second of an epoch */
	__u32 hz; /* jiffies per second; may be changed after lh_cubic_init() */
	__u32 cnt; /* grow by 1 for each cnt segments acknowledged */
	__u32 last_max_cwnd; /* W_max; 0: no loss yet */
	__u32 last_cwnd; /* the window for which cnt was computed */
	__u32 last_time; /* when cnt was computed, in jiffies */
	__u32 origin_point; /* the window at the flat point of the curve */
	__u32 k; /* time from the beginning of the epoch to that point, in 2^-10 s */
	__u32 epoch_start; /* in jiffies; 0: the next growth begins an epoch */
	__u32 ack_cnt; /* segments acknowledged and not yet in Reno's estimate */
	__u32 tcp_cwnd; /* Reno's estimate */
};

/* What lh_cubic_init() and a timeout reset: everything but the slow start. */
static inline void lh_cubic_forget(struct lh_cubic *law)
{
	law->cnt = 0;
	law->last_max_cwnd = 0;
	law->last_cwnd = 0;
	law->last_time = 0;
	law->origin_point = 0;
	law->k = 0;
	law->epoch_start = 0;
	law->ack_cnt = 0;
	law->tcp_cwnd = 0;
}

static inline void lh_cubic_init(struct lh_cubic *law, const struct lh_start *start)
{
	lh_slow_start_init(&law->slow_start, start);
	law->hz = LH_CUBIC_HZ;
	lh_cubic_forget(law);
}

/* Now in jiffies. At least 1 in the beginning, because an epoch_start of 0 means no epoch. */
static inline __u32 lh_cubic_jiffies(const struct lh_cubic *law, __u64 now_us)
{
	return now_us * law->hz / 1000000 + 1;
}

/* The bit length of `a`, like fls64(). With __builtin_clzll() clang 14 runs out of memory when it compiles for BPF. */
static inline __u32 lh_bit_length(__u64 a)
{
	__u32 length = 0, step;

	for (step = 32; step; step /= 2) {
		if (a >> step) {
			a >>= step;
			length += step;
		}
	}
	return length + (a != 0);
}

/*
 * The cube root of a >= 2^31 by the kernel's approximation: a table for its three or six leading bits, then one step of
 * Newton-Raphson. The mean error is 0.2 %. The numbers are the kernel's, "refined by hand"; those below 8 are for
 * smaller a. Entry i is about 64 cbrt(i + 8) - 10.
 */
static inline __u32 lh_cubic_root(__u64 a)
{
	static const __u8 roots[56] = {
		123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168, 170, 173, 176, 179, 181, 185, 187,
		190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221, 222, 224, 225,
		227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
	};
	__u32 third = ((lh_bit_length(a) * 84) >> 8) - 1;
	__u32 leading = (a >> (third * 3)) & 63;
	__u64 x;

	/* for BPF's verifier: third guarantees 8 or more for 32 to 64 bits */
	leading = leading < 8 ? 0 : leading - 8;
	x = (((__u64)roots[leading] + 10) << third) >> 6;
	/* (2 x + a / x^2) / 3, with the kernel's slight errors in x^2 and in the division by 3 */
	x = 2 * x + a / (x * (x - 1));
	return (x * 341) >> 10;
}

/* The point of the curve at `now`, within an epoch. */
static inline __u32 lh_cubic_target(const struct lh_cubic *law, __u32 now)
{
	__s32 age = now - law->epoch_start;
	__u64 t = age > 0 ? age : 0, offset, delta;

	/* usecs_to_jiffies() rounds up */
	t += ((__u64)law->slow_start.delay_min_us * law->hz + 999999) / 1000000;
	t = (t << LH_CUBIC_SHIFT) / law->hz;
	offset = t < law->k ? law->k - t : t - law->k;
	if (offset > LH_CUBIC_MAX_OFFSET)
		offset = LH_CUBIC_MAX_OFFSET;
	delta = (LH_CUBIC_C * offset * offset * offset) >> (10 + 3 * LH_CUBIC_SHIFT);
	if (t < law->k)
		return delta < law->origin_point ? law->origin_point - delta : 0;
	return lh_saturating_add(law->origin_point, delta);
}

static inline void lh_cubic_begin_epoch(struct lh_cubic *law, __u32 cwnd, __u32 acked_segments, __u32 now)
{
	law->epoch_start = now;
	law->ack_cnt = acked_segments;
	law->tcp_cwnd = cwnd;
	if (law->last_max_cwnd <= cwnd) {
		law->k = 0;
		law->origin_point = cwnd;
	} else {
		law->k = lh_cubic_root(LH_CUBIC_CUBE_FACTOR * (law->last_max_cwnd - cwnd));
		law->origin_point = law->last_max_cwnd;
	}
}

/* bictcp_update(): recomputes cnt. */
static inline void lh_cubic_update(struct lh_cubic *law, __u32 cwnd, __u32 acked_segments, __u32 now)
{
	__u32 target, per_reno_segment;

	law->ack_cnt += acked_segments;
	if (law->last_cwnd == cwnd && (__s32)(now - law->last_time) <= (__s32)(law->hz / 32))
		return;

	if (!law->epoch_start || now != law->last_time) {
		law->last_cwnd = cwnd;
		law->last_time = now;
		if (!law->epoch_start)
			lh_cubic_begin_epoch(law, cwnd, acked_segments, now);
		target = lh_cubic_target(law, now);
		law->cnt = target > cwnd ? cwnd / (target - cwnd) : 100 * cwnd;
		if (!law->last_max_cwnd && law->cnt > 20)
			law->cnt = 20;
	}

	per_reno_segment = ((__u64)cwnd * LH_CUBIC_RENO_SCALE) >> 3;
	if (per_reno_segment && law->ack_cnt > per_reno_segment) {
		__u32 steps = (law->ack_cnt - 1) / per_reno_segment;

		law->ack_cnt -= steps * per_reno_segment;
		law->tcp_cwnd = lh_saturating_add(law->tcp_cwnd, steps);
	}
	if (law->tcp_cwnd > cwnd)
		law->cnt = lh_min(law->cnt, cwnd / (law->tcp_cwnd - cwnd));
	law->cnt = lh_max(law->cnt, 2);
}

/* cubictcp_acked(): an RTT sample. Samples of an epoch's first second still contain the queue that caused the loss. */
static inline void lh_cubic_sample(struct lh_cubic *law, const struct lh_acked *acked, __u32 now, __u32 cushion_us,
				   struct lh_window *window)
{
	if (law->epoch_start && (__s32)(now - law->epoch_start) < (__s32)law->hz)
		return;
	lh_slow_start_sample(&law->slow_start, acked->rtt_us);
	if (law->slow_start.kind == LH_SLOW_START_HYSTART && lh_in_slow_start(window))
		lh_hystart_look(&law->slow_start.hystart, acked, law->slow_start.delay_min_us, cushion_us, window);
}

/* cubictcp_cong_avoid(), if the window limits the sender */
static inline void lh_cubic_grow(struct lh_cubic *law, const struct lh_acked *acked, __u32 now,
				 struct lh_window *window)
{
	__u32 rest = acked->acked_segments;

	if (lh_in_slow_start(window)) {
		rest = lh_slow_start_grow(&law->slow_start, acked, window);
		if (!rest)
			return;
	}
	lh_cubic_update(law, window->cwnd_segments, rest, now);
	lh_grow_one_per(window, law->cnt, rest);
}

static inline void lh_cubic_acked(struct lh_cubic *law, const struct lh_acked *acked, struct lh_window *window)
{
	__u32 now = lh_cubic_jiffies(law, acked->now_us);

	if (lh_is_plus_plus(&law->slow_start, window))
		lh_hystart_plus_plus_look(&law->slow_start.plus_plus, acked, window);
	if (acked->rtt_us)
		lh_cubic_sample(law, acked, now, LH_HYSTART_CUSHION_US, window);
	/* if the epoch went on under a bound, the window would jump when the bound ends */
	if (acked->flags & LH_HELD)
		law->epoch_start = 0;
	if (lh_may_grow(acked))
		lh_cubic_grow(law, acked, now, window);
}

/* cubictcp_recalc_ssthresh() */
static inline void lh_cubic_lost(struct lh_cubic *law, const struct lh_lost *lost, struct lh_window *window)
{
	__u64 cwnd = window->cwnd_segments;

	(void)lost;
	law->epoch_start = 0;
	/* fast convergence: W_max = cwnd (1 + beta) / 2 */
	law->last_max_cwnd = cwnd < law->last_max_cwnd ? cwnd * (1024 + LH_CUBIC_BETA) / 2048 : cwnd;
	window->ssthresh_segments = lh_max(cwnd * LH_CUBIC_BETA / 1024, LH_MIN_SSTHRESH);
}

/* cubictcp_state(TCP_CA_Loss) */
static inline void lh_cubic_reset(struct lh_cubic *law, __u64 now_us, __u32 snd_nxt)
{
	lh_cubic_forget(law);
	lh_slow_start_again(&law->slow_start, now_us, snd_nxt);
}

static inline void lh_cubic_timed_out(struct lh_cubic *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_cubic_lost(law, lost, window);
	lh_cubic_reset(law, lost->now_us, lost->snd_nxt);
}

/* ECN counts as a loss: RFC 9438 section 4.6. */
static inline void lh_cubic_notified(struct lh_cubic *law, const struct lh_lost *notice, struct lh_window *window)
{
	lh_cubic_lost(law, notice, window);
}

/* CA_EVENT_TX_START, `idle` jiffies after the previous transmission: the curve stood still meanwhile. */
static inline void lh_cubic_resume(struct lh_cubic *law, __u32 now, __u32 idle)
{
	if (!law->epoch_start || (__s32)idle <= 0)
		return;
	law->epoch_start += idle;
	if (lh_after(law->epoch_start, now))
		law->epoch_start = now;
}

static inline void lh_cubic_sent(struct lh_cubic *law, const struct lh_sent *sent)
{
	__u32 now;

	if (sent->in_flight_before_segments || sent->idle_us > sent->now_us)
		return;
	now = lh_cubic_jiffies(law, sent->now_us);
	lh_cubic_resume(law, now, now - lh_cubic_jiffies(law, sent->now_us - sent->idle_us));
}

#endif /* LASTHOP_LAWS_CUBIC_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(cubic, CUBIC, Cubic, "CUBIC", Grey, Frame, Simulated,
	     "CUBIC as Linux has it (`tcp_cubic.c` 2.3).")
#endif
