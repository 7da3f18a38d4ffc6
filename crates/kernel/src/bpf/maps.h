/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* maps.h - the state that the programs keep and share. */
#ifndef LASTHOP_MAPS_H
#define LASTHOP_MAPS_H

/* Each variable below has its own section: the loader finds it by the section's name, alone in its map. */
const volatile struct lh_settings settings SEC(".rodata.settings") = {};

/* Written by the loader only. */
struct lh_control control SEC(".data.control") = { .generation = 1 };

/* Written by the programs only. */
struct lh_counters counters SEC(".bss.counters") = {};

/* Bounds of single flows, by socket cookie, without their lease (lh_control). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_BOUNDS_MAX);
	__type(key, __u64);
	__type(value, struct lh_bound);
} bounds SEC(".maps");

/* Cgroups that matter, by id. The loader updates them, because a recreated cgroup has another id. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_CGROUPS_MAX);
	__type(key, __u64);
	__type(value, struct lh_cgroup);
} cgroups SEC(".maps");

/* Users that rules name, by uid: those rules. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_RULES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} users SEC(".maps");

/* The far ends through which other namespaces send; the value has no meaning. Only with lh_settings.containers. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_FAR_ENDS_MAX);
	__type(key, struct lh_far_end);
	__type(value, __u8);
} far_ends SEC(".maps");

/* The interface by which this host forwards; 0: it is the destination itself. Only with lh_settings.containers. */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_ROUTES_MAX);
	__type(key, struct lh_destination);
	__type(value, __u32);
} routes SEC(".maps");

/* Congestion controls not to replace, by zero-padded name. */
struct lh_name {
	char text[LH_NAME_LENGTH];
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, LH_LEAVE_MAX);
	__type(key, struct lh_name);
	__type(value, __u8);
} leave SEC(".maps");

/*
 * What we changed on a socket, and what it advertised (receive.h); deleted with the socket. In mode Control, its former
 * control.
 */
struct lh_former {
	char control[LH_NAME_LENGTH];
	__u32 clamped; /* mode Clamp: the clamp that we set, 0 = none */
	__u32 paced; /* mode Clamp: the SO_MAX_PACING_RATE that we set, bytes per second, 0 = none */
	__u64 max_pacing_rate; /* the application's own at that time; ~0 = none */
	__u32 receive_edge; /* the greatest right edge that it advertised, a sequence number */
	__u32 receive_seen; /* 1: there is one */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct lh_former);
} former SEC(".maps");

/*
 * Marks the sockets of our interface that have changed since they were told, for the walk that visits no others
 * (monitor.h); deleted with the socket. The value: `walk_us` of the latest walk that told it; 0: none since it changed.
 */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, __u64);
} marked SEC(".maps");

/* Cookies of sockets that have closed, or left our interface, for the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LH_EVENTS_BYTES);
} gone SEC(".maps");

/* Changes of the congestion state, for the loader. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, LH_EVENTS_BYTES);
} state_changes SEC(".maps");

static __always_inline void count(__u64 *counter)
{
	__sync_fetch_and_add(counter, 1);
}

/*
 * The bound of the flow with this cookie: its own if it has one, else the default. Both have the default's lease. An own
 * entry without limits exempts a flow from the default.
 */
static __always_inline void bound_of(__u64 cookie, struct lh_bound *bound)
{
	const struct lh_bound *own = cookie ? bpf_map_lookup_elem(&bounds, &cookie) : NULL;
	__u32 current = control.generation & 1;

	if (own)
		*bound = *own;
	else
		*bound = control.defaults[current];
	bound->expires_ns = control.defaults[current].expires_ns;
}

#endif /* LASTHOP_MAPS_H */
