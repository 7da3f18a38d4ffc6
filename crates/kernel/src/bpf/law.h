/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * law.h - the congestion control: the kernel's CUBIC, its window reduction redone, bounded. The algorithm is told at
 * the top of lasthop.bpf.c.
 *
 * All programs here: hook struct_ops/tcp_congestion_ops, called by the TCP stack with the socket locked, in softirq or
 * process context, never sleeping. `struct sock *` arrives as the verifier's trusted `struct tcp_sock *`; only snd_cwnd,
 * snd_ssthresh, snd_cwnd_stamp, the pacing rate and icsk_ca_priv may be written.
 */
#ifndef LASTHOP_LAW_H
#define LASTHOP_LAW_H

/* net/ipv4/tcp_cubic.c, net/ipv4/tcp_cong.c */
extern void cubictcp_init(struct sock *sk) __ksym;
extern __u32 cubictcp_recalc_ssthresh(struct sock *sk) __ksym;
extern void cubictcp_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern void cubictcp_state(struct sock *sk, __u8 new_state) __ksym;
extern void cubictcp_cwnd_event(struct sock *sk, enum tcp_ca_event event) __ksym;
extern void cubictcp_acked(struct sock *sk, const struct ack_sample *sample) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;

/*
 * Our own state, in the bytes of icsk_ca_priv that CUBIC leaves free (it takes the first 60 of 104): no look-up per ACK.
 * The kernel zeroes all of icsk_ca_priv whenever a socket gets a control.
 */
struct own {
	struct lh_bound bound; /* as looked up at `generation` */
	__u32 generation; /* 0: never looked up */
	__u32 prr_delivered; /* segments delivered in this reduction: the kernel's own is not writable */
	__u32 snd_una; /* at the previous ACK */
	__u32 padding;
};

#define OWN_OFFSET 64

static __always_inline struct own *own_of(struct tcp_sock *tp)
{
	return (struct own *)((char *)tp->inet_conn.icsk_ca_priv + OWN_OFFSET);
}

static __always_inline struct net *net_of(struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net;
}

/* CLOCK_MONOTONIC: the stack reads the clock for each ACK and transmission, so we do not have to. */
static __always_inline __u64 now_ns_of(struct tcp_sock *tp)
{
	return tp->tcp_mstamp * 1000;
}

static __always_inline __u8 ca_state_of(struct tcp_sock *tp)
{
	return BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
}

/* net/tcp.h tcp_packets_in_flight() */
static __always_inline __u32 in_flight_of(struct tcp_sock *tp)
{
	return tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
}

/* net/tcp.h tcp_in_cwnd_reduction() */
static __always_inline bool in_reduction(__u8 ca_state)
{
	return ca_state == TCP_CA_CWR || ca_state == TCP_CA_Recovery;
}

static __always_inline void set_window(struct tcp_sock *tp, __u32 window)
{
	if (tp->snd_cwnd != window)
		tp->snd_cwnd = window;
}

/*
 * Once per change of the bounds and socket, not per ACK. Not inlined, so that the common path stays short; `own` is
 * filled from a copy on the stack because a map value cannot be assigned to a kernel object in one go.
 */
static __noinline void look_up_bound(struct tcp_sock *tp)
{
	struct own *own = own_of(tp);
	struct lh_bound bound;
	__u32 generation = control.generation;

	bound_of(tp->inet_conn.icsk_inet.sk.__sk_common.skc_cookie.counter, now_ns_of(tp), &bound);
	own->bound.expires_ns = bound.expires_ns;
	own->bound.min_segments = bound.min_segments;
	own->bound.max_segments = bound.max_segments;
	own->generation = generation;
}

static __always_inline void refresh_bound(struct tcp_sock *tp)
{
	if (own_of(tp)->generation != control.generation)
		look_up_bound(tp);
}

/* `window`, bounded as the state asks for. */
static __always_inline __u32 bounded(struct tcp_sock *tp, __u8 ca_state, __u32 window)
{
	__u32 flags = 0;

	if (ca_state == TCP_CA_Loss)
		flags |= LH_IN_LOSS;
	if (in_reduction(ca_state) && !tp->prr_out)
		flags |= LH_FORCE_RETRANSMIT;
	return lh_bound_window(&own_of(tp)->bound, now_ns_of(tp), window, in_flight_of(tp), flags);
}

/* net/ipv4/tcp_input.c tcp_update_pacing_rate() */
static __always_inline void update_pacing_rate(struct tcp_sock *tp)
{
	struct net *net = net_of(tp);
	__u64 rate = (__u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);
	__u32 window = tp->snd_cwnd;

	if (window < tp->snd_ssthresh / 2)
		rate *= net->ipv4.sysctl_tcp_pacing_ss_ratio;
	else
		rate *= net->ipv4.sysctl_tcp_pacing_ca_ratio;
	rate *= window > tp->packets_out ? window : tp->packets_out;
	if (tp->srtt_us)
		rate /= tp->srtt_us;
	if (rate > tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate)
		rate = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;
	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = rate;
}

