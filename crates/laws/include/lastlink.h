/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lastlink.h - a server that uses its client's reports of the last link: the three heuristics of Wu, Biswas, Chan,
 * Ananda, "Utilizing Characteristics of Last Link to Improve TCP Performance" (2005), [wu], on NewReno as there, or on
 * CUBIC.
 *
 *   Max Cwnd Tuning (section 3.1)                each ACK:  Cwnd_max = BW RTT / (8 L_segment)
 *                                                           cwnd >= Cwnd_max: no growth. It is never cut.
 *   Initial Cwnd & SSThresh Tuning (3.2)         at the beginning: cwnd = ssthresh = BW RTT / (8 L_segment)
 *   Packet error rate heuristic (3.3)            each loss: PLR = N_retr / N_tx
 *                                                           PLR > PER: as the base law; else the window stays
 *
 * BW and PER come from the client's report. A report is a claim (link_report.h), and a client may lie. These guards
 * limit the gain of a lie (derived in docs/models/lastlink.md); with 0 each is off, as in the paper:
 *
 *   initial window   at most initial_max_segments; ssthresh is still BW RTT / (8 L): the rest is slow start
 *   bandwidth        counts up to achieved_headroom times the highest rate of a round trip, outside slow start and after
 *                    three rounds that the window limited; not for the initial window
 *   error rate       counts up to error_max
 *   PLR              covers the last memory_segments to twice as many. So a time without errors makes no room for
 *                    congestion later, and the losses at the end of slow start do not count for ever
 *   a loss           is heeded after ignored_max ignored ones in a row, whatever PLR is, and while SRTT > queue_ratio min RTT
 *   slow start       also ends at an ignored loss (errors_end_slow_start)
 *
 * Two more parameters help honest clients. least_segments is a minimum of both products: on short paths a window of one
 * round trip is too small for delayed ACKs and aggregated frames. error_deviations z allows for chance: with an exact
 * PER, PLR varies around it, and half of the losses would be heeded. PLR counts as larger only above PER N_tx + z
 * sqrt(PER N_tx) losses.
 *
 * The paper's open points: docs/models/lastlink.md. An expired report does not count. What it leaves out: fair shares
 * among one client's connections (each takes BW for its own), and losses whose cause the client knows.
 */
#ifndef LASTHOP_LAWS_LASTLINK_H
#define LASTHOP_LAWS_LASTLINK_H

#include "cubic.h"
#include "law.h"
#include "link_report.h"
#include "newreno.h"

/* Rounds limited by the window before the highest rate counts */
#define LH_LASTLINK_ROUNDS 3
/* The largest window: the 2^30 bytes of RFC 7323 section 2.3, in segments of 1 KiB */
#define LH_LASTLINK_MOST_SEGMENTS (1U << 20)

