/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * receive.h - bounds what a controlled socket is sent, by the window that it advertises.
 *
 * The kernel offers the free part of its buffer. This program lowers the window field of the segments that leave, so a
 * sender that knows nothing of us sends less. Nothing is written to a socket: after the loader's death the link is gone
 * and with it the limit, and a loader that hangs is covered by the lease.
 *
 * Three rules keep a connection from harm:
 *  - The right edge of the window never moves back (RFC 7323 section 2.4). The greatest one told so far is kept for
 *    each socket, from every segment that leaves, limited or not. The first one seen is not limited, for nobody knows
 *    what was told before.
 *  - A limit is rounded up to the unit of the field. So two segments stay two segments at any scale.
 *  - The field is never raised: the buffer has no more room.
 *
 * The header is found by the kernel's own offset. So VLANs, IPv6's extension headers and interfaces without an Ethernet
 * header need no parser. The ports tell whether it is the socket's own header, and not that of a tunnel around it.
 */
#ifndef LASTHOP_RECEIVE_H
#define LASTHOP_RECEIVE_H

/* The start of a TCP header, RFC 9293 section 3.1. */
struct lh_tcp_header {
	__be16 source;
	__be16 dest;
	__be32 seq;
	__be32 ack_seq;
	__u8 data_offset;
	__u8 flags;
	__be16 window;
	__sum16 checksum;
};

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/* TCP-MD5 (RFC 2385) and TCP-AO (RFC 5925) sign the header, and have done so before it comes here. */
struct tcp_sock___signed {
	void *md5sig_info;
	void *ao_info;
} __attribute__((preserve_access_index));

static __always_inline bool is_signed(struct tcp_sock *tp)
{
	struct tcp_sock___signed *keys = (struct tcp_sock___signed *)tp;

	return (bpf_core_field_exists(keys->md5sig_info) && BPF_CORE_READ(keys, md5sig_info)) ||
	       (bpf_core_field_exists(keys->ao_info) && BPF_CORE_READ(keys, ao_info));
}

/* The window field to send instead of `field`, with this acknowledgement. */
static __always_inline __u32 lowered_window(struct tcp_sock *tp, const struct lh_former *storage, __u32 ack,
					    __u32 field)
{
	__u32 scale = BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale), unit = 1U << scale, limit;
	__u64 now_ns = bpf_ktime_get_ns();
	struct lh_bound bound;

	bound_of(SK(tp)->__sk_common.skc_cookie.counter, &bound);
	limit = lh_bound_receive_window(&bound, now_ns, (__u64)field << scale, tp->advmss);
	if ((__s32)(storage->receive_edge - (ack + limit)) > 0)
		limit = storage->receive_edge - ack;
	limit = (limit + unit - 1) >> scale;
	return limit < field ? limit : field;
}

/*
 * A packet that leaves by our interface. Hook: tcx/egress; context struct __sk_buff, socket locked unless the packet
 * waited, in a tunnel or for its neighbour's address; then an edge that is stored at the same time may be lost.
 * Maps: former, bounds. It runs first, and programs after it run as well.
 */
SEC("?tcx/egress")
int bound_received(struct __sk_buff *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	struct lh_tcp_header header;
	struct lh_former *storage;
	struct sk_buff *packet;
	struct tcp_sock *tp;
	__u32 at, ack, field, lowered, edge;
	__be16 window;

	if (!sk)
		return TCX_NEXT;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return TCX_NEXT;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (!storage)
		return TCX_NEXT;
	packet = bpf_cast_to_kern_ctx(ctx);
	at = packet->transport_header - (__u32)(packet->data - packet->head);
	if (bpf_skb_load_bytes(ctx, at, &header, sizeof(header)) || header.dest != SK(tp)->__sk_common.skc_dport ||
	    header.source != bpf_htons(SK(tp)->__sk_common.skc_num))
		return TCX_NEXT;
	if (header.flags & TCPHDR_SYN) /* a socket may connect anew: what the last connection offered is over */
		storage->receive_seen = 0;
	if (!(header.flags & TCPHDR_ACK) || header.flags & (TCPHDR_SYN | TCPHDR_RST))
		return TCX_NEXT;

	ack = bpf_ntohl(header.ack_seq);
	field = lowered = bpf_ntohs(header.window);
	if (storage->receive_seen && controlled(tp) && !is_signed(tp))
		lowered = lowered_window(tp, storage, ack, field);
	if (lowered != field) {
		window = bpf_htons(lowered);
		/* if the first call fails, nothing has changed; if not, the header is ours to write */
		if (bpf_l4_csum_replace(ctx, at + __builtin_offsetof(struct lh_tcp_header, checksum), header.window,
					window, sizeof(window)) ||
		    bpf_skb_store_bytes(ctx, at + __builtin_offsetof(struct lh_tcp_header, window), &window,
					sizeof(window), 0))
			lowered = field;
	}
	edge = ack + (lowered << BPF_CORE_READ_BITFIELD(tp, rx_opt.rcv_wscale));
	if (!storage->receive_seen || (__s32)(edge - storage->receive_edge) > 0)
		storage->receive_edge = edge;
	storage->receive_seen = 1;
	return TCX_NEXT;
}

#endif /* LASTHOP_RECEIVE_H */
