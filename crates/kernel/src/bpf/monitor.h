/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* monitor.h - observes the sockets of the managed interface. Changes nothing. */
#ifndef LASTHOP_MONITOR_H
#define LASTHOP_MONITOR_H

/* Whether something is in flight, or waits to be sent. */
static __always_inline bool under_way(struct tcp_sock *tp)
{
	return tp->packets_out || (__s32)(tp->write_seq - tp->snd_nxt) > 0;
}

/* Whether a socket changes no more before a segment comes, or is sent, that the programs below are told of. */
static __always_inline bool at_rest(struct tcp_sock *tp)
{
	return SK(tp)->__sk_common.skc_state == TCP_ESTABLISHED && !under_way(tp);
}

/* As interface_of() (interface.h), without a helper for each step: the verifier knows the socket of an iterator. */
static __always_inline __u32 interface_of_known(struct sock *sk)
{
	struct dst_entry *dst = sk->sk_dst_cache;

	return dst && dst->obsolete <= 0 ? dst->dev->ifindex : interface_of(sk);
}

/*
 * Writes the record of a socket, if that is on our interface; `bounds_too`: with its bound. The record is built on the
 * stack (at most 512 bytes) and written as a whole. If the sequence's buffer is full, the kernel visits the socket again
 * after the next read.
 */
static __always_inline bool tell(struct seq_file *seq, struct tcp_sock *tp, bool bounds_too)
{
	struct lh_sample record = {};
	struct lh_former *storage;
	struct lh_bound bound;
	struct lh_name name;
	struct sock *sk = SK(tp);
	__u64 now_ns = bpf_ktime_get_ns();
	__s64 idle_us = now_ns / 1000 - tp->tcp_mstamp;
	__s32 unsent = tp->write_seq - tp->snd_nxt;

	record.interface_index = interface_of_known(sk);
	if (!leaves_by_ours(sk, record.interface_index) || to_loopback(sk))
		return false;
	if (idle_us < 0)
		idle_us = 0;
	if (idle_us > 0xffffffff)
		idle_us = 0xffffffff;
	record.cookie = bpf_get_socket_cookie(tp);
	read_endpoints(sk, &record.ends);
	record.under_way = under_way(tp);
	record.tcp_state = sk->__sk_common.skc_state;
	record.ca_state = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	record.cwnd_segments = tp->snd_cwnd;
	record.ssthresh_segments = tp->snd_ssthresh;
	record.srtt_us = tp->srtt_us >> 3;
	record.min_rtt_us = tp->rtt_min.s[0].v;
	record.newest_rtt_us = tp->rack.rtt_us;
	record.in_flight_segments = tp->packets_out - (tp->sacked_out + tp->lost_out) + tp->retrans_out;
	if (record.in_flight_segments > tp->packets_out + tp->retrans_out) /* an ACK came while we read */
		record.in_flight_segments = tp->packets_out;
	record.unsent_bytes = unsent > 0 ? unsent : 0;
	record.mss_bytes = tp->mss_cache;
	record.total_retrans = tp->total_retrans;
	record.timeouts = 0xffffffff;
	if (bpf_core_field_exists(tp->total_rto))
		record.timeouts = tp->total_rto;
	record.delivered_segments = tp->delivered;
	record.rate_delivered = tp->rate_delivered;
	record.rate_interval_us = tp->rate_interval_us;
	record.bytes_acked = tp->bytes_acked;
	record.pacing_rate = tp->inet_conn.icsk_inet.sk.sk_pacing_rate;
	record.bytes_retrans = tp->bytes_retrans;
	record.segments_sent = tp->data_segs_out;
	record.bytes_received = tp->bytes_received;
	record.segments_received = tp->data_segs_in;
	record.segments_out_of_order = tp->rcv_ooopack;
	record.receive_rtt_us = tp->rcv_rtt_est.rtt_us >> 3;
	record.idle_us = idle_us;
	record.rule = rule_of(sk);
	record.in_container = sk->__sk_common.skc_net.net->ns.inum != settings.netns_inum;

	name_of(tp->inet_conn.icsk_ca_ops, &name);
	__builtin_memcpy(record.control, name.text, sizeof(record.control));
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (storage)
		record.controlled = settings.clamp || our_name(&name); /* controlled() */
	if (!record.controlled && (settings.clamp || settings.name[0]))
		record.left = why_left(tp, record.rule);
	if (bounds_too && record.controlled) {
		bound_of(record.cookie, &bound);
		if (lh_bound_holds(&bound, now_ns)) {
			record.bound_expires_ns = bound.expires_ns;
			record.bound_min_segments = bound.min_segments;
			record.bound_max_segments = bound.max_segments;
			record.bound_max_pacing_rate = bound.max_pacing_rate;
			record.bound_max_receive_bytes = bound.max_receive_bytes;
			record.bound_pace = (bound.paced ? LH_PACE_OWN : 0) | (bound.at_once ? LH_PACE_AT_ONCE : 0);
		}
	}
	bpf_seq_write(seq, &record, sizeof(record));
	return true;
}

/* Tells the loader to forget a socket. One without a cookie was never told. */
static __always_inline void tell_gone(struct sock *sk)
{
	__u64 cookie = sk->__sk_common.skc_cookie.counter;

	if (!cookie)
		return;
	if (bpf_ringbuf_output(&gone, &cookie, sizeof(cookie), BPF_RB_NO_WAKEUP))
		count(&counters.gone_lost);
	count(&counters.gone); /* last: the loader looks into the ring when this has changed */
}

