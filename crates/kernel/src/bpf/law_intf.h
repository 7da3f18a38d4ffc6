/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * law_intf.h - the declarations that law.bpf.c and its loader share. build.rs makes src/layout.rs of it, the same in
 * Rust. No implicit padding. Windows in segments.
 */
#ifndef LASTHOP_LAW_INTF_H
#define LASTHOP_LAW_INTF_H

#include "endpoints.h"
#include "laws.h"

enum {
	LH_VERSION_LENGTH = 64,
	LH_PERMITS_MAX = 1024,
	LH_PORTS_MAX = 4096, /* the least recently used one is dropped first */
	LH_PERMIT_PORT_BITS = 16,
};

/* Describes this instance: written by the loader, then read-only. A later loader reads it back from its pin. */
struct lh_about {
	__u32 magic; /* LH_ABOUT_MAGIC: marks this struct in all future versions */
	__u32 law; /* enum lh_law_name */
	__u32 about_bytes; /* sizes of the structs here */
	__u32 flow_bytes;
	__u32 record_bytes;
	__u32 counters_bytes;
	__u32 heard_bytes;
	__u32 derive_flags; /* 1: behave as if the kernel passed no flags to cong_control (before 6.10) */
	__u32 skip; /* 1: behave as if the kernel skipped every second program that it may skip; for tests */
	char name[16]; /* in the kernel, zero-padded */
	char version[LH_VERSION_LENGTH]; /* of the loader and of the programs' source, zero-padded */
};

#define LH_ABOUT_MAGIC 0x6c68776c /* "lhwl" */

/* Totals since loading. */
struct lh_law_counters {
	__u64 begun; /* sockets that got this law */
	__u64 losses; /* reductions for losses, decided by the law */
	__u64 tolerated; /* of those, how many left the window unchanged */
	__u64 timeouts;
	__u64 notified; /* reductions for ECN or a full local queue: halved, whatever the law */
	__u64 back_offs; /* reductions by the law itself, without a loss */
	__u64 undone; /* spurious reductions */
	__u64 repaired; /* events that the kernel skipped, repaired at the next ACK */
	__u64 storage_missing; /* events without memory for the law's state: NewReno decided */
};

/* What the law of the last link heard from clients. */
struct lh_heard_counters {
	__u64 listeners; /* listening sockets that were prepared */
	__u64 listeners_failed; /* listening sockets that could not be prepared */
	__u64 at_accept; /* reports in a handshake */
	__u64 later; /* reports on established connections */
	__u64 answered; /* SYN-ACKs with the answer */
	__u64 cookies; /* SYN cookies among them, which asked for the report again */
	__u64 no_room; /* SYN-ACKs without room for the answer */
	__u64 malformed; /* options that no client of ours sends */
	__u64 other_version;
	__u64 not_permitted; /* reports of clients without any permission */
	__u64 storage_missing; /* reports for which memory was missing */
};

/* Selects connections by client prefix and local port, for permissions. */
struct lh_permit_key {
	__u32 prefix_bits; /* LH_PERMIT_PORT_BITS plus those of the client's prefix */
	__u16 port; /* network order; 0: any */
	__u8 client[16]; /* IPv4: mapped */
	__u16 padding;
};

/* The law's state for a socket. */
struct lh_flow {
	__u32 begun; /* 1: the law was initialised */
	__u32 reported; /* 1: a report may wait for the law */
	__u32 losses; /* as in the totals, for this socket */
	__u32 tolerated;
	__u32 timeouts;
	__u32 back_offs;
	__u32 undone;
	__u32 paced; /* 1: the socket's pacing rate is the law's */
	struct lh_law law;
};

/* A socket, as the iterator writes it; a struct lh_flow follows. */
struct lh_flow_record {
	__u64 cookie;
	__u64 now_us; /* CLOCK_MONOTONIC, the clock of the laws */
	struct lh_endpoints ends;
	char control[16]; /* its current control; another name: no longer ours */
	__u32 netns_inum;
	__u32 cwnd_segments;
	__u32 ssthresh_segments;
	__u32 srtt_us; /* 0: no sample yet */
	__u32 min_rtt_us; /* 0xffffffff: no sample yet */
	__u32 in_flight_segments;
	__u32 ca_state; /* TCP_CA_ */
	__u32 tcp_state;
	__u32 segments_sent; /* data segments, with retransmissions */
	__u32 retransmits;
};

#endif /* LASTHOP_LAW_INTF_H */