#define LH_LASTLINK_HAS_PARAMETERS 1
#define LH_LASTLINK_PARAMETERS(P) \
	P(Flag, cubic, 0, 1, 0, \
	  "Build on CUBIC, not on NewReno ([wu]: NewReno). For connections that begin from now on.") \
	P(Flag, max_cwnd, 0, 1, 1, \
	  "Max Cwnd Tuning ([wu] §3.1): no growth at or above the product of the reported bandwidth and the RTT.") \
	P(Flag, initial_window, 0, 1, 1, \
	  "Initial Cwnd & SSThresh Tuning ([wu] §3.2): begin with that product.") \
	P(Flag, errors, 0, 1, 1, \
	  "The packet error rate heuristic ([wu] §3.3): a loss does not reduce the window while the connection " \
	  "loses no larger part than the reported error rate.") \
	P(Flag, max_cwnd_srtt, 0, 1, 0, \
	  "The RTT of Max Cwnd Tuning is the smoothed one, which contains the connection's own queue, not the " \
	  "lowest ([wu] says RTT).") \
	P(Flag, count_present_loss, 0, 1, 1, \
	  "N_retr counts what is about to be retransmitted ([wu] leaves it open).") \
	P(Flag, count_retransmissions, 0, 1, 1, \
	  "N_tx counts retransmissions ([wu]: segments transmitted).") \
	P(Flag, timeouts_too, 0, 1, 0, \
	  "A timeout may be taken for an error as well: slow start then returns to the window of before ([wu] " \
	  "leaves it open).") \
	P(Count, least_segments, 0, 1000, 10, \
	  "Neither Cwnd_max nor the initial window is smaller: RFC 6928's initial window; 0: 2 segments, RFC 5681's " \
	  "least ssthresh ([wu]: 1).") \
	P(Count, initial_max_segments, 0, 1000000, 60, \
	  "The initial window is never larger; 0: no limit ([wu]: none).") \
	P(Ratio, error_max, 0, 1, 0.02, \
	  "The reported error rate counts no further; 0: no limit ([wu]: none).") \
	P(Count, error_deviations, 0, 10, 3, \
	  "By how many standard deviations of chance the losses may exceed what the error rate makes ([wu]: 0).") \
	P(Count, memory_segments, 0, 1000000000, 1000, \
	  "How far N_tx and N_retr reach back: this number of segments to twice as many; 0: to the beginning ([wu]: 0).") \
	P(Count, ignored_max, 0, 1000000, 7, \
	  "How many losses in a row may be ignored before the next one is heeded; 0: no limit ([wu]: none).") \
	P(Ratio, queue_ratio, 0, 1000, 2, \
	  "A loss is heeded while the smoothed RTT is more than this multiple of the lowest; 0: it does not matter ([wu]: " \
	  "0).") \
	P(Flag, errors_end_slow_start, 0, 1, 1, \
	  "A loss that is ignored ends slow start all the same ([wu]: nothing but the retransmission).") \
	P(Ratio, achieved_headroom, 0, 1000, 2, \
	  "Max Cwnd Tuning takes the reported bandwidth for no more than this multiple of the highest rate of a round " \
	  "trip, outside slow start; 0: for what it is ([wu]: 0).")

struct lh_lastlink_parameters {
	LH_LASTLINK_PARAMETERS(LH_FIELD)
};

#define LH_LASTLINK_HAS_TIMED_OUT 1
#define LH_LASTLINK_HAS_NOTIFIED 1
#define LH_LASTLINK_HAS_SENT 1
#define LH_LASTLINK_HAS_REPORTED 1

struct lh_lastlink {
	__u64 expires_us; /* of the report; 0: no report yet */
	__u64 round_began_us;
	__u32 on_cubic; /* which of the two base laws decides */
	__u32 reports; /* number heard */
	__u32 bandwidth_kbps; /* as last reported; 0: unknown */
	__u32 error_ppm; /* likewise; LH_ERROR_UNKNOWN: unknown */
	__u32 permitted; /* enum lh_permit */
	__u32 segment_bytes;
	__u32 initial_is_due; /* 1: the initial window waits for the first RTT */
	__u32 initial_segments; /* the initial window that was set; 0: none was */
	__u32 cwnd_max_segments; /* at the latest ACK; 0: no limit */
	__u32 round_end; /* its ACK ends the round */
	__u32 round_segments; /* delivered in the round */
	__u32 rounds; /* rounds limited by the window, up to LH_LASTLINK_ROUNDS */
	__u32 achieved_kbps; /* the highest rate of a round */
	__u32 past_segments; /* the parts of N_tx and N_retr that no longer count */
	__u32 past_retransmits;
	__u32 kept_ssthresh; /* restored after the recovery; 0: none */
	__u32 ignored_in_a_row;
	__u32 ignored; /* loss events by their outcome */
	__u32 heeded_unknown; /* no report, or none that counts here */
	__u32 heeded_excess; /* PLR > PER */
	__u32 heeded_queue; /* queue_ratio */
	__u32 heeded_in_turn; /* ignored_max */
	struct lh_newreno newreno;
	struct lh_cubic cubic;
};

enum lh_loss_verdict {
	LH_LOSS_IGNORED,
	LH_LOSS_UNKNOWN,
	LH_LOSS_EXCESS,
	LH_LOSS_QUEUE,
	LH_LOSS_IN_TURN,
};

static inline void lh_lastlink_init(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				    const struct lh_start *start)
{
	*law = (struct lh_lastlink){
		.on_cubic = parameters->cubic,
		.error_ppm = LH_ERROR_UNKNOWN,
		.round_began_us = start->now_us,
		.round_end = start->snd_nxt,
	};
	lh_newreno_init(&law->newreno, start);
	lh_cubic_init(&law->cubic, start);
}

