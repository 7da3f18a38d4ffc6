/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* monitor.h - observes the sockets of the managed interface. Changes nothing. */
#ifndef LASTHOP_MONITOR_H
#define LASTHOP_MONITOR_H

/* Whether nothing is under way on a socket, and nothing was for settings.asleep_ms. */
static __always_inline bool asleep(struct tcp_sock *tp)
{
	__s64 idle_us;

	if (!settings.asleep_ms || tp->packets_out || (__s32)(tp->write_seq - tp->snd_nxt) > 0)
		return false;
	idle_us = bpf_ktime_get_ns() / 1000 - tp->tcp_mstamp;
	return idle_us > settings.asleep_ms * 1000LL;
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
static __always_inline void tell(struct seq_file *seq, struct tcp_sock *tp, bool bounds_too)
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
	if (record.interface_index != settings.interface_index || to_loopback(sk))
		return;
	if (idle_us < 0)
		idle_us = 0;
	if (idle_us > 0xffffffff)
		idle_us = 0xffffffff;
	record.cookie = bpf_get_socket_cookie(tp);
	read_endpoints(sk, &record.ends);
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

	name_of(tp->inet_conn.icsk_ca_ops, &name);
	__builtin_memcpy(record.control, name.text, sizeof(record.control));
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (storage)
		record.controlled = settings.clamp || our_name(&name); /* controlled() */
	if (bounds_too && record.controlled) {
		bound_of(record.cookie, &bound);
		if (lh_bound_holds(&bound, now_ns)) {
			record.bound_expires_ns = bound.expires_ns;
			record.bound_min_segments = bound.min_segments;
			record.bound_max_segments = bound.max_segments;
			record.bound_max_pacing_rate = bound.max_pacing_rate;
			record.bound_max_receive_bytes = bound.max_receive_bytes;
		}
	}
	bpf_seq_write(seq, &record, sizeof(record));
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

/*
 * Those that are awake, without their bounds; the others are counted. Hook and context as above. Maps: former, seen
 * (create). Where adopt_existing() or clamp_existing() walk, those mark the sockets.
 */
SEC("?iter/tcp")
int look_at_all(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);

	if (!tp)
		return 0;
	if (!settings.clamp && !settings.name[0])
		mark(tp);
	if (!asleep(tp))
		tell(ctx->meta->seq, tp, false);
	else if (on_our_interface(SK(tp)))
		count(&counters.walk_asleep);
	return 0;
}

/*
 * The same for the marked ones, without a scan of the kernel's table of all connections. Hook: iter/bpf_sk_storage_map of
 * `seen`, which may visit one twice; context struct bpf_iter__bpf_sk_storage_map, socket not locked: each value is right,
 * but not all are of the same moment. Map: former.
 */
SEC("?iter/bpf_sk_storage_map")
int look_at_seen(struct bpf_iter__bpf_sk_storage_map *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk);

	if (!tp)
		return 0;
	if (asleep(tp)) /* its interface is not looked up again: that would cost more than all of this */
		count(&counters.walk_asleep);
	else
		tell(ctx->meta->seq, tp, false);
	return 0;
}

/*
 * A connection is open: marks it. Hook: tp_btf/inet_sock_set_state, which fires in every namespace; context (struct sock
 * *, old state, new state), socket locked. Maps: seen (create).
 */
SEC("?tp_btf/inet_sock_set_state")
int BPF_PROG(on_established, struct sock *sk, const int from, const int to)
{
	struct tcp_sock *tp;

	if (to != TCP_ESTABLISHED)
		return 0;
	tp = (struct tcp_sock *)bpf_skc_to_tcp_sock(sk);
	if (tp && in_our_namespace(sk))
		mark(tp);
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
	if (from == to || !in_our_namespace(sk) || interface_of(sk) != settings.interface_index || to_loopback(sk))
		return 0;
	count(&counters.state_changes);
	change = bpf_ringbuf_reserve(&state_changes, sizeof(*change), 0);
	if (!change) {
		count(&counters.state_changes_lost);
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
	return 0;
}

#endif /* LASTHOP_MONITOR_H */
