/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ledbat_pp.h - LEDBAT++: gives way to others, by keeping its own queue at 60 ms.
 *
 * draft-irtf-iccrg-ledbat-plus-plus-01, which changes RFC 6817. The delay is the lowest of the latest four round trips less
 * the lowest of ten minutes; T is 60 ms; G = 1 / min(16, ceil(2 T / base)).
 *
 *   slow start          G segments for each acknowledged, until the first delay above 3/4 T
 *   delay below T       G segments a round trip
 *   delay above it      G - W (delay / T - 1) segments a round trip, and not less than -W / 2
 *   slowdown            two round trips after slow start, and then each nine times as long as the last one took: W = 2 for two
 *                       round trips, and slow start back to what it was, so that the lowest round trip is seen
 *   loss                ssthresh = max(W / 2, 2); in a slowdown, half of the window before it comes back
 *   timeout             the same, and slow start back to it
 *
 * Leaves out one-way delays: no sender here has them, and the draft takes round trips too.
 */
#ifndef LASTHOP_LAWS_LEDBAT_PP_H
#define LASTHOP_LAWS_LEDBAT_PP_H

#include "law.h"
#include "reno.h"

#define LH_LEDBAT_PP_HAS_TIMED_OUT 1
#define LH_LEDBAT_PP_TARGET_US 60000U
#define LH_LEDBAT_PP_MOST_SHARE 16U /* 1 / G at most */
#define LH_LEDBAT_PP_SAMPLES 4
#define LH_LEDBAT_PP_MINUTES 10
#define LH_LEDBAT_PP_MINUTE_US 60000000ULL
#define LH_LEDBAT_PP_REST_WINDOW 2U
#define LH_LEDBAT_PP_REST_ROUNDS 2U
#define LH_LEDBAT_PP_BETWEEN 9U
/* Parts of a segment in `fraction`. */
#define LH_LEDBAT_PP_ONE 65536

enum lh_ledbat_pp_phase {
	LH_LEDBAT_PP_BEGINS, /* the first slow start */
	LH_LEDBAT_PP_STEADY,
	LH_LEDBAT_PP_RESTS, /* a slowdown: the window is small */
	LH_LEDBAT_PP_RETURNS, /* slow start back */
};

struct lh_ledbat_pp {
	__u64 minute_us; /* when the current minute began */
	__u64 rest_at_us; /* the next slowdown; 0: none is due */
	__u64 rest_began_us;
	__u32 lowest_us[LH_LEDBAT_PP_MINUTES]; /* of each minute, the current one first; 0: none */
	__u32 recent_us[LH_LEDBAT_PP_SAMPLES]; /* the latest first; 0: none */
	__s32 fraction; /* of a segment, between two steps of the window */
	__u32 round_end; /* the data sent when a round of the slowdown began */
	__u32 rounds; /* of the slowdown, over */
	__u32 return_to; /* the window before the slowdown */
	__u32 phase; /* enum lh_ledbat_pp_phase */
};

static inline void lh_ledbat_pp_init(struct lh_ledbat_pp *law, const struct lh_start *start)
{
	*law = (struct lh_ledbat_pp){ .minute_us = start->now_us };
}

static inline void lh_ledbat_pp_sample(struct lh_ledbat_pp *law, __u64 now_us, __u32 rtt_us)
{
	int at;

	for (at = LH_LEDBAT_PP_SAMPLES - 1; at > 0; at--)
		law->recent_us[at] = law->recent_us[at - 1];
	law->recent_us[0] = rtt_us;
	if (now_us - law->minute_us > LH_LEDBAT_PP_MINUTE_US) {
		for (at = LH_LEDBAT_PP_MINUTES - 1; at > 0; at--)
			law->lowest_us[at] = law->lowest_us[at - 1];
		law->lowest_us[0] = 0;
		law->minute_us = now_us;
	}
	if (!law->lowest_us[0] || rtt_us < law->lowest_us[0])
		law->lowest_us[0] = rtt_us;
}