/* Whether a heuristic is on and permitted, and the report has not expired. */
static inline int lh_lastlink_uses(const struct lh_lastlink *law, __u32 on, __u32 permit, __u64 now_us)
{
	return on && law->permitted & permit && now_us < law->expires_us;
}

/* BW RTT / (8 L_segment), at least RFC 5681's least ssthresh; [wu] has no minimum but 1. */
static inline __u32 lh_lastlink_product(const struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					__u32 bandwidth_kbps, __u32 rtt_us)
{
	__u64 segments = (__u64)bandwidth_kbps * rtt_us / (8000ULL * lh_max(law->segment_bytes, 1));

	if (segments > LH_LASTLINK_MOST_SEGMENTS)
		return LH_LASTLINK_MOST_SEGMENTS;
	return lh_max(segments, lh_max(parameters->least_segments, LH_MIN_SSTHRESH));
}

/* [wu] section 3.2; `least`: the current window. */
static inline void lh_lastlink_begin(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				     __u32 rtt_us, __u32 least, struct lh_window *window)
{
	__u32 product = lh_lastlink_product(law, parameters, law->bandwidth_kbps, rtt_us), cwnd = product;

	if (parameters->initial_max_segments)
		cwnd = lh_min(cwnd, parameters->initial_max_segments);
	law->initial_is_due = 0;
	law->initial_segments = lh_max(cwnd, least);
	window->cwnd_segments = law->initial_segments;
	window->ssthresh_segments = product;
}

static inline void lh_lastlink_reported(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					const struct lh_report *report, struct lh_window *window)
{
	__u64 expires_us = report->now_us + 1000000ULL * report->valid_s;

	law->reports++;
	law->expires_us = expires_us < report->now_us ? ~0ULL : expires_us;
	law->bandwidth_kbps = report->bandwidth_kbps;
	law->error_ppm = report->error_ppm;
	law->permitted = report->permitted;
	law->segment_bytes = lh_min(report->segment_bytes, 0xffff);
	if (!law->bandwidth_kbps ||
	    !lh_lastlink_uses(law, parameters->initial_window, LH_PERMIT_INITIAL, report->now_us)) {
		law->initial_is_due = 0;
		return;
	}
	if (report->segments_sent)
		return;
	law->initial_is_due = 1;
	if (report->rtt_us)
		lh_lastlink_begin(law, parameters, report->rtt_us, 0, window);
}

/* If the report came before an RTT sample: at the first ACK with an RTT. Segments sent meanwhile stay sent. */
static inline void lh_lastlink_begin_late(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					  const struct lh_acked *acked, struct lh_window *window)
{
	__u32 rtt_us = acked->min_rtt_us ? acked->min_rtt_us : acked->rtt_us;

	if (acked->flags & LH_IN_REDUCTION)
		law->initial_is_due = 0;
	if (!law->initial_is_due || !rtt_us)
		return;
	if (lh_lastlink_uses(law, parameters->initial_window, LH_PERMIT_INITIAL, acked->now_us))
		lh_lastlink_begin(law, parameters, rtt_us, window->cwnd_segments, window);
	law->initial_is_due = 0;
}

/* The rate of each round trip: a round ends with the ACK of the next byte to send at its beginning. */
static inline void lh_lastlink_measure(struct lh_lastlink *law, const struct lh_acked *acked)
{
	__u64 span_us = acked->now_us - law->round_began_us, kbps;

	law->round_segments = lh_saturating_add(law->round_segments, acked->acked_segments);
	if (lh_after(law->round_end, acked->snd_una))
		return;
	if (law->segment_bytes && span_us && acked->now_us > law->round_began_us) {
		/* below 2^32 * 2^16 * 2^13 */
		kbps = (__u64)law->round_segments * law->segment_bytes * 8000 / span_us;
		law->achieved_kbps = lh_max(law->achieved_kbps, kbps > ~0U ? ~0U : kbps);
		if (acked->flags & LH_CWND_LIMITED && law->rounds < LH_LASTLINK_ROUNDS)
			law->rounds++;
	}
	law->round_began_us = acked->now_us;
	law->round_end = acked->snd_nxt;
	law->round_segments = 0;
}

