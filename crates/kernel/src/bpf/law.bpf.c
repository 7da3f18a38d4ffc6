// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * law - one of our congestion controls in the kernel: the headers of laws/include, which simulated hosts run too,
 * behind struct_ops. Compiled once for each law, with LH_LAW (enum lh_law_name) as a constant, so that each object
 * contains only its own law.
 *
 * 1. The division of work. The kernel detects losses, retransmits, and calls; the law grows the window and answers a
 *    loss. stack.h reduces the window as the kernel does for controls without cong_control.
 *
 *        each ACK              acked()                       the window, possibly a reduction by the law
 *        Recovery begins       lost()                        ssthresh
 *        a tail loss probe
 *          has repaired a loss lost()                        ssthresh and window
 *        a timeout             timed_out()                   ssthresh
 *        CWR begins            (no event)                    ssthresh = half the flight: ECN or a full local queue is
 *                                                            no loss that a law could tolerate
 *        spurious              undone()
 *
 * 2. ssthresh. The kernel calls ssthresh() before the state changes, where Recovery, CWR and timeout look alike. So
 *    ssthresh() answers with half the window, which is always safe. set_state(), which gets the new state, asks the law
 *    and writes snd_ssthresh. The window of the event is prior_cwnd; we keep the former ssthresh ourselves.
 *
 * 3. A tolerated loss has ssthresh = window. PRR then aims at the window itself. Each delivered segment allows one, or
 *    two if snd_una moved and nothing more was lost, up to the window. Lost segments are retransmitted first, as
 *    always. In the end the window is ssthresh, so it is unchanged. Undo restores the same window and the former
 *    ssthresh. A timeout during such a recovery does reduce, since nothing was reduced before; the kernel would not
 *    reduce a second time in one window.
 *
 * 4. The law's state does not fit into icsk_ca_priv. It is in a storage of the socket, created at init() and deleted at
 *    release(). Without memory for it NewReno decides, and the next ACK tries again.
 *
 * 5. A law that steers (LH_LAW_HAS_SAMPLED) sets window, ssthresh and the socket's pacing rate at each ACK, and nothing
 *    above is done for it: ssthresh() keeps ssthresh, undo_cwnd() the window, and no reduction is made or ended.
 *
 * 6. Skipped programs (see stack.h). The next hook detects what was skipped: init() by `begun`, set_state() by the last
 *    state seen, ssthresh() by ignoring the kernel's value.
 *
 * Hooks: struct_ops/tcp_congestion_ops, socket locked, softirq or process context, never sleeping; and an iterator over
 * the storages. For the verifier: the law's name is set again before each call, so that the compiler drops the others;
 * law_acked() is a global function; windows are copies on the stack, because the fields of a socket have no address
 * that could be passed on.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "law_intf.h"

#include "stack.h"

const volatile struct lh_about about SEC(".rodata.about") = {
	.magic = LH_ABOUT_MAGIC,
	.law = LH_LAW,
	.about_bytes = sizeof(struct lh_about),
	.flow_bytes = sizeof(struct lh_flow),
	.record_bytes = sizeof(struct lh_flow_record),
	.counters_bytes = sizeof(struct lh_law_counters),
	.heard_bytes = sizeof(struct lh_heard_counters),
};

/* Written by loaders only, at any time. */
union lh_parameters parameters SEC(".data.parameters") = {};

/* Written by the programs only. */
struct lh_law_counters counters SEC(".bss.counters") = {};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lh_flow);
} flows SEC(".maps");

/* Our part of icsk_ca_priv, which the kernel zeroes whenever a socket gets a control. */
struct own {
	struct stack stack;
	__u32 begun; /* 1: init() was run */
	__u32 ca_state; /* the last one seen */
	__u32 ssthresh; /* before the current reduction, else the current one */
	__u32 tolerated; /* 1: the current reduction leaves the window unchanged */
	__u32 cwr_una; /* snd_una when the latest CWR began */
	__u32 asked; /* 1: we asked TCP to pace */
	__u32 skipped; /* hooks pretended to be skipped, for tests */
	__u32 delivered_ce; /* tp->delivered_ce at the last ACK */
	__u64 acked_us; /* when data were last acknowledged; 0: not yet */
};

