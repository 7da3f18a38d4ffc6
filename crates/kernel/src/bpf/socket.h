/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - decides which sockets are ours to change. Not on the path of each ACK, so everything is read with
 * BPF_CORE_READ: every hook and every verifier accepts it, and it survives a dangling pointer.
 */
#ifndef LASTHOP_SOCKET_H
#define LASTHOP_SOCKET_H

#include "interface.h"

/*
 * Whether a socket's cgroup allows control: below the one that control is limited to, and not below an excluded one.
 * `self` is the first member of struct cgroup, so a css is its cgroup.
 */
static __always_inline bool in_our_cgroups(struct sock *sk)
{
	__u32 asked = control.cgroups;
	bool within = !(asked & LH_CGROUP_WITHIN);
	struct cgroup *cgroup;
	const __u8 *named;
	__u64 id;

	if (!asked)
		return true;
	if (!bpf_core_field_exists(struct sock_cgroup_data, cgroup))
		return false; /* before 5.16, where the loader refuses cgroups */
	cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	for (int level = 0; level < LH_CGROUP_DEPTH_MAX && cgroup; level++) {
		id = BPF_CORE_READ(cgroup, kn, id);
		named = bpf_map_lookup_elem(&cgroups, &id);
		if (named && *named & LH_CGROUP_EXCLUDED)
			return false;
		if (named && *named & LH_CGROUP_WITHIN)
			within = true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return within;
}

static __always_inline bool on_our_interface(struct sock *sk)
{
	return interface_of(sk) == settings.interface_index && !to_loopback(sk);
}

static __always_inline bool managed(struct sock *sk)
{
	return on_our_interface(sk) && in_our_cgroups(sk);
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
