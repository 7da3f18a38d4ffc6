/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * last_link.h - a server hears its clients' link reports (link_report.h, docs/models/link-report.md) and keeps them for
 * the law. It is part of the object of that law, and acts only on sockets with that law.
 *
 *   listen        keep SYNs, and ask to write options of SYN-ACKs
 *   SYN           with a report: the SYN-ACK has ANSWER, and with a SYN cookie also RESEND. A retransmitted SYN-ACK has
 *                 neither, because a middlebox may have dropped the first one for it
 *   established   take the report of the kept SYN, else that of the segment that ended the handshake (SYN cookies). It is
 *                 stored in `reports`; the law's init(), which runs next, gives it to the law
 *   segments      if the SYN had a report or could not be kept: store a report. The law gets it at its next hook, at this
 *                 ACK or at the next transmission
 *
 * Connections inherit the callbacks of their listener. That for each written segment is given up after the SYN-ACK.
 * Other programs may want the same callbacks on the same sockets. So only callbacks that were not set before us are
 * removed; a storage of the listener, which its connections inherit too, remembers which.
 *
 * Hooks: sockops at the root of cgroup2, context struct bpf_sock_ops. The socket is locked, except for SYN-ACKs, where
 * there is only a request and `sk` is NULL. And iter/tcp, socket locked. Maps: listeners (create), reports (create),
 * ports, flows, permits. The verifier allows reading a request only through the kernel's own struct behind the context.
 */
#ifndef LASTHOP_LAST_LINK_H
#define LASTHOP_LAST_LINK_H

#include "option.h"

/* Written by the programs only. */
struct lh_heard_counters heard SEC(".bss.heard") = {};

/*
 * In the next: we prepared the listener, and it keeps SYNs because of us. The other bits are callbacks, also its
 * connections'.
 */
#define IS_PREPARED (1U << 30)
#define KEEPS_SYNS (1U << 31)
#define NO_CALLBACK (IS_PREPARED | KEEPS_SYNS)

/* What a listener asks for because of us. A socket that listens again is already prepared. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, __u32);
} listeners SEC(".maps");

/*
 * Ports on which a socket with the law has begun to listen. The request behind a SYN cookie does not know its listener.
 * If another socket has taken the port meanwhile, its client is answered in vain, and sends some reports that no law
 * hears.
 */
struct port {
	__u32 netns_inum;
	__u32 port;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, LH_PORTS_MAX);
	__type(key, struct port);
	__type(value, __u8);
} ports SEC(".maps");

/* The latest report of each connection. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lh_report);
} reports SEC(".maps");

/*
 * The heuristics that connections may use, LH_PERMIT_*; the most specific entry counts. Written by loaders only, at any
 * time.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_PERMITS_MAX);
	__type(key, struct lh_permit_key);
	__type(value, __u32);
} permits SEC(".maps");

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym;

static __always_inline bool has_our_law(const struct tcp_congestion_ops *ops)
{
	char name[TCP_CA_NAME_MAX] = {};

	bpf_core_read_str(name, sizeof(name), &((struct tcp_congestion_ops___read *)ops)->name);
	for (int i = 0; i < TCP_CA_NAME_MAX; i++)
		if (name[i] != about.name[i])
			return false;
	return true;
}

static __always_inline void port_of(struct sock *sk, struct port *port)
{
	port->netns_inum = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	port->port = BPF_CORE_READ(sk, __sk_common.skc_num);
}

/* Whether a request belongs to a listener with the law. */
static __always_inline bool is_of_ours(struct sock *request)
{
	struct tcp_sock *listener = (struct tcp_sock *)BPF_CORE_READ(request, __sk_common.skc_listener);
	struct port port = {};

	if (listener)
		return has_our_law(BPF_CORE_READ(listener, inet_conn.icsk_ca_ops));
	port_of(request, &port);
	return bpf_map_lookup_elem(&ports, &port);
}