enum call {
	CALL_INIT,
	CALL_ACKED,
	CALL_LOST,
	CALL_TIMED_OUT,
	CALL_UNDONE,
	CALL_REPORTED,
};

/* Tests record the events and the answers of a law: tests/bpf/record_law.bpf.c. */
static __always_inline void record(__u32 call, struct tcp_sock *tp, const struct lh_flow *flow, const void *event,
				   __u32 event_bytes, const struct lh_window *before, const struct lh_window *after);
#ifndef LH_RECORDS
static __always_inline void record(__u32 call, struct tcp_sock *tp, const struct lh_flow *flow, const void *event,
				   __u32 event_bytes, const struct lh_window *before, const struct lh_window *after)
{
}
#endif

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/* The law. Sets its name as a constant, so that the compiler knows it at the call and drops the other laws. */
static __always_inline struct lh_law *law_of(struct lh_flow *flow)
{
	flow->law.name = LH_LAW;
	return &flow->law;
}

static __always_inline struct own *own_of(struct tcp_sock *tp)
{
	return (struct own *)tp->inet_conn.icsk_ca_priv;
}

static __always_inline __u64 now_us_of(struct tcp_sock *tp)
{
	return tp->tcp_mstamp;
}

static __always_inline __u32 min_rtt_us_of(struct tcp_sock *tp)
{
	__u32 min = tp->rtt_min.s[0].v;

	return min == ~0U ? 0 : min;
}

/* include/net/tcp.h tcp_is_cwnd_limited() */
static __always_inline bool is_cwnd_limited(struct tcp_sock *tp)
{
	if (BPF_CORE_READ_BITFIELD(tp, is_cwnd_limited))
		return true;
	return tp->snd_cwnd < tp->snd_ssthresh && tp->snd_cwnd < 2 * tp->max_packets_out;
}

/* The tick of the timestamps' clock: 1 ms, or 1 us if the route says so. */
static __always_inline __u32 timestamp_tick_us(struct tcp_sock *tp)
{
	if (bpf_core_field_exists(tp->tcp_usec_ts) && BPF_CORE_READ_BITFIELD(tp, tcp_usec_ts))
		return 1;
	return 1000;
}

static __always_inline __u32 clamped(struct tcp_sock *tp, __u32 window, __u32 least)
{
	if (window > tp->snd_cwnd_clamp)
		window = tp->snd_cwnd_clamp;
	if (window > LH_MAX_WINDOW)
		window = LH_MAX_WINDOW;
	return window > least ? window : least;
}

/* Only the law of the last link hears clients' reports. */
#ifdef LH_LAST_LINK
#include "last_link.h"
#else
static __always_inline void tell_report(struct tcp_sock *tp, struct lh_flow *flow)
{
	flow->reported = 0;
}

static __always_inline void tell_before_sending(struct tcp_sock *tp)
{
}
#endif

static __always_inline void begin_law(struct tcp_sock *tp, struct lh_flow *flow)
{
	struct lh_start start = {
		.now_us = now_us_of(tp),
		.snd_nxt = tp->snd_nxt,
		.slow_start = LH_SLOW_START_STANDARD,
		.seed = bpf_get_prandom_u32(),
		.timestamp_tick_us = timestamp_tick_us(tp),
	};
	struct lh_window window = {
		.cwnd_segments = tp->snd_cwnd,
		.cwnd_count = tp->snd_cwnd_cnt,
		.ssthresh_segments = tp->snd_ssthresh,
	};

	__builtin_memset(flow, 0, sizeof(*flow));
	flow->begun = 1;
	flow->reported = 1; /* possibly; see tell_report() */
	lh_law_init(&flow->law, LH_LAW, &parameters, &start);
	record(CALL_INIT, tp, flow, &start, sizeof(start), &window, &window);
	count(&counters.begun);
}

