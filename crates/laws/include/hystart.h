/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hystart.h - Linux's HyStart: ends slow start before a loss does.
 *
 * A round is one window of data. From a window of 16 segments on, slow start ends (ssthresh = cwnd) by one of two
 * signs:
 *
 *   ACK train    ACKs have come at most 2 ms apart since the round began, for longer than the lowest RTT (half of it if
 *                the sender does not pace), with a cushion for offloads
 *   delay        the lowest RTT of the round, after its first 8 samples, exceeds the connection's lowest by an eighth,
 *                but by at least 4 ms and at most 16 ms
 *
 * After that it is off until a timeout. Constants and rules: Linux 6.18, net/ipv4/tcp_cubic.c, after Ha and Rhee,
 * "Taming the Elephants" (2008). Left out: the rules of older kernels, without the cushion and with a sixteenth in
 * place of an eighth.
 */
#ifndef LASTHOP_LAWS_HYSTART_H
#define LASTHOP_LAWS_HYSTART_H

#include "law.h"

#define LH_HYSTART_LOW_WINDOW 16 /* hystart_low_window */
#define LH_HYSTART_ACK_DELTA_US 2000 /* hystart_ack_delta_us */
#define LH_HYSTART_MIN_SAMPLES 8 /* HYSTART_MIN_SAMPLES */
#define LH_HYSTART_DELAY_MIN_US 4000U /* HYSTART_DELAY_MIN */
#define LH_HYSTART_DELAY_MAX_US 16000U /* HYSTART_DELAY_MAX */

/*
 * hystart_ack_delay(): the time of four of the largest offloaded segments at the pacing rate, at most 1 ms. It is 1 ms
 * at all pacing rates below 2.1 Gb/s, and always here.
 */
#define LH_HYSTART_CUSHION_US 1000

struct lh_hystart {
	__u32 round_start_us;
	__u32 end_seq; /* an ACK beyond it ends the round */
	__u32 last_ack_us; /* the last ACK of the train */
	__u32 curr_rtt_us; /* lowest of the round */
	__u16 sample_count; /* RTT samples of the round, up to 8 */
	__u16 found; /* slow start has been ended */
};

static inline void lh_hystart_begin_round(struct lh_hystart *hystart, __u64 now_us, __u32 snd_nxt)
{
	hystart->round_start_us = now_us;
	hystart->last_ack_us = now_us;
	hystart->end_seq = snd_nxt;
	hystart->curr_rtt_us = ~0U;
	hystart->sample_count = 0;
}

/* At the beginning, and after a timeout. */
static inline void lh_hystart_begin(struct lh_hystart *hystart, __u64 now_us, __u32 snd_nxt)
{
	hystart->found = 0;
	lh_hystart_begin_round(hystart, now_us, snd_nxt);
}

/* Looks for the end of slow start: for each ACK with an RTT sample in slow start. delay_min_us includes this sample. */
static inline void lh_hystart_look(struct lh_hystart *hystart, const struct lh_acked *acked, __u32 delay_min_us,
				   __u32 cushion_us, struct lh_window *window)
{
	__u32 now_us = acked->now_us, threshold_us;

	if (hystart->found)
		return;

	if (lh_after(acked->snd_una, hystart->end_seq))
		lh_hystart_begin_round(hystart, acked->now_us, acked->snd_nxt);
	if (window->cwnd_segments < LH_HYSTART_LOW_WINDOW)
		return;

	if ((__s32)(now_us - hystart->last_ack_us) <= LH_HYSTART_ACK_DELTA_US) {
		hystart->last_ack_us = now_us;
		threshold_us = delay_min_us + cushion_us;
		/* pacing spreads the ACKs of slow start over half a round trip */
		if (!(acked->flags & LH_PACED))
			threshold_us /= 2;
		if (now_us - hystart->round_start_us > threshold_us)
			hystart->found = 1;
	}

	hystart->curr_rtt_us = lh_min(hystart->curr_rtt_us, acked->rtt_us);
	if (hystart->sample_count < LH_HYSTART_MIN_SAMPLES) {
		hystart->sample_count++;
	} else {
		threshold_us = lh_max(delay_min_us / 8, LH_HYSTART_DELAY_MIN_US);
		threshold_us = lh_min(threshold_us, LH_HYSTART_DELAY_MAX_US);
		if (hystart->curr_rtt_us > delay_min_us + threshold_us)
			hystart->found = 1;
	}

	if (hystart->found)
		window->ssthresh_segments = window->cwnd_segments;
}

#endif /* LASTHOP_LAWS_HYSTART_H */