/* net/ipv4/tcp_input.c tcp_cwnd_reduction(), RFC 6937: proportional rate reduction */
static __always_inline void reduce_window(struct tcp_sock *tp, const struct rate_sample *rs, bool una_advanced)
{
	struct own *own = own_of(tp);
	__s32 acked = rs->acked_sacked, lost = rs->losses, send, delta;
	__u32 in_flight = in_flight_of(tp), prior = tp->prior_cwnd, out = tp->prr_out;

	if (acked <= 0 || !prior)
		return;
	own->prr_delivered += acked;
	delta = tp->snd_ssthresh - in_flight;
	if (delta < 0) {
		send = (__u32)(((__u64)tp->snd_ssthresh * own->prr_delivered + prior - 1) / prior) - out;
	} else {
		send = own->prr_delivered - out;
		if (send < acked)
			send = acked;
		if (una_advanced && !lost)
			send++;
		if (send > delta)
			send = delta;
	}
	/* the fast retransmission itself, on entering recovery */
	if (send < !out)
		send = !out;
	set_window(tp, in_flight + send);
}

/*
 * A kernel may skip a program: older ones where it interrupts itself, hardened ones for the sake of the task that happens
 * to be interrupted. It then takes whatever lies on its stack for the number that ssthresh or undo_cwnd should have
 * returned. So both are checked before they are used: a reduction's ssthresh is between 2 and the window before it, and
 * no window has 2^24 segments (24 GB in flight).
 */
#define IMPOSSIBLE_WINDOW (1 << 24)

static __always_inline void repair(struct sock *sk, struct tcp_sock *tp, __u8 ca_state)
{
	__u32 prior = tp->prior_cwnd > 2 ? tp->prior_cwnd : 2, window;

	if (tp->snd_cwnd >= IMPOSSIBLE_WINDOW)
		tp->snd_cwnd = prior;
	if (ca_state >= TCP_CA_CWR && (tp->snd_ssthresh > prior || tp->snd_ssthresh < 2)) {
		window = tp->snd_cwnd;
		tp->snd_cwnd = prior;
		tp->snd_ssthresh = cubictcp_recalc_ssthresh(sk);
		tp->snd_cwnd = window;
		own_of(tp)->prr_delivered = 0;
		count(&counters.repaired);
	}
}

/* net/ipv4/tcp_input.c tcp_may_raise_cwnd() */
static __always_inline bool may_grow(struct tcp_sock *tp, int flag)
{
	if (tp->reordering > net_of(tp)->ipv4.sysctl_tcp_reordering)
		return flag & FLAG_FORWARD_PROGRESS;
	return flag & FLAG_DATA_ACKED;
}

/*
 * CUBIC's growth, but only below the upper bound. At the bound CUBIC's epoch is closed: its window is a function of the
 * time since the epoch began, and an epoch that went on behind the bound would jump when the bound goes.
 */
static __always_inline void grow(struct sock *sk, struct tcp_sock *tp, __u32 ack, __u32 acked)
{
	const struct lh_bound *bound = &own_of(tp)->bound;
	struct bictcp *cubic = (struct bictcp *)tp->inet_conn.icsk_ca_priv;

	if (lh_bound_holds(bound, now_ns_of(tp)) && bound->max_segments && tp->snd_cwnd >= bound->max_segments) {
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
		reduce_window(tp, rs, flag & FLAG_SND_UNA_ADVANCED);
	else if (may_grow(tp, flag))
		grow(sk, tp, ack, rs->acked_sacked);
	set_window(tp, bounded(tp, ca_state, tp->snd_cwnd));
	update_pacing_rate(tp);
}

/*
 * What a kernel before 6.10 does not tell. An acknowledgement of data is one that moves snd_una (of the SYN-ACK too:
 * there CUBIC's growth finds nothing in flight and does nothing).
 */
static __always_inline int derived_flags(struct tcp_sock *tp, const struct rate_sample *rs)
{
	struct own *own = own_of(tp);
	int flag = 0;

	if (own->snd_una != tp->snd_una)
		flag = FLAG_SND_UNA_ADVANCED | FLAG_DATA_ACKED;
	else if ((__s32)rs->acked_sacked > 0)
		flag = FLAG_FORWARD_PROGRESS & ~FLAG_DATA_ACKED;
	own->snd_una = tp->snd_una;
	return flag;
}

/* Each ACK, since 6.10. The verifier forced nothing. */
SEC("struct_ops")
void BPF_PROG(lasthop_cong_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	if (settings.derive_flags)
		flag = derived_flags((struct tcp_sock *)sk, rs);
	on_acked(sk, ack, flag, rs);
}

/* Each ACK, before 6.10: neither the ACK nor its flags are told. Loaded in place of the one above where BTF says so. */
SEC("?struct_ops")
void BPF_PROG(lasthop_cong_control_old, struct sock *sk, const struct rate_sample *rs)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	on_acked(sk, tp->snd_una, derived_flags(tp, rs), rs);
}

