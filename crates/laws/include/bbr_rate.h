/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bbr_rate.h - what both versions of BBR count with: bandwidths, gains, and the pace that they make. The arithmetic is that
 * of Linux, net/ipv4/tcp_bbr.c.
 *
 * Gains are in 1/256. A bandwidth is in segments a microsecond, in 1/2^24.
 */
#ifndef LASTHOP_LAWS_BBR_RATE_H
#define LASTHOP_LAWS_BBR_RATE_H

#include "law.h"

#define LH_BBR_ONE 256U
#define LH_BBR_BW_SCALE 24
#define LH_BBR_BW_ONE (1ULL << LH_BBR_BW_SCALE)
#define LH_BBR_PACING_PERCENT 99 /* of the rate, so that no queue grows by rounding */
#define LH_BBR_SLOW_RATE 150000U /* bytes a second, 1.2 Mb/s: below it the window has room for single segments */
#define LH_BBR_INITIAL_WINDOW 10U
#define LH_BBR_LEAST_WINDOW 4U

/* bbr_rate_bytes_per_sec() */
static inline __u64 lh_bbr_rate(__u64 bandwidth, __u32 gain, __u32 segment_bytes)
{
	__u64 rate = (bandwidth * segment_bytes * gain) >> 8;

	return (rate * (1000000 / 100 * LH_BBR_PACING_PERCENT)) >> LH_BBR_BW_SCALE;
}

/* bbr_init_pacing_rate_from_rtt(): the first pace, once there is a round trip */
static inline __u64 lh_bbr_first_rate(__u32 gain, const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	return lh_bbr_rate((steering->cwnd_segments * LH_BBR_BW_ONE) / sample->srtt_us, gain, sample->segment_bytes);
}

/* bbr_tso_segs_goal() */
static inline __u32 lh_bbr_burst(const struct lh_rate_sample *sample, const struct lh_steering *steering)
{
	__u32 least = steering->pace < LH_BBR_SLOW_RATE ? 1 : 2;
	__u64 bytes = steering->pace >> 10;

	if (bytes > 65215)
		bytes = 65215;
	if (!sample->segment_bytes)
		return least;
	return lh_min(lh_max(bytes / sample->segment_bytes, least), 127);
}

/* bbr_bdp(): before the first round trip, the initial window */
static inline __u32 lh_bbr_product(__u32 bandwidth, __u32 min_rtt_us, __u32 gain)
{
	__u64 product = (__u64)bandwidth * min_rtt_us;

	if (!min_rtt_us)
		return LH_BBR_INITIAL_WINDOW;
	return (((product * gain) >> 8) + LH_BBR_BW_ONE - 1) >> LH_BBR_BW_SCALE;
}

#endif /* LASTHOP_LAWS_BBR_RATE_H */
