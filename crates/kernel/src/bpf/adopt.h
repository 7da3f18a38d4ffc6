/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adopt.h - gives sockets of the managed interface our congestion control, and finally their own back.
 *
 * A socket's own control is kept in its `former` storage. If a socket with such storage has another control than ours,
 * its application has changed it after us. We leave it then.
 */
#ifndef LASTHOP_ADOPT_H
#define LASTHOP_ADOPT_H

enum lh_claim {
	LH_NOT_OURS, /* another agent's, on the leave list, or changed by its application */
	LH_HAS_OURS,
	LH_MAY_ADOPT,
};

/*
 * Decides about the control of a managed socket; `had` becomes the control to give back finally. The control of a dead
 * agent counts as the namespace's default: the socket's own one was lost with that agent.
 */
static __always_inline enum lh_claim claim(struct tcp_sock *tp, struct lh_former *storage, struct lh_name *had)
{
	const struct tcp_congestion_ops *ops = BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
	struct net *net = BPF_CORE_READ(SK(tp), __sk_common.skc_net.net);

	name_of(ops, had);
	if (kindred(had)) {
		if (registered(ops))
			return our_name(had) ? LH_HAS_OURS : LH_NOT_OURS;
		name_of(BPF_CORE_READ(net, ipv4.tcp_congestion_control), had);
		return LH_MAY_ADOPT;
	}
	if (storage || bpf_map_lookup_elem(&leave, had))
		return LH_NOT_OURS;
	return LH_MAY_ADOPT;
}

static __always_inline void keep_former(struct lh_former *storage, const struct lh_name *had)
{
	__builtin_memcpy(storage->control, had->text, LH_NAME_LENGTH);
}

/*
 * Gives a socket its own control back, or the namespace's default if that was unloaded. `ctx` as bpf_setsockopt takes
 * it.
 */
static __always_inline int give_back(void *ctx, struct tcp_sock *tp, struct lh_former *storage)
{
	struct net *net = BPF_CORE_READ(SK(tp), __sk_common.skc_net.net);
	struct lh_name name;
	int error;

	__builtin_memcpy(name.text, storage->control, sizeof(name.text));
	error = bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name.text, sizeof(name.text));
	if (error) {
		name_of(BPF_CORE_READ(net, ipv4.tcp_congestion_control), &name);
		error = bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name.text, sizeof(name.text));
	}
	return error;
}

/*
 * A new connection. Hook: sockops at the root of cgroup2; context struct bpf_sock_ops, socket locked. Other agents'
 * programs run beside ours. Maps: former (create), leave, cgroups, bounds.
 *
 * TCP_CONNECT_CB: the route is known, the SYN not sent yet. PASSIVE_ESTABLISHED_CB: the handshake is complete, no data
 * sent. ACTIVE_ESTABLISHED_CB: the kernel has just set the initial window, so a bound must be applied to it once more.
 * The verifier wants ctx itself for bpf_setsockopt, and a null check on each of the two forms of the socket. ctx->sk is
 * read once, because each read is another pointer to it.
 */
SEC("?sockops")
int adopt_new(struct bpf_sock_ops *ctx)
{
	char name[LH_NAME_LENGTH];
	struct lh_former *storage;
	struct lh_bound bound;
	struct tcp_sock *tp;
	struct bpf_sock *sk;
	struct lh_name had;
	__u32 op = ctx->op, window;
	__u64 cookie;

	if (op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !in_our_namespace(SK(tp)))
		return 1;

	storage = bpf_sk_storage_get(&former, sk, NULL, 0);
	if (!managed(SK(tp))) {
		/* an earlier connection of this socket was ours: connect() with AF_UNSPEC leaves a socket its control */
		if (storage && claim(tp, storage, &had) == LH_HAS_OURS && !give_back(ctx, tp, storage)) {
			bpf_sk_storage_delete(&former, sk);
			count(&counters.walk_restored);
		}
		return 1;
	}
	switch (claim(tp, storage, &had)) {
	case LH_NOT_OURS:
		return 1;
	case LH_HAS_OURS:
		if (op == BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB) {
			cookie = bpf_get_socket_cookie(ctx);
			bound_of(cookie, &bound);
			window = lh_bound_window(&bound, bpf_ktime_get_ns(), tp->snd_cwnd, 0, 0);
			if (window != tp->snd_cwnd)
				bpf_setsockopt(ctx, SOL_TCP, TCP_BPF_IW, &window, sizeof(window));
		}
		return 1;
	case LH_MAY_ADOPT:
		break;
	}

	bpf_get_socket_cookie(ctx); /* creates it, for init() to find */
	name_ours(name);
	storage = bpf_sk_storage_get(&former, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!storage)
		return 1;
	keep_former(storage, &had);
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		bpf_sk_storage_delete(&former, sk);
		count(&counters.refused);
	} else if (op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		count(&counters.adopted_at_accept);
	} else {
		count(&counters.adopted_at_connect);
	}
	return 1;
}

