/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bbr3.h - BBR, version 3: as bbr.h, and loses little. It remembers what flight lost too much, and yields while others do.
 *
 * N. Cardwell, I. Swett and J. Beshay (eds.), "BBR Congestion Control", draft-ietf-ccwg-bbr (August 2026), whose names stand
 * at the functions.
 *
 *   bandwidth      the highest delivery rate of this cycle and the one before (max_bw), at most the short-term one
 *   round trip     the lowest of the last 10 s
 *   startup        2.77 times the bandwidth, until three rounds have brought less than a quarter more, or a round of
 *                  recovery has lost 2 % in six ACKs
 *   drain          half of it, until no more than the product is in flight, for three rounds at most
 *   down           0.9, until no more than the product and 0.85 of the long-term flight is in flight
 *   cruise         1, until 2 to 3 s, or as many rounds as the product has segments (63 at most), have passed
 *   refill         1 for a round, without the short-term limits
 *   up             1.25, until the rate grows no more, or 2 % are lost, or, after a probe that lost so much, the
 *                  long-term flight is reached
 *   probe_rtt      where 5 s brought no lower round trip: half the product in flight for 200 ms and a round
 *   long term      the flight that lost 2 %, but 0.7 of the target at least; raised in up by 1, 2, 4, ... segments a round
 *   short term     rate and flight of the latest round, but 0.7 of those before at least, after each round with a loss
 *                  outside startup, refill and up
 *
 * Differs from the draft: what was in flight and lost when a segment left is remembered at every quarter of a window, not
 * for each segment; so is a loss's own flight. The window limits where it is filled but for a segment. Receivers without
 * SACK are not known as such. The pace's bursts are bbr.h's, at least two segments.
 */
#ifndef LASTHOP_LAWS_BBR3_H
#define LASTHOP_LAWS_BBR3_H

#include "bbr_rate.h"
#include "random.h"

#define LH_BBR3_HAS_SAMPLED 1
#define LH_BBR3_HAS_RESUMED 1
#define LH_BBR3_HAS_TIMED_OUT 1
#define LH_BBR3_HAS_UNDONE 1
#define LH_BBR3_HAS_NOTIFIED 1

#define LH_BBR3_STARTUP_GAIN 710U /* 4 ln 2: StartupPacingGain */
#define LH_BBR3_DRAIN_GAIN (LH_BBR_ONE / 2)
#define LH_BBR3_DOWN_GAIN (LH_BBR_ONE * 9 / 10)
#define LH_BBR3_UP_GAIN (LH_BBR_ONE * 5 / 4)
#define LH_BBR3_CWND_GAIN (2 * LH_BBR_ONE)
#define LH_BBR3_UP_CWND_GAIN (LH_BBR_ONE * 9 / 4)
#define LH_BBR3_PROBE_RTT_GAIN (LH_BBR_ONE / 2)
#define LH_BBR3_FULL_ROUNDS 3U
#define LH_BBR3_FULL_LOSSES 6U /* BBRStartupFullLossCnt */
#define LH_BBR3_DRAIN_ROUNDS 3U
#define LH_BBR3_TOLERATES 50U /* 1 / LossThresh */
#define LH_BBR3_MIN_RTT_WINDOW_US 10000000ULL
#define LH_BBR3_PROBE_RTT_EVERY_US 5000000ULL
#define LH_BBR3_PROBE_RTT_US 200000ULL
#define LH_BBR3_PROBE_WAIT_US 2000000U /* and up to a second more */
#define LH_BBR3_RENO_ROUNDS 63U
#define LH_BBR3_MOST_SLOPE 30U
#define LH_BBR3_EXTRA_ROUNDS 5U /* half of ExtraAckedFilterLen: the most of two such windows counts */
#define LH_BBR3_NO_LIMIT 0xffffffffU
#define LH_BBR3_MEMORY 8U /* a power of two */

enum lh_bbr3_mode {
	LH_BBR3_STARTUP,
	LH_BBR3_DRAIN,
	LH_BBR3_DOWN,
	LH_BBR3_CRUISE,
	LH_BBR3_REFILL,
	LH_BBR3_UP,
	LH_BBR3_PROBE_RTT,
};

/* What was delivered, lost and in flight when a segment left. */
struct lh_bbr3_then {
	__u32 delivered;
	__u16 lost; /* modulo 2^16 */
	__u16 in_flight; /* at most 65535 */
};

