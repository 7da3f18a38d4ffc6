/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stack.h - the work that the kernel leaves to a congestion control with cong_control, done as the kernel does it for
 * others. Shared by the bounded CUBIC of the kernel (bounded_cubic.h) and by our laws (law.bpf.c).
 *
 *   each ACK            in CWR or Recovery reduce_window(), else growth if may_grow(); then update_pacing_rate()
 *   change of state     ends_reduction(): the window is ssthresh when a reduction ends
 *   start after a pause restart_after_idle()
 *
 * A control keeps a struct stack in its part of icsk_ca_priv and passes it in. Only these fields of a socket may be
 * written: snd_cwnd, snd_cwnd_cnt, snd_ssthresh, snd_cwnd_stamp, app_limited, the pacing rate and status, icsk_ca_priv.
 */
#ifndef LASTHOP_STACK_H
#define LASTHOP_STACK_H

struct stack {
	__u32 prr_delivered; /* segments delivered in this reduction; the kernel's own field is not writable */
	__u32 snd_una; /* at the previous ACK */
};

static __always_inline struct net *net_of(struct tcp_sock *tp)
{
	return tp->inet_conn.icsk_inet.sk.__sk_common.skc_net.net;
}

/* CLOCK_MONOTONIC, which the stack has already read for each ACK and transmission. */
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
 * TCP paces a socket only if its status asks for it; with the queueing discipline fq it does already. Returns whether we
 * asked.
 */
static __always_inline bool asks_for_pace(struct tcp_sock *tp)
{
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status != SK_PACING_NONE)
		return false;
	tp->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NEEDED;
	return true;
}

/* Ends our pacing of a socket, unless its application has asked for pacing meanwhile (SO_MAX_PACING_RATE). */
static __always_inline void end_pace(struct tcp_sock *tp)
{
	if (tp->inet_conn.icsk_inet.sk.sk_pacing_status == SK_PACING_NEEDED &&
	    tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate == ~0UL)
		tp->inet_conn.icsk_inet.sk.sk_pacing_status = SK_PACING_NONE;
}

static __always_inline void begin_stack(struct tcp_sock *tp, struct stack *stack)
{
	stack->snd_una = tp->snd_una;
	stack->prr_delivered = tp->prr_delivered;
}

/* net/ipv4/tcp_input.c tcp_update_pacing_rate(), without the limit of the socket */
static __always_inline __u64 own_pacing_rate(struct tcp_sock *tp)
{
	struct net *net = net_of(tp);
	__u64 rate = (__u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);
	__u32 window = tp->snd_cwnd;

	if (window < tp->snd_ssthresh / 2)
		rate *= net->ipv4.sysctl_tcp_pacing_ss_ratio;
	else
		rate *= net->ipv4.sysctl_tcp_pacing_ca_ratio;
	rate *= window > tp->packets_out ? window : tp->packets_out;
	return tp->srtt_us ? rate / tp->srtt_us : rate;
}

static __always_inline void update_pacing_rate(struct tcp_sock *tp)
{
	__u64 rate = own_pacing_rate(tp), most = tp->inet_conn.icsk_inet.sk.sk_max_pacing_rate;

	tp->inet_conn.icsk_inet.sk.sk_pacing_rate = rate < most ? rate : most;
}

/* net/ipv4/tcp_input.c tcp_cwnd_reduction(), RFC 6937: proportional rate reduction */
static __always_inline void reduce_window(struct tcp_sock *tp, struct stack *stack, const struct rate_sample *rs,
					  bool una_advanced)
{
	__s32 acked = rs->acked_sacked, lost = rs->losses, send, delta;
	__u32 in_flight = in_flight_of(tp), prior = tp->prior_cwnd, out = tp->prr_out;

	if (acked <= 0 || !prior)
		return;
	stack->prr_delivered += acked;
	delta = tp->snd_ssthresh - in_flight;
	if (delta < 0) {
		send = (__u32)(((__u64)tp->snd_ssthresh * stack->prr_delivered + prior - 1) / prior) - out;
	} else {
		send = stack->prr_delivered - out;
		if (send < acked)
			send = acked;
		if (una_advanced && !lost)
			send++;
		if (send > delta)
			send = delta;
	}
	/* the fast retransmission itself, at the beginning of recovery */
	if (send < !out)
		send = !out;
	set_window(tp, in_flight + send);
}