/* The lowest that is there. */
static inline __u32 lh_ledbat_pp_base(const struct lh_ledbat_pp *law)
{
	__u32 lowest_us = ~0U;
	int at;

	for (at = 0; at < LH_LEDBAT_PP_MINUTES; at++)
		if (law->lowest_us[at])
			lowest_us = lh_min(lowest_us, law->lowest_us[at]);
	return lowest_us;
}

static inline __u32 lh_ledbat_pp_delay(const struct lh_ledbat_pp *law, __u32 base_us)
{
	__u32 lowest_us = ~0U;
	int at;

	for (at = 0; at < LH_LEDBAT_PP_SAMPLES; at++)
		if (law->recent_us[at])
			lowest_us = lh_min(lowest_us, law->recent_us[at]);
	return lowest_us - base_us;
}

/* Moves the window by so many parts of a segment; never below 2 segments. */
static inline void lh_ledbat_pp_move(struct lh_ledbat_pp *law, __s64 parts, struct lh_window *window)
{
	__s64 all = (__s64)window->cwnd_segments * LH_LEDBAT_PP_ONE + law->fraction + parts;

	if (all < 2 * LH_LEDBAT_PP_ONE)
		all = 2 * LH_LEDBAT_PP_ONE;
	if (all > (__s64)LH_MAX_WINDOW * LH_LEDBAT_PP_ONE)
		all = (__s64)LH_MAX_WINDOW * LH_LEDBAT_PP_ONE;
	window->cwnd_segments = (__u32)((__u64)all / LH_LEDBAT_PP_ONE);
	law->fraction = (__s32)((__u64)all % LH_LEDBAT_PP_ONE);
}

static inline void lh_ledbat_pp_rest(struct lh_ledbat_pp *law, const struct lh_acked *acked, struct lh_window *window)
{
	law->phase = LH_LEDBAT_PP_RESTS;
	law->rest_began_us = acked->now_us;
	law->rest_at_us = 0;
	law->return_to = window->cwnd_segments;
	law->round_end = acked->snd_nxt;
	law->rounds = 0;
	law->fraction = 0;
	window->ssthresh_segments = lh_max(window->cwnd_segments, LH_MIN_SSTHRESH);
	window->cwnd_segments = LH_LEDBAT_PP_REST_WINDOW;
}