/* Limits are LH_BBR3_NO_LIMIT where there is none. */
struct lh_bbr3 {
	__u64 cycle_began_us;
	__u64 min_rtt_at_us;
	__u64 probe_rtt_min_at_us;
	__u64 probe_rtt_ends_us; /* 0: the flight is not small yet */
	__u64 extra_began_us;
	__u64 random;
	struct lh_bbr3_then then[LH_BBR3_MEMORY];
	__u32 max_bandwidth[2]; /* of the cycle before, of this one */
	__u32 bandwidth; /* what is paced at */
	__u32 bandwidth_latest;
	__u32 bandwidth_shortterm;
	__u32 full_bandwidth;
	__u32 inflight_latest;
	__u32 inflight_shortterm;
	__u32 inflight_longterm;
	__u32 undo_bandwidth_shortterm;
	__u32 undo_inflight_shortterm;
	__u32 undo_inflight_longterm;
	__u32 min_rtt_us; /* 0: none yet */
	__u32 probe_rtt_min_us; /* 0: none yet */
	__u32 prior_cwnd; /* before a recovery or probe_rtt */
	__u32 rounds;
	__u32 round_ends; /* delivered segments at which the current round trip ends */
	__u32 loss_round_ends; /* likewise, of rounds that begin with a loss */
	__u32 drain_began; /* rounds */
	__u32 rounds_since_probe;
	__u32 probe_wait_us;
	__u32 probe_acked; /* since inflight_longterm was raised */
	__u32 acked_per_raise; /* of inflight_longterm by a segment */
	__u32 extra_delivered;
	__u32 extra_acked[2]; /* of the windows of rounds before and now */
	__u32 lost; /* that were seen */
	__u8 mode;
	__u8 undo_mode; /* STARTUP or UP, where a loss has ended it; else PROBE_RTT */
	__u8 state; /* enum lh_state at the previous ACK */
	__u8 newest; /* of `then` */
	__u8 full_rounds;
	__u8 extra_rounds;
	__u8 slope; /* rounds that inflight_longterm has been raised */
	__u8 losses; /* ACKs of this round that told of one */
	/* 0 or 1: */
	__u8 full; /* the bandwidth has been reached */
	__u8 full_now; /* since it was last looked for */
	__u8 round_began; /* with this ACK */
	__u8 loss_round_began;
	__u8 loss_in_round;
	__u8 probes; /* segments of a probe are acknowledged */
	__u8 stopping; /* the last round of these: ack_phase is ACKS_PROBE_STOPPING; its other values change nothing */
	__u8 too_high; /* the last probe lost too much */
	__u8 precautionary; /* the last probe ended early, for the one before had lost too much */
	__u8 probe_rtt_expired;
	__u8 probe_rtt_round; /* over */
	__u8 idle_restart;
	__u8 undone; /* since the last ACK */
	__u8 begun; /* an ACK was seen */
	__u8 has_rtt; /* the pace is of a measured round trip */
	__u8 reserved;
};

/* OnInit() */
static inline void lh_bbr3_init(struct lh_bbr3 *law, const struct lh_start *start)
{
	*law = (struct lh_bbr3){
		.min_rtt_at_us = start->now_us,
		.probe_rtt_min_at_us = start->now_us,
		.extra_began_us = start->now_us,
		.random = start->seed,
		.bandwidth_shortterm = LH_BBR3_NO_LIMIT,
		.inflight_shortterm = LH_BBR3_NO_LIMIT,
		.inflight_longterm = LH_BBR3_NO_LIMIT,
		.acked_per_raise = LH_BBR3_NO_LIMIT,
		.undo_mode = LH_BBR3_PROBE_RTT,
	};
}

/* IsInAProbeBWState() */
static inline int lh_bbr3_in_cycle(const struct lh_bbr3 *law)
{
	return law->mode >= LH_BBR3_DOWN && law->mode <= LH_BBR3_UP;
}

static inline __u32 lh_bbr3_pacing_gain(const struct lh_bbr3 *law)
{
	switch (law->mode) {
	case LH_BBR3_STARTUP:
		return LH_BBR3_STARTUP_GAIN;
	case LH_BBR3_DRAIN:
		return LH_BBR3_DRAIN_GAIN;
	case LH_BBR3_DOWN:
		return LH_BBR3_DOWN_GAIN;
	case LH_BBR3_UP:
		return LH_BBR3_UP_GAIN;
	}
	return LH_BBR_ONE;
}

static inline __u32 lh_bbr3_max_bandwidth(const struct lh_bbr3 *law)
{
	return lh_max(law->max_bandwidth[0], law->max_bandwidth[1]);
}

/* BDPMultiple() */
static inline __u32 lh_bbr3_product(const struct lh_bbr3 *law, __u32 gain)
{
	return lh_bbr_product(law->bandwidth, law->min_rtt_us, gain);
}

/* QuantizationBudget() */
static inline __u32 lh_bbr3_with_budget(const struct lh_bbr3 *law, __u32 flight, const struct lh_rate_sample *sample,
					const struct lh_steering *steering)
{
	flight = lh_max(flight, 3 * lh_max(lh_bbr_burst(sample, steering), 2));
	return law->mode == LH_BBR3_UP ? flight + 2 : flight;
}

