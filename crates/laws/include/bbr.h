/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bbr.h - BBR, version 1: sends at the rate that the path has delivered, with a window of two bandwidth-delay products.
 *
 * N. Cardwell, Y. Cheng, C. S. Gunn, S. H. Yeganeh and V. Jacobson, "BBR: Congestion-based congestion control", ACM Queue
 * 14(5), 2016; the arithmetic, the long-term rate of policers and the room for aggregated ACKs are those of Linux,
 * net/ipv4/tcp_bbr.c.
 *
 *   bandwidth     the highest delivery rate of the last 10 round trips
 *   round trip    the lowest of the last 10 s
 *   startup       2.885 times the bandwidth, until three rounds have brought less than a quarter more
 *   drain         1 / 2.885 times it, until no more than the product is in flight
 *   probe_bw      a cycle of 1.25, 0.75 and six times 1; each lasts a lowest round trip, begun at random
 *   probe_rtt     where 10 s brought no lower round trip: 4 segments in flight for 200 ms and a round trip
 *   loss          changes no rate; a recovery sends for one round trip only what was delivered
 *   policer       where a fifth of the segments is lost at one rate twice: that rate for 48 round trips
 *
 * Differs from Linux: it has microseconds where Linux has jiffies; a delayed ACK of a lone small segment is not known as
 * such; the pace before the first round trip is TCP's own; a timeout is looked at for a policer with the next sample; below
 * 1.2 Mb/s two segments leave at once, where Linux sends one.
 */
#ifndef LASTHOP_LAWS_BBR_H
#define LASTHOP_LAWS_BBR_H

#include "bbr_rate.h"
#include "random.h"

#define LH_BBR_HAS_SAMPLED 1
#define LH_BBR_HAS_RESUMED 1
#define LH_BBR_HAS_TIMED_OUT 1
#define LH_BBR_HAS_UNDONE 1
#define LH_BBR_HAS_NOTIFIED 1

#define LH_BBR_HIGH_GAIN (LH_BBR_ONE * 2885 / 1000 + 1) /* 2 / ln 2: doubles in a round trip */
#define LH_BBR_DRAIN_GAIN (LH_BBR_ONE * 1000 / 2885)
#define LH_BBR_CYCLE 8U
#define LH_BBR_BW_ROUNDS 10U
#define LH_BBR_MIN_RTT_WINDOW_US 10000000ULL
#define LH_BBR_PROBE_RTT_US 200000ULL
#define LH_BBR_FULL_GAIN (LH_BBR_ONE * 5 / 4)
#define LH_BBR_FULL_ROUNDS 3U

#define LH_BBR_LT_LEAST_ROUNDS 4U /* of a policer's interval */
#define LH_BBR_LT_LOST 50U /* in 1/256 of what it delivers */
#define LH_BBR_LT_ALIKE (LH_BBR_ONE / 8) /* how far two intervals may differ, in 1/256 */
#define LH_BBR_LT_ALIKE_RATE 500U /* or in bytes a second */
#define LH_BBR_LT_ROUNDS 48U /* how long the rate is kept */

#define LH_BBR_EXTRA_ROUNDS 5U
#define LH_BBR_EXTRA_MOST_US 100000ULL
#define LH_BBR_EPOCH_MOST (1U << 20)

enum lh_bbr_mode {
	LH_BBR_STARTUP,
	LH_BBR_DRAIN,
	LH_BBR_PROBE_BW,
	LH_BBR_PROBE_RTT,
};

/* A value with its round, for the highest of a window of rounds. */
struct lh_bbr_high {
	__u32 round;
	__u32 value;
};

