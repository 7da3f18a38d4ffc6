/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * link_report_intf.h - the declarations that link_report.bpf.c and its loader share. build.rs makes src/layout.rs of it, the same
 * in Rust. No implicit padding. Times on CLOCK_MONOTONIC.
 */
#ifndef LASTHOP_LINK_REPORT_INTF_H
#define LASTHOP_LINK_REPORT_INTF_H

enum {
	LH_REMEMBERED_MAX = 4096, /* destinations; the least recently used one is dropped first */
};

/* The loader's settings, fixed before loading. */
struct lh_report_settings {
	__u32 netns_inum; /* the only network namespace in which we act */
	__u32 interface_index; /* that of the last link, in that namespace */
	__u64 remember_us; /* how long a destination is remembered to which SYNs with the option were lost */
};

struct lh_claim {
	__u64 expires_us; /* unknown from then on */
	__u32 bandwidth_kbps; /* 0: unknown */
	__u32 error_ppm; /* LH_ERROR_UNKNOWN: unknown */
};

/* The current claim is claims[generation % 2]; the loader fills the other one, then increments the generation. */
struct lh_claims {
	__u32 generation; /* never 0 */
	__u32 padding;
	struct lh_claim claims[2];
};

/* Totals since loading. */
struct lh_reporter_counters {
	__u64 offered; /* SYNs with the option */
	__u64 answered; /* SYN-ACKs of servers that know the option */
	__u64 unanswered; /* SYN-ACKs of servers that do not */
	__u64 mangled; /* of those: SYN-ACKs with our option but without a valid answer */
	__u64 asked_again; /* of those answered: by servers that sent a SYN cookie */
	__u64 sent; /* segments with the option after the handshake */
	__u64 no_room; /* SYNs without room for it, and reports that had to wait for a segment with room */
	__u64 sent_again; /* retransmitted SYNs, which go without the option */
	__u64 avoided; /* SYNs without it because earlier ones to that destination were lost */
	__u64 failed; /* connections for which the kernel had no memory */
};

#endif /* LASTHOP_LINK_REPORT_INTF_H */