/* Inflight(1.0) of a bandwidth */
static inline __u32 lh_bbr3_flight(const struct lh_bbr3 *law, __u32 bandwidth, const struct lh_rate_sample *sample,
				   const struct lh_steering *steering)
{
	return lh_bbr3_with_budget(law, lh_bbr_product(bandwidth, law->min_rtt_us, LH_BBR_ONE), sample, steering);
}

/* TargetInflight() */
static inline __u32 lh_bbr3_target(const struct lh_bbr3 *law, const struct lh_steering *steering)
{
	return lh_min(lh_bbr3_product(law, LH_BBR_ONE), steering->cwnd_segments);
}

/* InflightWithHeadroom() */
static inline __u32 lh_bbr3_with_headroom(const struct lh_bbr3 *law)
{
	__u32 most = law->inflight_longterm, headroom;

	if (most == LH_BBR3_NO_LIMIT)
		return most;
	headroom = lh_max((__u64)most * 15 / 100, 1);
	return lh_max(most > headroom ? most - headroom : 0, LH_BBR_LEAST_WINDOW);
}

/* ProbeRTTCwnd() */
static inline __u32 lh_bbr3_probe_rtt_window(const struct lh_bbr3 *law)
{
	return lh_max(lh_bbr3_product(law, LH_BBR3_PROBE_RTT_GAIN), LH_BBR_LEAST_WINDOW);
}

/* StartRound() */
static inline void lh_bbr3_begin_round(struct lh_bbr3 *law, const struct lh_rate_sample *sample)
{
	law->round_ends = sample->all_delivered_segments;
}

/* ResetFullBW() */
static inline void lh_bbr3_look_for_more(struct lh_bbr3 *law, __u32 bandwidth)
{
	law->full_bandwidth = bandwidth;
	law->full_rounds = 0;
	law->full_now = 0;
}

/* ResetShortTermModel() */
static inline void lh_bbr3_forget_short_term(struct lh_bbr3 *law)
{
	law->bandwidth_shortterm = LH_BBR3_NO_LIMIT;
	law->inflight_shortterm = LH_BBR3_NO_LIMIT;
}

/* StartProbeBW_DOWN() */
static inline void lh_bbr3_go_down(struct lh_bbr3 *law, const struct lh_rate_sample *sample)
{
	law->loss_in_round = 0;
	law->bandwidth_latest = 0;
	law->inflight_latest = 0;
	law->acked_per_raise = LH_BBR3_NO_LIMIT;
	law->rounds_since_probe = lh_random(&law->random) & 1;
	law->probe_wait_us = LH_BBR3_PROBE_WAIT_US + ((__u64)lh_random(&law->random) * 1000000 >> 32);
	law->cycle_began_us = sample->now_us;
	law->stopping = 1;
	lh_bbr3_begin_round(law, sample);
	law->mode = LH_BBR3_DOWN;
}

/* StartProbeBW_REFILL() */
static inline void lh_bbr3_refill(struct lh_bbr3 *law, const struct lh_rate_sample *sample)
{
	lh_bbr3_forget_short_term(law);
	law->slope = 0;
	law->probe_acked = 0;
	law->precautionary = 0;
	law->stopping = 0;
	lh_bbr3_begin_round(law, sample);
	law->mode = LH_BBR3_REFILL;
}

/* RaiseInflightLongtermSlope() */
static inline void lh_bbr3_raise_slope(struct lh_bbr3 *law, __u32 cwnd_segments)
{
	law->acked_per_raise = lh_max(cwnd_segments >> (law->slope & 31), 1);
	law->slope = lh_min(law->slope + 1, LH_BBR3_MOST_SLOPE);
}

/* StartProbeBW_UP() */
static inline void lh_bbr3_go_up(struct lh_bbr3 *law, __u32 rate, const struct lh_rate_sample *sample,
				 const struct lh_steering *steering)
{
	lh_bbr3_begin_round(law, sample);
	lh_bbr3_look_for_more(law, rate);
	law->mode = LH_BBR3_UP;
	lh_bbr3_raise_slope(law, steering->cwnd_segments);
}

/* SaveCwnd() */
static inline void lh_bbr3_save_window(struct lh_bbr3 *law, __u32 cwnd_segments)
{
	if (law->state < LH_STATE_RECOVERY && law->mode != LH_BBR3_PROBE_RTT)
		law->prior_cwnd = cwnd_segments;
	else
		law->prior_cwnd = lh_max(law->prior_cwnd, cwnd_segments);
}

/* SaveStateUponLoss() */
static inline void lh_bbr3_save(struct lh_bbr3 *law, __u32 cwnd_segments)
{
	lh_bbr3_save_window(law, cwnd_segments);
	law->undo_mode = LH_BBR3_PROBE_RTT;
	law->undo_bandwidth_shortterm = law->bandwidth_shortterm;
	law->undo_inflight_shortterm = law->inflight_shortterm;
	law->undo_inflight_longterm = law->inflight_longterm;
}