/* The socket's storage; created now if init() was skipped or had no memory. */
static __always_inline struct lh_flow *flow_of(struct tcp_sock *tp)
{
	struct lh_flow *flow = bpf_sk_storage_get(&flows, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);

	if (!flow) {
		count(&counters.storage_missing);
		return NULL;
	}
	if (!flow->begun) {
		begin_law(tp, flow);
		count(&counters.repaired);
	}
	return flow;
}

static __always_inline void begin_own(struct tcp_sock *tp)
{
	struct own *own = own_of(tp);

	begin_stack(tp, &own->stack);
	own->begun = 1;
	own->ca_state = ca_state_of(tp);
	own->ssthresh = tp->snd_ssthresh;
	own->delivered_ce = tp->delivered_ce;
	if (lh_law_steers(LH_LAW))
		own->asked = asks_for_pace(tp);
}

/* Whether to behave as if the kernel had skipped this hook: every second time, for tests. */
static __always_inline bool skipped(struct tcp_sock *tp)
{
	return about.skip && own_of(tp)->skipped++ % 2 == 0;
}

/* At least 0, without a branch: for the verifier a branch here multiplies all paths of a law. */
static __always_inline __u32 lost_and_not_sent_again(struct tcp_sock *tp)
{
	__s64 lost = (__s64)tp->lost_out - tp->retrans_out;

	return lost & ~(lost >> 63);
}

enum reduction {
	REDUCTION_NONE,
	REDUCTION_NOTIFIED,
	REDUCTION_LOST,
	REDUCTION_TIMED_OUT,
};

/*
 * tcp_enter_loss(): whether this timeout reduces. Not again in a window that was reduced, but again after a tolerated
 * loss. tcp_simple_retransmit(), after a change of the MTU, also enters Loss; it reduces nothing and sets no
 * undo_marker.
 */
static __always_inline bool timeout_reduces(struct tcp_sock *tp, __u8 old_state)
{
	if (old_state <= TCP_CA_Disorder)
		return tp->undo_marker;
	if (!lh_after(tp->high_seq, tp->snd_una))
		return true;
	if (old_state == TCP_CA_Loss)
		return !tp->inet_conn.icsk_retransmits;
	return own_of(tp)->tolerated && tp->undo_marker;
}

/*
 * The kind of reduction that a change of state means. When a tail loss probe has repaired a loss, tcp_process_tlp_ack()
 * begins and ends CWR within one ACK; a real CWR lasts until snd_una moves.
 */
static __always_inline __u32 reduction_by(struct tcp_sock *tp, __u8 old_state, __u8 new_state)
{
	switch (new_state) {
	case TCP_CA_Loss:
		return timeout_reduces(tp, old_state) ? REDUCTION_TIMED_OUT : REDUCTION_NONE;
	case TCP_CA_Recovery:
		return in_reduction(old_state) ? REDUCTION_NONE : REDUCTION_LOST;
	case TCP_CA_CWR:
		return in_reduction(old_state) ? REDUCTION_NONE : REDUCTION_NOTIFIED;
	default:
		return old_state == TCP_CA_CWR && tp->snd_una == own_of(tp)->cwr_una ? REDUCTION_LOST : REDUCTION_NONE;
	}
}

