/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * intf.h - the declarations that the programs and their loader share. build.rs makes src/layout.rs of it, the same in
 * Rust. No implicit padding. Windows in segments, times on CLOCK_MONOTONIC.
 */
#ifndef LASTHOP_INTF_H
#define LASTHOP_INTF_H

#include "endpoints.h"

enum {
	LH_NAME_LENGTH = 16, /* TCP_CA_NAME_MAX: zero-padded */
	LH_BOUNDS_MAX = 65536, /* flows with a bound of their own */
	LH_CGROUPS_MAX = 2048, /* that the loader names, those of patterns among them */
	LH_RULES_MAX = 32,
	LH_LEAVE_MAX = 64,
	LH_TUNNELS_MAX = 4,
	LH_FAR_ENDS_MAX = 1024,
	LH_ROUTES_MAX = 4096,
	LH_CGROUP_DEPTH_MAX = 32, /* levels of the hierarchy searched for a cgroup that the loader has named */
	LH_EVENTS_BYTES = 262144,
};

/* The loader's settings, fixed before loading. */
struct lh_settings {
	__u32 netns_inum; /* the network namespace in which we act */
	__u32 interface_index; /* the managed interface in that namespace */
	__u32 take_chosen; /* 1: sockets whose application has chosen a control are ours, too */
	__u32 clamp; /* 1: mode Clamp, without a control of ours */
	__u32 derive_flags; /* 1: behave as if the kernel passed no flags to cong_control (before 6.10) */
	__u32 owner_pid; /* mode Clamp: the loader, in the pid namespace owner_pidns */
	__u64 owner_start; /* its start time, /proc/PID/stat field 22, because a pid may be used again */
	__u32 owner_pidns;
	__u32 containers; /* 1: in other namespaces, too, on sockets whose packets leave by the managed interface in the end */
	__u32 tunnels[LH_TUNNELS_MAX]; /* interfaces whose packets leave by the managed one, wrapped; 0: none */
	char name[LH_NAME_LENGTH]; /* of our control */
	/* Rules, a bit for each, the first in the lowest; 0: there are none. A socket's rule is the first that fits. */
	__u32 rules;
	__u32 rules_of_any_cgroup; /* of these rules, those that name no cgroup */
	__u32 rules_of_any_user; /* likewise */
	__u32 rules_leave; /* those whose sockets are left alone */
};

/* An interface of another network namespace whose packets come out in ours: the far end of a veth pair. */
struct lh_far_end {
	__u32 netns_inum;
	__u32 interface_index; /* in that namespace */
};

/* Where packets that this host forwards go, for the longest prefix that fits; IPv4 as ::ffff:a.b.c.d, 96 bits more. */
struct lh_destination {
	__u32 prefix_bits; /* 0 to 128 */
	__u8 address[16];
};

/* The role of a cgroup, with all below it. In lh_control: the roles that occur. */
enum {
	LH_CGROUP_WITHIN = 1, /* control is limited to it */
	LH_CGROUP_EXCLUDED = 2, /* left alone */
};

/* A cgroup in the map `cgroups`: what it means for the sockets in it and below. */
struct lh_cgroup {
	__u32 is; /* LH_CGROUP_* */
	__u32 rules; /* those that name it */
};

/*
 * The bounds that the loader hands over. A socket reads its own again after a change of generation. The current default
 * bound is defaults[generation % 2]; the loader fills the other one, then increments the generation. Its lease is that
 * of all bounds: one write renews them.
 */
struct lh_control {
	__u32 generation; /* never 0 */
	__u32 cgroups; /* LH_CGROUP_*; 0: cgroups do not matter */
	struct lh_bound defaults[2];
	__u64 walk_us; /* when the latest walk that observes began */
};