/* What was in flight and lost when the segments leave that leave before this ACK. */
static inline void lh_bbr3_remember(struct lh_bbr3 *law, const struct lh_rate_sample *sample, __u32 cwnd_segments)
{
	struct lh_bbr3_then now = {
		.delivered = sample->all_delivered_segments - sample->acked_segments,
		.lost = (__u16)(sample->all_lost_segments - sample->lost_segments),
		.in_flight = (__u16)lh_min(sample->prior_in_flight_segments, 65535),
	};
	__u32 entry;

	if (!law->begun) {
		for (entry = 0; entry < LH_BBR3_MEMORY; entry++)
			law->then[entry] = now;
		return;
	}
	if (now.delivered - law->then[law->newest % LH_BBR3_MEMORY].delivered < lh_max(cwnd_segments / 4, 1))
		return;
	law->newest = (law->newest + 1) % LH_BBR3_MEMORY;
	law->then[law->newest % LH_BBR3_MEMORY] = now;
}

/* Of when the newest segment left that this ACK delivers: RS.tx_in_flight and P.lost */
static inline struct lh_bbr3_then lh_bbr3_when_sent(const struct lh_bbr3 *law, const struct lh_rate_sample *sample)
{
	__u32 back, entry = law->newest;

	for (back = 1; back < LH_BBR3_MEMORY; back++) {
		if ((__s32)(sample->prior_delivered_segments - law->then[entry % LH_BBR3_MEMORY].delivered) >= 0)
			break;
		entry += LH_BBR3_MEMORY - 1;
	}
	return law->then[entry % LH_BBR3_MEMORY];
}

/* RS.lost */
static inline __u32 lh_bbr3_lost_since(const struct lh_bbr3_then *then, const struct lh_rate_sample *sample)
{
	return (__u16)(sample->all_lost_segments - then->lost);
}

/* IsInflightTooHigh() */
static inline int lh_bbr3_is_too_high(const struct lh_bbr3_then *then, const struct lh_rate_sample *sample)
{
	return lh_bbr3_lost_since(then, sample) * LH_BBR3_TOLERATES > then->in_flight;
}

/* HandleInflightTooHigh() */
static inline void lh_bbr3_lower(struct lh_bbr3 *law, __u32 in_flight, const struct lh_rate_sample *sample,
				 const struct lh_steering *steering)
{
	law->too_high = 1;
	law->probes = 0;
	if (!sample->app_limited)
		law->inflight_longterm = lh_max(in_flight, (__u64)lh_bbr3_target(law, steering) * 7 / 10);
	if (law->mode != LH_BBR3_UP)
		return;
	law->undo_mode = LH_BBR3_UP;
	lh_bbr3_go_down(law, sample);
}

/* InflightAtLoss(): the flight at which losses came to 2 % */
static inline __u32 lh_bbr3_flight_at_loss(const struct lh_bbr3_then *then, __u32 lost, const struct lh_rate_sample *sample)
{
	__u32 all = lh_bbr3_lost_since(then, sample);
	__u32 before = then->in_flight > lost ? then->in_flight - lost : 0;
	__u32 tolerated = LH_BBR3_TOLERATES * (all > lost ? all - lost : 0);

	return before > tolerated ? before + (before - tolerated) / (LH_BBR3_TOLERATES - 1) : before;
}

/* HandleLostPacket(), for all that an ACK or a timeout has shown to be lost */
static inline void lh_bbr3_note_losses(struct lh_bbr3 *law, const struct lh_bbr3_then *then,
				       const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	__u32 lost = sample->all_lost_segments - law->lost;

	law->lost = sample->all_lost_segments;
	if (!lost)
		return;
	if (!law->loss_in_round) {
		law->loss_round_ends = sample->all_delivered_segments;
		lh_bbr3_save(law, steering->cwnd_segments);
	}
	law->loss_in_round = 1;
	law->losses += law->losses < 255;
	if (law->probes && lh_bbr3_is_too_high(then, sample))
		lh_bbr3_lower(law, lh_bbr3_flight_at_loss(then, lost, sample), sample, steering);
}

/* UpdateLatestDeliverySignals() */
static inline void lh_bbr3_take_latest(struct lh_bbr3 *law, __u32 rate, const struct lh_rate_sample *sample)
{
	law->loss_round_began = 0;
	if (!sample->interval_us)
		return;
	law->bandwidth_latest = lh_max(law->bandwidth_latest, rate);
	law->inflight_latest = lh_max(law->inflight_latest, sample->sampled_segments);
	if ((__s32)(sample->prior_delivered_segments - law->loss_round_ends) >= 0) {
		law->loss_round_ends = sample->all_delivered_segments;
		law->loss_round_began = 1;
	}
}

