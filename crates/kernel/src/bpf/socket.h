/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - decides which sockets are ours to change. Not on the path of each ACK, so everything is read with
 * BPF_CORE_READ: every hook and every verifier accepts it, and it survives a dangling pointer.
 */
#ifndef LASTHOP_SOCKET_H
#define LASTHOP_SOCKET_H

#include "interface.h"

/*
 * What a socket's cgroup and those above it are: that of the process that made it. `self` is the first member of struct
 * cgroup, so a css is its cgroup.
 */
static __always_inline struct lh_cgroup cgroup_of(struct sock *sk)
{
	struct lh_cgroup all = {};
	const struct lh_cgroup *named;
	struct cgroup *cgroup;
	__u64 id;

	if (!bpf_core_field_exists(struct sock_cgroup_data, cgroup))
		return all; /* before 5.16, where the loader refuses cgroups */
	cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	for (int level = 0; level < LH_CGROUP_DEPTH_MAX && cgroup; level++) {
		id = BPF_CORE_READ(cgroup, kn, id);
		named = bpf_map_lookup_elem(&cgroups, &id);
		if (named) {
			all.is |= named->is;
			all.rules |= named->rules;
		}
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return all;
}

/* Whether a socket's cgroup allows control: below the one that control is limited to, and not below an excluded one. */
static __always_inline bool in_our_cgroups(struct sock *sk)
{
	__u32 asked = control.cgroups, is;

	if (!asked)
		return true;
	is = cgroup_of(sk).is;
	return !(is & LH_CGROUP_EXCLUDED) && (is & LH_CGROUP_WITHIN || !(asked & LH_CGROUP_WITHIN));
}

/*
 * The bit of the first rule that fits a socket; 0: none does. A socket's user is who made it, or accepted it: until then
 * a connection has its listener's.
 */
static __always_inline __u32 rule_of(struct sock *sk)
{
	__u32 fit, uid;
	const __u32 *named;

	if (!settings.rules)
		return 0;
	uid = BPF_CORE_READ(sk, sk_uid.val);
	named = bpf_map_lookup_elem(&users, &uid);
	fit = settings.rules_of_any_user | (named ? *named : 0);
	if (fit & ~settings.rules_of_any_cgroup)
		fit &= settings.rules_of_any_cgroup | cgroup_of(sk).rules;
	return fit & -fit;
}

/* Whether what leaves by this interface leaves by the managed one: it is that, or a tunnel through it. */
static __always_inline bool is_ours(__u32 interface)
{
	return interface == settings.interface_index ||
	       (interface && (interface == settings.tunnels[0] || interface == settings.tunnels[1] ||
			      interface == settings.tunnels[2] || interface == settings.tunnels[3]));
}

/* Whether a socket is in a namespace where we may act. In others than ours, leaves_by_ours() says whether we do. */
static __always_inline bool in_a_namespace_of_ours(struct sock *sk)
{
	return settings.containers || in_our_namespace(sk);
}

/*
 * Whether what a socket sends by `interface` of its own namespace leaves by the managed one. From another namespace it
 * does if it comes out in ours, and our routes lead from there to the managed interface. What the packet filter makes of
 * its destination is not seen.
 */
static __always_inline bool leaves_by_ours(struct sock *sk, __u32 interface)
{
	struct lh_far_end end = { .interface_index = interface };
	struct lh_destination to = { .prefix_bits = 128 };
	const __u32 *by;

	if (!settings.containers)
		return is_ours(interface); /* walks and in_a_namespace_of_ours() tell no socket of another namespace */
	end.netns_inum = BPF_CORE_READ(sk, __sk_common.skc_net.net, ns.inum);
	if (end.netns_inum == settings.netns_inum)
		return is_ours(interface);
	if (!bpf_map_lookup_elem(&far_ends, &end))
		return false;
	if (BPF_CORE_READ(sk, __sk_common.skc_family) == AF_INET) {
		to.address[10] = to.address[11] = 0xff;
		bpf_core_read(&to.address[12], 4, &sk->__sk_common.skc_daddr);
	} else {
		bpf_core_read(to.address, sizeof(to.address), &sk->__sk_common.skc_v6_daddr);
	}
	by = bpf_map_lookup_elem(&routes, &to);
	return by && is_ours(*by);
}

static __always_inline bool on_our_interface(struct sock *sk)
{
	return leaves_by_ours(sk, interface_of(sk)) && !to_loopback(sk);
}

/* Marks a socket of our interface for look_at_marked(): no walk has told it since. */
static __always_inline void mark(struct sock *sk)
{
	__u64 *told_us = bpf_sk_storage_get(&marked, sk, NULL, 0);

	if (told_us)
		*told_us = 0;
	if (told_us || !on_our_interface(sk))
		return;
	if (bpf_sk_storage_get(&marked, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE))
		count(&counters.marks);
}

static __always_inline bool managed(struct sock *sk)
{
	return on_our_interface(sk) && in_our_cgroups(sk) && !(rule_of(sk) & settings.rules_leave);
}

/* The name of a control, zero-padded, without the kernel's bytes after its end. */
static __always_inline void name_of(const struct tcp_congestion_ops *ops, struct lh_name *name)
{
	__builtin_memset(name, 0, sizeof(*name));
	bpf_core_read_str(name->text, sizeof(name->text), &((struct tcp_congestion_ops___read *)ops)->name);
}

/* Our control's name. Read as volatile, because the compiler sees only the settings' empty initial value. */
static __always_inline void name_ours(char *name)
{
	for (int i = 0; i < LH_NAME_LENGTH; i++)
		name[i] = settings.name[i];
}

static __always_inline bool our_name(const struct lh_name *name)
{
	for (int i = 0; i < LH_NAME_LENGTH; i++)
		if (name->text[i] != settings.name[i])
			return false;
	return true;
}

/* Whether we control a socket that has `former` storage; if not, its application has chosen another control. */
static __always_inline bool controlled(struct tcp_sock *tp)
{
	struct lh_name name;

	if (settings.clamp)
		return true;
	name_of(tp->inet_conn.icsk_ca_ops, &name);
	return our_name(&name);
}

/* Whether it is a control of any agent: "lasthop", "lasthop.2", ... */
static __always_inline bool kindred(const struct lh_name *name)
{
	const char *n = name->text;

	return n[0] == 'l' && n[1] == 'a' && n[2] == 's' && n[3] == 't' && n[4] == 'h' && n[5] == 'o' && n[6] == 'p' &&
	       (!n[7] || n[7] == '.');
}

/*
 * Whether a control is still in the kernel's list. After its loader died it is not, while its sockets keep it: its list
 * entry was removed, so its predecessor (or the poison there) no longer points at it.
 */
static __always_inline bool registered(const struct tcp_congestion_ops *ops)
{
	struct tcp_congestion_ops___read *read = (struct tcp_congestion_ops___read *)ops;
	struct list_head *before = BPF_CORE_READ(read, list.prev), *next = NULL;

	if (bpf_core_read(&next, sizeof(next), &before->next))
		return false;
	return next == &read->list;
}

#endif /* LASTHOP_SOCKET_H */