/* The socket of a walk; NULL for one that sends no data (listening, closed, waiting, a request). */
static __always_inline struct tcp_sock *sending_socket(void *sk)
{
	struct tcp_sock *tp;
	__u8 state;

	if (!sk)
		return NULL;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return NULL;
	state = BPF_CORE_READ(SK(tp), __sk_common.skc_state);
	return state == TCP_LISTEN || state == TCP_CLOSE ? NULL : tp;
}

/* The same for the socket of a walk, which is no longer ours then. */
static __always_inline int restore(struct tcp_sock *tp, struct lh_former *storage)
{
	int error = give_back(tp, tp, storage);

	if (!error)
		bpf_sk_storage_delete(&former, tp);
	return error;
}

/*
 * Sockets that already exist. Hook: iter/tcp in our namespace (the kernel walks the namespace of the thread that opens
 * the iterator); context struct bpf_iter__tcp, socket locked. Maps: former (create), leave, cgroups. It writes nothing
 * to the sequence, so no socket is visited twice.
 */
SEC("?iter/tcp")
int adopt_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);
	struct lh_former *storage;
	char name[LH_NAME_LENGTH];
	enum lh_claim verdict;
	struct lh_name had;

	if (!tp)
		return 0;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	verdict = claim(tp, storage, &had);
	if (!managed(SK(tp))) {
		/* it was ours before its route changed */
		if (storage && verdict == LH_HAS_OURS)
			count(restore(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
		return 0;
	}
	if (verdict == LH_NOT_OURS) {
		count(&counters.walk_left);
		return 0;
	}
	bpf_get_socket_cookie(tp); /* creates it, for init() to find */
	if (verdict == LH_HAS_OURS && storage) {
		count(&counters.walk_already);
		return 0;
	}
	if (!storage)
		storage = bpf_sk_storage_get(&former, tp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!storage) {
		count(&counters.walk_failed);
		return 0;
	}
	if (verdict == LH_HAS_OURS) {
		/* chosen by name, or inherited from a listener that chose it: only the default to go back to */
		name_of(BPF_CORE_READ(SK(tp), __sk_common.skc_net.net, ipv4.tcp_congestion_control), &had);
		keep_former(storage, &had);
		count(&counters.walk_already);
		return 0;
	}
	keep_former(storage, &had);
	name_ours(name);
	if (bpf_setsockopt(tp, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		bpf_sk_storage_delete(&former, tp);
		count(&counters.walk_failed);
	} else {
		count(&counters.walk_adopted);
	}
	return 0;
}

/* Gives all sockets their own control back. Hook, context and maps as above. */
SEC("?iter/tcp")
int release_existing(struct bpf_iter__tcp *ctx)
{
	struct tcp_sock *tp = sending_socket(ctx->sk_common);
	struct lh_former *storage;
	struct lh_name had;

	if (!tp)
		return 0;
	storage = bpf_sk_storage_get(&former, tp, NULL, 0);
	if (!storage)
		return 0;
	if (claim(tp, storage, &had) == LH_HAS_OURS)
		count(restore(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
	return 0;
}

#endif /* LASTHOP_ADOPT_H */
