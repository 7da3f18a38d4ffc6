/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives the inline functions of the laws a symbol, so that Rust can call the same source that the kernel runs. */
#include "newreno.h"

enum lh_law_name {
	LH_NEWRENO = 0,
	LH_CUBIC = 1,
	LH_CUBIC_RFC9438 = 2,
};

struct lh_law {
	__u32 name; /* enum lh_law_name */
	__u32 reserved;
	union {
		struct lh_newreno newreno;
		__u64 space[20];
	};
};

_Static_assert(sizeof(struct lh_law) == 168, "the Rust face keeps struct lh_law in 168 bytes");
_Static_assert(sizeof(struct lh_window) == 12, "the Rust face lays struct lh_window out in 12 bytes");
_Static_assert(sizeof(struct lh_start) == 16, "the Rust face lays struct lh_start out in 16 bytes");
_Static_assert(sizeof(struct lh_acked) == 48, "the Rust face lays struct lh_acked out in 48 bytes");
_Static_assert(sizeof(struct lh_lost) == 24, "the Rust face lays struct lh_lost out in 24 bytes");
_Static_assert(sizeof(struct lh_sent) == 24, "the Rust face lays struct lh_sent out in 24 bytes");
_Static_assert(sizeof(struct lh_undone) == 8, "the Rust face lays struct lh_undone out in 8 bytes");

void lasthop_law_init(struct lh_law *law, __u32 name, const struct lh_start *start)
{
	law->name = name;
	lh_newreno_init(&law->newreno, start);
}

void lasthop_law_acked(struct lh_law *law, const struct lh_acked *acked, struct lh_window *window)
{
	lh_newreno_acked(&law->newreno, acked, window);
}

void lasthop_law_lost(struct lh_law *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_newreno_lost(&law->newreno, lost, window);
}

void lasthop_law_timed_out(struct lh_law *law, const struct lh_lost *lost, struct lh_window *window)
{
	lh_newreno_timed_out(&law->newreno, lost, window);
}

void lasthop_law_sent(struct lh_law *law, const struct lh_sent *sent)
{
	(void)law;
	(void)sent;
}

void lasthop_law_undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	(void)law;
	(void)undone;
	(void)window;
}
