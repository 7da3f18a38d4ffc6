/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * law.h - the events that a congestion control gets, and its answers.
 *
 * A law is a struct, lh_LAW, and one inline function per event:
 *
 *	lh_LAW_init(law, start)              a connection begins
 *	lh_LAW_acked(law, acked, window)     an ACK: may grow the window; may set ssthresh to end slow start
 *	lh_LAW_lost(law, lost, window)       a reduction begins: sets ssthresh
 *
 * These three are required. Others are optional, each declared by a macro of value 1, as in
 * `#define LH_LAW_HAS_SENT 1`:
 *
 *	TIMED_OUT  lh_LAW_timed_out(law, lost, window)     a retransmission timeout: sets ssthresh. Default: lost()
 *	NOTIFIED   lh_LAW_notified(law, notice, window)    a reduction without a loss, by ECN or a full queue of this host: sets
 *	                                                   ssthresh. It cannot be a radio error, so a law that tolerates
 *	                                                   losses is not asked. Default: lh_reno_halve()
 *	SENT       lh_LAW_sent(law, sent)                  a transmission. Default: nothing, as with the next two
 *	UNDONE     lh_LAW_undone(law, undone, window)      a reduction was spurious
 *	REPORTED   lh_LAW_reported(law, report, window)    a client has reported its last link. Before the first transmission
 *	                                                   the law may set the window and ssthresh
 *
 * A law of the second form sets its window and its pace from what each ACK says of the delivery. It declares
 *
 *	SAMPLED    lh_LAW_sampled(law, sample, steering)   each ACK, also during a recovery: sets window, ssthresh and pace
 *
 * and needs no acked(). Its recovery is its own: the stack detects losses and sends again, but reduces nothing. It calls
 * lost(), timed_out() and notified() as ever, without heeding their ssthresh, sets the window to 1 more than what is in
 * flight after a timeout, and restores no window after undone() (Linux may raise ssthresh). The connection is paced. A
 * bound limits its window from above only, and its pace. Such a law may also have
 *
 *	RESUMED    lh_LAW_resumed(law, sample, steering)   data leave with nothing in flight, after the application had none.
 *	                                                   Of the sample times, totals and the flight are set
 *
 * Marks of ECN begin a reduction, notified(), once in a window. Its connections ask for ECN if their host does. A law that looks at
 * how many segments were marked declares
 *
 *	LH_LAW_ECHOES_MARKS    its connections ask for ECN in any case; all their segments may be marked, and their receivers echo
 *	                       each mark for itself (RFC 8257). Simulated only.
 *	LH_LAW_IS_L4S          its connections ask for accurate ECN (RFC 9768), and their segments are ECT(1): RFC 9331. Without
 *	                       it at the other end they have no ECN. Simulated only; not with the one above.
 *
 * A law with parameters defines LH_LAW_HAS_PARAMETERS and lists them in LH_LAW_PARAMETERS(P), see LH_FIELD below. All
 * its events but sent and undone get them as a struct lh_LAW_parameters after the law.
 *
 * At its end, after the guard, a law's header has its entry for laws.list:
 *
 *	LH_LAW_ENTRY(law, LAW, Law, "Label", Colour, Marker, Where, "What it is.")
 *
 * The name is given three times, as C, constants and Rust spell it. Label, colour and marker are those of figures
 * (src/name.rs); a law outside the tree always has Free, Circle. Free is a colour, and also a marker: one that no other
 * law of a figure uses. Where is Everywhere or Simulated; the latter makes no object for the kernel.
 *
 * The stack (the kernel's or the simulator's) detects losses, reduces the window towards ssthresh, sets it to 1 after a
 * timeout and restores it after a spurious reduction. The law grows the window and sets ssthresh. At a loss it may
 * leave the window (ssthresh = cwnd). On an ACK it may reduce the window itself: it sets the window and ssthresh, and
 * the stack sends nothing until the flight is smaller. On an ACK that also reveals a loss the stack calls lost(), then
 * acked() without LH_MAY_GROW. It does not call timed_out() again while the same segment times out repeatedly:
 * FlightSize means nothing then (RFC 5681 section 3.1).
 *
 * Integer arithmetic only, no clock, no allocation, bounded loops: one source serves BPF and this machine. Windows and
 * counts are in segments. Sequence numbers are the low 32 bits of a byte sequence number.
 */
#ifndef LASTHOP_LAWS_LAW_H
#define LASTHOP_LAWS_LAW_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* TCP_INFINITE_SSTHRESH of the kernel: before the first loss */
#define LH_INFINITE_SSTHRESH 0x7fffffffU

/*
 * The greatest window: more segments than the greatest receive window has, 2^30 bytes (RFC 7323 section 2.3), of 64 bytes
 * each. A law that sets a greater one gets this.
 */