/* The permission of a connection with these ends: the entry for its own port, else the one for all ports. */
static __always_inline __u32 permitted(struct sock *sk)
{
	struct lh_permit_key key = { .prefix_bits = LH_PERMIT_PORT_BITS + 128 };
	__u16 port = BPF_CORE_READ(sk, __sk_common.skc_num);
	const __u32 *found;

	key.port = bpf_htons(port);
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		key.client[10] = key.client[11] = 0xff;
		BPF_CORE_READ_INTO((__u32 *)&key.client[12], sk, __sk_common.skc_daddr);
	} else {
		BPF_CORE_READ_INTO(&key.client, sk, __sk_common.skc_v6_daddr);
	}
	found = bpf_map_lookup_elem(&permits, &key);
	if (!found) {
		key.port = 0;
		found = bpf_map_lookup_elem(&permits, &key);
	}
	return found ? *found : LH_PERMIT_ALL;
}

/* Reads a client's report; an answer does not count as one. */
static __always_inline bool hear(struct bpf_sock_ops *ctx, __u64 flags, struct lh_report *report, bool count_it)
{
	__u8 option[LH_REPORT_OCTETS] = {};

	switch (load_option(ctx, flags, option, report)) {
	case LH_REPORT_GOOD:
		if (!(lh_report_flags(option) & LH_REPORT_ANSWER))
			return true;
		break;
	case LH_REPORT_NOT_OURS:
		return false;
	case LH_REPORT_OTHER_VERSION:
		if (count_it)
			count(&heard.other_version);
		return false;
	default:
		break;
	}
	if (count_it)
		count(&heard.malformed);
	return false;
}

/* Stores a report for the law. */
static __always_inline void keep(struct bpf_sock *sk, struct tcp_sock *tp, struct lh_report *report)
{
	struct lh_report *kept;
	struct lh_flow *flow;

	report->now_us = now_us_of(tp);
	report->permitted = permitted(&tp->inet_conn.icsk_inet.sk);
	/* the law must hear that less is permitted than before; without any permission there is nothing to store */
	kept = bpf_sk_storage_get(&reports, sk, NULL, report->permitted ? BPF_SK_STORAGE_GET_F_CREATE : 0);
	if (!report->permitted)
		count(&heard.not_permitted);
	else if (!kept)
		count(&heard.storage_missing);
	if (!kept)
		return;
	*kept = *report;
	flow = bpf_sk_storage_get(&flows, sk, NULL, 0);
	if (flow)
		flow->reported = 1;
}

