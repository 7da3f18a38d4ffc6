/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * own.h - how a law outside the tree meets the simulator: the one symbol, lh_own_law, of the shared object that own.c
 * makes of its header. The header is compiled with a laws.list that has it alone, so struct lh_law holds its state.
 */
#ifndef LASTHOP_LAWS_OWN_H
#define LASTHOP_LAWS_OWN_H

#include "laws.h"

#define LH_OWN_ABI 4 /* of this file and of the events in law.h; one more with each change */

/* One parameter, as in LH_LAW_PARAMETERS. */
struct lh_own_parameter {
	const char *unit; /* Milliseconds, Seconds, Ratio, Count or Flag */
	const char *name; /* without a unit */
	double from;
	double to;
	double preset;
	const char *meaning;
};

/* What it wants of ECN. */
enum lh_own_marking {
	LH_OWN_MARKS_OF_HOST,
	LH_OWN_ECHOES_MARKS, /* it has LH_LAW_ECHOES_MARKS */
	LH_OWN_IS_L4S, /* it has LH_LAW_IS_L4S */
};

struct lh_own_law {
	__u32 abi; /* LH_OWN_ABI */
	__u32 law_bytes; /* of struct lh_law */
	const char *law; /* as C spells it */
	const char *label;
	const char *place; /* Everywhere or Simulated */
	const struct lh_own_parameter *parameters;
	__u32 parameter_count;
	__u32 hears_reports; /* 1: it has LH_LAW_HAS_REPORTED */
	__u32 steers; /* 1: it has LH_LAW_HAS_SAMPLED */
	__u32 marking; /* enum lh_own_marking */
	void (*init)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_start *start);
	void (*acked)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_acked *acked,
		      struct lh_window *window);
	void (*lost)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
		     struct lh_window *window);
	void (*timed_out)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
			  struct lh_window *window);
	void (*notified)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *notice,
			 struct lh_window *window);
	void (*sent)(struct lh_law *law, const struct lh_sent *sent);
	void (*sampled)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_rate_sample *sample,
			struct lh_steering *steering);
	void (*resumed)(struct lh_law *law, const union lh_parameters *parameters, const struct lh_rate_sample *sample,
			struct lh_steering *steering);
	void (*undone)(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window);
};

#endif /* LASTHOP_LAWS_OWN_H */
