/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bounded_cubic.h - the congestion control: the kernel's CUBIC, with our own reduction of the window (stack.h),
 * bounded. The algorithm is described at the top of lasthop.bpf.c.
 *
 * All programs here: hook struct_ops/tcp_congestion_ops, called by the TCP stack with the socket locked, in softirq or
 * process context, never sleeping. `struct sock *` arrives as the verifier's trusted `struct tcp_sock *`.
 */
#ifndef LASTHOP_BOUNDED_CUBIC_H
#define LASTHOP_BOUNDED_CUBIC_H

#include "stack.h"

/* net/ipv4/tcp_cubic.c, net/ipv4/tcp_cong.c */
extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
/* A kernel has one of the two (tcp_congestion_ops). */
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym __weak;
extern void cubictcp_cwnd_event_tx_start(struct sock *sk) __ksym __weak;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/*
 * Our own state, in the bytes of icsk_ca_priv that CUBIC does not use (it uses the first 60 of 104): no look-up per
 * ACK. The kernel zeroes icsk_ca_priv whenever a socket gets a control.
 */
struct own {
	__u64 expires_ns; /* this and the next three: the sender's part of its bound, as read at `generation` */
	__u64 max_pacing_rate;
	__u32 min_segments;
	__u32 max_segments;
	__u32 generation; /* 0: never read */
	struct stack stack;
	__u8 paced; /* this and the next: the bound's */
	__u8 at_once;
	__u16 asked; /* 1: the socket is paced only because we have asked for it */
};

#define OWN_OFFSET 64

_Static_assert(OWN_OFFSET + sizeof(struct own) <= 104, "icsk_ca_priv has 104 bytes");

static __always_inline struct own *own_of(struct tcp_sock *tp)
{
	return (struct own *)((char *)tp->inet_conn.icsk_ca_priv + OWN_OFFSET);
}

/*
 * Runs once per change of the bounds and socket, not per ACK. Not inlined, to keep the common path short. `own` is
 * filled from a copy on the stack, because a map value cannot be assigned to a kernel object at once.
 */
static __noinline void look_up_bound(struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	struct lh_bound bound;
	__u32 generation = control.generation;

	bound_of(tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter, &bound);
	own->expires_ns = bound.expires_ns;
	own->max_pacing_rate = bound.max_pacing_rate;
	own->min_segments = bound.min_segments;
	own->max_segments = bound.max_segments;
	own->paced = bound.paced != 0;
	own->at_once = bound.at_once != 0;
	own->generation = generation;
}

/* The bound as last read, without the limit of what is received. */
static __always_inline struct lh_bound read_bound(struct tcp_sock *tp)
{
	const struct own *own = own_of(tp);
	struct lh_bound bound = {
		.expires_ns = own->expires_ns,
		.min_segments = own->min_segments,
		.max_segments = own->max_segments,
		.max_pacing_rate = own->max_pacing_rate,
		.paced = own->paced,
		.at_once = own->at_once,
	};

	return bound;
}

static __always_inline void refresh_bound(struct tcp_sock *tp)
{
	if (own_of(tp)->generation != control.generation)
		look_up_bound(tp);
}

/* `window`, bounded as the state requires. */
static __always_inline __u32 bounded(struct tcp_sock *tp, __u8 ca_state, __u32 window)
{
	struct lh_bound bound = read_bound(tp);
	__u32 flags = 0;

	if (ca_state == TCP_CA_Loss)
		flags |= LH_IN_LOSS;
	if (in_reduction(ca_state) && !tp->prr_out)
		flags |= LH_FORCE_RETRANSMIT;
	return lh_bound_window(&bound, now_ns_of(tp), window, in_flight_of(tp), flags);
}

static __always_inline bool is_paced_by_bound(struct tcp_sock *tp)
{
	struct lh_bound bound = read_bound(tp);

	return lh_bound_paces(&bound, now_ns_of(tp));
}

static __always_inline void unpace(struct tcp_sock *tp)
{
	own_of(tp)->asked = 0;
	end_pace(tp);
}

/*
 * Sets the pacing rate: TCP's own, which the kernel does not compute for a control with cong_control, as the bound has
 * it. TCP obeys it only on sockets whose status asks for pacing, and CUBIC does not ask: for a bound that paces we do.
 * With the queueing discipline fq the status asks already, and fq takes the rate. TSO sizes (tcp_tso_autosize()) and TCP
 * small queues follow the rate in any case. tcp_update_skb_after_send() exempts the first ten segments of a connection.
 */
static __always_inline void apply_pace(struct tcp_sock *tp)
{
	struct lh_bound bound = read_bound(tp);
	__u64 own = tp->srtt_us ? own_pacing_rate(tp) : LH_NO_RATE;
	__u64 most = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate, rate;

	if (is_paced_by_bound(tp)) {
		if (asks_for_pace(tp))
			own_of(tp)->asked = 1;
	} else if (own_of(tp)->asked) {
		unpace(tp);
	}
	rate = lh_bound_pacing_rate(&bound, now_ns_of(tp), own, !own_of(tp)->asked);
	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = rate < most ? rate : most;
}

/* Undoes the effect of a skipped program (see stack.h): a reduction's ssthresh lies between 2 and the window before it. */
static __always_inline void repair(struct sock *sk, struct tcp_sock *tp, __u8 ca_state)
{
	__u32 prior = prior_window(tp), window;

	repair_window(tp);
	if (ca_state >= TCP_CA_CWR && (tp->snd_ssthresh > prior || tp->snd_ssthresh < 2)) {
		window = tp->snd_cwnd;
		tp->snd_cwnd = prior;
		tp->snd_ssthresh = cubictcp_recalc_ssthresh(sk);
		tp->snd_cwnd = window;
		own_of(tp)->stack.prr_delivered = 0;
		count(&counters.repaired);
	}
}