#define LH_MAX_WINDOW 0x1000000U

/* RFC 5681 section 3.1 (4): the least ssthresh */
#define LH_MIN_SSTHRESH 2U

/* The window that a law changes; the stack owns it. */
struct lh_window {
	__u32 cwnd_segments; /* the congestion window */
	__u32 cwnd_count; /* the fraction of a segment, in the law's own unit; the stack zeroes it after lost() */
	__u32 ssthresh_segments; /* slow start below it, congestion avoidance from it on; LH_INFINITE_SSTHRESH: no loss yet */
};

/* The kind of slow start, at the beginning and after a timeout. */
enum lh_slow_start_kind {
	LH_SLOW_START_STANDARD = 0, /* RFC 5681 */
	LH_SLOW_START_HYSTART = 1, /* Linux's HyStart */
	LH_SLOW_START_HYSTART_PLUS_PLUS = 2, /* RFC 9406 */
};

struct lh_start {
	__u64 now_us;
	__u32 snd_nxt;
	__u32 slow_start; /* enum lh_slow_start_kind */
	__u32 seed; /* of the law's random draws */
	__u32 timestamp_tick_us; /* tick of the clock behind tsval and tsecr; at least 1 */
};

enum lh_event_flags {
	LH_MAY_GROW = 1, /* data were acknowledged outside a reduction */
	LH_CWND_LIMITED = 2, /* the window limits the flight, not the application or the receiver */
	LH_HAS_TIMESTAMP = 4, /* tsval and tsecr are valid */
	LH_PACED = 8, /* the sender spreads its segments over the round trip */
	LH_HELD = 16, /* an upper bound limits the window: the law must not grow it, and its clock stops */
	LH_ADVANCED = 32, /* snd_una advanced */
	LH_IN_REDUCTION = 64, /* the stack is reducing the window or recovering a loss (CWR, Recovery) */
};

/* An ACK arrived. All zeroes: an ACK of nothing. */
struct lh_acked {
	__u64 now_us; /* now */
	__u32 acked_segments; /* newly delivered by this ACK, cumulatively or selectively */
	__u32 in_flight_segments; /* in flight after this ACK */
	__u32 rtt_us; /* what this ACK measured; 0: no sample */
	__u32 srtt_us; /* smoothed; 0: no sample yet */
	__u32 min_rtt_us; /* the lowest; 0: no sample yet */
	__u32 snd_una; /* the first unacknowledged byte after this ACK */
	__u32 snd_nxt; /* the next byte to send */
	__u32 tsval; /* the peer's clock; valid with LH_HAS_TIMESTAMP */
	__u32 tsecr; /* our clock, echoed; likewise */
	__u32 flags; /* enum lh_event_flags */
	__u32 marked_segments; /* of those acknowledged, so many were marked (ECN), as far as the ACKs tell */
	__u32 reserved; /* 0 */
};

/* A reduction begins, or a retransmission timer has fired. */
struct lh_lost {
	__u64 now_us; /* now */
	__u32 in_flight_segments; /* FlightSize: sent, not cumulatively acknowledged */
	__u32 srtt_us; /* smoothed; 0: no sample yet */
	__u32 min_rtt_us; /* the lowest; 0: no sample yet */
	__u32 snd_una; /* the first unacknowledged byte */
	__u32 snd_nxt; /* the next byte to send */
	__u32 flags; /* enum lh_event_flags */
	__u32 segments_sent; /* data segments so far, with retransmissions */
	__u32 retransmits; /* retransmissions among them */
	__u32 lost_segments; /* known lost and not retransmitted yet */
	__u32 reserved; /* 0 */
};

/* A segment of new data leaves. */
struct lh_sent {
	__u64 now_us; /* now */
	__u64 idle_us; /* since the previous transmission */
	__u32 in_flight_before_segments; /* in flight before it; 0: the first transmission after idleness */
	__u32 snd_nxt; /* the next byte to send */
};

/* A reduction turns out to have been needless. */
struct lh_undone {
	__u64 now_us; /* now */
};

/* What the stack is doing: CongestionState of Linux (TCP_CA_), in its order. */
enum lh_state {
	LH_STATE_OPEN,
	LH_STATE_DISORDER,
	LH_STATE_CWR,
	LH_STATE_RECOVERY,
	LH_STATE_LOSS,
};

/*
 * What an ACK says of the delivery: Linux's struct rate_sample, and what its laws read of the connection. The sample is
 * taken between the transmission of the newest segment that the ACK delivers and now (draft-cheng-iccrg-delivery-rate-
 * estimation).
 */