/* A reduction or a timeout recovery begins: asks the law for ssthresh, with the window of before. */
static __always_inline void reduce(struct tcp_sock *tp, __u32 reduction)
{
	struct own *own = own_of(tp);
	struct lh_window before = {
		.cwnd_segments = prior_window(tp),
		.cwnd_count = 0,
		.ssthresh_segments = own->ssthresh,
	};
	struct lh_window window = before;
	struct lh_lost lost = {
		.now_us = now_us_of(tp),
		.in_flight_segments = tp->packets_out,
		.srtt_us = tp->srtt_us >> 3,
		.min_rtt_us = min_rtt_us_of(tp),
		.snd_una = tp->snd_una,
		.snd_nxt = tp->snd_nxt,
		.segments_sent = tp->data_segs_out,
		.retransmits = tp->total_retrans,
		.lost_segments = lost_and_not_sent_again(tp),
	};
	struct lh_flow *flow = flow_of(tp);
	__u32 most = 0;

	if (!flow) {
		lh_reno_halve(&lost, &window);
	} else if (reduction == REDUCTION_NOTIFIED) {
		lh_law_notified(law_of(flow), &parameters, &lost, &window);
	} else if (reduction == REDUCTION_LOST) {
		lh_law_lost(law_of(flow), &parameters, &lost, &window);
		record(CALL_LOST, tp, flow, &lost, sizeof(lost), &before, &window);
	} else {
		lh_law_timed_out(law_of(flow), &parameters, &lost, &window);
		record(CALL_TIMED_OUT, tp, flow, &lost, sizeof(lost), &before, &window);
	}
	if (flow && lh_law_steers(LH_LAW)) {
		/* its window is its own, and so is its recovery; nothing is reduced, so that a timeout within is told */
		window.ssthresh_segments = before.ssthresh_segments;
		tp->snd_ssthresh = before.ssthresh_segments;
		own->tolerated = 1;
		goto count;
	}
	/* CHD may answer with half its shadow window, which must not exceed the receiver's window */
	if (tp->mss_cache)
		most = tp->snd_wnd / tp->mss_cache;
	most = lh_max(most, before.cwnd_segments);
	window.ssthresh_segments = lh_max(lh_min(window.ssthresh_segments, most), LH_MIN_SSTHRESH);
	tp->snd_ssthresh = window.ssthresh_segments;
	own->stack.prr_delivered = 0;
	own->tolerated = window.ssthresh_segments >= before.cwnd_segments;
count:
	if (reduction == REDUCTION_LOST) {
		count(&counters.losses);
		if (own->tolerated)
			count(&counters.tolerated);
	} else if (reduction == REDUCTION_TIMED_OUT) {
		count(&counters.timeouts);
	}
	if (flow && reduction == REDUCTION_LOST) {
		flow->losses++;
		flow->tolerated += own->tolerated;
	} else if (flow && reduction == REDUCTION_TIMED_OUT) {
		flow->timeouts++;
	}
}

/* Whether the law sets window and pace; without memory for it NewReno decides. */
static __always_inline bool steers(struct tcp_sock *tp)
{
	return lh_law_steers(LH_LAW) && bpf_sk_storage_get(&flows, tp, NULL, 0);
}

static __always_inline void change_state(struct tcp_sock *tp, __u8 old_state, __u8 new_state)
{
	__u32 reduction = reduction_by(tp, old_state, new_state);

	if (reduction != REDUCTION_NONE)
		reduce(tp, reduction);
	if (reduction == REDUCTION_NOTIFIED)
		own_of(tp)->cwr_una = tp->snd_una;
	else if (old_state == TCP_CA_CWR && new_state != TCP_CA_CWR && reduction != REDUCTION_LOST)
		count(&counters.notified);
	if (!steers(tp))
		ends_reduction(tp, old_state, new_state);
	own_of(tp)->ca_state = new_state;
}

/*
 * Before init() a SYN may time out and a SYN-ACK be acknowledged. They do not concern the law, and the kernel resets
 * their ssthresh (tcp_init_metrics()).
 */
static __always_inline bool in_handshake(struct tcp_sock *tp)
{
	return !BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_initialized);
}

/* Does the work of skipped hooks. */
static __always_inline void catch_up(struct tcp_sock *tp, __u8 ca_state)
{
	struct own *own = own_of(tp);

	repair_window(tp);
	if (!own->begun) {
		begin_own(tp);
		count(&counters.repaired);
	}
	if (own->ca_state != ca_state) {
		change_state(tp, own->ca_state, ca_state);
		count(&counters.repaired);
	}
}

/*
 * Most of a law. A function with external linkage, so that the verifier checks it once by itself, not once for each
 * path that leads here.
 */
__attribute__((noinline)) int law_acked(struct lh_law *law, const struct lh_acked *acked, struct lh_window *window)
{
	if (!law || !acked || !window)
		return 0;
	law->name = LH_LAW;
	lh_law_acked(law, &parameters, acked, window);
	return 0;
}