/* Written by the programs, read by the loader. */
struct lh_counters {
	__u64 adopted_at_connect;
	__u64 adopted_at_accept;
	__u64 repaired; /* reductions whose beginning the kernel did not report, see repair() */
	__u64 refused; /* how often the kernel refused to set our control on a new socket */
	__u64 state_changes;
	__u64 state_changes_lost; /* for lack of room in the ring */
	__u64 unpaced; /* mode Clamp: how often the kernel refused to limit a pacing rate or to remove the limit */
	/* By the iterators, summed over all their runs: */
	__u64 walk_adopted;
	__u64 walk_already;
	__u64 walk_left;
	__u64 walk_restored;
	__u64 walk_failed;
	/* Of the walks that observe: */
	__u64 marks; /* given */
	__u64 still_marked; /* left after a walk */
	__u64 gone; /* sockets closed, or met on another interface */
	__u64 gone_lost; /* for lack of room in the ring */
};

/* Why a socket of our interface is not under our control. Left alone as configured, ... */
enum {
	LH_IS_OURS = 0, /* it is; or nothing is to be */
	LH_LEFT_CGROUP = 1, /* outside of the cgroup that control is limited to, or in an excluded one */
	LH_LEFT_RULE = 2, /* by a rule */
	LH_LEFT_NAME = 3, /* its control is on the leave list */
	/* ... or it escapes: */
	LH_ESCAPES_CHOSEN = 4, /* its application, or another BPF program, has chosen its control */
	LH_ESCAPES_AGENT = 5, /* it has another agent's control */
	LH_ESCAPES_LOCKED = 6, /* its route locks the control */
	LH_ESCAPES_YET = 7, /* it can be taken over, and has not been */
};

/* What a bound asks of the pace, bits. */
enum {
	LH_PACE_OWN = 1,
	LH_PACE_AT_ONCE = 2,
};

/* One socket, as the iterator writes it. */
struct lh_sample {
	__u64 cookie;
	__u64 bytes_acked;
	__u64 bytes_retrans;
	__u64 bytes_received;
	__u64 bound_expires_ns;
	__u64 bound_max_pacing_rate; /* bytes per second */
	__u64 bound_max_receive_bytes;
	__u64 pacing_rate; /* likewise; ~0: none yet */
	struct lh_endpoints ends;
	char control[LH_NAME_LENGTH];
	__u8 under_way; /* 1: something is in flight, or waits to be sent */
	__u8 left; /* why it is not ours: LH_IS_OURS, ... */
	__u8 tcp_state;
	__u8 ca_state;
	__u32 cwnd_segments;
	__u32 ssthresh_segments;
	__u32 srtt_us; /* 0: no sample yet */
	__u32 min_rtt_us; /* 0xffffffff: no sample yet */
	__u32 in_flight_segments;
	__u32 unsent_bytes;
	__u32 mss_bytes;
	__u32 total_retrans;
	__u32 timeouts; /* 0xffffffff: not reported by this kernel */
	__u32 delivered_segments;
	__u32 rate_delivered; /* segments in rate_interval_us: the kernel's delivery rate */
	__u32 rate_interval_us;
	__u32 segments_sent; /* data segments, as the next two */
	__u32 segments_received;
	__u32 segments_out_of_order;
	__u32 receive_rtt_us; /* the RTT as the receiver estimates it; 0: no sample yet */
	__u32 idle_us; /* since the latest segment in either direction */
	__u32 bound_min_segments; /* in force now; 0, here and below, and in the rate: none */
	__u32 bound_max_segments;
	__u32 controlled; /* 1: by this loader */
	__u32 interface_index;
	__u32 newest_rtt_us; /* RTT of the newest segment acknowledged; 0: no sample yet */
	__u32 rule; /* the bit of the rule that fits it; 0: none does */
	__u32 bound_pace; /* LH_PACE_* of the bound in force */
	__u32 in_container; /* 1: in another network namespace than ours */
};

/* A change of the congestion state, as written to the ring. */
struct lh_state_change {
	__u64 at_ns;
	__u64 cookie;
	__u32 cwnd_segments; /* before the change, like the next */
	__u32 ssthresh_segments;
	__u8 from;
	__u8 to;
	__u8 padding[6];
};

#endif /* LASTHOP_INTF_H */
