/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * report_intf.h - what report.bpf.c and its loader tell each other. src/layout.rs has the same in Rust, made from this by
 * build.rs. No implicit padding. Times on CLOCK_MONOTONIC.
 */
#ifndef LASTHOP_REPORT_INTF_H
#define LASTHOP_REPORT_INTF_H

enum {
	LH_REMEMBERED_MAX = 4096, /* destinations; the one unused for longest goes first */
};

/* What the loader decides before loading. */
struct lh_report_settings {
	__u32 netns_inum; /* the one network namespace we act in */
	__u32 interface_index; /* the last link, in that namespace */
	__u64 remember_us; /* how long a destination is remembered to which SYNs with the option got lost */
};

struct lh_claim {
	__u64 expires_us; /* unknown from then on */
	__u32 bandwidth_kbps; /* 0: unknown */
	__u32 error_ppm; /* LH_ERROR_UNKNOWN: unknown */
};

/* What is claimed now is claims[generation % 2]; the loader fills the other one, then raises the generation. */
struct lh_claims {
	__u32 generation; /* never 0 */
	__u32 padding;
	struct lh_claim claims[2];
};

/* Totals since loading. */
struct lh_reporter_counters {
	__u64 offered; /* SYNs with the option */
	__u64 answered; /* by a server that knows the option */
	__u64 unanswered; /* by one that does not */
	__u64 mangled; /* of those: the SYN-ACK had our option, but no answer that makes sense */
	__u64 asked_again; /* of those answered: servers that had to send a SYN cookie */
	__u64 sent; /* segments with the option after the handshake */
	__u64 no_room; /* SYNs without room for it, and how often a report had to wait for a segment with room */
	__u64 sent_again; /* SYNs sent again, and so without the option */
	__u64 avoided; /* SYNs without it because of what happened to an earlier one to that destination */
	__u64 failed; /* connections for which the kernel had no memory */
};

#endif /* LASTHOP_REPORT_INTF_H */