/*
 * All sockets, with their bounds. Hook: iter/tcp in our namespace; context struct bpf_iter__tcp, socket locked. Maps:
 * bounds, former.
 */
SEC("?iter/tcp")
int sample(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);

	if (tp)
		tell(ctx->meta->seq, tp, true);
	return 0;
}

/* The same without their bounds; marks those that are not at rest. Maps: former, marked (create). */
SEC("?iter/tcp")
int look_at_all(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);
	__u64 *told_us;

	if (!tp)
		return 0;
	if (!at_rest(tp))
		mark(SK(tp));
	told_us = bpf_sk_storage_get(&marked, tp, NULL, 0);
	if (told_us)
		*told_us = control.walk_us;
	tell(ctx->meta->seq, tp, false);
	return 0;
}

/*
 * The marked ones, without a scan of the kernel's table of all connections. Hook: iter/bpf_sk_storage_map of `marked`,
 * which may visit one twice; context struct bpf_iter__bpf_sk_storage_map, socket not locked: each value is right, but not
 * all are of the same moment. Maps: former, gone.
 */
SEC("?iter/bpf_sk_storage_map")
int look_at_marked(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk);
	__u64 *told_us = ctx->value;

	if (!tp || !told_us)
		return 0;
	*told_us = control.walk_us;
	if (!tell(ctx->meta->seq, tp, false))
		tell_gone(SK(tp));
	return 0;
}

/* Whether a socket has not changed since the walk that has just ended began. */
static __always_inline bool is_unchanged(struct tcp_sock *tp)
{
	return at_rest(tp) && tp->tcp_mstamp < control.walk_us;
}

/*
 * After that walk: takes the mark from those that will not change by themselves. In a walk of its own, which writes
 * nothing: the kernel begins one that writes anew after each buffer, and would then skip as many as were unmarked. Hook,
 * context and maps as above.
 */
SEC("?iter/bpf_sk_storage_map")
int unmark_told(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk);
	__u64 *told_us = ctx->value;

	if (!tp || !told_us)
		return 0;
	/* The walk skips sockets where others close between two of its buffers. */
	if (*told_us != control.walk_us || !is_unchanged(tp)) {
		count(&counters.still_marked);
		return 0;
	}
	bpf_sk_storage_delete(&marked, tp);
	if (!is_unchanged(tp)) /* a segment came meanwhile, and may have found the mark */
		mark(SK(tp));
	return 0;
}

/* A segment has come, or is sent again. The first to be sent after a rest: bounded_cubic.h, for the sockets it drives. */
static __always_inline int wake(struct sock *sk)
{
	if ((settings.containers || sk->__sk_common.skc_net.net->ns.inum == settings.netns_inum) &&
	    leaves_by_ours(sk, interface_of_known(sk)))
		mark(sk);
	return 0;
}

/*
 * Hooks: tp_btf/tcp_probe (each segment that an open connection gets) and tp_btf/tcp_retransmit_skb, which fire in every
 * namespace; context (struct sock *, ...), socket locked. Maps: marked (create).
 */
SEC("?tp_btf/tcp_probe")
int BPF_PROG(on_segment, struct sock *sk)
{
	return wake(sk);
}

SEC("?tp_btf/tcp_retransmit_skb")
int BPF_PROG(on_retransmission, struct sock *sk)
{
	return wake(sk);
}

/*
 * A connection opens, begins to close, or is closed. Hook: tp_btf/inet_sock_set_state, which fires in every namespace;
 * context (struct sock *, old state, new state), socket locked. Maps: marked (create), gone.
 */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(on_connection, struct sock *sk, const int from, const int to)
{
	if (!bpf_skc_to_tcp_sock(sk) || !in_a_namespace_of_ours(sk))
		return 0;
	if (to == TCP_CLOSE)
		tell_gone(sk);
	else if (to == TCP_ESTABLISHED || from == TCP_ESTABLISHED)
		mark(sk);
	return 0;
}

/*
 * A change of the congestion state. Hook: tp_btf/tcp_cong_state_set, which fires in every namespace and before the
 * change; context (struct sock *, u8 new state), socket locked. Maps: state_changes. It wakes no process: the loader
 * reads the ring at each tick. Changes without room in the ring are counted.
 */
SEC("?tp_btf/tcp_cong_state_set")
int BPF_PROG(on_state_change, struct sock *sk, const __u8 to)
{
	struct tcp_sock *tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	struct lh_state_change *change;
	__u8 from;

	if (!tp)
		return 0;
	from = BPF_CORE_READ_BITFIELD(&tp->inet_conn, icsk_ca_state);
	if (from == to || !in_a_namespace_of_ours(sk) || !on_our_interface(sk))
		return 0;
	change = bpf_ringbuf_reserve(&state_changes, sizeof(*change), 0);
	if (!change) {
		count(&counters.state_changes_lost);
		count(&counters.state_changes);
		return 0;
	}
	change->at_ns = bpf_ktime_get_ns();
	change->cookie = bpf_get_socket_cookie(sk);
	change->cwnd_segments = tp->snd_cwnd;
	change->ssthresh_segments = tp->snd_ssthresh;
	change->from = from;
	change->to = to;
	__builtin_memset(change->padding, 0, sizeof(change->padding));
	bpf_ringbuf_submit(change, BPF_RB_NO_WAKEUP);
	count(&counters.state_changes); /* last, as above */
	return 0;
}

#endif /* LASTHOP_MONITOR_H */