/*
 * CUBIC's growth, below the upper bound only. At the bound CUBIC's epoch is closed: its window is a function of the
 * time since the epoch began. If the epoch went on under the bound, the window would jump when the bound ends.
 */
static __always_inline void grow(struct sock *sk, struct tcp_sock *tp, __u32 ack, __u32 acked)
{
	struct lh_bound bound = read_bound(tp);
	struct bictcp *cubic = (struct bictcp *)tp->inet_conn.icsk_ca_priv;

	if (lh_bound_holds(&bound, now_ns_of(tp)) && bound.max_segments && tp->snd_cwnd >= bound.max_segments) {
		if (bpf_core_field_exists(cubic->epoch_start))
			cubic->epoch_start = 0;
	} else {
		cubictcp_cong_avoid(sk, ack, acked);
	}
	tp->snd_cwnd_stamp = bpf_jiffies64();
}

/* net/ipv4/tcp_input.c tcp_cong_control() */
static __always_inline void on_acked(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u8 ca_state = ca_state_of(tp);

	repair(sk, tp, ca_state);
	refresh_bound(tp);
	if (in_reduction(ca_state))
		reduce_window(tp, &own_of(tp)->stack, rs, flag & FLAG_SND_UNA_ADVANCED);
	else if (may_grow(tp, flag))
		grow(sk, tp, ack, rs->acked_sacked);
	set_window(tp, bounded(tp, ca_state, tp->snd_cwnd));
	apply_pace(tp);
}

/* Each ACK, since 6.10. No concession to the verifier. */
SEC("struct_ops")
void BPF_PROG(lasthop_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	if (settings.derive_flags)
		flag = derived_flags((struct tcp_sock *)sk, &own_of((struct tcp_sock *)sk)->stack, rs);
	on_acked(sk, ack, flag, rs);
}

/* Each ACK, before 6.10, which passes neither the ACK nor its flags. Loaded in place of the one above if BTF says so. */
SEC("?struct_ops")
void BPF_PROG(lasthop_cong_control_old, struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	on_acked(sk, tp->snd_una, derived_flags(tp, &own_of(tp)->stack, rs), rs);
}

/* A socket gets our control: at its handshake, or later by setsockopt, possibly during a recovery. */
SEC("struct_ops")
void BPF_PROG(lasthop_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	cubictcp_init(sk);
	begin_stack(tp, &own_of(tp)->stack);
	look_up_bound(tp);
	set_window(tp, bounded(tp, ca_state_of(tp), tp->snd_cwnd));
	apply_pace(tp);
}

/* The socket gets another control, or ends. */
SEC("struct_ops")
void BPF_PROG(lasthop_release, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (own_of(tp)->asked) {
		unpace(tp);
		if (tp->srtt_us)
			update_pacing_rate(tp);
	}
}

/* The beginning of each reduction or timeout recovery. */
SEC("struct_ops")
__u32 BPF_PROG(lasthop_ssthresh, struct sock *sk)
{
	own_of((struct tcp_sock *)sk)->stack.prr_delivered = 0;
	return cubictcp_recalc_ssthresh(sk);
}

/* Before each change of state; icsk_ca_state still has the old one. */
SEC("struct_ops")
void BPF_PROG(lasthop_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u8 old_state = ca_state_of(tp);

	repair(sk, tp, old_state);
	ends_reduction(tp, old_state, new_state);
	cubictcp_state(sk, new_state);
	refresh_bound(tp);
	set_window(tp, bounded(tp, new_state, tp->snd_cwnd));
}

/* A transmission with nothing in flight. */
static __always_inline void starts_to_send(struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (in_a_namespace_of_ours(sk))
		mark(sk);
	repair(sk, tp, ca_state_of(tp));
	restart_after_idle(tp);
	refresh_bound(tp);
	set_window(tp, bounded(tp, ca_state_of(tp), tp->snd_cwnd));
	/* no ACK may have come since the bound began or ended; otherwise the kernel waits for the next one, too */
	if (own_of(tp)->asked || is_paced_by_bound(tp))
		apply_pace(tp);
}

/* It, and events that CUBIC ignores. */
SEC("struct_ops")
void BPF_PROG(lasthop_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	if (event == CA_EVENT_TX_START)
		starts_to_send(sk);
	cubictcp_cwnd_event(sk, event);
}

/* The same where the kernel tells it by itself. */
SEC("struct_ops")
void BPF_PROG(lasthop_cwnd_event_tx_start, struct sock *sk)
{
	starts_to_send(sk);
	cubictcp_cwnd_event_tx_start(sk);
}

/* Each ACK of data: for CUBIC's HyStart and its smallest delay. */
SEC("struct_ops")
void BPF_PROG(lasthop_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

/* A reduction was spurious. */
SEC("struct_ops")
__u32 BPF_PROG(lasthop_undo_cwnd, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	refresh_bound(tp);
	return bounded(tp, TCP_CA_Open, tcp_reno_undo_cwnd(sk));
}

SEC(".struct_ops.link")
struct tcp_congestion_ops lasthop = {
	.init = (void *)lasthop_init,
	.release = (void *)lasthop_release,
	.ssthresh = (void *)lasthop_ssthresh,
	.set_state = (void *)lasthop_set_state,
	.cwnd_event = (void *)lasthop_cwnd_event,
	.cwnd_event_tx_start = (void *)lasthop_cwnd_event_tx_start,
	.pkts_acked = (void *)lasthop_pkts_acked,
	.cong_control = (void *)lasthop_cong_control,
	.undo_cwnd = (void *)lasthop_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "lasthop",
};

#endif /* LASTHOP_BOUNDED_CUBIC_H */