/* The same of a law that steers. */
__attribute__((noinline)) int law_sampled(struct lh_law *law, const struct lh_rate_sample *sample,
					  struct lh_steering *steering)
{
	if (!law || !sample || !steering)
		return 0;
	law->name = LH_LAW;
	lh_law_sampled(law, &parameters, sample, steering);
	return 0;
}

/* What a law that steers is told of the connection, without a delivery. */
static __always_inline void read_sample(struct tcp_sock *tp, struct lh_rate_sample *sample)
{
	sample->now_us = now_us_of(tp);
	sample->delivered_us = tp->delivered_mstamp;
	sample->departs_us = sample->now_us;
	if (tp->tcp_wstamp_ns > tp->tcp_clock_cache)
		sample->departs_us += (tp->tcp_wstamp_ns - tp->tcp_clock_cache) / 1000;
	sample->in_flight_segments = in_flight_of(tp);
	sample->all_delivered_segments = tp->delivered;
	sample->all_lost_segments = tp->lost;
	sample->all_marked_segments = tp->delivered_ce;
	sample->srtt_us = tp->srtt_us >> 3;
	sample->min_rtt_us = min_rtt_us_of(tp);
	sample->snd_una = tp->snd_una;
	sample->snd_nxt = tp->snd_nxt;
	sample->segment_bytes = tp->mss_cache;
	sample->state = ca_state_of(tp);
}

static __always_inline void read_steering(struct tcp_sock *tp, const struct lh_flow *flow, struct lh_steering *steering)
{
	steering->pace = flow->paced ? tp->inet_conn.icsk_inet.sk.sk_pacing_rate : 0;
	steering->cwnd_segments = tp->snd_cwnd ? tp->snd_cwnd : 1;
	steering->ssthresh_segments = tp->snd_ssthresh;
}

/* Its answer. */
static __always_inline void take_steering(struct tcp_sock *tp, struct lh_flow *flow, const struct lh_steering *steering)
{
	__u64 most = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;

	set_window(tp, clamped(tp, steering->cwnd_segments, 1));
	if (tp->snd_ssthresh != steering->ssthresh_segments)
		tp->snd_ssthresh = lh_max(steering->ssthresh_segments, LH_MIN_SSTHRESH);
	flow->paced = steering->pace != 0;
	if (flow->paced)
		tp->inet_conn.icsk_inet.sk.sk_pacing_rate = steering->pace < most ? steering->pace : most;
	else
		update_pacing_rate(tp);
	if (steering->app_limited) {
		__u32 until = tp->delivered + in_flight_of(tp);

		tp->app_limited = until ? until : 1;
	}
}

/* An ACK, for a law that steers. */
static __always_inline void on_sampled(struct tcp_sock *tp, struct lh_flow *flow, const struct rate_sample *rs)
{
	struct lh_rate_sample sample = {};
	struct lh_steering steering = {};
	__s32 acked = rs->acked_sacked, delivered = rs->delivered;
	__s64 interval_us = rs->interval_us;

	read_sample(tp, &sample);
	if (delivered >= 0 && interval_us > 0) {
		sample.interval_us = interval_us;
		sample.sampled_segments = delivered;
		sample.prior_delivered_segments = rs->prior_delivered;
		sample.app_limited = rs->is_app_limited;
	}
	sample.prior_in_flight_segments = rs->prior_in_flight;
	sample.acked_segments = acked > 0 ? acked : 0;
	sample.lost_segments = rs->losses;
	if (rs->rtt_us >= 0)
		sample.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 1;
	read_steering(tp, flow, &steering);
	law_sampled(&flow->law, &sample, &steering);
	take_steering(tp, flow, &steering);
	own_of(tp)->ssthresh = tp->snd_ssthresh;
}