/* UpdateMaxBw(), UpdateRound() */
static inline void lh_bbr3_take_bandwidth(struct lh_bbr3 *law, __u32 rate, const struct lh_rate_sample *sample)
{
	law->round_began = 0;
	if (!sample->interval_us)
		return;
	if ((__s32)(sample->prior_delivered_segments - law->round_ends) >= 0) {
		lh_bbr3_begin_round(law, sample);
		law->rounds++;
		law->rounds_since_probe++;
		law->round_began = 1;
	}
	if (!sample->app_limited || rate >= lh_bbr3_max_bandwidth(law))
		law->max_bandwidth[1] = lh_max(law->max_bandwidth[1], rate);
}

/* AdvanceMaxBwFilter(); a cycle without a sample leaves that of the one before */
static inline void lh_bbr3_end_cycle(struct lh_bbr3 *law)
{
	if (!law->max_bandwidth[1])
		return;
	law->max_bandwidth[0] = law->max_bandwidth[1];
	law->max_bandwidth[1] = 0;
}

/* UpdateCongestionSignals(), AdaptLowerBoundsFromCongestion() */
static inline void lh_bbr3_yield(struct lh_bbr3 *law, const struct lh_steering *steering)
{
	int probes = law->mode == LH_BBR3_STARTUP || law->mode == LH_BBR3_REFILL || law->mode == LH_BBR3_UP;

	if (!law->loss_round_began)
		return;
	if (law->loss_in_round && !probes) {
		if (law->bandwidth_shortterm == LH_BBR3_NO_LIMIT)
			law->bandwidth_shortterm = lh_bbr3_max_bandwidth(law);
		if (law->inflight_shortterm == LH_BBR3_NO_LIMIT)
			law->inflight_shortterm = steering->cwnd_segments;
		law->bandwidth_shortterm = lh_max(law->bandwidth_latest, (__u64)law->bandwidth_shortterm * 7 / 10);
		law->inflight_shortterm = lh_max(law->inflight_latest, (__u64)law->inflight_shortterm * 7 / 10);
	}
	law->loss_in_round = 0;
}

/* UpdateACKAggregation() */
static inline void lh_bbr3_update_aggregation(struct lh_bbr3 *law, const struct lh_rate_sample *sample,
					      const struct lh_steering *steering)
{
	__u64 expected = (law->bandwidth * (sample->now_us - law->extra_began_us)) >> LH_BBR_BW_SCALE;
	__u32 extra;

	if (law->round_began && ++law->extra_rounds >= (law->full ? LH_BBR3_EXTRA_ROUNDS : 1)) {
		law->extra_rounds = 0;
		law->extra_acked[0] = law->full ? law->extra_acked[1] : 0;
		law->extra_acked[1] = 0;
	}
	if (law->extra_delivered <= expected) {
		law->extra_delivered = 0;
		law->extra_began_us = sample->now_us;
		expected = 0;
	}
	law->extra_delivered += sample->acked_segments;
	extra = lh_min(law->extra_delivered - (__u32)expected, steering->cwnd_segments);
	law->extra_acked[1] = lh_max(law->extra_acked[1], extra);
}

/* CheckFullBWReached() */
static inline void lh_bbr3_look_whether_full(struct lh_bbr3 *law, __u32 rate, const struct lh_rate_sample *sample)
{
	if (law->full_now || !law->round_began || sample->app_limited)
		return;
	if (rate >= (__u64)law->full_bandwidth * 5 / 4) {
		lh_bbr3_look_for_more(law, rate);
		return;
	}
	law->full_now = ++law->full_rounds >= LH_BBR3_FULL_ROUNDS;
	law->full |= law->full_now;
}

/* CheckStartupHighLoss() */
static inline void lh_bbr3_look_whether_startup_loses(struct lh_bbr3 *law, const struct lh_bbr3_then *then,
						      const struct lh_rate_sample *sample)
{
	if (!law->loss_round_began)
		return;
	if (!law->full && law->losses >= LH_BBR3_FULL_LOSSES && sample->state == LH_STATE_RECOVERY &&
	    law->state == LH_STATE_RECOVERY && lh_bbr3_is_too_high(then, sample)) {
		law->undo_mode = LH_BBR3_STARTUP;
		law->full = 1;
		law->inflight_longterm = lh_max(lh_bbr3_product(law, LH_BBR_ONE), law->inflight_latest);
	}
	law->losses = 0;
}

/* CheckStartupDone(), CheckDrainDone() */
static inline void lh_bbr3_leave_startup(struct lh_bbr3 *law, const struct lh_rate_sample *sample,
					 const struct lh_steering *steering)
{
	if (law->mode == LH_BBR3_STARTUP && law->full) {
		law->mode = LH_BBR3_DRAIN;
		law->drain_began = law->rounds;
	}
	if (law->mode != LH_BBR3_DRAIN)
		return;
	if (sample->in_flight_segments <= lh_bbr3_flight(law, law->bandwidth, sample, steering) ||
	    law->rounds - law->drain_began > LH_BBR3_DRAIN_ROUNDS)
		lh_bbr3_go_down(law, sample);
}

