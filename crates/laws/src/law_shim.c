/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Gives the inline functions of the laws a symbol, so that Rust can call the same source that the kernel runs. */
#include "laws.h"

_Static_assert(sizeof(struct lh_law) == 8 + LH_STATE_BYTES, "no law has more state than the Rust face keeps");
_Static_assert(sizeof(union lh_parameters) == 4 * LH_PARAMETERS_MAX, "no law has more parameters");
_Static_assert(sizeof(struct lh_cubic) == 72, "the Rust face lays struct lh_cubic out in 72 bytes");
_Static_assert(sizeof(struct lh_window) == 12, "the Rust face lays struct lh_window out in 12 bytes");
_Static_assert(sizeof(struct lh_start) == 24, "the Rust face lays struct lh_start out in 24 bytes");
_Static_assert(sizeof(struct lh_acked) == 48, "the Rust face lays struct lh_acked out in 48 bytes");
_Static_assert(sizeof(struct lh_lost) == 48, "the Rust face lays struct lh_lost out in 48 bytes");
_Static_assert(sizeof(struct lh_sent) == 24, "the Rust face lays struct lh_sent out in 24 bytes");
_Static_assert(sizeof(struct lh_undone) == 8, "the Rust face lays struct lh_undone out in 8 bytes");
_Static_assert(sizeof(struct lh_report) == 40, "the Rust face lays struct lh_report out in 40 bytes");

void lasthop_law_init(struct lh_law *law, __u32 name, const union lh_parameters *parameters,
		      const struct lh_start *start)
{
	lh_law_init(law, name, parameters, start);
}

void lasthop_law_acked(struct lh_law *law, const union lh_parameters *parameters, const struct lh_acked *acked,
		       struct lh_window *window)
{
	lh_law_acked(law, parameters, acked, window);
}

void lasthop_law_lost(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
		       struct lh_window *window)
{
	lh_law_lost(law, parameters, lost, window);
}

void lasthop_law_notified(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *notice,
			  struct lh_window *window)
{
	lh_law_notified(law, parameters, notice, window);
}

void lasthop_law_timed_out(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
		       struct lh_window *window)
{
	lh_law_timed_out(law, parameters, lost, window);
}

void lasthop_law_reported(struct lh_law *law, const union lh_parameters *parameters, const struct lh_report *report,
			  struct lh_window *window)
{
	lh_law_reported(law, parameters, report, window);
}

void lasthop_law_sent(struct lh_law *law, const struct lh_sent *sent)
{
	lh_law_sent(law, sent);
}

void lasthop_law_undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	lh_law_undone(law, undone, window);
}

/* src/lastlink.rs mirrors it. */
struct lasthop_applied {
	__u64 expires_us;
	__u32 reports;
	__u32 bandwidth_kbps;
	__u32 error_ppm;
	__u32 permitted;
	__u32 cwnd_max_segments;
	__u32 initial_segments;
	__u32 achieved_kbps;
	__u32 past_segments;
	__u32 past_retransmits;
	__u32 ignored;
	__u32 heeded_unknown;
	__u32 heeded_excess;
	__u32 heeded_queue;
	__u32 heeded_in_turn;
};
_Static_assert(sizeof(struct lasthop_applied) == 64, "the Rust face lays struct lasthop_applied out in 64 bytes");

/* Of the law lastlink. */
void lasthop_law_applied(const struct lh_law *law, struct lasthop_applied *applied)
{
	const struct lh_lastlink *lastlink = &law->lastlink;

	*applied = (struct lasthop_applied){
		.expires_us = lastlink->expires_us,
		.reports = lastlink->reports,
		.bandwidth_kbps = lastlink->bandwidth_kbps,
		.error_ppm = lastlink->error_ppm,
		.permitted = lastlink->permitted,
		.cwnd_max_segments = lastlink->cwnd_max_segments,
		.initial_segments = lastlink->initial_segments,
		.achieved_kbps = lastlink->achieved_kbps,
		.past_segments = lastlink->past_segments,
		.past_retransmits = lastlink->past_retransmits,
		.ignored = lastlink->ignored,
		.heeded_unknown = lastlink->heeded_unknown,
		.heeded_excess = lastlink->heeded_excess,
		.heeded_queue = lastlink->heeded_queue,
		.heeded_in_turn = lastlink->heeded_in_turn,
	};
}

/* cubic.h call by call, for the comparison with the kernel's own */

void lasthop_cubic_begin(struct lh_cubic *law, __u32 slow_start, __u64 now_us, __u32 snd_nxt, __u32 hz)
{
	struct lh_start start = { .now_us = now_us, .snd_nxt = snd_nxt, .slow_start = slow_start };

	lh_cubic_init(law, &start);
	law->hz = hz;
}

void lasthop_cubic_sample(struct lh_cubic *law, const struct lh_acked *acked, __u32 now, __u32 cushion_us,
			  struct lh_window *window)
{
	lh_cubic_sample(law, acked, now, cushion_us, window);
}

void lasthop_cubic_grow(struct lh_cubic *law, const struct lh_acked *acked, __u32 now, struct lh_window *window)
{
	lh_cubic_grow(law, acked, now, window);
}

void lasthop_cubic_reduce(struct lh_cubic *law, struct lh_window *window)
{
	struct lh_lost lost = { 0 };

	lh_cubic_lost(law, &lost, window);
}

void lasthop_cubic_reset(struct lh_cubic *law, __u64 now_us, __u32 snd_nxt)
{
	lh_cubic_reset(law, now_us, snd_nxt);
}

void lasthop_cubic_resume(struct lh_cubic *law, __u32 now, __u32 idle)
{
	lh_cubic_resume(law, now, idle);
}

__u32 lasthop_cubic_root(__u64 a)
{
	return lh_cubic_root(a);
}

__u32 lasthop_cube_root(__u64 a)
{
	return lh_cube_root(a);
}

/* gradient.h and exp.h step by step, for the tests */

_Static_assert(sizeof(struct lh_gradients) == 156, "the Rust face lays struct lh_gradients out in 156 bytes");

void lasthop_gradients_begin(struct lh_gradients *gradients, __u32 rounds)
{
	lh_gradients_init(gradients, rounds);
}

void lasthop_gradients_skip(struct lh_gradients *gradients)
{
	lh_gradients_skip(gradients);
}

__u32 lasthop_gradients_look(struct lh_gradients *gradients, __u32 min_us, __u32 max_us)
{
	struct lh_round round = { .min_us = min_us, .max_us = max_us };
	struct lh_gradient latest;

	return lh_gradients_look(gradients, &round, &latest);
}

__u32 lasthop_cdg_queue(__s32 min_us, __s32 max_us, __u32 queue)
{
	struct lh_gradient sum = { .min_us = min_us, .max_us = max_us };

	return lh_cdg_queue(&sum, queue);
}

__u32 lasthop_cdg_linux_queue(__s32 min_us, __s32 max_us, __u32 queue)
{
	struct lh_gradient sum = { .min_us = min_us, .max_us = max_us };

	return lh_cdg_linux_queue(&sum, queue);
}

__u64 lasthop_gradient_probability(__u64 gradient, __u64 scale)
{
	return lh_gradient_probability(lh_gradient_exponent(gradient, scale));
}

__u64 lasthop_exp_minus(__u32 x)
{
	return lh_exp_minus(x);
}