/* net/ipv4/tcp_input.c tcp_cong_control() */
static __always_inline void on_acked(struct tcp_sock *tp, int flag, const struct rate_sample *rs)
{
	__u8 ca_state = ca_state_of(tp);
	struct lh_window before, window;
	struct lh_acked acked = {};
	struct lh_flow *flow;
	__s32 delivered = rs->acked_sacked;

	if (in_handshake(tp)) {
		update_pacing_rate(tp);
		return;
	}
	catch_up(tp, ca_state);
	flow = flow_of(tp);
	if (flow && lh_law_steers(LH_LAW)) {
		on_sampled(tp, flow, rs);
		return;
	}
	if (flow && flow->reported)
		tell_report(tp, flow);

	acked.now_us = now_us_of(tp);
	acked.acked_segments = delivered > 0 ? delivered : 0;
	acked.in_flight_segments = in_flight_of(tp);
	if (rs->rtt_us >= 0)
		acked.rtt_us = rs->rtt_us > 0 ? rs->rtt_us : 1;
	acked.srtt_us = tp->srtt_us >> 3;
	acked.min_rtt_us = min_rtt_us_of(tp);
	acked.snd_una = tp->snd_una;
	acked.snd_nxt = tp->snd_nxt;
	acked.marked_segments = tp->delivered_ce - own_of(tp)->delivered_ce;
	own_of(tp)->delivered_ce = tp->delivered_ce;
	if (in_reduction(ca_state))
		acked.flags = LH_IN_REDUCTION;
	else if (may_grow(tp, flag))
		acked.flags = LH_MAY_GROW;
	if (flag & FLAG_SND_UNA_ADVANCED)
		acked.flags |= LH_ADVANCED;
	if (is_cwnd_limited(tp))
		acked.flags |= LH_CWND_LIMITED;
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status)
		acked.flags |= LH_PACED;
	if (BPF_CORE_READ_BITFIELD(tp, rx_opt.saw_tstamp)) {
		acked.flags |= LH_HAS_TIMESTAMP;
		acked.tsval = tp->rx_opt.rcv_tsval;
		acked.tsecr = tp->rx_opt.rcv_tsecr;
	}

	/* an ACK without news is no event for a law */
	if (acked.acked_segments || acked.flags & LH_ADVANCED) {
		before.cwnd_segments = tp->snd_cwnd;
		before.cwnd_count = tp->snd_cwnd_cnt;
		before.ssthresh_segments = tp->snd_ssthresh;
		window = before;
		own_of(tp)->acked_us = acked.now_us;
		if (flow) {
			law_acked(&flow->law, &acked, &window);
			record(CALL_ACKED, tp, flow, &acked, sizeof(acked), &before, &window);
		} else {
			lh_reno_grow(&acked, &window);
		}
		if (window.cwnd_segments != before.cwnd_segments) {
			set_window(tp, clamped(tp, window.cwnd_segments, ca_state == TCP_CA_Loss ? 1 : 2));
			tp->snd_cwnd_stamp = bpf_jiffies64();
		}
		if (window.cwnd_segments < before.cwnd_segments) {
			count(&counters.back_offs);
			if (flow)
				flow->back_offs++;
		}
		if (window.cwnd_count != before.cwnd_count)
			tp->snd_cwnd_cnt = window.cwnd_count;
		if (window.ssthresh_segments != before.ssthresh_segments)
			tp->snd_ssthresh = window.ssthresh_segments;
	}
	if (in_reduction(ca_state))
		reduce_window(tp, &own_of(tp)->stack, rs, flag & FLAG_SND_UNA_ADVANCED);
	update_pacing_rate(tp);
	own_of(tp)->ssthresh = tp->snd_ssthresh;
}

/* Each ACK, since 6.10. */
SEC("struct_ops")
void BPF_PROG(law_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (about.derive_flags)
		flag = derived_flags(tp, &own_of(tp)->stack, rs);
	on_acked(tp, flag, rs);
}

/* Each ACK, before 6.10, which passes neither the ACK nor its flags. Loaded in place of the one above if BTF says so. */
SEC("?struct_ops")
void BPF_PROG(law_cong_control_old, struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	on_acked(tp, derived_flags(tp, &own_of(tp)->stack, rs), rs);
}

