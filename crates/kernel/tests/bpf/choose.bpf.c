// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * choose - a BPF program of somebody else, for tests only: gives connections to port 4777 BBR.
 *
 * Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. No maps.
 */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

SEC("sockops")
int choose(struct bpf_sock_ops *ctx)
{
	char name[TCP_CA_NAME_MAX] = "bbr";
	struct tcp_sock *tp;
	struct bpf_sock *sk;

	if (ctx->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (tp && BPF_CORE_READ(tp, inet_conn.icsk_inet.sk.__sk_common.skc_dport) == bpf_htons(4777))
		bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
