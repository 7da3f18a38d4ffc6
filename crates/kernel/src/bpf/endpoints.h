/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* endpoints.h - the two ends of a connection, as the iterators write them. */
#ifndef LASTHOP_ENDPOINTS_H
#define LASTHOP_ENDPOINTS_H

struct lh_endpoints {
	__u8 local[16]; /* IPv4: in the first four bytes */
	__u8 remote[16];
	__u16 local_port; /* host order, like remote_port */
	__u16 remote_port;
	__u16 family;
	__u16 padding;
};

#ifdef __bpf__ /* the loader needs the struct only */
/* For iterators, whose socket the verifier knows: IPv4 without a helper for each field. */
static __always_inline void read_endpoints(struct sock *sk, struct lh_endpoints *ends)
{
	ends->family = sk->__sk_common.skc_family;
	ends->local_port = sk->__sk_common.skc_num;
	ends->remote_port = bpf_ntohs(sk->__sk_common.skc_dport);
	if (ends->family == AF_INET) {
		*(__u32 *)ends->local = sk->__sk_common.skc_rcv_saddr;
		*(__u32 *)ends->remote = sk->__sk_common.skc_daddr;
	} else {
		BPF_CORE_READ_INTO(&ends->local, sk, __sk_common.skc_v6_rcv_saddr);
		BPF_CORE_READ_INTO(&ends->remote, sk, __sk_common.skc_v6_daddr);
	}
}
#endif

#endif /* LASTHOP_ENDPOINTS_H */