/* Prepares a listener that already asks for `flags`. `as`: the context argument of option helpers in this hook. */
static __always_inline int prepare(void *as, void *sk, struct tcp_sock *tp, __u32 flags)
{
	__u32 *ours = bpf_sk_storage_get(&listeners, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	int keeps = 0, error = -1;
	struct port port = {};
	__u8 one = 1;

	if (ours && *ours & IS_PREPARED)
		return 0;
	if (ours)
		error = bpf_getsockopt(as, SOL_TCP, TCP_SAVE_SYN, &keeps, sizeof(keeps));
	if (ours && !error) {
		*ours = IS_PREPARED | (~flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
		if (!keeps) {
			*ours |= KEEPS_SYNS;
			keeps = 1;
			error = bpf_setsockopt(as, SOL_TCP, TCP_SAVE_SYN, &keeps, sizeof(keeps));
		}
	}
	port_of(&tp->inet_conn.icsk_inet.sk, &port);
	if (!error)
		error = bpf_map_update_elem(&ports, &port, &one, BPF_ANY);
	if (ours && error)
		bpf_sk_storage_delete(&listeners, sk);
	return error;
}

/* A SYN-ACK is made in two calls: first room is reserved, then the options are written. */
static __always_inline void answer(struct bpf_sock_ops *ctx)
{
	struct lh_report report = { .error_ppm = LH_ERROR_UNKNOWN };
	struct bpf_sock_ops_kern *kern = bpf_cast_to_kern_ctx(ctx);
	bool reserving = ctx->op == BPF_SOCK_OPS_HDR_OPT_LEN_CB;
	__u32 flags = LH_REPORT_ANSWER;
	__u8 option[LH_REPORT_OCTETS];
	struct sock *request = kern->sk;

	if (!kern->syn_skb || !is_of_ours(request))
		return;
	if (!hear(ctx, BPF_LOAD_HDR_OPT_TCP_SYN, &report, false) || !permitted(request))
		return;
	if (reserving) {
		if (bpf_reserve_hdr_opt(ctx, LH_REPORT_OCTETS, 0))
			count(&heard.no_room);
		return;
	}
	if (ctx->args[0] == BPF_WRITE_HDR_TCP_SYNACK_COOKIE)
		flags |= LH_REPORT_RESEND;
	report.bandwidth_kbps = 0;
	report.error_ppm = LH_ERROR_UNKNOWN;
	report.valid_s = 0;
	lh_report_write(option, &report, flags);
	if (bpf_store_hdr_opt(ctx, option, sizeof(option), 0)) {
		count(&heard.no_room);
		return;
	}
	count(&heard.answered);
	if (flags & LH_REPORT_RESEND)
		count(&heard.cookies);
}

/* A connection gives up the callbacks that only its listener needed. */
static __always_inline void inherit_less(struct bpf_sock_ops *ctx, struct bpf_sock *sk)
{
	__u32 *ours = bpf_sk_storage_get(&listeners, sk, NULL, 0);

	if (ours) {
		no_longer_ask_for(ctx, *ours & ~NO_CALLBACK);
		bpf_sk_storage_delete(&listeners, sk);
	}
}

/* Whether the SYN can be read, directly or as kept; not behind a SYN cookie. */
static __always_inline bool has_syn(struct bpf_sock_ops *ctx)
{
	__u8 option[4] = { TCPOPT_MSS };

	return bpf_load_hdr_opt(ctx, option, sizeof(option), BPF_LOAD_HDR_OPT_TCP_SYN) != -ENOENT;
}

/*
 * RFC 5961 section 5.2, which the kernel checks only after this hook: an attacker who guesses a sequence number in the
 * window must not be able to send a report.
 */
static __always_inline bool has_acceptable_ack(struct bpf_sock_ops *ctx, struct tcp_sock *tp)
{
	const __u32 *words = ctx->skb_data;
	__u32 ack;

	if ((void *)(words + 5) > ctx->skb_data_end)
		return false;
	ack = bpf_ntohl(words[2]);
	return !lh_after(ack, tp->snd_nxt) && !lh_after(tp->snd_una - tp->max_window, ack);
}

/* Accepted. With TCP Fast Open the context's segment is the SYN itself, and its SYN-ACK is still to come. */
static __always_inline void on_accept(struct bpf_sock_ops *ctx, struct bpf_sock *sk, struct tcp_sock *tp)
{
	bool fast_open = ctx->skb_tcp_flags & TCPHDR_SYN, told;
	struct lh_report report = {};

	if (!fast_open)
		inherit_less(ctx, sk);
	if (!has_our_law(BPF_CORE_READ(tp, inet_conn.icsk_ca_ops)))
		return;
	told = hear(ctx, BPF_LOAD_HDR_OPT_TCP_SYN, &report, true);
	/* a client that offered no report in the SYN sends none, so this option is not the client's */
	if (!told && has_syn(ctx))
		return;
	ask_for(ctx, BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG);
	if (told || (!fast_open && hear(ctx, 0, &report, true))) {
		count(&heard.at_accept);
		keep(sk, tp, &report);
	}
}

SEC("sockops")
int last_link(struct bpf_sock_ops *ctx)
{
	struct lh_report report = {};
	__u32 op = ctx->op;
	struct tcp_sock *tp;
	struct bpf_sock *sk;

	if (op != BPF_SOCK_OPS_TCP_LISTEN_CB && op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PARSE_HDR_OPT_CB && op != BPF_SOCK_OPS_HDR_OPT_LEN_CB &&
	    op != BPF_SOCK_OPS_WRITE_HDR_OPT_CB)
		return 1;
	sk = ctx->sk;
	if (!sk) {
		if (op == BPF_SOCK_OPS_HDR_OPT_LEN_CB || op == BPF_SOCK_OPS_WRITE_HDR_OPT_CB)
			answer(ctx);
		return 1;
	}
	if (op == BPF_SOCK_OPS_WRITE_HDR_OPT_CB)
		return 1;
	if (op == BPF_SOCK_OPS_HDR_OPT_LEN_CB) {
		/*
		 * the first segment after the SYN-ACK of TCP Fast Open, not the computation of the maximum segment size
		 * before it
		 */
		if (ctx->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS)
			inherit_less(ctx, sk);
		return 1;
	}
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	if (op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		on_accept(ctx, sk, tp);
		return 1;
	}
	if (!has_our_law(BPF_CORE_READ(tp, inet_conn.icsk_ca_ops)))
		return 1;
	if (op == BPF_SOCK_OPS_TCP_LISTEN_CB) {
		if (prepare(ctx, sk, tp, ctx->bpf_sock_ops_cb_flags)) {
			count(&heard.listeners_failed);
		} else {
			ask_for(ctx, BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG);
			count(&heard.listeners);
		}
	} else if (has_acceptable_ack(ctx, tp) && hear(ctx, 0, &report, true)) {
		count(&heard.later);
		keep(sk, tp, &report);
	}
	return 1;
}

/* Gives the stored report to the law; the window may change. */
static __always_inline void tell_report(struct tcp_sock *tp, struct lh_flow *flow)
{
	struct lh_report *kept = bpf_sk_storage_get(&reports, tp, NULL, 0);
	struct lh_window before = {
		.cwnd_segments = tp->snd_cwnd,
		.cwnd_count = tp->snd_cwnd_cnt,
		.ssthresh_segments = tp->snd_ssthresh,
	};
	struct lh_window window = before;
	struct lh_report report;

	flow->reported = 0;
	if (!kept)
		return;
	report = *kept;
	report.segment_bytes = tp->mss_cache;
	report.rtt_us = tp->srtt_us >> 3;
	report.segments_sent = tp->data_segs_out;
	/* RFC 5681 section 3.1, as tcp_init_transfer(): the window is 1 then */
	if (!report.segments_sent && tp->total_retrans > 1)
		report.permitted &= ~LH_PERMIT_INITIAL;
	lh_law_reported(law_of(flow), &parameters, &report, &window);
	record(CALL_REPORTED, tp, flow, &report, sizeof(report), &before, &window);
	if (window.cwnd_segments != before.cwnd_segments) {
		set_window(tp, clamped(tp, window.cwnd_segments, 2));
		tp->snd_cwnd_stamp = bpf_jiffies64();
	}
	if (window.cwnd_count != before.cwnd_count)
		tp->snd_cwnd_cnt = window.cwnd_count;
	if (window.ssthresh_segments != before.ssthresh_segments)
		tp->snd_ssthresh = window.ssthresh_segments;
	/* a pacing sender must pace the new window */
	if (tp->srtt_us)
		update_pacing_rate(tp);
}

/* The first transmission with nothing in flight: a report that came with a request must count for the response. */
static __always_inline void tell_before_sending(struct tcp_sock *tp)
{
	struct lh_flow *flow = bpf_sk_storage_get(&flows, tp, NULL, 0);

	if (flow && flow->begun && flow->reported)
		tell_report(tp, flow);
}

/* Listening sockets of the walker's network namespace that are older than us. Nothing is written to the sequence. */
SEC("iter/tcp")
int prepare_listeners(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	int flags = 0, error;
	struct tcp_sock *tp;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_state) != TCP_LISTEN)
		return 0;
	if (!has_our_law(BPF_CORE_READ(tp, inet_conn.icsk_ca_ops)) || bpf_sk_storage_get(&listeners, tp, NULL, 0))
		return 0;
	error = bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	if (!error)
		error = prepare(tp, tp, tp, flags);
	if (!error) {
		flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
		error = bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
	}
	count(error ? &heard.listeners_failed : &heard.listeners);
	return 0;
}

/* Undoes it. */
SEC("iter/tcp")
int release_listeners(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	int flags = 0, keeps = 0;
	struct tcp_sock *tp;
	__u32 *ours;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	ours = bpf_sk_storage_get(&listeners, tp, NULL, 0);
	if (!ours)
		return 0;
	if (*ours & KEEPS_SYNS)
		bpf_setsockopt(tp, SOL_TCP, TCP_SAVE_SYN, &keeps, sizeof(keeps));
	/* a kernel before 6.12 cannot remove them here; the record of whose they are stays */
	if (bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return 0;
	flags &= ~(*ours & ~NO_CALLBACK);
	if (!bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		bpf_sk_storage_delete(&listeners, tp);
	return 0;
}

#endif /* LASTHOP_LAST_LINK_H */