/* ProbeInflightLongtermUpward() */
static inline void lh_bbr3_raise(struct lh_bbr3 *law, int is_limited, const struct lh_rate_sample *sample,
				 const struct lh_steering *steering)
{
	__u32 steps;

	if (!is_limited || steering->cwnd_segments < law->inflight_longterm)
		return;
	law->probe_acked += sample->acked_segments;
	if (law->acked_per_raise && law->probe_acked >= law->acked_per_raise) {
		steps = law->probe_acked / law->acked_per_raise;
		law->probe_acked -= steps * law->acked_per_raise;
		law->inflight_longterm = lh_min(law->inflight_longterm + steps, LH_MAX_WINDOW);
	}
	if (law->round_began)
		lh_bbr3_raise_slope(law, steering->cwnd_segments);
}

/* AdaptLongTermModel(); returns whether it has begun a phase */
static inline int lh_bbr3_adapt(struct lh_bbr3 *law, const struct lh_bbr3_then *then, int is_limited,
				const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	if (law->stopping && law->round_began) {
		law->probes = 0;
		law->stopping = 0;
		if (lh_bbr3_in_cycle(law)) {
			if (!sample->app_limited)
				lh_bbr3_end_cycle(law);
			if (law->precautionary && !law->too_high) {
				lh_bbr3_refill(law, sample);
				return 1;
			}
		}
	}
	if (law->inflight_longterm == LH_BBR3_NO_LIMIT || lh_bbr3_is_too_high(then, sample))
		return 0;
	law->inflight_longterm = lh_max(law->inflight_longterm, then->in_flight);
	if (law->mode == LH_BBR3_UP)
		lh_bbr3_raise(law, is_limited, sample, steering);
	return 0;
}

/* IsTimeToProbeBW() */
static inline int lh_bbr3_is_time_to_probe(const struct lh_bbr3 *law, const struct lh_rate_sample *sample,
					   const struct lh_steering *steering)
{
	return sample->now_us > law->cycle_began_us + law->probe_wait_us ||
	       law->rounds_since_probe >= lh_min(lh_bbr3_target(law, steering), LH_BBR3_RENO_ROUNDS);
}

/* IsTimeToGoDown() */
static inline int lh_bbr3_is_time_to_go_down(struct lh_bbr3 *law, __u32 rate, int is_limited,
					     const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	if (law->too_high && sample->in_flight_segments >= law->inflight_longterm) {
		law->precautionary = 1;
		return 1;
	}
	if (is_limited && steering->cwnd_segments >= law->inflight_longterm)
		lh_bbr3_look_for_more(law, rate);
	return law->full_now;
}

/* UpdateProbeBWCyclePhase() */
static inline void lh_bbr3_move(struct lh_bbr3 *law, __u32 rate, const struct lh_bbr3_then *then, int is_limited,
				const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	if (!law->full || lh_bbr3_adapt(law, then, is_limited, sample, steering))
		return;
	switch (law->mode) {
	case LH_BBR3_DOWN:
	case LH_BBR3_CRUISE:
		if (lh_bbr3_is_time_to_probe(law, sample, steering))
			lh_bbr3_refill(law, sample);
		else if (sample->in_flight_segments <= lh_bbr3_with_headroom(law) &&
			 sample->in_flight_segments <= lh_bbr3_flight(law, lh_bbr3_max_bandwidth(law), sample, steering))
			law->mode = LH_BBR3_CRUISE;
		break;
	case LH_BBR3_REFILL:
		if (law->round_began) {
			law->probes = 1;
			lh_bbr3_go_up(law, rate, sample, steering);
		}
		break;
	case LH_BBR3_UP:
		if (lh_bbr3_is_time_to_go_down(law, rate, is_limited, sample, steering)) {
			law->too_high = 0;
			lh_bbr3_go_down(law, sample);
		}
	}
}

/* CheckProbeRTTDone(), ExitProbeRTT() */
static inline void lh_bbr3_end_probe_rtt(struct lh_bbr3 *law, const struct lh_rate_sample *sample,
					 struct lh_steering *steering)
{
	if (!law->probe_rtt_ends_us || sample->now_us <= law->probe_rtt_ends_us)
		return;
	law->probe_rtt_min_at_us = sample->now_us;
	steering->cwnd_segments = lh_max(steering->cwnd_segments, law->prior_cwnd);
	lh_bbr3_forget_short_term(law);
	law->mode = LH_BBR3_STARTUP;
	if (law->full) {
		lh_bbr3_go_down(law, sample);
		law->mode = LH_BBR3_CRUISE;
	}
}