/*
 * A kernel may skip a program: older ones when it interrupts itself, hardened ones because of the interrupted task.
 * Then an arbitrary value from the stack stands for the result of ssthresh or undo_cwnd. No window has 2^24 segments
 * (24 GB in flight).
 */
#define IMPOSSIBLE_WINDOW (1 << 24)

/* The window when the latest reduction began. */
static __always_inline __u32 prior_window(struct tcp_sock *tp)
{
	return tp->prior_cwnd > 2 && tp->prior_cwnd < IMPOSSIBLE_WINDOW ? tp->prior_cwnd : 2;
}

static __always_inline void repair_window(struct tcp_sock *tp)
{
	if (tp->snd_cwnd >= IMPOSSIBLE_WINDOW)
		tp->snd_cwnd = prior_window(tp);
}

/* net/ipv4/tcp_input.c tcp_may_raise_cwnd() */
static __always_inline bool may_grow(struct tcp_sock *tp, int flag)
{
	if (tp->reordering > net_of(tp)->ipv4.sysctl_tcp_reordering)
		return flag & FLAG_FORWARD_PROGRESS;
	return flag & FLAG_DATA_ACKED;
}

/*
 * The flags that a kernel before 6.10 does not pass. An acknowledgement of data is one that moves snd_una. (That of the
 * SYN-ACK does too; there growth finds nothing in flight and does nothing.)
 */
static __always_inline int derived_flags(struct tcp_sock *tp, struct stack *stack, const struct rate_sample *rs)
{
	int flag = 0;

	if (stack->snd_una != tp->snd_una)
		flag = FLAG_SND_UNA_ADVANCED | FLAG_DATA_ACKED;
	else if ((__s32)rs->acked_sacked > 0)
		flag = FLAG_FORWARD_PROGRESS & ~FLAG_DATA_ACKED;
	stack->snd_una = tp->snd_una;
	return flag;
}

/*
 * The kernel ends a reduction with tcp_end_cwnd_reduction(), which does nothing for a control with cong_control. So the
 * window is set to ssthresh here, unless the reduction was undone (undo_marker is 0 then; CWR is never undone).
 */
static __always_inline void ends_reduction(struct tcp_sock *tp, __u8 old_state, __u8 new_state)
{
	if (in_reduction(old_state) && new_state < TCP_CA_CWR && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	    (old_state == TCP_CA_CWR || tp->undo_marker)) {
		tp->snd_cwnd = tp->snd_ssthresh;
		tp->snd_cwnd_stamp = bpf_jiffies64();
	}
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
 * tcp_slow_start_after_idle_check() and tcp_cwnd_restart(), RFC 2861, which the kernel omits for a control with
 * cong_control. The kernel does it when data are written, we do it after the first segment: a difference of at most one
 * burst. The kernel halves in a loop; a loop has too many paths for the verifier as clang 19 compiles it.
 */
static __always_inline void restart_after_idle(struct tcp_sock *tp)
{
	struct net *net = net_of(tp);
	__s32 idle = (__u32)bpf_jiffies64() - tp->lsndtime, rto = tp->inet_conn.icsk_rto;
	__u32 window = tp->snd_cwnd, restart, kept, halvings;

	if (!net->ipv4.sysctl_tcp_slow_start_after_idle || tp->packets_out || idle <= rto || rto <= 0)
		return;
	/* tcp_current_ssthresh() */
	kept = (window >> 1) + (window >> 2);
	if (!in_reduction(ca_state_of(tp)) && tp->snd_ssthresh < kept)
		tp->snd_ssthresh = kept;
	restart = initial_window(tp);
	if (restart > window)
		restart = window;
	/* once for each whole timeout that has passed before now, but the window has 31 bits */
	halvings = ((__u32)idle - 1) / (__u32)rto;
	window >>= halvings < 31 ? halvings : 31;
	set_window(tp, window > restart ? window : restart);
	tp->snd_cwnd_stamp = bpf_jiffies64();
}

#endif /* LASTHOP_STACK_H */
