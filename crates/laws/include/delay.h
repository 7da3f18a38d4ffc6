/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * delay.h - the round-trip times by which HD, CHD and CDG decide: last, lowest and highest of the connection, lowest
 * and highest of each round trip. After FreeBSD's h_ertt, with its clock as a parameter.
 *
 *   sample    rtt by a clock with ticks of `tick_us`: the ticks between sending and now, plus 1; with a tick of 0 or
 *             1 us: unchanged
 *   round     from an ACK to the ACK of the first segment sent after it, and until there is a sample
 *   filter    a counter from 0 to 5: + 1 on an ACK of several segments, - 1 on an ACK of one. If it is not 0 then, ACKs
 *             are delayed, and an ACK of one segment waited for its timer: no sample. An ACK that only reports segments
 *             beyond a hole (SACK) is sent at once: always a sample, and the counter ignores it
 *
 * The connection's extremes never expire, as in h_ertt: after a route change to a longer path, every delay looks like
 * queueing until the connection ends.
 */
#ifndef LASTHOP_LAWS_DELAY_H
#define LASTHOP_LAWS_DELAY_H

#include "law.h"

#define LH_DELAYED_ACKS_MAX 5

#define LH_RTT_TICK_PARAMETER(P) \
	P(Milliseconds, rtt_tick, 0, 100, 1, \
	  "Tick of the clock that round trips are measured with (FreeBSD with hz = 1000: 1); 0 is exact.")

struct lh_delay {
	__u32 last_us; /* the latest sample; 0 means none yet, here and below */
	__u32 min_us; /* of the connection */
	__u32 max_us;
	__u32 round_min_us; /* of the current round */
	__u32 round_max_us;
	__u32 round_end; /* the data sent when it began */
	__u32 delayed_acks; /* 0 to LH_DELAYED_ACKS_MAX */
};

/* A completed round. */
struct lh_round {
	__u32 min_us;
	__u32 max_us;
};

static inline void lh_delay_init(struct lh_delay *delay, const struct lh_start *start)
{
	*delay = (struct lh_delay){ .round_end = start->snd_nxt };
}

/* now / tick - (now - rtt) / tick + 1 ticks, from the progress of the current tick, without the time of sending. */
static inline __u32 lh_ticked(__u32 rtt_us, __u64 now_us, __u32 tick_us)
{
	__u32 elapsed_us, ticks = 1;
	__u64 ticked;

	if (tick_us <= 1)
		return rtt_us;
	elapsed_us = now_us % tick_us;
	if (rtt_us > elapsed_us)
		ticks += (rtt_us - elapsed_us - 1) / tick_us + 1;
	ticked = (__u64)ticks * tick_us;
	return ticked > ~0U ? ~0U : ticked;
}

/* Whether the RTT of this ACK is a sample of the path, without the receiver's timer. */
static inline int lh_delay_filter(struct lh_delay *delay, const struct lh_acked *acked)
{
	if (!(acked->flags & LH_ADVANCED))
		return 1;
	if (acked->acked_segments > 1) {
		delay->delayed_acks = lh_min(delay->delayed_acks + 1, LH_DELAYED_ACKS_MAX);
		return 1;
	}
	if (delay->delayed_acks)
		delay->delayed_acks--;
	return !delay->delayed_acks;
}

/* The lower of two RTTs; a_us may be 0, which means none. */
static inline __u32 lh_lower(__u32 a_us, __u32 b_us)
{
	return a_us ? lh_min(a_us, b_us) : b_us;
}

/* Ends the round with this ACK, and begins the next. */
static inline void lh_delay_end_round(struct lh_delay *delay, const struct lh_acked *acked, struct lh_round *round)
{
	round->min_us = delay->round_min_us;
	round->max_us = delay->round_max_us;
	delay->round_min_us = 0;
	delay->round_max_us = 0;
	delay->round_end = acked->snd_nxt;
}

/* Takes an ACK. Returns 1 if it ended a round, which is then in `round`, with the sample of this ACK. */
static inline int lh_delay_look(struct lh_delay *delay, const struct lh_acked *acked, __u32 tick_us,
				struct lh_round *round)
{
	__u32 rtt_us;

	if (acked->acked_segments && lh_delay_filter(delay, acked) && acked->rtt_us) {
		rtt_us = lh_ticked(acked->rtt_us, acked->now_us, tick_us);
		delay->last_us = rtt_us;
		delay->min_us = lh_lower(delay->min_us, rtt_us);
		delay->max_us = lh_max(delay->max_us, rtt_us);
		delay->round_min_us = lh_lower(delay->round_min_us, rtt_us);
		delay->round_max_us = lh_max(delay->round_max_us, rtt_us);
	}
	if (!lh_after(acked->snd_una, delay->round_end))
		return 0;
	if (!delay->round_max_us) {
		delay->round_end = acked->snd_una - 1; /* ends with the first sample, even 2^31 bytes later */
		return 0;
	}
	lh_delay_end_round(delay, acked, round);
	return 1;
}

#endif /* LASTHOP_LAWS_DELAY_H */
