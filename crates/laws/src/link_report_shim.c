/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives the inline functions of link_report.h a symbol, so that Rust can call the same source that the kernel runs. */
#include "link_report.h"

__u32 lasthop_report_parse(const __u8 *option, __u32 length, struct lh_report *report)
{
	return lh_report_parse(option, length, report);
}

void lasthop_report_write(__u8 *option, const struct lh_report *report, __u32 flags)
{
	lh_report_write(option, report, flags);
}
