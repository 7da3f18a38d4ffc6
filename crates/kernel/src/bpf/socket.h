/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket.h - which sockets are ours to touch. Not on the path of each ACK: everything is read with BPF_CORE_READ, which
 * every hook and every verifier accepts and which survives a pointer that goes away.
 */
#ifndef LASTHOP_SOCKET_H
#define LASTHOP_SOCKET_H

#include "interface.h"

/* In an excluded cgroup or below one. `self` is the first member of struct cgroup, so a css is its cgroup. */
static __always_inline bool in_excluded_cgroup(struct sock *sk)
{
	struct cgroup *cgroup;
	__u64 id;

	if (!settings.excluded_cgroups)
		return false;
	if (!bpf_core_field_exists(struct sock_cgroup_data, cgroup))
		return false; /* before 5.16; the loader refuses exclusions there */
	cgroup = BPF_CORE_READ(sk, sk_cgrp_data.cgroup);
	for (int level = 0; level < LH_CGROUP_DEPTH_MAX && cgroup; level++) {
		id = BPF_CORE_READ(cgroup, kn, id);
		if (bpf_map_lookup_elem(&excluded, &id))
			return true;
		cgroup = (struct cgroup *)BPF_CORE_READ(cgroup, self.parent);
	}
	return false;
}

static __always_inline bool managed(struct sock *sk)
{
	return interface_of(sk) == settings.interface_index && !to_loopback(sk) && !in_excluded_cgroup(sk);
}

/* The name of a control, zero-padded whatever the kernel has behind its end. */
static __always_inline void name_of(const struct tcp_congestion_ops *ops, struct lh_name *name)
{
	__builtin_memset(name, 0, sizeof(*name));
	bpf_core_read_str(name->text, sizeof(name->text), &((struct tcp_congestion_ops___read *)ops)->name);
}

/* Our control's name. Read as volatile: the compiler knows only the settings' empty initial value. */
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

/* A control of any agent: "lasthop", "lasthop.2", ... */
static __always_inline bool kindred(const struct lh_name *name)
{
	const char *n = name->text;

	return n[0] == 'l' && n[1] == 'a' && n[2] == 's' && n[3] == 't' && n[4] == 'h' && n[5] == 'o' && n[6] == 'p' &&
	       (!n[7] || n[7] == '.');
}

/*
 * Whether a control is still in the kernel's list. One whose loader died is not, while the sockets that had it go on
 * with it: its list entry was taken out, so its predecessor (or the poison there) no longer points at it.
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
