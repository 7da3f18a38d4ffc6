/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * law.h - what a congestion control is told and what it may say.
 *
 * A law is a struct, lh_LAW, and one inline function per event:
 *
 *	lh_LAW_init(law, start)              a connection begins
 *	lh_LAW_acked(law, acked, window)     an ACK: may grow the window; may set ssthresh to end slow start
 *	lh_LAW_lost(law, lost, window)       a reduction begins: sets ssthresh
 *
 * These three it must have. It may have others, each told by a macro of the value 1, as in `#define LH_LAW_HAS_SENT 1`:
 *
 *	TIMED_OUT  lh_LAW_timed_out(law, lost, window)     a retransmission timeout: sets ssthresh. Else: lost()
 *	NOTIFIED   lh_LAW_notified(law, notice, window)    a reduction without a loss, for ECN or a full queue of this host: sets
 *	                                                   ssthresh. Nothing that a law could take for a radio error, so one
 *	                                                   that tolerates losses is not asked. Else: lh_reno_halve()
 *	SENT       lh_LAW_sent(law, sent)                  a transmission. Else nothing happens, as with the next two
 *	UNDONE     lh_LAW_undone(law, undone, window)      a reduction was needless
 *	REPORTED   lh_LAW_reported(law, report, window)    a client has said something of its last link. Before anything was sent
 *	                                                   it may set the window and ssthresh
 *
 * A law with parameters says LH_LAW_HAS_PARAMETERS and lists them in LH_LAW_PARAMETERS(P), see LH_FIELD below. It gets
 * them, as a struct lh_LAW_parameters, after itself in all events but sent and undone.
 *
 * At its end, behind the guard, the header of a law has its entry for laws.list:
 *
 *	LH_LAW_ENTRY(law, LAW, Law, "Label", Colour, Marker, Where, "What it is.")
 *
 * The name three times, as C, constants and Rust write it. Label, colour and marker are those of figures: src/name.rs
 * has those there are; Free is a colour, and then also a marker, that the others of a figure leave. Where: Everywhere; or Simulated, which makes no object for the kernel.
 *
 * The stack (the kernel, or the simulator's) detects losses, reduces the window towards ssthresh, sets it to 1 after a
 * timeout and restores it after a needless reduction; a law grows the window and says the new ssthresh. A law may
 * leave the window as it is at a loss (ssthresh = cwnd), and may reduce it by itself on an ACK: it then sets the window
 * and ssthresh, and the stack sends nothing until what is in flight is less. On an ACK that also reveals a loss the stack
 * calls lost() first and acked() then, without LH_MAY_GROW. timed_out() is not called
 * again while the same segment times out again: FlightSize says nothing by then (RFC 5681 section 3.1).
 *
 * Integer arithmetic only, no clock, no allocation, bounded loops, so that one source serves BPF and this machine.
 * Windows and counts are in segments; the low 32 bits of a byte sequence number stand for it.
 */
#ifndef LASTHOP_LAWS_LAW_H
#define LASTHOP_LAWS_LAW_H

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

/* TCP_INFINITE_SSTHRESH of the kernel: no loss has been seen */
#define LH_INFINITE_SSTHRESH 0x7fffffffU

/* RFC 5681 section 3.1 (4): ssthresh is at least this */
#define LH_MIN_SSTHRESH 2U

/* What a law acts on; it belongs to the stack. */
struct lh_window {
	__u32 cwnd_segments;
	__u32 cwnd_count; /* what is left over below one segment, in the law's own unit; the stack zeroes it after lost() */
	__u32 ssthresh_segments;
};

/* How a connection begins, and begins again after a timeout. */
enum lh_slow_start_kind {
	LH_SLOW_START_STANDARD = 0, /* RFC 5681 */
	LH_SLOW_START_HYSTART = 1, /* Linux's HyStart */
	LH_SLOW_START_HYSTART_PLUS_PLUS = 2, /* RFC 9406 */
};

struct lh_start {
	__u64 now_us;
	__u32 snd_nxt;
	__u32 slow_start; /* enum lh_slow_start_kind */
	__u32 seed; /* what the law's random draws follow from */
	__u32 timestamp_tick_us; /* of the clock behind tsval and tsecr; at least 1 */
};

enum lh_event_flags {
	LH_MAY_GROW = 1, /* data were acknowledged and no reduction is under way */
	LH_CWND_LIMITED = 2, /* the window, not the application or the receiver, limits what is in flight */
	LH_HAS_TIMESTAMP = 4, /* tsval and tsecr are valid */
	LH_PACED = 8, /* the sender spreads its segments over the round trip */
	LH_HELD = 16, /* an upper bound holds the window: it is not to grow, and a law's clock stands still */
	LH_ADVANCED = 32, /* snd_una moved */
	LH_IN_REDUCTION = 64, /* the stack reduces the window or recovers a loss (CWR, Recovery) */
};

struct lh_acked {
	__u64 now_us;
	__u32 acked_segments; /* newly delivered by this ACK, cumulatively or selectively */
	__u32 in_flight_segments; /* after this ACK */
	__u32 rtt_us; /* 0: no sample */
	__u32 srtt_us; /* 0: no sample yet */
	__u32 min_rtt_us; /* 0: no sample yet */
	__u32 snd_una; /* after this ACK */
	__u32 snd_nxt;
	__u32 tsval; /* the peer's clock */
	__u32 tsecr; /* our clock, echoed */
	__u32 flags; /* enum lh_event_flags */
};

struct lh_lost {
	__u64 now_us;
	__u32 in_flight_segments; /* FlightSize: sent, not cumulatively acknowledged */
	__u32 srtt_us;
	__u32 min_rtt_us;
	__u32 snd_una;
	__u32 snd_nxt;
	__u32 flags; /* enum lh_event_flags */
	__u32 segments_sent; /* with data, retransmissions too */
	__u32 retransmits; /* of those */
	__u32 lost_segments; /* known lost, and not sent again yet */
	__u32 reserved;
};

struct lh_sent {
	__u64 now_us;
	__u64 idle_us; /* since the previous transmission */
	__u32 in_flight_before_segments; /* 0: sending begins again after idleness */
	__u32 snd_nxt;
};

struct lh_undone {
	__u64 now_us;
};

/*
 * A parameter of a law, P(Unit, name, from, to, default, "What it does."): in the law's struct, a number in the unit in which
 * the law reads it. Elsewhere its name has the unit of the numbers: Milliseconds, name_ms; Seconds, name_s; Ratio, Count and
 * Flag, name.
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

/* RFC 5681: "slow start is used when cwnd < ssthresh"; where they are equal it is over, as in Linux. */
static inline int lh_in_slow_start(const struct lh_window *window)
{
	return window->cwnd_segments < window->ssthresh_segments;
}

static inline int lh_may_grow(const struct lh_acked *acked)
{
	return (acked->flags & (LH_MAY_GROW | LH_CWND_LIMITED | LH_HELD)) == (LH_MAY_GROW | LH_CWND_LIMITED);
}

/*
 * Slow start: one segment for each acknowledged, up to ssthresh. Returns the acknowledged segments that are left for
 * congestion avoidance. Only to be called in slow start.
 */
static inline __u32 lh_slow_start_by(struct lh_window *window, __u32 acked_segments)
{
	__u32 step = lh_min(acked_segments, window->ssthresh_segments - window->cwnd_segments);

	window->cwnd_segments += step;
	return acked_segments - step;
}

/*
 * One segment for each `per` acknowledged. What is left over waits in cwnd_count; if it was left there at a larger
 * `per` it makes one segment, not several (the kernel's rule).
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
