/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * adopt.h - gives sockets of the managed interface our congestion control, and finally their own back.
 *
 * A socket's own control is kept in its `former` storage. What the machine has set for all its sockets we replace: the
 * namespace's default, and what a route names. The kernel applies the route's after TCP_CONNECT_CB, and so undoes what we
 * do there; we do it again at the end of the handshake. What an application has chosen for itself we leave, unless
 * it is CUBIC: ours is CUBIC within bounds.
 */
#ifndef LASTHOP_ADOPT_H
#define LASTHOP_ADOPT_H

enum lh_claim {
	LH_MAY_ADOPT,
	LH_HAS_OURS,
	LH_IS_NAMED, /* on the leave list */
	LH_IS_CHOSEN, /* by its application, or by another BPF program */
	LH_IS_ANOTHERS, /* another agent's */
};

static __always_inline bool is_cubic(const struct lh_name *name)
{
	const char *n = name->text;

	return n[0] == 'c' && n[1] == 'u' && n[2] == 'b' && n[3] == 'i' && n[4] == 'c' && !n[5];
}

/* The control that the socket's route names; 0: none. */
static __always_inline __u32 key_of_route(struct tcp_sock *tp)
{
	struct dst_entry *dst = BPF_CORE_READ(SK(tp), sk_dst_cache);
	unsigned long metrics;
	__u32 key = 0;

	if (!dst)
		return 0;
	metrics = BPF_CORE_READ(dst, _metrics) & ~3UL;
	bpf_probe_read_kernel(&key, sizeof(key), (void *)(metrics + (RTAX_CC_ALGO - 1) * sizeof(key)));
	return key;
}

/*
 * Whether a control was set on this socket alone, or on the listener that it comes from. setsockopt() and
 * bpf_setsockopt() leave the same trace, and so do ours. So it must be another control than sockets get by themselves.
 */
static __always_inline bool chosen(struct tcp_sock *tp, const struct tcp_congestion_ops *ops, const struct lh_name *had)
{
	struct net *net = BPF_CORE_READ(SK(tp), __sk_common.skc_net.net);

	if (settings.take_chosen || settings.clamp || is_cubic(had))
		return false;
	if (!BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_setsockopt))
		return false;
	return ops != BPF_CORE_READ(net, ipv4.tcp_congestion_control) &&
	       BPF_CORE_READ((struct tcp_congestion_ops___read *)ops, key) != key_of_route(tp);
}

/*
 * Decides about the control of a managed socket; `had` becomes the control to give back finally. The control of a dead
 * agent counts as the namespace's default: the socket's own one was lost with that agent.
 */
static __always_inline enum lh_claim claim(struct tcp_sock *tp, struct lh_name *had)
{
	const struct tcp_congestion_ops *ops = BPF_CORE_READ(tp, inet_conn.icsk_ca_ops);
	struct net *net = BPF_CORE_READ(SK(tp), __sk_common.skc_net.net);

	name_of(ops, had);
	if (kindred(had)) {
		if (registered(ops))
			return our_name(had) ? LH_HAS_OURS : LH_IS_ANOTHERS;
		name_of(BPF_CORE_READ(net, ipv4.tcp_congestion_control), had);
		return LH_MAY_ADOPT;
	}
	if (bpf_map_lookup_elem(&leave, had))
		return LH_IS_NAMED;
	return chosen(tp, ops, had) ? LH_IS_CHOSEN : LH_MAY_ADOPT;
}

/* Why a socket of our interface that is not ours is not: LH_LEFT_* or LH_ESCAPES_*. `rule`: the bit of its rule. */
static __always_inline __u8 why_left(struct tcp_sock *tp, __u32 rule)
{
	struct lh_name had;

	if (!in_our_cgroups(SK(tp)))
		return LH_LEFT_CGROUP;
	if (rule & settings.rules_leave)
		return LH_LEFT_RULE;
	switch (claim(tp, &had)) {
	case LH_IS_NAMED:
		return LH_LEFT_NAME;
	case LH_IS_CHOSEN:
		return LH_ESCAPES_CHOSEN;
	case LH_IS_ANOTHERS:
		return LH_ESCAPES_AGENT;
	default:
		break;
	}
	if (!settings.clamp && BPF_CORE_READ_BITFIELD_PROBED(&tp->inet_conn, icsk_ca_dst_locked))
		return LH_ESCAPES_LOCKED;
	return LH_ESCAPES_YET;
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
 * sent. ACTIVE_ESTABLISHED_CB: the kernel has just set the initial window, so a bound must be applied to it once more; and
 * a control that the route names is there.
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
	bool is_new;

	if (op != BPF_SOCK_OPS_TCP_CONNECT_CB && op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	sk = ctx->sk;
	if (!sk)
		return 1;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp || !in_a_namespace_of_ours(SK(tp)))
		return 1;

	storage = bpf_sk_storage_get(&former, sk, NULL, 0);
	if (!managed(SK(tp))) {
		/* an earlier connection of this socket was ours: connect() with AF_UNSPEC leaves a socket its control */
		if (storage && claim(tp, &had) == LH_HAS_OURS && !give_back(ctx, tp, storage)) {
			bpf_sk_storage_delete(&former, sk);
			count(&counters.walk_restored);
		}
		return 1;
	}
	switch (claim(tp, &had)) {
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
	default:
		return 1;
	}

	/*
	 * tcp_ca_dst_init() puts the route's control in the place of any other and calls nothing of either: it would begin on our
	 * private state. Once the connection is established it has begun properly, and is left or taken over.
	 */
	if (op == BPF_SOCK_OPS_TCP_CONNECT_CB && key_of_route(tp))
		return 1;
	bpf_get_socket_cookie(ctx); /* creates it, for init() to find */
	name_ours(name);
	is_new = !storage;
	storage = bpf_sk_storage_get(&former, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!storage)
		return 1;
	keep_former(storage, &had);
	if (bpf_setsockopt(ctx, SOL_TCP, TCP_CONGESTION, name, sizeof(name))) {
		bpf_sk_storage_delete(&former, sk);
		count(&counters.refused);
	} else if (op == BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB) {
		count(&counters.adopted_at_accept);
	} else if (is_new) {
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
	verdict = claim(tp, &had);
	if (!managed(SK(tp))) {
		/* it was ours before its route changed */
		if (storage && verdict == LH_HAS_OURS)
			count(restore(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
		return 0;
	}
	if (verdict != LH_HAS_OURS && verdict != LH_MAY_ADOPT) {
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
	if (claim(tp, &had) == LH_HAS_OURS)
		count(restore(tp, storage) ? &counters.walk_failed : &counters.walk_restored);
	return 0;
}

#endif /* LASTHOP_ADOPT_H */