static inline void lh_ledbat_pp_acked(struct lh_ledbat_pp *law, const struct lh_acked *acked, struct lh_window *window)
{
	__u32 base_us, delay_us, share, cwnd = window->cwnd_segments;
	__s64 parts;

	if (acked->rtt_us)
		lh_ledbat_pp_sample(law, acked->now_us, acked->rtt_us);
	base_us = lh_ledbat_pp_base(law);
	if (base_us == ~0U || !acked->acked_segments || !(acked->flags & LH_MAY_GROW))
		return;
	delay_us = lh_ledbat_pp_delay(law, base_us);
	share = lh_min(LH_LEDBAT_PP_MOST_SHARE, (2 * LH_LEDBAT_PP_TARGET_US + base_us - 1) / lh_max(base_us, 1));
	share = lh_max(share, 1);
	if (law->phase == LH_LEDBAT_PP_RESTS) {
		window->cwnd_segments = LH_LEDBAT_PP_REST_WINDOW;
		if (!lh_after(acked->snd_una, law->round_end))
			return;
		law->round_end = acked->snd_nxt;
		if (++law->rounds < LH_LEDBAT_PP_REST_ROUNDS)
			return;
		law->phase = LH_LEDBAT_PP_RETURNS;
		return;
	}
	if (law->rest_at_us && acked->now_us >= law->rest_at_us) {
		lh_ledbat_pp_rest(law, acked, window);
		return;
	}
	if (law->phase == LH_LEDBAT_PP_BEGINS && (delay_us > LH_LEDBAT_PP_TARGET_US / 4 * 3 || !lh_in_slow_start(window))) {
		law->phase = LH_LEDBAT_PP_STEADY;
		law->rest_at_us = acked->now_us + 2 * (__u64)lh_max(acked->srtt_us, base_us);
		window->ssthresh_segments = lh_max(lh_min(window->ssthresh_segments, cwnd), LH_MIN_SSTHRESH);
	}
	if (law->phase == LH_LEDBAT_PP_RETURNS && cwnd >= law->return_to) {
		law->phase = LH_LEDBAT_PP_STEADY;
		law->rest_at_us = acked->now_us + LH_LEDBAT_PP_BETWEEN * (acked->now_us - law->rest_began_us);
	}
	if (law->phase != LH_LEDBAT_PP_STEADY) {
		if (lh_may_grow(acked))
			lh_ledbat_pp_move(law, (__s64)((__u64)acked->acked_segments * LH_LEDBAT_PP_ONE /
						      (law->phase == LH_LEDBAT_PP_BEGINS ? share : 1)),
					 window);
		if (law->phase == LH_LEDBAT_PP_RETURNS)
			window->cwnd_segments = lh_min(window->cwnd_segments, law->return_to);
		return;
	}
	/* of a round trip, in parts of a segment */
	parts = LH_LEDBAT_PP_ONE / share;
	if (delay_us > LH_LEDBAT_PP_TARGET_US) {
		parts -= (__s64)((__u64)cwnd * LH_LEDBAT_PP_ONE * (delay_us - LH_LEDBAT_PP_TARGET_US) /
				 LH_LEDBAT_PP_TARGET_US);
		if (parts < -(__s64)cwnd * (LH_LEDBAT_PP_ONE / 2))
			parts = -(__s64)cwnd * (LH_LEDBAT_PP_ONE / 2);
	}
	if (parts < 0) /* the share of this ACK; BPF divides without a sign */
		parts = -(__s64)((__u64)-parts * acked->acked_segments / lh_max(cwnd, 1));
	else if (lh_may_grow(acked))
		parts = (__s64)((__u64)parts * acked->acked_segments / lh_max(cwnd, 1));
	else
		parts = 0;
	lh_ledbat_pp_move(law, parts, window);
	window->ssthresh_segments = lh_max(lh_min(window->ssthresh_segments, window->cwnd_segments), LH_MIN_SSTHRESH);
}

static inline void lh_ledbat_pp_lost(struct lh_ledbat_pp *law, const struct lh_lost *lost, struct lh_window *window)
{
	if (law->phase == LH_LEDBAT_PP_RESTS) { /* the two segments stay, and half of the window before them comes back */
		law->return_to = lh_max(law->return_to / 2, LH_MIN_SSTHRESH);
		lh_reno_halve(lost, window);
		return;
	}
	if (law->phase == LH_LEDBAT_PP_BEGINS)
		law->rest_at_us = lost->now_us + 2 * (__u64)lost->srtt_us;
	law->phase = LH_LEDBAT_PP_STEADY;
	if (!law->rest_at_us)
		law->rest_at_us = lost->now_us + LH_LEDBAT_PP_BETWEEN * (lost->now_us - law->rest_began_us);
	law->fraction = 0;
	lh_reno_halve(lost, window);
	law->return_to = window->ssthresh_segments;
}

/* Slow start back to half of the window, RFC 5681 section 3.1, as after a slowdown. */
static inline void lh_ledbat_pp_timed_out(struct lh_ledbat_pp *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_reno_halve(lost, window);
	law->return_to = law->phase == LH_LEDBAT_PP_RESTS ? lh_max(law->return_to / 2, LH_MIN_SSTHRESH) :
							     window->ssthresh_segments;
	law->phase = LH_LEDBAT_PP_RETURNS;
	law->rest_began_us = lost->now_us;
	law->rest_at_us = 0;
	law->fraction = 0;
}

#endif /* LASTHOP_LAWS_LEDBAT_PP_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(ledbat_pp, LEDBAT_PP, LedbatPlusPlus, "LEDBAT++", Free, Ring, Everywhere,
	     "LEDBAT++: gives way to others, with a queue of 60 ms of its own at most.")
#endif