/* [wu] section 3.1; 0: no limit. */
static inline __u32 lh_lastlink_max_cwnd(const struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					 const struct lh_acked *acked, const struct lh_window *window)
{
	__u32 rtt_us = parameters->max_cwnd_srtt ? acked->srtt_us : acked->min_rtt_us, kbps = law->bandwidth_kbps;
	__u64 most;

	if (!kbps || !rtt_us || !lh_lastlink_uses(law, parameters->max_cwnd, LH_PERMIT_MAX, acked->now_us))
		return 0;
	if (parameters->achieved_headroom_ppm && law->rounds >= LH_LASTLINK_ROUNDS && !lh_in_slow_start(window)) {
		most = (__u64)law->achieved_kbps * parameters->achieved_headroom_ppm / 1000000;
		kbps = most < kbps ? most : kbps;
	}
	return lh_lastlink_product(law, parameters, kbps, rtt_us);
}

static inline void lh_lastlink_acked(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				     const struct lh_acked *acked, struct lh_window *window)
{
	struct lh_acked event = *acked;
	__u32 most, before;

	if (law->kept_ssthresh && !(acked->flags & LH_IN_REDUCTION)) {
		window->ssthresh_segments = lh_max(window->ssthresh_segments, law->kept_ssthresh);
		law->kept_ssthresh = 0;
	}
	lh_lastlink_begin_late(law, parameters, acked, window);
	lh_lastlink_measure(law, acked);
	most = lh_lastlink_max_cwnd(law, parameters, acked, window);
	law->cwnd_max_segments = most;
	before = window->cwnd_segments;
	if (most && before >= most)
		event.flags |= LH_HELD; /* CUBIC's clock stops, too */
	if (law->on_cubic)
		lh_cubic_acked(&law->cubic, &event, window);
	else
		lh_newreno_acked(&law->newreno, &event, window);
	/* a single ACK of many segments does not exceed it */
	if (most && window->cwnd_segments > lh_max(most, before))
		window->cwnd_segments = lh_max(most, before);
}

/* Retransmissions that count; the stack may have taken one back. */
static inline __u32 lh_lastlink_retransmits(const struct lh_lastlink *law, const struct lh_lost *lost)
{
	return lh_after(lost->retransmits, law->past_retransmits) ? lost->retransmits - law->past_retransmits : 0;
}

/* Halves the counts until they cover less than about twice memory_segments. */
static inline void lh_lastlink_forget(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				      const struct lh_lost *lost)
{
	__u32 sent = lost->segments_sent - law->past_segments, again = lh_lastlink_retransmits(law, lost);
	__u32 step, left = sent, left_again = again;

	/* for BPF's verifier: a number cannot be halved more often than it has bits */
	for (step = 0; step < 32 && left / 2 > parameters->memory_segments; step++) {
		left -= left / 2;
		left_again -= left_again / 2;
	}
	law->past_segments += sent - left;
	law->past_retransmits += again - left_again;
}

/* PLR > PER, beyond chance. */
static inline int lh_lastlink_is_excess(const struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					const struct lh_lost *lost)
{
	__u64 sent = lost->segments_sent - law->past_segments, again = lh_lastlink_retransmits(law, lost);
	__u64 error_ppm = lh_min(law->error_ppm, 1000000), deviations = lh_min(parameters->error_deviations, 10);
	__u64 retransmitted_ppm, expected_ppm, excess;

	if (parameters->error_max_ppm)
		error_ppm = lh_min(error_ppm, parameters->error_max_ppm);
	if (!parameters->count_retransmissions)
		sent -= sent < again ? sent : again;
	if (parameters->count_present_loss)
		again += lost->lost_segments;
	/* N_retr / N_tx > PER */
	retransmitted_ppm = again * 1000000;
	expected_ppm = error_ppm * sent;
	if (retransmitted_ppm <= expected_ppm)
		return 0;
	if (!deviations)
		return 1;
	/* (N_retr - PER N_tx)^2 > z^2 PER N_tx, in 10^-6: below 2^62 on either side */
	excess = (retransmitted_ppm - expected_ppm) / 1000;
	return excess >= 1ULL << 31 || excess * excess > deviations * deviations * expected_ppm;
}

