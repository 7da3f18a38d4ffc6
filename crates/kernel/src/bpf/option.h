/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* option.h - the link report in a TCP header, for programs of either end. */
#ifndef LASTHOP_OPTION_H
#define LASTHOP_OPTION_H

#include "link_report.h"

/*
 * Finds our option in the context's segment, or with BPF_LOAD_HDR_OPT_TCP_SYN in the SYN, and reads it. An option that
 * does not fit is a later version's: the part that fits is read. A header that ends within an option is malformed.
 */
static __always_inline enum lh_report_outcome load_option(struct bpf_sock_ops *ctx, __u64 flags, __u8 *option,
							  struct lh_report *report)
{
	long length;

	option[0] = LH_REPORT_KIND;
	option[1] = 4;
	option[2] = LH_REPORT_EXID >> 8;
	option[3] = LH_REPORT_EXID & 0xff;
	length = bpf_load_hdr_opt(ctx, option, LH_REPORT_OCTETS, flags);
	if (length == -ENOSPC)
		length = LH_REPORT_OCTETS;
	if (length == -EFAULT)
		return LH_REPORT_MALFORMED;
	if (length < 0)
		return LH_REPORT_NOT_OURS;
	return lh_report_parse(option, length, report);
}

/* Asks for these callbacks, in addition to those of other programs on the same socket. */
static __always_inline void ask_for(struct bpf_sock_ops *ctx, __u32 flags)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags | flags);
}

static __always_inline void no_longer_ask_for(struct bpf_sock_ops *ctx, __u32 flags)
{
	bpf_sock_ops_cb_flags_set(ctx, ctx->bpf_sock_ops_cb_flags & ~flags);
}

#endif /* LASTHOP_OPTION_H */
