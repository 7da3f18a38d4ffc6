/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hystart_plus_plus.h - HyStart++ (RFC 9406): slow start slows down when the RTT rises, before it ends.
 *
 *                  RTT of the round >= last round's + RttThresh
 *     slow start ------------------------------------------------> conservative slow start (CSS)
 *     +1 for each  <------------------------------------------------  +1 for each 4
 *     acknowledged    RTT of the round < baseline: there was no queue   |
 *         |                                                             | 5 rounds
 *         +------------------ a loss ------> congestion avoidance <-----+ ssthresh = cwnd
 *
 * RttThresh is an eighth of the last round's lowest RTT, at least 4 ms and at most 16 ms. Each decision needs 8 RTT
 * samples of its round. It applies to the first slow start only, while ssthresh is infinite (section 4.3).
 *
 * What it leaves out: ECN, for which section 4.2 leaves the choice to the implementation.
 */
#ifndef LASTHOP_LAWS_HYSTART_PLUS_PLUS_H
#define LASTHOP_LAWS_HYSTART_PLUS_PLUS_H

#include "law.h"

/* RFC 9406 section 4.3, with the recommended values */
#define LH_MIN_RTT_THRESH_US 4000U
#define LH_MAX_RTT_THRESH_US 16000U
#define LH_MIN_RTT_DIVISOR 8
#define LH_N_RTT_SAMPLE 8
#define LH_CSS_GROWTH_DIVISOR 4
#define LH_CSS_ROUNDS 5
#define LH_L_NOT_PACED 8 /* L, for a sender that does not pace; infinite for one that does */

#define LH_NO_RTT (~0U) /* "infinity" of the RFC */

struct lh_hystart_plus_plus {
	__u32 window_end; /* windowEnd: an ACK beyond it ends the round */
	__u32 last_round_min_rtt_us;
	__u32 current_round_min_rtt_us;
	__u32 css_baseline_min_rtt_us; /* LH_NO_RTT: not in CSS */
	__u16 rtt_sample_count;
	__u8 css_rounds; /* completed */
	__u8 css_acked; /* in CSS: acknowledged segments that do not make a whole one yet */
	__u8 started;
	__u8 reserved[3];
};

static inline void lh_hystart_plus_plus_begin(struct lh_hystart_plus_plus *state)
{
	state->window_end = 0;
	state->last_round_min_rtt_us = LH_NO_RTT;
	state->current_round_min_rtt_us = LH_NO_RTT;
	state->css_baseline_min_rtt_us = LH_NO_RTT;
	state->rtt_sample_count = 0;
	state->css_rounds = 0;
	state->css_acked = 0;
	state->started = 0;
	state->reserved[0] = 0;
	state->reserved[1] = 0;
	state->reserved[2] = 0;
}

static inline int lh_in_css(const struct lh_hystart_plus_plus *state)
{
	return state->css_baseline_min_rtt_us != LH_NO_RTT;
}

static inline void lh_hystart_plus_plus_judge(struct lh_hystart_plus_plus *state)
{
	__u32 threshold_us;

	if (state->rtt_sample_count < LH_N_RTT_SAMPLE)
		return;
	if (lh_in_css(state)) {
		if (state->current_round_min_rtt_us < state->css_baseline_min_rtt_us)
			state->css_baseline_min_rtt_us = LH_NO_RTT;
		return;
	}
	if (state->last_round_min_rtt_us == LH_NO_RTT)
		return;
	/* RttThresh = max(MIN_RTT_THRESH, min(lastRoundMinRTT / MIN_RTT_DIVISOR, MAX_RTT_THRESH)) */
	threshold_us = lh_min(state->last_round_min_rtt_us / LH_MIN_RTT_DIVISOR, LH_MAX_RTT_THRESH_US);
	threshold_us = lh_max(threshold_us, LH_MIN_RTT_THRESH_US);
	if (state->current_round_min_rtt_us >= lh_saturating_add(state->last_round_min_rtt_us, threshold_us)) {
		state->css_baseline_min_rtt_us = state->current_round_min_rtt_us;
		state->css_rounds = 0;
		state->css_acked = 0;
	}
}

/* For each ACK in the first slow start. */
static inline void lh_hystart_plus_plus_look(struct lh_hystart_plus_plus *state, const struct lh_acked *acked,
					     struct lh_window *window)
{
	if (!state->started) {
		state->started = 1;
		state->window_end = acked->snd_nxt;
	}
	if (acked->rtt_us) {
		state->current_round_min_rtt_us = lh_min(state->current_round_min_rtt_us, acked->rtt_us);
		if (state->rtt_sample_count < LH_N_RTT_SAMPLE)
			state->rtt_sample_count++;
		lh_hystart_plus_plus_judge(state);
	}
	if (lh_after(state->window_end, acked->snd_una))
		return;
	/* "when windowEnd is ACKed, the current round ends"; a round cut short by entering CSS counts */
	if (lh_in_css(state) && ++state->css_rounds >= LH_CSS_ROUNDS)
		window->ssthresh_segments = window->cwnd_segments;
	state->last_round_min_rtt_us = state->current_round_min_rtt_us;
	state->current_round_min_rtt_us = LH_NO_RTT;
	state->rtt_sample_count = 0;
	state->window_end = acked->snd_nxt;
}

/* The growth of the window by an ACK: min(N, L), divided by 4 in CSS. */
static inline void lh_hystart_plus_plus_grow(struct lh_hystart_plus_plus *state, const struct lh_acked *acked,
					     struct lh_window *window)
{
	__u32 step = acked->acked_segments;

	if (!(acked->flags & LH_PACED))
		step = lh_min(step, LH_L_NOT_PACED);
	if (lh_in_css(state)) {
		__u32 left = step % LH_CSS_GROWTH_DIVISOR + state->css_acked;

		step = step / LH_CSS_GROWTH_DIVISOR + left / LH_CSS_GROWTH_DIVISOR;
		state->css_acked = left % LH_CSS_GROWTH_DIVISOR;
	}
	lh_slow_start_by(window, step);
}

#endif /* LASTHOP_LAWS_HYSTART_PLUS_PLUS_H */