struct lh_bbr {
	__u64 phase_began_us; /* of the cycle */
	__u64 min_rtt_at_us; /* when the lowest round trip was measured */
	__u64 probe_rtt_ends_us; /* 0: the flight is not small yet */
	__u64 epoch_began_us; /* of aggregated ACKs */
	__u64 lt_began_us;
	__u64 random;
	struct lh_bbr_high bandwidth[3]; /* lib/win_minmax.c: the highest, and those that follow it */
	__u32 rounds;
	__u32 round_ends; /* delivered segments at which the current round trip ends */
	__u32 min_rtt_us; /* 0: none yet */
	__u32 prior_cwnd; /* before a recovery or probe_rtt */
	__u32 full_bandwidth;
	__u32 pacing_gain;
	__u32 cwnd_gain;
	__u32 lt_bandwidth;
	__u32 lt_delivered; /* when the interval began */
	__u32 lt_lost; /* likewise */
	__u32 epoch_acked;
	__u32 extra_acked[2]; /* the most beyond the bandwidth, of two windows of rounds */
	__u32 cycle_index;
	__u32 lt_rounds;
	__u8 mode;
	__u8 state; /* enum lh_state at the previous ACK */
	__u8 full_rounds;
	__u8 extra_rounds;
	__u8 extra_window; /* the current one of extra_acked */
	/* 0 or 1: */
	__u8 full; /* the bandwidth has been reached */
	__u8 round_began; /* with this ACK */
	__u8 probe_rtt_round; /* over */
	__u8 conserves; /* sends what was delivered, for a round trip */
	__u8 idle_restart;
	__u8 lt_samples;
	__u8 lt_in_use;
	__u8 timed_out; /* since the last ACK */
	__u8 begun; /* an ACK was seen */
	__u8 has_rtt; /* the pace is of a measured round trip */
	__u8 reserved;
};

static inline void lh_bbr_init(struct lh_bbr *law, const struct lh_start *start)
{
	*law = (struct lh_bbr){
		.min_rtt_at_us = start->now_us,
		.epoch_began_us = start->now_us,
		.pacing_gain = LH_BBR_HIGH_GAIN,
		.cwnd_gain = LH_BBR_HIGH_GAIN,
		.random = start->seed,
	};
}

/* minmax_running_max() */
static inline void lh_bbr_take_bandwidth(struct lh_bbr *law, __u32 value)
{
	struct lh_bbr_high *high = law->bandwidth, now = { .round = law->rounds, .value = value };
	__u32 age = now.round - high[0].round;

	if (value >= high[0].value || now.round - high[2].round > LH_BBR_BW_ROUNDS) {
		high[0] = high[1] = high[2] = now;
		return;
	}
	if (value >= high[1].value)
		high[1] = high[2] = now;
	else if (value >= high[2].value)
		high[2] = now;
	if (age > LH_BBR_BW_ROUNDS) {
		high[0] = high[1];
		high[1] = high[2];
		high[2] = now;
		if (now.round - high[0].round > LH_BBR_BW_ROUNDS) {
			high[0] = high[1];
			high[1] = high[2];
		}
	} else if (high[1].round == high[0].round && age > LH_BBR_BW_ROUNDS / 4) {
		high[1] = high[2] = now;
	} else if (high[2].round == high[1].round && age > LH_BBR_BW_ROUNDS / 2) {
		high[2] = now;
	}
}

static inline __u32 lh_bbr_bandwidth(const struct lh_bbr *law)
{
	return law->lt_in_use ? law->lt_bandwidth : law->bandwidth[0].value;
}

/* bbr_quantization_budget(): room for three bursts, and an even number, for delayed ACKs */
static inline __u32 lh_bbr_with_bursts(const struct lh_bbr *law, __u32 window, const struct lh_rate_sample *sample,
				       const struct lh_steering *steering)
{
	window += 3 * lh_bbr_burst(sample, steering);
	window = (window + 1) & ~1U;
	if (law->mode == LH_BBR_PROBE_BW && !law->cycle_index)
		window += 2;
	return window;
}

static inline __u32 lh_bbr_flight(const struct lh_bbr *law, __u32 gain, const struct lh_rate_sample *sample,
				  const struct lh_steering *steering)
{
	return lh_bbr_with_bursts(law, lh_bbr_product(law->bandwidth[0].value, law->min_rtt_us, gain), sample, steering);
}

/* bbr_packets_in_net_at_edt(): what will be in flight when the next burst departs */
static inline __u32 lh_bbr_flight_then(const struct lh_bbr *law, __u32 now, const struct lh_rate_sample *sample,
				       const struct lh_steering *steering)
{
	__u64 wait_us = sample->departs_us - sample->now_us;
	__u32 delivered = (lh_bbr_bandwidth(law) * wait_us) >> LH_BBR_BW_SCALE;

	if (law->pacing_gain > LH_BBR_ONE)
		now += lh_bbr_burst(sample, steering);
	return delivered >= now ? 0 : now - delivered;
}

