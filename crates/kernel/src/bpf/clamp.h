/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * clamp.h - mode Clamp: upper bounds for the sockets' own congestion control, on kernels where we cannot load one.
 *
 * The kernel has a clamp of the window (TCP_BPF_SNDCWND_CLAMP) and a limit of the pacing rate (SO_MAX_PACING_RATE,
 * which any control keeps). Neither has a lease. So a program checks at each RTT sample whether they are still wanted,
 * and sets or removes them. That program must survive the loader; otherwise a killed loader would leave clamps for
 * ever. It is attached to the cgroup without a link, and a child of the loader detaches it (clamp.rs).
 *
 * SO_MAX_PACING_RATE may be the application's own. Its value is saved and restored. A lower value of the application
 * wins, and so does one that it sets while ours is in force.
 *
 * Limitations of the kernel: there is no lower bound. The clamp also sets ssthresh, so after its removal the flow
 * is in slow start from its current window. A window above a new clamp falls only when the control next asks to grow;
 * BBR never asks, but keeps the clamp by itself. A socket that was once paced stays so, at its control's rate: 1.2 or 2
 * windows a round trip, of which we cannot say that it is LH_MIN_PACING_RATE at least. BBR takes the limit for the path's bandwidth, and finds more only step
 * by step.
 */
#ifndef LASTHOP_CLAMP_H
#define LASTHOP_CLAMP_H

#define NO_CLAMP TCP_INFINITE_SSTHRESH

/* SO_MAX_PACING_RATE in 32 bits: no limit. */
#define NO_PACE (~0U)
/* The greatest limit, 34 Gb/s. With it the kernel paces the socket at its own rate. */
#define GREATEST_PACE (NO_PACE - 1)

/* Sets SO_MAX_PACING_RATE to `wanted`, or to the application's own value if `wanted` is 0 or higher. */
static __always_inline int set_pace(void *ctx, struct tcp_sock *tp, struct lh_former *storage, __u64 wanted)
{
	__u64 now = BPF_CORE_READ(SK(tp), sk_max_pacing_rate);
	__u32 rate;

	if (storage->paced != now)
		storage->paced = 0;
	if (!storage->paced)
		storage->max_pacing_rate = now;
	if (wanted >= storage->max_pacing_rate || wanted >= NO_PACE)
		wanted = 0;
	if (wanted == storage->paced)
		return 0;
	rate = wanted ? wanted : storage->max_pacing_rate < NO_PACE ? storage->max_pacing_rate : NO_PACE;
	if (bpf_setsockopt(ctx, SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof(rate))) {
		count(&counters.unpaced);
		return -1;
	}
	storage->paced = wanted;
	return 0;
}

/* Asks for RTT_CB again, where another program has set its own flags and not ours. Its flags stay. */
static __always_inline void keep_asking(struct bpf_sock_ops *ctx)
{
	struct bpf_sock *sk = ctx->sk;
	__u32 flags = ctx->bpf_sock_ops_cb_flags;

	if (sk && !(flags & BPF_SOCK_OPS_RTT_CB_FLAG) && bpf_sk_storage_get(&former, sk, NULL, 0))
		bpf_sock_ops_cb_flags_set(ctx, flags | BPF_SOCK_OPS_RTT_CB_FLAG);
}

/*
 * Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. Maps: former (create), leave,
 * cgroups, bounds. The end of a handshake makes the socket ours and asks for RTT_CB; each RTT_CB updates its clamp.
 */
SEC("?sockops")
int clamp_new(struct bpf_sock_ops *ctx)
{
	struct lh_former *storage;
	__u32 op = ctx->op, wanted;
	__u64 now_ns, wanted_rate;
	struct lh_bound bound;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct lh_name had;
	int clamp;

	if (op != BPF_SOCK_OPS_RTT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		keep_asking(ctx);
		return 1;
	}
	sk = ctx->sk;
	if (!sk)
		return 1;
	storage = bpf_sk_storage_get(&former, sk, NULL, 0);
	if (!storage) {
		if (op == BPF_SOCK_OPS_RTT_CB)
			return 1;
		tp = bpf_skc_to_tcp_sock(sk);
		if (!tp || !in_our_namespace(SK(tp)) || !managed(SK(tp)) || claim(tp, &had) != LH_MAY_ADOPT)
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
	} else if (op != BPF_SOCK_OPS_RTT_CB) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp && !managed(SK(tp))) {
			/*
			 * an earlier connection of this socket was ours: connect() with AF_UNSPEC leaves a socket its
			 * clamp
			 */
			clamp = NO_CLAMP;
			if (storage->clamped)
				bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp));
			if (storage->paced)
				set_pace(ctx, tp, storage, 0);
			bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_RTT_CB_FLAG);
			bpf_sk_storage_delete(&former, sk);
			count(&counters.walk_restored);
			return 1;
		}
	}
	now_ns = bpf_ktime_get_ns();
	bound_of(bpf_get_socket_cookie(ctx), &bound);
	wanted = lh_bound_holds(&bound, now_ns) ? bound.max_segments : 0;
	/* at_once asks for no pace, and nobody paces here: any rate at all would turn pacing on for the socket's life */
	wanted_rate = 0;
	if (lh_bound_paces(&bound, now_ns) && (bound.paced || bound.max_pacing_rate))
		wanted_rate = lh_bound_pacing_rate(&bound, now_ns, GREATEST_PACE, 0);
	if (wanted_rate || storage->paced) {
		tp = bpf_skc_to_tcp_sock(sk);
		if (tp)
			set_pace(ctx, tp, storage, wanted_rate);
	}
	if (wanted != storage->clamped) {
		clamp = wanted ? wanted : NO_CLAMP;
		if (!bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp)))
			storage->clamped = wanted;
	}
	return 1;
}

/* Starts or stops RTT_CB on a socket that already exists. This needs Linux 6.12. */
static __always_inline int ask_for_rtts(struct tcp_sock *tp, bool ask)
{
	int flags = 0;

	if (bpf_getsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags)))
		return -1;
	flags = ask ? flags | BPF_SOCK_OPS_RTT_CB_FLAG : flags & ~BPF_SOCK_OPS_RTT_CB_FLAG;
	return bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &flags, sizeof(flags));
}

/* Removes our clamp from a socket, and forgets it. */
static __always_inline int unclamp(struct tcp_sock *tp, struct lh_former *storage)
{
	int clamp = NO_CLAMP, error = 0;

	if (storage->clamped)
		error = bpf_setsockopt(tp, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &clamp, sizeof(clamp));
	if (storage->paced && set_pace(tp, tp, storage, 0))
		error = -1;
	ask_for_rtts(tp, false);
	if (!error)
		bpf_sk_storage_delete(&former, tp);
	return error;
}

/* Sockets that already exist. Hook: iter/tcp in our namespace; socket locked. Maps: former (create), leave, cgroups. */
SEC("?iter/tcp")
int clamp_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);
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
		ask_for_rtts(tp, true); /* another program may have set its flags since */
		count(&counters.walk_already);
		return 0;
	}
	if (claim(tp, &had) != LH_MAY_ADOPT) {
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

/* Removes our clamps from all sockets. Hook, context and maps as above. */
SEC("?iter/tcp")
int unclamp_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);
	struct lh_former *storage;

	if (!tp)
		return 0;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (storage)
		count(unclamp(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
	return 0;
}

#endif /* LASTHOP_CLAMP_H */