/* A socket gets this law: at its handshake, or later by setsockopt, possibly during a recovery. */
SEC("struct_ops")
void BPF_PROG(law_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct lh_flow *flow;

	if (skipped(tp))
		return;
	begin_own(tp);
	flow = bpf_sk_storage_get(&flows, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (flow) {
		begin_law(tp, flow);
		tell_report(tp, flow);
		own_of(tp)->ssthresh = tp->snd_ssthresh;
	} else {
		count(&counters.storage_missing);
	}
	if (tp->srtt_us)
		update_pacing_rate(tp);
}

/* The socket gets another control, or ends. */
SEC("struct_ops")
void BPF_PROG(law_release, struct sock *sk)
{
	if (own_of((struct tcp_sock *)sk)->asked)
		end_pace((struct tcp_sock *)sk);
	bpf_sk_storage_delete(&flows, sk);
}

/* A reduction begins; only set_state() gets its kind. See 2. */
SEC("struct_ops")
__u32 BPF_PROG(law_ssthresh, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u32 half = tp->snd_cwnd / 2;

	own_of(tp)->ssthresh = tp->snd_ssthresh;
	if (skipped(tp))
		return 0xdeadbeef;
	if (lh_law_steers(LH_LAW))
		return tp->snd_ssthresh;
	return half > LH_MIN_SSTHRESH ? half : LH_MIN_SSTHRESH;
}

/* Before each change of state; icsk_ca_state still has the old one. */
SEC("struct_ops")
void BPF_PROG(law_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (in_handshake(tp) || skipped(tp))
		return;
	catch_up(tp, ca_state_of(tp));
	change_state(tp, ca_state_of(tp), new_state);
}

/*
 * Few laws have an event for transmissions, those built on CUBIC. The kernel gives the time since the last one in jiffies of
 * unknown length. With nothing in flight, the latest acknowledgement came less than a round trip after it.
 */
static __always_inline void tell_resumed(struct tcp_sock *tp)
{
	struct lh_sent sent = { .now_us = now_us_of(tp), .snd_nxt = tp->snd_nxt };
	__u64 acked_us = own_of(tp)->acked_us;
	struct lh_flow *flow;

	if (!lh_law_hears_sent(LH_LAW) || !acked_us || sent.now_us <= acked_us)
		return;
	sent.idle_us = sent.now_us - acked_us;
	flow = bpf_sk_storage_get(&flows, tp, NULL, 0);
	if (flow && flow->begun)
		lh_law_sent(law_of(flow), &sent);
}

/* The same for a law that steers, after the application had nothing to send. */
static __always_inline void resumed(struct tcp_sock *tp)
{
	struct lh_flow *flow = bpf_sk_storage_get(&flows, tp, NULL, 0);
	struct lh_rate_sample sample = {};
	struct lh_steering steering = {};

	if (!flow || !flow->begun || !tp->app_limited || tp->packets_out)
		return;
	read_sample(tp, &sample);
	read_steering(tp, flow, &steering);
	lh_law_resumed(law_of(flow), &parameters, &sample, &steering);
	take_steering(tp, flow, &steering);
}

/* A transmission with nothing in flight. */
static __always_inline void starts_to_send(struct tcp_sock *tp)
{
	repair_window(tp);
	if (lh_law_steers(LH_LAW))
		return resumed(tp);
	restart_after_idle(tp);
	tell_resumed(tp);
	tell_before_sending(tp);
	own_of(tp)->ssthresh = tp->snd_ssthresh;
}

SEC("struct_ops")
void BPF_PROG(law_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		starts_to_send((struct tcp_sock *)sk);
}

/* The same where the kernel tells it by itself: see tcp_congestion_ops. */
SEC("struct_ops")
void BPF_PROG(law_cwnd_event_tx_start, struct sock *sk)
{
	starts_to_send((struct tcp_sock *)sk);
}

/* tcp_reno_undo_cwnd(): a reduction was spurious. The kernel itself restores ssthresh afterwards. */
SEC("struct_ops")
__u32 BPF_PROG(law_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct lh_undone undone = { .now_us = now_us_of(tp) };
	struct lh_window window = {
		.cwnd_segments = tp->snd_cwnd > tp->prior_cwnd ? tp->snd_cwnd : tp->prior_cwnd,
		.cwnd_count = tp->snd_cwnd_cnt,
		.ssthresh_segments = tp->snd_ssthresh > tp->prior_ssthresh ? tp->snd_ssthresh : tp->prior_ssthresh,
	};
	struct lh_flow *flow = flow_of(tp);
	struct lh_window before;

	if (lh_law_steers(LH_LAW)) {
		window.cwnd_segments = tp->snd_cwnd;
		window.ssthresh_segments = own_of(tp)->ssthresh;
	}
	before = window;
	if (flow) {
		lh_law_undone(law_of(flow), &undone, &window);
		record(CALL_UNDONE, tp, flow, &undone, sizeof(undone), &before, &window);
		flow->undone++;
	}
	own_of(tp)->tolerated = 0;
	count(&counters.undone);
	if (lh_law_steers(LH_LAW))
		return tp->snd_cwnd;
	return clamped(tp, window.cwnd_segments, 2);
}

/* The loader sets its name. */
SEC(".struct_ops.link")
struct tcp_congestion_ops law = {
	.init = (void *)law_init,
	.release = (void *)law_release,
	.ssthresh = (void *)law_ssthresh,
	.set_state = (void *)law_set_state,
	.cwnd_event = (void *)law_cwnd_event,
	.cwnd_event_tx_start = (void *)law_cwnd_event_tx_start,
	.cong_control = (void *)law_cong_control,
	.undo_cwnd = (void *)law_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "lh_law",
};

/*
 * One record for each file of a process whose socket has this law, in all network namespaces. Hook: iter/task_file;
 * context struct bpf_iter__task_file, socket not locked, so the numbers of one record may be an ACK apart. If the
 * sequence's buffer is full, the kernel drops the record and visits the file again after the next read. A walk of the map
 * `flows` would be shorter; some kernels refuse each iterator over a map.
 */
SEC("iter/task_file")
int show_flows(struct bpf_iter__task_file *ctx)
{
	struct lh_flow_record record = {};
	struct tcp_congestion_ops___read *ops;
	struct file *file = ctx->file;
	struct socket *socket;
	struct tcp_sock *tp;
	struct sock *sk;
	void *flow;

	/* the last call of a walk has none */
	if (!file)
		return 0;
	socket = bpf_sock_from_file(file);
	if (!socket)
		return 0;
	sk = socket->sk;
	if (!sk)
		return 0;
	flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	if (!flow)
		return 0;
	tp = (struct tcp_sock *)sk;
	record.cookie = bpf_get_socket_cookie(sk);
	record.now_us = bpf_ktime_get_ns() / 1000;
	read_endpoints(sk, &record.ends);
	ops = (struct tcp_congestion_ops___read *)BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
	bpf_core_read_str(record.control, sizeof(record.control), &ops->name);
	record.netns_inum = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_net.net, ns.inum);
	record.cwnd_segments = BPF_CORE_READ(tp, snd_cwnd);
	record.ssthresh_segments = BPF_CORE_READ(tp, snd_ssthresh);
	record.srtt_us = BPF_CORE_READ(tp, srtt_us) >> 3;
	record.min_rtt_us = BPF_CORE_READ(tp, rtt_min.s[0].v);
	record.in_flight_segments = BPF_CORE_READ(tp, packets_out) + BPF_CORE_READ(tp, retrans_out) -
				    BPF_CORE_READ(tp, sacked_out) - BPF_CORE_READ(tp, lost_out);
	record.ca_state = BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_state);
	record.tcp_state = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_state);
	record.segments_sent = BPF_CORE_READ(tp, data_segs_out);
	record.retransmits = BPF_CORE_READ(tp, total_retrans);
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	bpf_seq_write(ctx->meta->seq, flow, sizeof(struct lh_flow));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
