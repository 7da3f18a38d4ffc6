/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * westwood.h - TCP Westwood+: after a loss, the window that the path has carried, not half of the last one. For paths
 * that lose packets without being full. The worked example of docs/guide/own-law.md.
 *
 * L. A. Grieco and S. Mascolo, "Performance evaluation and comparison of Westwood+, New Reno, and Vegas TCP congestion
 * control", ACM CCR 34(2), 2004; the arithmetic is that of Linux, net/ipv4/tcp_westwood.c.
 *
 *   each interval   of a round trip, at least 50 ms, that delivered d segments in t:
 *                   n = (7 n + d / t) / 8, b = (7 b + n) / 8; the first time n = b = d / t
 *   each ACK        grows as NewReno, with standard slow start
 *   loss, ECN       ssthresh = max(b RTTmin, 2), at most the window
 *   timeout         ssthresh = max(b RTTmin, 2); RTTmin is measured anew
 *
 * Differs from Linux: segments and microseconds, not bytes and jiffies; b counts what is delivered, SACKed segments too,
 * where Linux infers it from duplicate ACKs; ssthresh is set when a reduction begins, not when it ends; before the
 * first estimate a loss halves, where Linux goes to 2.
 */
#ifndef WESTWOOD_H
#define WESTWOOD_H

#include "law.h"
#include "reno.h"

#define LH_WESTWOOD_HAS_TIMED_OUT 1
#define LH_WESTWOOD_HAS_NOTIFIED 1
#define LH_WESTWOOD_HAS_PARAMETERS 1
#define LH_WESTWOOD_PARAMETERS(P) \
	P(Milliseconds, interval, 1, 1000, 50, \
	  "The shortest interval of a bandwidth sample (Linux: TCP_WESTWOOD_RTT_MIN, 50 ms).")

struct lh_westwood_parameters {
	LH_WESTWOOD_PARAMETERS(LH_FIELD)
};

struct lh_westwood {
	__u64 began_us; /* of the interval */
	__u64 filtered_once; /* n, in thousandths of a segment per second, as b */
	__u64 bandwidth; /* b; 0: not yet */
	__u32 delivered_segments; /* d */
	__u32 rtt_us; /* the latest; 0: not yet */
	__u32 rtt_min_us; /* 0: to be measured */
};

static inline void lh_westwood_init(struct lh_westwood *law, const struct lh_westwood_parameters *parameters,
				    const struct lh_start *start)
{
	(void)parameters;
	*law = (struct lh_westwood){ .began_us = start->now_us };
}

/* westwood_do_filter() */
static inline __u64 lh_westwood_filter(__u64 before, __u64 sample)
{
	return (7 * before + sample) >> 3;
}

/* westwood_update_window() */
static inline void lh_westwood_look(struct lh_westwood *law, __u32 interval_us, __u64 now_us)
{
	__u64 took_us = now_us - law->began_us, sample;

	if (!law->rtt_us || took_us <= lh_max(law->rtt_us, interval_us))
		return;
	sample = law->delivered_segments * 1000000000ULL / took_us;
	if (law->bandwidth) {
		law->filtered_once = lh_westwood_filter(law->filtered_once, sample);
		law->bandwidth = lh_westwood_filter(law->bandwidth, law->filtered_once);
	} else {
		law->filtered_once = sample;
		law->bandwidth = sample;
	}
	law->delivered_segments = 0;
	law->began_us = now_us;
}

static inline void lh_westwood_acked(struct lh_westwood *law, const struct lh_westwood_parameters *parameters,
				     const struct lh_acked *acked, struct lh_window *window)
{
	if (acked->rtt_us)
		law->rtt_us = acked->rtt_us;
	lh_westwood_look(law, parameters->interval_us, acked->now_us);
	law->delivered_segments += acked->acked_segments;
	if (acked->rtt_us && (!law->rtt_min_us || acked->rtt_us < law->rtt_min_us))
		law->rtt_min_us = acked->rtt_us;
	lh_reno_grow(acked, window);
}

/* tcp_westwood_bw_rttmin(): what the path carries in its shortest round trip; 0: not known */
static inline __u32 lh_westwood_carried(const struct lh_westwood *law)
{
	__u64 segments = law->bandwidth * law->rtt_min_us / 1000000000ULL;

	if (!law->bandwidth || !law->rtt_min_us)
		return 0;
	return segments > LH_MIN_SSTHRESH ? segments : LH_MIN_SSTHRESH;
}

static inline void lh_westwood_lost(struct lh_westwood *law, const struct lh_westwood_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	__u32 carried = lh_westwood_carried(law);

	(void)parameters;
	if (carried)
		window->ssthresh_segments = lh_max(lh_min(carried, window->cwnd_segments), LH_MIN_SSTHRESH);
	else
		lh_reno_halve(lost, window);
}

static inline void lh_westwood_notified(struct lh_westwood *law, const struct lh_westwood_parameters *parameters,
					const struct lh_lost *notice, struct lh_window *window)
{
	lh_westwood_lost(law, parameters, notice, window);
}

static inline void lh_westwood_timed_out(struct lh_westwood *law, const struct lh_westwood_parameters *parameters,
					 const struct lh_lost *lost, struct lh_window *window)
{
	__u32 carried = lh_westwood_carried(law);

	(void)parameters;
	if (carried)
		window->ssthresh_segments = carried;
	else
		lh_reno_halve(lost, window);
	law->rtt_min_us = 0;
}

#endif /* WESTWOOD_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(westwood, WESTWOOD, Westwood, "Westwood+", Free, Circle, Everywhere,
	     "TCP Westwood+: after a loss, the window that the path has carried.")
#endif
