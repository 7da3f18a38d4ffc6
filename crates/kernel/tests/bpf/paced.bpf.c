// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* paced - for each TCP socket whether the kernel paces it: its cookie and sk_pacing_status. */
#include "kernel.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct paced {
	__u64 cookie;
	__u64 status;
};

SEC("iter/tcp")
int paced(struct bpf_iter__tcp *ctx)
{
	struct sock_common *sk = ctx->sk_common;
	struct paced record = {};
	struct tcp_sock *tp;

	if (!sk)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	record.cookie = bpf_get_socket_cookie(tp);
	record.status = tp->inet_conn.icsk_inet.sk.sk_pacing_status;
	bpf_seq_write(ctx->meta->seq, &record, sizeof(record));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