static inline __u32 lh_lastlink_judge(const struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				      const struct lh_lost *lost)
{
	if (law->error_ppm == LH_ERROR_UNKNOWN ||
	    !lh_lastlink_uses(law, parameters->errors, LH_PERMIT_ERRORS, lost->now_us))
		return LH_LOSS_UNKNOWN;
	if (lh_lastlink_is_excess(law, parameters, lost))
		return LH_LOSS_EXCESS;
	if (parameters->queue_ratio_ppm && lost->min_rtt_us &&
	    lost->srtt_us * 1000000ULL > (__u64)parameters->queue_ratio_ppm * lost->min_rtt_us)
		return LH_LOSS_QUEUE;
	if (parameters->ignored_max && law->ignored_in_a_row >= parameters->ignored_max)
		return LH_LOSS_IN_TURN;
	return LH_LOSS_IGNORED;
}

/* Judges a loss event and counts it. Returns whether to ignore it. */
static inline int lh_lastlink_ignores(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				      const struct lh_lost *lost)
{
	__u32 verdict;

	if (parameters->memory_segments)
		lh_lastlink_forget(law, parameters, lost);
	verdict = lh_lastlink_judge(law, parameters, lost);
	law->kept_ssthresh = 0;
	law->initial_is_due = 0;
	law->ignored += verdict == LH_LOSS_IGNORED;
	law->heeded_unknown += verdict == LH_LOSS_UNKNOWN;
	law->heeded_excess += verdict == LH_LOSS_EXCESS;
	law->heeded_queue += verdict == LH_LOSS_QUEUE;
	law->heeded_in_turn += verdict == LH_LOSS_IN_TURN;
	if (verdict != LH_LOSS_IGNORED) {
		law->ignored_in_a_row = 0;
		return 0;
	}
	law->ignored_in_a_row++;
	/* CUBIC grows with the cube of an epoch's time: one epoch of m + 1 losses would gain far more than m + 1 epochs */
	law->cubic.epoch_start = 0;
	return 1;
}

/* The reduction of the base law. */
static inline void lh_lastlink_reduce(struct lh_lastlink *law, const struct lh_lost *lost, struct lh_window *window)
{
	if (law->on_cubic)
		lh_cubic_lost(&law->cubic, lost, window);
	else
		lh_newreno_lost(&law->newreno, lost, window);
}

static inline void lh_lastlink_lost(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	if (!lh_lastlink_ignores(law, parameters, lost))
		return lh_lastlink_reduce(law, lost, window);
	if (!parameters->errors_end_slow_start && lh_in_slow_start(window))
		law->kept_ssthresh = window->ssthresh_segments;
	lh_tolerate(window);
}

/* The stack sets the window to 1 in any case. After an ignored timeout, slow start returns to the former window. */
static inline void lh_lastlink_timed_out(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					 const struct lh_lost *lost, struct lh_window *window)
{
	if (parameters->timeouts_too && lh_lastlink_ignores(law, parameters, lost)) {
		lh_slow_start_again(&law->newreno.slow_start, lost->now_us, lost->snd_nxt);
		lh_slow_start_again(&law->cubic.slow_start, lost->now_us, lost->snd_nxt);
		lh_tolerate(window);
		return;
	}
	law->kept_ssthresh = 0;
	law->initial_is_due = 0;
	law->ignored_in_a_row = 0;
	if (law->on_cubic)
		lh_cubic_timed_out(&law->cubic, lost, window);
	else
		lh_newreno_timed_out(&law->newreno, lost, window);
}

/* ECN, or a full queue of this host: cancels what would be restored later. */
static inline void lh_lastlink_notified(struct lh_lastlink *law, const struct lh_lastlink_parameters *parameters,
					const struct lh_lost *notice, struct lh_window *window)
{
	(void)parameters;
	law->kept_ssthresh = 0;
	law->initial_is_due = 0;
	law->ignored_in_a_row = 0;
	lh_lastlink_reduce(law, notice, window);
}

static inline void lh_lastlink_sent(struct lh_lastlink *law, const struct lh_sent *sent)
{
	if (law->on_cubic)
		lh_cubic_sent(&law->cubic, sent);
}

#endif /* LASTHOP_LAWS_LASTLINK_H */

#ifdef LH_LAW_ENTRY
LH_LAW_ENTRY(lastlink, LASTLINK, Lastlink, "lastlink", Free, Circle, Everywhere,
	     "Uses what the client says of its last link: [wu].")
#endif
