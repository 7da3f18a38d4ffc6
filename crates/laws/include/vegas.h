/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * vegas.h - TCP Vegas: keeps alpha to beta segments of its own in the queue, by round-trip times.
 *
 * Brakmo and Peterson, "TCP Vegas: End to end congestion avoidance on a global Internet", IEEE JSAC 13(8), 1995; the
 * rules are those of Linux, net/ipv4/tcp_vegas.c, but a window that does not limit the sender does not grow (RFC 7661
 * section 1). base is the lowest RTT, rtt the lowest one of the latest round trip.
 *
 *   diff = cwnd (rtt - base) / base         segments of its own that wait
 *   each round trip, with more than 2 samples:
 *     slow start, diff > gamma              cwnd = min(cwnd, cwnd base / rtt + 1): slow start ends
 *     else diff > beta                      cwnd - 1
 *     else diff < alpha                     cwnd + 1
 *   slow start                              one segment for each acknowledged
 *   with fewer samples, and until the data that were in flight at a reduction are acknowledged: NewReno
 *   loss or timeout                         ssthresh = max(cwnd / 2, 2)
 *   the first data after idleness           base and the round begin anew
 */
#ifndef LASTHOP_LAWS_VEGAS_H
#define LASTHOP_LAWS_VEGAS_H

#include "law.h"
#include "reno.h"

#define LH_VEGAS_HAS_PARAMETERS 1
#define LH_VEGAS_PARAMETERS(P) \
	P(Count, alpha, 1, 1000, 2, "Grow while fewer segments wait (Linux: 2).") \
	P(Count, beta, 1, 1000, 4, "Shrink while more segments wait (Linux: 4).") \
	P(Count, gamma, 0, 1000, 1, "End slow start once more segments wait (Linux: 1).")

struct lh_vegas_parameters {
	LH_VEGAS_PARAMETERS(LH_FIELD)
};

#define LH_VEGAS_HAS_TIMED_OUT 1
#define LH_VEGAS_HAS_NOTIFIED 1
#define LH_VEGAS_HAS_SENT 1

#define LH_VEGAS_NO_RTT 0x7fffffffU

struct lh_vegas {
	__u32 base_us; /* LH_VEGAS_NO_RTT: none yet, here and below */
	__u32 round_min_us;
	__u32 round_samples;
	__u32 round_end; /* the data sent when the round began */
	__u32 recover; /* the data sent when the latest reduction began */
	__u32 reduces; /* 1: they are not acknowledged yet */
};

static inline void lh_vegas_begin_round(struct lh_vegas *law, __u32 snd_nxt)
{
	law->round_end = snd_nxt;
	law->round_samples = 0;
	law->round_min_us = LH_VEGAS_NO_RTT;
}

static inline void lh_vegas_init(struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				 const struct lh_start *start)
{
	(void)parameters;
	*law = (struct lh_vegas){ .base_us = LH_VEGAS_NO_RTT };
	lh_vegas_begin_round(law, start->snd_nxt);
}

/* CA_EVENT_TX_START */
static inline void lh_vegas_sent(struct lh_vegas *law, const struct lh_sent *sent)
{
	if (sent->in_flight_before_segments)
		return;
	law->base_us = LH_VEGAS_NO_RTT;
	lh_vegas_begin_round(law, sent->snd_nxt);
}

/* A round trip is over, with enough samples. */
static inline void lh_vegas_move(const struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				 const struct lh_acked *acked, struct lh_window *window)
{
	__u32 rtt_us = law->round_min_us, cwnd = window->cwnd_segments;
	__u32 fits = (__u32)((__u64)cwnd * law->base_us / rtt_us);
	__u32 waits = (__u32)((__u64)cwnd * (rtt_us - law->base_us) / law->base_us);
	int may_grow = lh_may_grow(acked);

	if (lh_in_slow_start(window)) {
		if (waits > parameters->gamma) {
			window->cwnd_segments = lh_min(cwnd, fits + 1);
			window->ssthresh_segments = lh_min(window->ssthresh_segments, window->cwnd_segments);
		} else if (may_grow) {
			lh_slow_start_by(window, acked->acked_segments);
		}
	} else if (waits > parameters->beta) {
		window->cwnd_segments = cwnd - 1;
		window->ssthresh_segments = lh_min(window->ssthresh_segments, window->cwnd_segments);
	} else if (waits < parameters->alpha && may_grow) {
		window->cwnd_segments = cwnd + 1;
	}
	window->cwnd_segments = lh_max(window->cwnd_segments, 2);
	/* tcp_current_ssthresh() */
	window->ssthresh_segments = lh_max(lh_max(window->ssthresh_segments, LH_MIN_SSTHRESH),
					   (window->cwnd_segments >> 1) + (window->cwnd_segments >> 2));
}

static inline void lh_vegas_acked(struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				  const struct lh_acked *acked, struct lh_window *window)
{
	if (acked->rtt_us) {
		/* + 1: never zero, as in Linux */
		__u32 rtt_us = lh_saturating_add(acked->rtt_us, 1);

		law->base_us = lh_min(law->base_us, rtt_us);
		law->round_min_us = lh_min(law->round_min_us, rtt_us);
		law->round_samples++;
	}
	if (law->reduces && !lh_after(law->recover, acked->snd_una)) {
		law->reduces = 0;
		lh_vegas_begin_round(law, acked->snd_nxt);
	}
	if ((acked->flags & (LH_MAY_GROW | LH_HELD)) != LH_MAY_GROW)
		return;
	if (law->reduces) {
		lh_reno_grow(acked, window);
	} else if (lh_after(acked->snd_una, law->round_end)) {
		if (law->round_samples > 2)
			lh_vegas_move(law, parameters, acked, window);
		else
			lh_reno_grow(acked, window);
		lh_vegas_begin_round(law, acked->snd_nxt);
	} else if (lh_in_slow_start(window) && lh_may_grow(acked)) {
		lh_slow_start_by(window, acked->acked_segments);
	}
}

static inline void lh_vegas_lost(struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				 const struct lh_lost *lost, struct lh_window *window)
{
	(void)parameters;
	law->recover = lost->snd_nxt;
	law->reduces = 1;
	window->ssthresh_segments = lh_max(window->cwnd_segments / 2, LH_MIN_SSTHRESH);
}

static inline void lh_vegas_timed_out(struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				      const struct lh_lost *lost, struct lh_window *window)
{
	lh_vegas_lost(law, parameters, lost, window);
}

static inline void lh_vegas_notified(struct lh_vegas *law, const struct lh_vegas_parameters *parameters,
				     const struct lh_lost *notice, struct lh_window *window)
{
	lh_vegas_lost(law, parameters, notice, window);
}

#endif /* LASTHOP_LAWS_VEGAS_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(vegas, VEGAS, Vegas, "Vegas", Free, Diamond, Simulated,
	     "TCP Vegas: keeps two to four segments of its own in the queue; Linux's tcp_vegas.")
#endif
