// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * choose - a BPF program of somebody else, for tests only: gives connections to port 4777 BBR. Those to 4778 and 4779 get
 * its callback flags, and lose all others: with those of 4778 it is called for each segment, with those of 4779 never.
 *
 * Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. No maps.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

/* linux/bpf.h */
#define BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG 16

SEC("sockops")
int choose(struct bpf_sock_ops *ctx)
{
	char name[TCP_CA_NAME_MAX] = "bbr";
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	__be16 port;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 1;
	port = BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_dport);
	if (port == bpf_htons(4777))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	if (port == bpf_htons(4778))
		bpf_sock_ops_cb_flags_set(ctx, BPF_SOCK_OPS_PARSE_ALL_HDR_OPT_CB_FLAG);
	if (port == bpf_htons(4779))
		bpf_sock_ops_cb_flags_set(ctx, 0);
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