struct lh_rate_sample {
	__u64 now_us; /* now */
	__u64 delivered_us; /* when data were last delivered */
	__u64 departs_us; /* when the pace lets the next segment go; at least now_us */
	__u32 interval_us; /* what the sample took; 0: no sample */
	__u32 sampled_segments; /* delivered in that time */
	__u32 prior_delivered_segments; /* delivered when it began */
	__u32 prior_in_flight_segments; /* in flight before this ACK */
	__u32 acked_segments; /* newly delivered by this ACK, cumulatively or selectively */
	__u32 lost_segments; /* newly found lost */
	__u32 in_flight_segments; /* in flight after it */
	__u32 all_delivered_segments; /* since the connection began, modulo 2^32 */
	__u32 all_lost_segments; /* likewise */
	__u32 rtt_us; /* what this ACK measured; 0: no measurement */
	__u32 srtt_us; /* smoothed; 0: no measurement yet */
	__u32 min_rtt_us; /* the lowest; 0: no measurement yet */
	__u32 snd_una; /* the first unacknowledged byte after this ACK */
	__u32 snd_nxt; /* the next byte to send */
	__u32 segment_bytes; /* the payload of a full segment */
	__u32 state; /* enum lh_state, after this ACK */
	__u32 app_limited; /* 1: when the sample began the application limited the flight */
	__u32 all_marked_segments; /* delivered with a mark (ECN), as far as the ACKs tell; like all_delivered_segments */
};

/* What a law of the second form sets. */
struct lh_steering {
	__u64 pace; /* bytes of payload a second; 0: TCP's own (2 or 1.2 windows a round trip) */
	__u32 cwnd_segments; /* the congestion window; at least 1 */
	__u32 ssthresh_segments; /* LH_INFINITE_SSTHRESH at first; TCP's own pace is 2 windows a round trip below half of it, else 1.2 */
	__u32 app_limited; /* 1: the law itself limits the flight now, so that samples count as the application's */
	__u32 reserved; /* 0 */
};

/*
 * A parameter of a law, P(Unit, name, from, to, default, "What it does."). In the law's struct it is a number in the
 * unit of the field. Elsewhere its name has the unit: Milliseconds, name_ms; Seconds, name_s; Ratio, Count and Flag,
 * name.
 */
#define LH_FIELD(unit, name, ...) __u32 LH_FIELD_##unit(name);
#define LH_FIELD_Milliseconds(name) name##_us
#define LH_FIELD_Seconds(name) name##_us
#define LH_FIELD_Ratio(name) name##_ppm
#define LH_FIELD_Count(name) name
#define LH_FIELD_Flag(name) name /* 0 or 1 */

static inline __u32 lh_min(__u32 a, __u32 b)
{
	return a < b ? a : b;
}

static inline __u32 lh_max(__u32 a, __u32 b)
{
	return a > b ? a : b;
}

/* Whether sequence number `a` is after `b`, modulo 2^32. */
static inline int lh_after(__u32 a, __u32 b)
{
	return (__s32)(b - a) < 0;
}

static inline __u32 lh_saturating_add(__u32 a, __u32 b)
{
	__u32 sum = a + b;

	return sum < a ? ~0U : sum;
}

/* RFC 5681: "slow start is used when cwnd < ssthresh". Equality ends it, as in Linux. */
static inline int lh_in_slow_start(const struct lh_window *window)
{
	return window->cwnd_segments < window->ssthresh_segments;
}

static inline int lh_may_grow(const struct lh_acked *acked)
{
	return (acked->flags & (LH_MAY_GROW | LH_CWND_LIMITED | LH_HELD)) == (LH_MAY_GROW | LH_CWND_LIMITED);
}

/*
 * Slow start: one segment for each acknowledged, up to ssthresh. Returns the acknowledged segments left for congestion
 * avoidance. Call it only in slow start.
 */
static inline __u32 lh_slow_start_by(struct lh_window *window, __u32 acked_segments)
{
	__u32 step = lh_min(acked_segments, window->ssthresh_segments - window->cwnd_segments);

	window->cwnd_segments += step;
	return acked_segments - step;
}

/*
 * One segment for each `per` acknowledged. The rest waits in cwnd_count. A rest from a larger `per` makes at most one
 * segment (the kernel's rule).
 */
static inline void lh_grow_one_per(struct lh_window *window, __u32 per, __u32 acked_segments)
{
	__u32 steps = 0;

	if (!per)
		per = 1;
	if (window->cwnd_count >= per) {
		window->cwnd_count = 0;
		steps = 1;
	}
	window->cwnd_count = lh_saturating_add(window->cwnd_count, acked_segments);
	if (window->cwnd_count >= per) {
		steps += window->cwnd_count / per;
		window->cwnd_count %= per;
	}
	window->cwnd_segments = lh_saturating_add(window->cwnd_segments, steps);
}

#endif /* LASTHOP_LAWS_LAW_H */