/* bbr_save_cwnd() */
static inline void lh_bbr_save(struct lh_bbr *law, __u32 cwnd_segments)
{
	if (law->state < LH_STATE_RECOVERY && law->mode != LH_BBR_PROBE_RTT)
		law->prior_cwnd = cwnd_segments;
	else
		law->prior_cwnd = lh_max(law->prior_cwnd, cwnd_segments);
}

static inline __u32 lh_bbr_gain_of(__u32 phase)
{
	return phase == 0 ? LH_BBR_ONE * 5 / 4 : phase == 1 ? LH_BBR_ONE * 3 / 4 : LH_BBR_ONE;
}

static inline void lh_bbr_next_phase(struct lh_bbr *law, const struct lh_rate_sample *sample)
{
	law->cycle_index = (law->cycle_index + 1) % LH_BBR_CYCLE;
	law->phase_began_us = sample->delivered_us;
}

/* bbr_reset_mode(): a cycle begins anywhere but with the phase of 0.75 */
static inline void lh_bbr_cruise(struct lh_bbr *law, const struct lh_rate_sample *sample)
{
	if (!law->full) {
		law->mode = LH_BBR_STARTUP;
		return;
	}
	law->mode = LH_BBR_PROBE_BW;
	law->cycle_index = LH_BBR_CYCLE - 1 - ((__u64)lh_random(&law->random) * (LH_BBR_CYCLE - 1) >> 32);
	lh_bbr_next_phase(law, sample);
}

/* bbr_reset_lt_bw_sampling_interval() */
static inline void lh_bbr_begin_interval(struct lh_bbr *law, const struct lh_rate_sample *sample)
{
	law->lt_began_us = sample->delivered_us;
	law->lt_delivered = sample->all_delivered_segments;
	law->lt_lost = sample->all_lost_segments;
	law->lt_rounds = 0;
}

/* bbr_reset_lt_bw_sampling() */
static inline void lh_bbr_forget_policer(struct lh_bbr *law)
{
	law->lt_bandwidth = 0;
	law->lt_in_use = 0;
	law->lt_samples = 0;
	law->lt_rounds = 0;
}

/* bbr_lt_bw_interval_done(): two intervals with many losses at one rate are a policer's */
static inline void lh_bbr_end_interval(struct lh_bbr *law, __u32 bandwidth, const struct lh_rate_sample *sample)
{
	__u32 before = law->lt_bandwidth;
	__u32 apart = bandwidth > before ? bandwidth - before : before - bandwidth;

	if (before && ((__u64)apart * LH_BBR_ONE <= (__u64)LH_BBR_LT_ALIKE * before ||
		       lh_bbr_rate(apart, LH_BBR_ONE, sample->segment_bytes) <= LH_BBR_LT_ALIKE_RATE)) {
		law->lt_bandwidth = ((__u64)bandwidth + before) >> 1;
		law->lt_in_use = 1;
		law->pacing_gain = LH_BBR_ONE;
		law->lt_rounds = 0;
		return;
	}
	law->lt_bandwidth = bandwidth;
	lh_bbr_begin_interval(law, sample);
}

/* bbr_lt_bw_sampling() */
static inline void lh_bbr_look_for_policer(struct lh_bbr *law, const struct lh_rate_sample *sample, __u32 losses)
{
	__u32 lost = sample->all_lost_segments - law->lt_lost;
	__u32 delivered = sample->all_delivered_segments - law->lt_delivered;
	__u64 took_us;

	if (law->lt_in_use) {
		if (law->mode == LH_BBR_PROBE_BW && law->round_began && ++law->lt_rounds >= LH_BBR_LT_ROUNDS) {
			lh_bbr_forget_policer(law);
			lh_bbr_cruise(law, sample);
		}
		return;
	}
	if (!law->lt_samples) {
		if (!losses)
			return;
		lh_bbr_begin_interval(law, sample);
		law->lt_samples = 1;
		lost = 0;
		delivered = 0;
	}
	if (sample->app_limited) {
		lh_bbr_forget_policer(law);
		return;
	}
	law->lt_rounds += law->round_began;
	if (law->lt_rounds < LH_BBR_LT_LEAST_ROUNDS)
		return;
	if (law->lt_rounds > 4 * LH_BBR_LT_LEAST_ROUNDS) {
		lh_bbr_forget_policer(law);
		return;
	}
	if (!losses || !delivered || (__u64)lost * LH_BBR_ONE < (__u64)LH_BBR_LT_LOST * delivered)
		return;
	took_us = sample->delivered_us - law->lt_began_us;
	if (took_us < 1000)
		return;
	lh_bbr_end_interval(law, (delivered * LH_BBR_BW_ONE) / took_us, sample);
}

