/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives the inline functions of the laws a symbol, so that Rust can call the same source that the kernel runs. */
#include "cubic.h"
#include "cubic_rfc9438.h"
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
		struct lh_cubic cubic;
		struct lh_cubic_rfc9438 cubic_rfc9438;
	};
};

_Static_assert(sizeof(struct lh_law) == 136, "the Rust face keeps struct lh_law in 136 bytes");
_Static_assert(sizeof(struct lh_cubic) == 72, "the Rust face lays struct lh_cubic out in 72 bytes");
_Static_assert(sizeof(struct lh_window) == 12, "the Rust face lays struct lh_window out in 12 bytes");
_Static_assert(sizeof(struct lh_start) == 16, "the Rust face lays struct lh_start out in 16 bytes");
_Static_assert(sizeof(struct lh_acked) == 48, "the Rust face lays struct lh_acked out in 48 bytes");
_Static_assert(sizeof(struct lh_lost) == 32, "the Rust face lays struct lh_lost out in 32 bytes");
_Static_assert(sizeof(struct lh_sent) == 24, "the Rust face lays struct lh_sent out in 24 bytes");
_Static_assert(sizeof(struct lh_undone) == 8, "the Rust face lays struct lh_undone out in 8 bytes");

void lasthop_law_init(struct lh_law *law, __u32 name, const struct lh_start *start)
{
	law->name = name;
	switch (name) {
	case LH_CUBIC:
		return lh_cubic_init(&law->cubic, start);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_init(&law->cubic_rfc9438, start);
	default:
		return lh_newreno_init(&law->newreno, start);
	}
}

void lasthop_law_acked(struct lh_law *law, const struct lh_acked *acked, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_acked(&law->cubic, acked, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_acked(&law->cubic_rfc9438, acked, window);
	default:
		return lh_newreno_acked(&law->newreno, acked, window);
	}
}

void lasthop_law_lost(struct lh_law *law, const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_lost(&law->cubic, lost, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_lost(&law->cubic_rfc9438, lost, window);
	default:
		return lh_newreno_lost(&law->newreno, lost, window);
	}
}

void lasthop_law_timed_out(struct lh_law *law, const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_timed_out(&law->cubic, lost, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_timed_out(&law->cubic_rfc9438, lost, window);
	default:
		return lh_newreno_timed_out(&law->newreno, lost, window);
	}
}

void lasthop_law_sent(struct lh_law *law, const struct lh_sent *sent)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_sent(&law->cubic, sent);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_sent(&law->cubic_rfc9438, sent);
	default:
		return;
	}
}

void lasthop_law_undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	/* the others have nothing to restore: Linux's CUBIC keeps what the reduction made of it */
	if (law->name == LH_CUBIC_RFC9438)
		lh_cubic_rfc9438_undone(&law->cubic_rfc9438, undone, window);
}
