/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * interface.h - the network namespace of a socket, and the interface by which its packets leave. Reads netns_inum of
 * the object's `settings`. Not on the path of each ACK, so everything is read with BPF_CORE_READ: every hook and every
 * verifier accepts it, and it survives a dangling pointer.
 */
#ifndef LASTHOP_INTERFACE_H
#define LASTHOP_INTERFACE_H

#define SK(tp) (&(tp)->inet_conn.icsk_inet.sk)

static __always_inline bool in_our_namespace(struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum) == settings.netns_inum;
}

/* The interface by which the socket's packets leave: by its route, else as bound, else that of the latest arrival. */
static __always_inline __u32 interface_of(struct sock *sk)
{
	struct dst_entry *dst = BPF_CORE_READ(sk, sk_dst_cache);
	__u32 bound;

	/*
	 * dst_dev_put() marks a dst obsolete whose interface is gone, and puts another device there. The socket drops
	 * it when it sends.
	 */
	if (dst && BPF_CORE_READ(dst, obsolete) <= 0)
		return BPF_CORE_READ(dst, dev, ifindex);
	bound = BPF_CORE_READ(sk, __sk_common.skc_bound_dev_if);
	if (bound)
		return bound;
	if (bpf_core_field_exists(sk->sk_rx_dst_ifindex))
		return BPF_CORE_READ(sk, sk_rx_dst_ifindex);
	return 0;
}

/* 127.0.0.0/8, ::1 and ::ffff:127.0.0.0/104. In network order, read on machines of either order. */
static __always_inline bool to_loopback(struct sock *sk)
{
	union {
		__u8 octets[16];
		__u32 words[4];
	} to = {};

	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		to.words[0] = BPF_CORE_READ(sk, __sk_common.skc_daddr);
		return to.octets[0] == 127;
	}
	BPF_CORE_READ_INTO(&to, sk, __sk_common.skc_v6_daddr);
	if (to.words[0] || to.words[1])
		return false;
	if (!to.words[2])
		return !to.octets[12] && !to.octets[13] && !to.octets[14] && to.octets[15] == 1;
	return !to.octets[8] && !to.octets[9] && to.octets[10] == 0xff && to.octets[11] == 0xff && to.octets[12] == 127;
}

#endif /* LASTHOP_INTERFACE_H */