/* bbr_update_bw() */
static inline void lh_bbr_update_bandwidth(struct lh_bbr *law, const struct lh_rate_sample *sample)
{
	__u32 bandwidth;

	law->round_began = 0;
	if (!sample->interval_us)
		return;
	if ((__s32)(sample->prior_delivered_segments - law->round_ends) >= 0) {
		law->round_ends = sample->all_delivered_segments;
		law->rounds++;
		law->round_began = 1;
		law->conserves = 0;
	}
	lh_bbr_look_for_policer(law, sample, sample->lost_segments + law->timed_out);
	bandwidth = (sample->sampled_segments * LH_BBR_BW_ONE) / sample->interval_us;
	if (!sample->app_limited || bandwidth >= law->bandwidth[0].value)
		lh_bbr_take_bandwidth(law, bandwidth);
}

/* bbr_update_ack_aggregation(): how much more than the bandwidth one moment delivers */
static inline void lh_bbr_update_aggregation(struct lh_bbr *law, const struct lh_rate_sample *sample, __u32 cwnd_segments)
{
	__u64 expected;
	__u32 extra;

	if (!sample->interval_us || !sample->acked_segments)
		return;
	if (law->round_began && ++law->extra_rounds >= LH_BBR_EXTRA_ROUNDS) {
		law->extra_rounds = 0;
		law->extra_window = !law->extra_window;
		law->extra_acked[law->extra_window & 1] = 0;
	}
	expected = (lh_bbr_bandwidth(law) * (sample->delivered_us - law->epoch_began_us)) >> LH_BBR_BW_SCALE;
	if (law->epoch_acked <= expected || law->epoch_acked + sample->acked_segments >= LH_BBR_EPOCH_MOST) {
		law->epoch_acked = 0;
		law->epoch_began_us = sample->delivered_us;
		expected = 0;
	}
	law->epoch_acked = lh_min(law->epoch_acked + sample->acked_segments, LH_BBR_EPOCH_MOST - 1);
	extra = lh_min(law->epoch_acked - (__u32)expected, cwnd_segments);
	if (extra > law->extra_acked[law->extra_window & 1])
		law->extra_acked[law->extra_window & 1] = extra;
}

/* bbr_is_next_cycle_phase() */
static inline int lh_bbr_phase_is_over(const struct lh_bbr *law, const struct lh_rate_sample *sample,
				       const struct lh_steering *steering)
{
	int is_long = sample->delivered_us - law->phase_began_us > law->min_rtt_us;
	__u32 flight;

	if (law->pacing_gain == LH_BBR_ONE)
		return is_long;
	flight = lh_bbr_flight_then(law, sample->prior_in_flight_segments, sample, steering);
	if (law->pacing_gain > LH_BBR_ONE)
		return is_long && (sample->lost_segments ||
				   flight >= lh_bbr_flight(law, law->pacing_gain, sample, steering));
	return is_long || flight <= lh_bbr_flight(law, LH_BBR_ONE, sample, steering);
}

/* bbr_check_full_bw_reached() */
static inline void lh_bbr_look_whether_full(struct lh_bbr *law, const struct lh_rate_sample *sample)
{
	__u32 bandwidth = law->bandwidth[0].value;

	if (law->full || !law->round_began || sample->app_limited)
		return;
	if (bandwidth >= (__u64)law->full_bandwidth * LH_BBR_FULL_GAIN / LH_BBR_ONE) {
		law->full_bandwidth = bandwidth;
		law->full_rounds = 0;
		return;
	}
	law->full = ++law->full_rounds >= LH_BBR_FULL_ROUNDS;
}

/* bbr_check_drain() */
static inline void lh_bbr_look_whether_drained(struct lh_bbr *law, const struct lh_rate_sample *sample,
					       struct lh_steering *steering)
{
	__u32 flight;

	if (law->mode == LH_BBR_STARTUP && law->full) {
		law->mode = LH_BBR_DRAIN;
		steering->ssthresh_segments = lh_bbr_flight(law, LH_BBR_ONE, sample, steering);
	}
	if (law->mode != LH_BBR_DRAIN)
		return;
	flight = lh_bbr_flight_then(law, sample->in_flight_segments, sample, steering);
	if (flight <= lh_bbr_flight(law, LH_BBR_ONE, sample, steering))
		lh_bbr_cruise(law, sample);
}

