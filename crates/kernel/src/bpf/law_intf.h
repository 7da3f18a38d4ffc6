/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * law_intf.h - what law.bpf.c and its loader tell each other. src/layout.rs has the same in Rust, made from this by
 * build.rs. No implicit padding. Windows in segments.
 */
#ifndef LASTHOP_LAW_INTF_H
#define LASTHOP_LAW_INTF_H

#include "endpoints.h"
#include "laws.h"

enum {
	LH_VERSION_LENGTH = 64,
	LH_PERMITS_MAX = 1024,
	LH_PORTS_MAX = 4096, /* the one that was used longest ago goes first */
	LH_PERMIT_PORT_BITS = 16,
};

/* What this instance is: filled in by the loader, then read-only; a later loader reads it back from its pin. */
struct lh_about {
	__u32 magic; /* LH_ABOUT_MAGIC: this struct is what the bytes are, in all versions to come */
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
	__u64 losses; /* reductions for losses that the law decided */
	__u64 tolerated; /* of those, how many left the window as it was */
	__u64 timeouts;
	__u64 notified; /* reductions for ECN or a full local queue: halved, whatever the law */
	__u64 back_offs; /* reductions by the law itself, without a loss */
	__u64 undone; /* reductions that turned out to be needless */
	__u64 repaired; /* events that the kernel skipped telling, put right at the next ACK */
	__u64 storage_missing; /* events without memory for the law's state: NewReno decided */
};

/* What the law of the last link heard of its clients. */
struct lh_heard_counters {
	__u64 listeners; /* listening sockets that were prepared */
	__u64 listeners_failed; /* those that could not be */
	__u64 at_accept; /* reports that came with a handshake */
	__u64 later; /* reports on established connections */
	__u64 answered; /* SYN-ACKs that said so */
	__u64 cookies; /* of those, SYN cookies, which asked for the report again */
	__u64 no_room; /* SYN-ACKs without the answer for want of room */
	__u64 malformed; /* options that no client of ours sends */
	__u64 other_version;
	__u64 not_permitted; /* reports of clients that are permitted nothing */
	__u64 storage_missing; /* reports for which there was no memory */
};

/* What connections of a client prefix and with a local port are permitted. */
struct lh_permit_key {
	__u32 prefix_bits; /* LH_PERMIT_PORT_BITS and those of the client's prefix */
	__u16 port; /* network order; 0: any */
	__u8 client[16]; /* IPv4: mapped */
	__u16 padding;
};

/* What the law keeps for a socket. */
struct lh_flow {
	__u32 begun; /* 1: the law was initialised */
	__u32 reported; /* 1: a report may wait that the law has not heard */
	__u32 losses; /* as in the totals, of this socket */
	__u32 tolerated;
	__u32 timeouts;
	__u32 back_offs;
	__u32 undone;
	__u32 padding;
	struct lh_law law;
};

/* One socket, as the iterator writes it; a struct lh_flow follows. */
struct lh_flow_record {
	__u64 cookie;
	__u64 now_us; /* CLOCK_MONOTONIC, by which the laws go */
	struct lh_endpoints ends;
	char control[16]; /* what it has now; another name: no longer ours */
	__u32 netns_inum;
	__u32 cwnd_segments;
	__u32 ssthresh_segments;
	__u32 srtt_us; /* 0: no sample yet */
	__u32 min_rtt_us; /* 0xffffffff: no sample yet */
	__u32 in_flight_segments;
	__u32 ca_state; /* TCP_CA_ */
	__u32 tcp_state;
	__u32 segments_sent; /* with data, retransmissions too */
	__u32 retransmits;
};

#endif /* LASTHOP_LAW_INTF_H */