/* UpdateMinRTT() */
static inline void lh_bbr3_update_min_rtt(struct lh_bbr3 *law, const struct lh_rate_sample *sample)
{
	law->probe_rtt_expired = sample->now_us > law->probe_rtt_min_at_us + LH_BBR3_PROBE_RTT_EVERY_US;
	if (sample->rtt_us &&
	    (!law->probe_rtt_min_us || sample->rtt_us < law->probe_rtt_min_us || law->probe_rtt_expired)) {
		law->probe_rtt_min_us = sample->rtt_us;
		law->probe_rtt_min_at_us = sample->now_us;
	}
	if (law->probe_rtt_min_us &&
	    (!law->min_rtt_us || law->probe_rtt_min_us < law->min_rtt_us ||
	     sample->now_us > law->min_rtt_at_us + LH_BBR3_MIN_RTT_WINDOW_US)) {
		law->min_rtt_us = law->probe_rtt_min_us;
		law->min_rtt_at_us = law->probe_rtt_min_at_us;
	}
}

/* CheckProbeRTT(), HandleProbeRTT() */
static inline void lh_bbr3_probe_rtt(struct lh_bbr3 *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	if (law->mode != LH_BBR3_PROBE_RTT && law->probe_rtt_expired && !law->idle_restart) {
		lh_bbr3_save_window(law, steering->cwnd_segments);
		law->mode = LH_BBR3_PROBE_RTT;
		law->probe_rtt_ends_us = 0;
		law->stopping = 1;
		lh_bbr3_begin_round(law, sample);
	}
	if (law->mode == LH_BBR3_PROBE_RTT) {
		steering->app_limited = 1;
		if (law->probe_rtt_ends_us) {
			law->probe_rtt_round |= law->round_began;
			if (law->probe_rtt_round)
				lh_bbr3_end_probe_rtt(law, sample, steering);
		} else if (sample->in_flight_segments <= lh_bbr3_probe_rtt_window(law)) {
			law->probe_rtt_ends_us = sample->now_us + LH_BBR3_PROBE_RTT_US;
			law->probe_rtt_round = 0;
			lh_bbr3_begin_round(law, sample);
		}
	}
	if (sample->acked_segments)
		law->idle_restart = 0;
}

/* SetPacingRateWithGain(), InitPacingRate() */
static inline void lh_bbr3_pace(struct lh_bbr3 *law, __u32 gain, const struct lh_rate_sample *sample,
				struct lh_steering *steering)
{
	__u64 rate = lh_bbr_rate(law->bandwidth, gain, sample->segment_bytes);

	if (!law->has_rtt && sample->srtt_us) {
		law->has_rtt = 1;
		steering->pace = lh_bbr_first_rate(LH_BBR3_STARTUP_GAIN, sample, steering);
	}
	if (law->full || rate > steering->pace)
		steering->pace = rate;
}

/* SetCwnd(), BoundCwndForProbeRTT(), BoundCwndForModel() */
static inline void lh_bbr3_set_window(struct lh_bbr3 *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	__u32 gain = law->mode == LH_BBR3_UP ? LH_BBR3_UP_CWND_GAIN :
		     law->mode == LH_BBR3_PROBE_RTT ? LH_BBR3_PROBE_RTT_GAIN : LH_BBR3_CWND_GAIN;
	__u32 most = lh_bbr3_product(law, gain) + lh_max(law->extra_acked[0], law->extra_acked[1]);
	__u32 cwnd = steering->cwnd_segments, limit = LH_BBR3_NO_LIMIT;

	most = lh_bbr3_with_budget(law, most, sample, steering);
	if (law->full)
		cwnd = lh_min(cwnd + sample->acked_segments, most);
	else if (cwnd < most || sample->all_delivered_segments < LH_BBR_INITIAL_WINDOW)
		cwnd += sample->acked_segments;
	cwnd = lh_max(cwnd, LH_BBR_LEAST_WINDOW);
	if (law->mode == LH_BBR3_PROBE_RTT)
		cwnd = lh_min(cwnd, lh_bbr3_probe_rtt_window(law));
	if (law->mode == LH_BBR3_PROBE_RTT || law->mode == LH_BBR3_CRUISE)
		limit = lh_bbr3_with_headroom(law);
	else if (lh_bbr3_in_cycle(law))
		limit = law->inflight_longterm;
	limit = lh_max(lh_min(limit, law->inflight_shortterm), LH_BBR_LEAST_WINDOW);
	steering->cwnd_segments = lh_min(cwnd, limit);
}