/* bbr_check_probe_rtt_done() */
static inline void lh_bbr_end_probe_rtt(struct lh_bbr *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	if (!law->probe_rtt_ends_us || sample->now_us <= law->probe_rtt_ends_us)
		return;
	law->min_rtt_at_us = sample->now_us;
	steering->cwnd_segments = lh_max(steering->cwnd_segments, law->prior_cwnd);
	lh_bbr_cruise(law, sample);
}

/* bbr_update_min_rtt() */
static inline void lh_bbr_update_min_rtt(struct lh_bbr *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	int is_old = sample->now_us > law->min_rtt_at_us + LH_BBR_MIN_RTT_WINDOW_US;

	if (sample->rtt_us && (!law->min_rtt_us || sample->rtt_us < law->min_rtt_us || is_old)) {
		law->min_rtt_us = sample->rtt_us;
		law->min_rtt_at_us = sample->now_us;
	}
	if (is_old && !law->idle_restart && law->mode != LH_BBR_PROBE_RTT) {
		law->mode = LH_BBR_PROBE_RTT;
		lh_bbr_save(law, steering->cwnd_segments);
		law->probe_rtt_ends_us = 0;
	}
	if (law->mode == LH_BBR_PROBE_RTT) {
		steering->app_limited = 1;
		if (!law->probe_rtt_ends_us && sample->in_flight_segments <= LH_BBR_LEAST_WINDOW) {
			law->probe_rtt_ends_us = sample->now_us + LH_BBR_PROBE_RTT_US;
			law->probe_rtt_round = 0;
			law->round_ends = sample->all_delivered_segments;
		} else if (law->probe_rtt_ends_us) {
			law->probe_rtt_round |= law->round_began;
			if (law->probe_rtt_round)
				lh_bbr_end_probe_rtt(law, sample, steering);
		}
	}
	if (sample->acked_segments)
		law->idle_restart = 0;
}

/* bbr_update_gains() */
static inline void lh_bbr_update_gains(struct lh_bbr *law)
{
	switch (law->mode) {
	case LH_BBR_STARTUP:
		law->pacing_gain = LH_BBR_HIGH_GAIN;
		law->cwnd_gain = LH_BBR_HIGH_GAIN;
		break;
	case LH_BBR_DRAIN:
		law->pacing_gain = LH_BBR_DRAIN_GAIN;
		law->cwnd_gain = LH_BBR_HIGH_GAIN;
		break;
	case LH_BBR_PROBE_BW:
		law->pacing_gain = law->lt_in_use ? LH_BBR_ONE : lh_bbr_gain_of(law->cycle_index);
		law->cwnd_gain = 2 * LH_BBR_ONE;
		break;
	default:
		law->pacing_gain = LH_BBR_ONE;
		law->cwnd_gain = LH_BBR_ONE;
	}
}

/* bbr_set_pacing_rate() */
static inline void lh_bbr_pace(struct lh_bbr *law, __u32 gain, const struct lh_rate_sample *sample,
			       struct lh_steering *steering)
{
	__u64 rate = lh_bbr_rate(lh_bbr_bandwidth(law), gain, sample->segment_bytes);

	if (!law->has_rtt && sample->srtt_us) {
		law->has_rtt = 1;
		steering->pace = lh_bbr_first_rate(LH_BBR_HIGH_GAIN, sample, steering);
	}
	if (law->full || rate > steering->pace)
		steering->pace = rate;
}

/* bbr_set_cwnd_to_recover_or_restore(); returns whether the window is decided by that */
static inline int lh_bbr_recover(struct lh_bbr *law, const struct lh_rate_sample *sample, __u32 *cwnd)
{
	__u8 before = law->state;

	if (sample->lost_segments)
		*cwnd = *cwnd > sample->lost_segments ? *cwnd - sample->lost_segments : 1;
	if (sample->state == LH_STATE_RECOVERY && before != LH_STATE_RECOVERY) {
		law->conserves = 1;
		law->round_ends = sample->all_delivered_segments;
		*cwnd = sample->in_flight_segments + sample->acked_segments;
	} else if (before >= LH_STATE_RECOVERY && sample->state < LH_STATE_RECOVERY) {
		*cwnd = lh_max(*cwnd, law->prior_cwnd);
		law->conserves = 0;
	}
	law->state = sample->state;
	if (law->conserves)
		*cwnd = lh_max(*cwnd, sample->in_flight_segments + sample->acked_segments);
	return law->conserves;
}

