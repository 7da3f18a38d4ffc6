/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * westwood.h - Westwood+: after a loss the window is what it has delivered in the lowest round trip.
 *
 * Mascolo, Casetti, Gerla, Sanadidi and Wang, "TCP Westwood: Bandwidth estimation for enhanced transport over wireless
 * links", MobiCom 2001; Grieco and Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas
 * TCP congestion control", CCR 34(2), 2004. The rules are those of Linux, net/ipv4/tcp_westwood.c.
 *
 *   each max(RTT, 50 ms)   b = delivered / time;  f = (7 f + b) / 8;  bw = (7 bw + f) / 8        at first f = bw = b
 *   a reduction is over    cwnd = ssthresh = max(bw rtt_min, 2)
 *   timeout                ssthresh = max(bw rtt_min, 2);  rtt_min begins anew
 *   growth                 NewReno's; while it reduces, ssthresh is cwnd / 2
 *
 * Linux counts bytes by cumulative ACKs, and a segment for each duplicate; here the stack says what each ACK delivers.
 * Linux's times are in jiffies; here in microseconds.
 */
#ifndef LASTHOP_LAWS_WESTWOOD_H
#define LASTHOP_LAWS_WESTWOOD_H

#include "law.h"
#include "reno.h"

#define LH_WESTWOOD_HAS_TIMED_OUT 1
#define LH_WESTWOOD_HAS_NOTIFIED 1

#define LH_WESTWOOD_RTT_MIN_US 50000U /* TCP_WESTWOOD_RTT_MIN */
/* Rates are in 1/256 segment a second. */
#define LH_WESTWOOD_UNIT 256000000ULL

struct lh_westwood {
	__u64 began_us; /* the sample of the bandwidth */
	__u64 delivered; /* segments in it */
	__u32 filtered; /* f */
	__u32 bandwidth; /* bw */
	__u32 rtt_us; /* the latest; 0: none yet */
	__u32 rtt_min_us; /* 0: begins with the next sample */
	__u32 recover; /* the data sent when the reduction began */
	__u32 reduces; /* 1: it is not over */
};

static inline void lh_westwood_init(struct lh_westwood *law, const struct lh_start *start)
{
	*law = (struct lh_westwood){ .began_us = start->now_us };
}

static inline void lh_westwood_filter(struct lh_westwood *law, __u64 took_us)
{
	__u64 sample = law->delivered * LH_WESTWOOD_UNIT / took_us;

	if (sample > 0xffffffffULL)
		sample = 0xffffffffULL;
	if (!law->filtered && !law->bandwidth) {
		law->filtered = law->bandwidth = (__u32)sample;
		return;
	}
	law->filtered = (__u32)((7 * (__u64)law->filtered + sample) / 8);
	law->bandwidth = (__u32)((7 * (__u64)law->bandwidth + law->filtered) / 8);
}

/* tcp_westwood_bw_rttmin() */
static inline __u32 lh_westwood_fits(const struct lh_westwood *law)
{
	__u64 fits = (__u64)law->bandwidth * law->rtt_min_us / LH_WESTWOOD_UNIT;

	return lh_max((__u32)(fits < LH_MAX_WINDOW ? fits : LH_MAX_WINDOW), 2);
}

static inline void lh_westwood_acked(struct lh_westwood *law, const struct lh_acked *acked, struct lh_window *window)
{
	__u64 took_us = acked->now_us - law->began_us;

	if (acked->rtt_us)
		law->rtt_us = acked->rtt_us;
	if (law->rtt_us && took_us > lh_max(law->rtt_us, LH_WESTWOOD_RTT_MIN_US)) {
		lh_westwood_filter(law, took_us);
		law->delivered = 0;
		law->began_us = acked->now_us;
	}
	law->delivered += acked->acked_segments;
	if (law->rtt_us)
		law->rtt_min_us = law->rtt_min_us ? lh_min(law->rtt_min_us, law->rtt_us) : law->rtt_us;
	/* CA_EVENT_COMPLETE_CWR */
	if (law->reduces && !(acked->flags & LH_IN_REDUCTION) && !lh_after(law->recover, acked->snd_una)) {
		law->reduces = 0;
		window->cwnd_segments = window->ssthresh_segments = lh_westwood_fits(law);
	}
	lh_reno_grow(acked, window);
}

static inline void lh_westwood_lost(struct lh_westwood *law, const struct lh_lost *lost, struct lh_window *window)
{
	law->recover = lost->snd_nxt;
	law->reduces = 1;
	window->ssthresh_segments = lh_max(window->cwnd_segments / 2, LH_MIN_SSTHRESH);
}

static inline void lh_westwood_notified(struct lh_westwood *law, const struct lh_lost *notice, struct lh_window *window)
{
	lh_westwood_lost(law, notice, window);
}

/* CA_EVENT_LOSS */
static inline void lh_westwood_timed_out(struct lh_westwood *law, const struct lh_lost *lost, struct lh_window *window)
{
	(void)lost;
	law->reduces = 0;
	window->ssthresh_segments = lh_westwood_fits(law);
	law->rtt_min_us = 0;
}

#endif /* LASTHOP_LAWS_WESTWOOD_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(westwood, WESTWOOD, Westwood, "Westwood+", Free, Down, Simulated,
	     "Westwood+: after a loss the window is the delivered rate times the lowest RTT; Linux's tcp_westwood.")
#endif