/* A socket gets our control: at its handshake, or alive by setsockopt, perhaps in the middle of a recovery. */
SEC("struct_ops")
void BPF_PROG(lasthop_init, struct sock *sk)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	struct own *own = own_of(tp);

	cubictcp_init(sk);
	own->snd_una = tp->snd_una;
	own->prr_delivered = tp->prr_delivered;
	look_up_bound(tp);
	set_window(tp, bounded(tp, ca_state_of(tp), tp->snd_cwnd));
	if (tp->srtt_us)
		update_pacing_rate(tp);
}

/* Each time a reduction or a timeout recovery begins. */
SEC("struct_ops")
__u32 BPF_PROG(lasthop_ssthresh, struct sock *sk)
{
	own_of((struct tcp_sock *)sk)->prr_delivered = 0;
	return cubictcp_recalc_ssthresh(sk);
}

/*
 * Before each change of state; icsk_ca_state still holds the old one. The kernel ends a reduction with
 * tcp_end_cwnd_reduction(), which does nothing for a control with cong_control: so we set the window to ssthresh,
 * unless the reduction was undone (undo_marker is 0 then; CWR is never undone).
 */
SEC("struct_ops")
void BPF_PROG(lasthop_set_state, struct sock *sk, __u8 new_state)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;
	__u8 old_state = ca_state_of(tp);

	repair(sk, tp, old_state);
	if (in_reduction(old_state) && new_state < TCP_CA_CWR && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (old_state == TCP_CA_CWR || tp->undo_marker)) {
		tp->snd_cwnd = tp->snd_ssthresh;
		tp->snd_cwnd_stamp = bpf_jiffies64();
	}
	cubictcp_state(sk, new_state);
	refresh_bound(tp);
	set_window(tp, bounded(tp, new_state, tp->snd_cwnd));
}

/* include/net/tcp.h tcp_init_cwnd(); a route may set another initial window */
static __always_inline __u32 initial_window(struct tcp_sock *tp)
{
	struct dst_entry *dst = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.sk_dst_cache);
	__u32 window = 0;

	if (dst) {
		unsigned long metrics = BPF_CORE_READ(dst, _metrics) & ~3UL;

		bpf_probe_read_kernel(&window, sizeof(window), (void *)(metrics + (RTAX_INITCWND - 1) * sizeof(window)));
	}
	if (!window)
		window = TCP_INIT_CWND;
	return window < tp->snd_cwnd_clamp ? window : tp->snd_cwnd_clamp;
}

/*
 * tcp_slow_start_after_idle_check() and tcp_cwnd_restart(), RFC 2861: the kernel leaves them out for a control with
 * cong_control. The kernel does it when the data are written, we when the first segment has gone: a difference of one
 * burst at most. The loop is bounded because the window has 31 bits.
 */
static __always_inline void restart_after_idle(struct tcp_sock *tp)
{
	struct net *net = net_of(tp);
	__s32 idle = (__u32)bpf_jiffies64() - tp->lsndtime, rto = tp->inet_conn.icsk_rto;
	__u32 window = tp->snd_cwnd, restart, kept;

	if (!net->ipv4.sysctl_tcp_slow_start_after_idle || tp->packets_out || idle <= rto || rto <= 0)
		return;
	/* tcp_current_ssthresh() */
	kept = (window >> 1) + (window >> 2);
	if (!in_reduction(ca_state_of(tp)) && tp->snd_ssthresh < kept)
		tp->snd_ssthresh = kept;
	restart = initial_window(tp);
	if (restart > window)
		restart = window;
	for (int i = 0; i < 32; i++) {
		idle -= rto;
		if (idle <= 0 || window <= restart)
			break;
		window >>= 1;
	}
	set_window(tp, window > restart ? window : restart);
	tp->snd_cwnd_stamp = bpf_jiffies64();
}

/* A transmission with nothing in flight, and events that CUBIC ignores. */
SEC("struct_ops")
void BPF_PROG(lasthop_cwnd_event, struct sock *sk, enum tcp_ca_event event)
{
	struct tcp_sock *tp = (struct tcp_sock *)sk;

	if (event == CA_EVENT_TX_START) {
		repair(sk, tp, ca_state_of(tp));
		restart_after_idle(tp);
		refresh_bound(tp);
		set_window(tp, bounded(tp, ca_state_of(tp), tp->snd_cwnd));
	}
	cubictcp_cwnd_event(sk, event);
}

/* Each ACK of data: CUBIC's HyStart and its smallest delay. */
SEC("struct_ops")
void BPF_PROG(lasthop_pkts_acked, struct sock *sk, const struct ack_sample *sample)
{
	cubictcp_acked(sk, sample);
}

/* A reduction turns out to have been needless. */
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
	.ssthresh = (void *)lasthop_ssthresh,
	.set_state = (void *)lasthop_set_state,
	.cwnd_event = (void *)lasthop_cwnd_event,
	.pkts_acked = (void *)lasthop_pkts_acked,
	.cong_control = (void *)lasthop_cong_control,
	.undo_cwnd = (void *)lasthop_undo_cwnd,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "lasthop",
};

#endif /* LASTHOP_LAW_H */