/* bbr_set_cwnd() */
static inline void lh_bbr_set_window(struct lh_bbr *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	__u32 cwnd = steering->cwnd_segments, acked = sample->acked_segments, target;

	if (acked && !lh_bbr_recover(law, sample, &cwnd)) {
		target = lh_bbr_product(lh_bbr_bandwidth(law), law->min_rtt_us, law->cwnd_gain);
		if (law->full) {
			__u64 most = (lh_bbr_bandwidth(law) * LH_BBR_EXTRA_MOST_US) >> LH_BBR_BW_SCALE;
			__u32 extra = lh_max(law->extra_acked[0], law->extra_acked[1]);

			target += extra < most ? extra : most;
		}
		target = lh_bbr_with_bursts(law, target, sample, steering);
		if (law->full)
			cwnd = lh_min(cwnd + acked, target);
		else if (cwnd < target || sample->all_delivered_segments < LH_BBR_INITIAL_WINDOW)
			cwnd += acked;
		cwnd = lh_max(cwnd, LH_BBR_LEAST_WINDOW);
	}
	if (law->mode == LH_BBR_PROBE_RTT)
		cwnd = lh_min(cwnd, LH_BBR_LEAST_WINDOW);
	steering->cwnd_segments = lh_max(cwnd, 1);
}

/* bbr_main() */
static inline void lh_bbr_sampled(struct lh_bbr *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	if (!law->begun) {
		law->begun = 1;
		law->min_rtt_us = sample->min_rtt_us;
	}
	lh_bbr_update_bandwidth(law, sample);
	lh_bbr_update_aggregation(law, sample, steering->cwnd_segments);
	if (law->mode == LH_BBR_PROBE_BW && lh_bbr_phase_is_over(law, sample, steering))
		lh_bbr_next_phase(law, sample);
	lh_bbr_look_whether_full(law, sample);
	lh_bbr_look_whether_drained(law, sample, steering);
	lh_bbr_update_min_rtt(law, sample, steering);
	lh_bbr_update_gains(law);
	lh_bbr_pace(law, law->pacing_gain, sample, steering);
	lh_bbr_set_window(law, sample, steering);
	if (sample->interval_us)
		law->timed_out = 0;
}

/* bbr_cwnd_event() */
static inline void lh_bbr_resumed(struct lh_bbr *law, const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	law->idle_restart = 1;
	law->epoch_began_us = sample->now_us;
	law->epoch_acked = 0;
	if (law->mode == LH_BBR_PROBE_BW)
		lh_bbr_pace(law, LH_BBR_ONE, sample, steering);
	else if (law->mode == LH_BBR_PROBE_RTT)
		lh_bbr_end_probe_rtt(law, sample, steering);
}

/* bbr_ssthresh() */
static inline void lh_bbr_lost(struct lh_bbr *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	lh_bbr_save(law, window->cwnd_segments);
}

static inline void lh_bbr_notified(struct lh_bbr *law, const struct lh_lost *notice, struct lh_window *window)
{
	lh_bbr_lost(law, notice, window);
}

/* bbr_set_state() */
static inline void lh_bbr_timed_out(struct lh_bbr *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_bbr_lost(law, lost, window);
	law->state = LH_STATE_LOSS;
	law->full_bandwidth = 0;
	law->timed_out = 1;
	law->lt_rounds += law->lt_samples && !law->lt_in_use; /* a timeout is like the end of a round */
}

/* bbr_undo_cwnd() */
static inline void lh_bbr_undone(struct lh_bbr *law, const struct lh_undone *undone, struct lh_window *window)
{
	(void)undone;
	(void)window;
	law->full_bandwidth = 0;
	law->full_rounds = 0;
	lh_bbr_forget_policer(law);
}

#endif /* LASTHOP_LAWS_BBR_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(bbr, BBR, Bbr, "BBR", Free, Circle, Simulated,
	     "BBR, version 1: sends at the rate that the path has delivered; Linux's tcp_bbr.")
#endif