/* HandleSpuriousLossDetection() */
static inline void lh_bbr3_undo(struct lh_bbr3 *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	law->undone = 0;
	steering->cwnd_segments = lh_max(steering->cwnd_segments, law->prior_cwnd);
	law->loss_in_round = 0;
	lh_bbr3_look_for_more(law, 0);
	law->bandwidth_shortterm = lh_max(law->bandwidth_shortterm, law->undo_bandwidth_shortterm);
	law->inflight_shortterm = lh_max(law->inflight_shortterm, law->undo_inflight_shortterm);
	law->inflight_longterm = lh_max(law->inflight_longterm, law->undo_inflight_longterm);
	if (law->undo_mode == LH_BBR3_STARTUP && law->mode != LH_BBR3_STARTUP) {
		law->full = 0;
		if (law->mode != LH_BBR3_PROBE_RTT)
			law->mode = LH_BBR3_STARTUP;
	} else if (law->undo_mode == LH_BBR3_UP && law->mode != LH_BBR3_UP && law->mode != LH_BBR3_PROBE_RTT) {
		lh_bbr3_refill(law, sample);
	}
	law->undo_mode = LH_BBR3_PROBE_RTT;
}

/* UpdateOnACK() */
static inline void lh_bbr3_sampled(struct lh_bbr3 *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	__u32 rate = sample->interval_us ? (sample->sampled_segments * LH_BBR_BW_ONE) / sample->interval_us : 0;
	int is_limited = sample->prior_in_flight_segments + 2 > steering->cwnd_segments;
	struct lh_bbr3_then then;

	lh_bbr3_remember(law, sample, steering->cwnd_segments);
	if (!law->begun) {
		law->begun = 1;
		law->min_rtt_us = law->probe_rtt_min_us = sample->min_rtt_us;
		law->lost = sample->all_lost_segments - sample->lost_segments;
	}
	then = lh_bbr3_when_sent(law, sample);
	if (law->undone)
		lh_bbr3_undo(law, sample, steering);
	lh_bbr3_note_losses(law, &then, sample, steering);
	if (law->state >= LH_STATE_RECOVERY && sample->state < LH_STATE_RECOVERY)
		steering->cwnd_segments = lh_max(steering->cwnd_segments, law->prior_cwnd);
	lh_bbr3_take_latest(law, rate, sample);
	lh_bbr3_take_bandwidth(law, rate, sample);
	lh_bbr3_yield(law, steering);
	lh_bbr3_update_aggregation(law, sample, steering);
	lh_bbr3_look_whether_full(law, rate, sample);
	lh_bbr3_look_whether_startup_loses(law, &then, sample);
	lh_bbr3_leave_startup(law, sample, steering);
	lh_bbr3_move(law, rate, &then, is_limited, sample, steering);
	lh_bbr3_update_min_rtt(law, sample);
	lh_bbr3_probe_rtt(law, sample, steering);
	/* AdvanceLatestDeliverySignals(), BoundBWForModel() */
	if (law->loss_round_began) {
		law->bandwidth_latest = rate;
		law->inflight_latest = sample->sampled_segments;
	}
	law->bandwidth = lh_min(lh_bbr3_max_bandwidth(law), law->bandwidth_shortterm);
	law->state = sample->state;
	lh_bbr3_pace(law, lh_bbr3_pacing_gain(law), sample, steering);
	lh_bbr3_set_window(law, sample, steering);
}

/* HandleRestartFromIdle() */
static inline void lh_bbr3_resumed(struct lh_bbr3 *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	law->idle_restart = 1;
	law->extra_began_us = sample->now_us;
	law->extra_delivered = 0;
	if (lh_bbr3_in_cycle(law))
		lh_bbr3_pace(law, LH_BBR_ONE, sample, steering);
	else if (law->mode == LH_BBR3_PROBE_RTT)
		lh_bbr3_end_probe_rtt(law, sample, steering);
}

/* OnEnterFastRecovery() */
static inline void lh_bbr3_lost(struct lh_bbr3 *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	lh_bbr3_save_window(law, window->cwnd_segments);
}

/* A mark changes nothing by itself: the draft leaves ECN open. */
static inline void lh_bbr3_notified(struct lh_bbr3 *law, const struct lh_lost *notice, struct lh_window *window)
{
	lh_bbr3_lost(law, notice, window);
}

/* OnEnterRTO() */
static inline void lh_bbr3_timed_out(struct lh_bbr3 *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	lh_bbr3_save(law, window->cwnd_segments);
	law->state = LH_STATE_LOSS;
}

static inline void lh_bbr3_undone(struct lh_bbr3 *law, const struct lh_undone *undone, struct lh_window *window)
{
	(void)undone;
	(void)window;
	law->undone = 1;
}

#endif /* LASTHOP_LAWS_BBR3_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(bbr3, BBR3, Bbr3, "BBRv3", Free, Square, Everywhere,
	     "BBR, version 3: draft-ietf-ccwg-bbr; remembers what flight lost 2 %, and yields to others.")
#endif
