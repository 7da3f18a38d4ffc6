/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clamp.h - mode Clamp: an upper bound for the sockets' own congestion control, where we cannot bring one.
 *
 * The kernel has a clamp on the window (TCP_BPF_SNDCWND_CLAMP). It has no lease, so a program looks at each RTT sample
 * whether the clamp is still wanted, and sets or lifts it. That program must survive the loader, else a killed loader
 * would leave clamps for ever: it is attached to the cgroup without a link, and the next loader takes it away.
 *
 * The limits, all the kernel's: there is no lower bound. The clamp also sets ssthresh, so when it is lifted the flow is
 * in slow start from where it is. A window above a new clamp comes down only as the control next asks to grow; BBR
 * never asks, but keeps to the clamp by itself.
 */
#ifndef LASTHOP_CLAMP_H
#define LASTHOP_CLAMP_H

#define NO_CLAMP TCP_INFINITE_SSTHRESH

/* The clamp that a flow should have now, 0 = none. */
static __always_inline __u32 wanted_clamp(__u64 cookie)
{
	__u64 now_ns = bpf_ktime_get_ns();
	struct lh_bound bound;

	bound_of(cookie, now_ns, &bound);
	return lh_bound_holds(&bound, now_ns) ? bound.max_segments : 0;
}

/*
 * Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. Maps: former (create), leave,
 * excluded, bounds. A handshake's end makes the socket ours and asks for RTT_CB; each RTT_CB keeps its clamp.
 */
SEC("?sockops")
int clamp_new(struct bpf_sock_ops *ctx)
{
	struct lh_former *storage;
	__u32 op = ctx->op, wanted;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct lh_name had;
	int clamp;

	if (op != BPF_SOCK_OPS_RTT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	storage = bpf_sk_storage_get(&former, sk, NULL, 0);
	if (!storage) {
		if (op == BPF_SOCK_OPS_RTT_CB)
			return 1;
		tp = bpf_skc_to_tcp_sock(sk);
		if (!tp || !in_our_namespace(SK(tp)) || !managed(SK(tp)) || claim(tp, NULL, &had) != LH_MAY_ADOPT)
			return 1;
		storage = bpf_sk_storage_get(&former, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
		if (!storage)
			return 1;
		if (bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_RTT_CB_FLAG)) {
			bpf_sk_storage_delete(&former, sk);
			count(&counters.refused);
			return 1;
		}
		count(op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB ? &counters.adopted_at_accept :
								  &counters.adopted_at_connect);
	}
	wanted = wanted_clamp(bpf_get_socket_cookie(ctx));
	if (wanted != storage->clamped) {
		clamp = wanted ? wanted : NO_CLAMP;
		if (!bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp)))
			storage->clamped = wanted;
	}
	return 1;
}

/* Asks, or no longer asks, for RTT_CB on a socket that is not just being made. Linux 6.13 has this option. */
static __always_inline int ask_for_rtts(struct tcp_sock *tp, bool ask)
{
	int flags = 0;

	if (bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return -1;
	flags = ask ? flags | BPF_SOCK_OPS_RTT_CB_FLAG : flags & ~BPF_SOCK_OPS_RTT_CB_FLAG;
	return bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

/* Takes our clamp off a socket and forgets it. */
static __always_inline int unclamp(struct tcp_sock *tp, struct lh_former *storage)
{
	int clamp = NO_CLAMP, error = 0;

	if (storage->clamped)
		error = bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp));
	ask_for_rtts(tp, false);
	if (!error)
		bpf_sk_storage_delete(&former, tp);
	return error;
}

/* Sockets that already exist. Hook: iter/tcp in our namespace; socket locked. Maps: former (create), leave, excluded. */
SEC("?iter/tcp")
int clamp_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx);
	struct lh_former *storage;
	struct lh_name had;

	if (!tp)
		return 0;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (!managed(SK(tp))) {
		if (storage)
			count(unclamp(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
		return 0;
	}
	if (storage) {
		count(&counters.walk_already);
		return 0;
	}
	if (claim(tp, NULL, &had) != LH_MAY_ADOPT) {
		count(&counters.walk_left);
		return 0;
	}
	bpf_get_socket_cookie(tp);
	storage = bpf_sk_storage_get(&former, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!storage) {
		count(&counters.walk_failed);
		return 0;
	}
	if (ask_for_rtts(tp, true)) {
		bpf_sk_storage_delete(&former, tp);
		count(&counters.walk_failed);
	} else {
		count(&counters.walk_adopted);
	}
	return 0;
}

/* The way back, for all. Hook, context and maps as above. */
SEC("?iter/tcp")
int unclamp_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx);
	struct lh_former *storage;

	if (!tp)
		return 0;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (storage)
		count(unclamp(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
	return 0;
}

#endif /* LASTHOP_CLAMP_H */
