// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * own.c - makes a shared object of one law outside the tree (own.h). It is compiled on the user's machine, with a
 * laws.list of that law alone, without floating point and without a library: what it calls must be in it.
 */
#include "law.h"
#include "laws.list"

enum lh_own_count {
	LH_OWN_LAWS = 0
#define LH_LAW_ENTRY(...) +1
#include "laws.list"
};
_Static_assert(LH_OWN_LAWS == 1, "a header has one LH_LAW_ENTRY(...), behind its guard, as law.h says");

#include "own.h"

/* The longest name of a law, by where it runs. */
enum lh_own_name {
	LH_OWN_Simulated = 63,
	LH_OWN_Everywhere = 12,
};

#define LH_LAW_ENTRY(law, LAW, Law, label, colour, marker, where, ...)                                             \
	_Static_assert(LH_IF(LH_##LAW##_ECHOES_MARKS, LH_OWN_##where == LH_OWN_Simulated, 1),                      \
		       "a law with LH_LAW_ECHOES_MARKS is Simulated: the kernel has its own receiver");            \
	_Static_assert(LH_IF(LH_##LAW##_IS_L4S, LH_OWN_##where == LH_OWN_Simulated, 1),                            \
		       "a law with LH_LAW_IS_L4S is Simulated: in the kernel a law does not choose ECT(1)");         \
	_Static_assert(!LH_IF(LH_##LAW##_IS_L4S, LH_IF(LH_##LAW##_ECHOES_MARKS, 1, 0), 0),                         \
		       "a law has LH_LAW_ECHOES_MARKS or LH_LAW_IS_L4S, not both");                                \
	_Static_assert(sizeof(#law) - 1 <= LH_OWN_##where, "the law's name is too long for the kernel: 12 letters at most");
#include "laws.list"

/* The compiler calls these for structs; there is no library. */
__attribute__((visibility("hidden"), no_builtin)) void *memset(void *to, int byte, unsigned long bytes)
{
	for (unsigned long at = 0; at < bytes; at++)
		((char *)to)[at] = byte;
	return to;
}

__attribute__((visibility("hidden"), no_builtin)) void *memcpy(void *to, const void *from, unsigned long bytes)
{
	for (unsigned long at = 0; at < bytes; at++)
		((char *)to)[at] = ((const char *)from)[at];
	return to;
}

/* Told of a division by zero, in place of the processor's trap; set by the loader, and unwinds through this file. */
__attribute__((visibility("default"))) void (*lh_own_divided_by_zero)(const char *file, __u32 line);

struct lh_own_place {
	const char *file;
	__u32 line;
	__u32 column;
};

/* What clang's -fsanitize=integer-divide-by-zero calls. */
__attribute__((visibility("hidden"), noreturn)) void
__ubsan_handle_divrem_overflow_abort(const struct lh_own_place *place, unsigned long dividend, unsigned long divisor)
{
	lh_own_divided_by_zero(place->file, place->line);
	__builtin_trap();
}

static void init(struct lh_law *law, const union lh_parameters *parameters, const struct lh_start *start)
{
	lh_law_init(law, 0, parameters, start);
}

static void acked(struct lh_law *law, const union lh_parameters *parameters, const struct lh_acked *acked,
		  struct lh_window *window)
{
	lh_law_acked(law, parameters, acked, window);
}

static void lost(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
		 struct lh_window *window)
{
	lh_law_lost(law, parameters, lost, window);
}

static void timed_out(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *lost,
		      struct lh_window *window)
{
	lh_law_timed_out(law, parameters, lost, window);
}

static void notified(struct lh_law *law, const union lh_parameters *parameters, const struct lh_lost *notice,
		     struct lh_window *window)
{
	lh_law_notified(law, parameters, notice, window);
}

static void sent(struct lh_law *law, const struct lh_sent *sent)
{
	lh_law_sent(law, sent);
}

static void sampled(struct lh_law *law, const union lh_parameters *parameters, const struct lh_rate_sample *sample,
		    struct lh_steering *steering)
{
	lh_law_sampled(law, parameters, sample, steering);
}

static void resumed(struct lh_law *law, const union lh_parameters *parameters, const struct lh_rate_sample *sample,
		    struct lh_steering *steering)
{
	lh_law_resumed(law, parameters, sample, steering);
}

static void undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	lh_law_undone(law, undone, window);
}

#define LH_OWN_PARAMETER(unit, name, from, to, preset, ...) { #unit, #name, from, to, preset, __VA_ARGS__ },
#define LH_OWN_NONE(P)
#define LH_LAW_ENTRY(law, LAW, ...) \
	LH_IF(LH_##LAW##_HAS_PARAMETERS, LH_##LAW##_PARAMETERS, LH_OWN_NONE)(LH_OWN_PARAMETER)
static const struct lh_own_parameter parameters[] = {
#include "laws.list"
	{ 0 },
};
_Static_assert(sizeof(parameters) / sizeof(parameters[0]) - 1 <= LH_PARAMETERS_MAX, "a law has 20 parameters at most");

#define LH_LAW_ENTRY(name, LAW, Law, text, colour, marker, where, ...) \
	.law = #name, .label = text, .place = #where, .hears_reports = LH_IF(LH_##LAW##_HAS_REPORTED, 1, 0), \
	.steers = LH_IF(LH_##LAW##_HAS_SAMPLED, 1, 0),                                                             \
	.marking = LH_IF(LH_##LAW##_ECHOES_MARKS, LH_OWN_ECHOES_MARKS,                                             \
			 LH_IF(LH_##LAW##_IS_L4S, LH_OWN_IS_L4S, LH_OWN_MARKS_OF_HOST)),
__attribute__((visibility("default"))) const struct lh_own_law lh_own_law = {
	.abi = LH_OWN_ABI,
	.law_bytes = sizeof(struct lh_law),
#include "laws.list"
	.parameters = parameters,
	.parameter_count = sizeof(parameters) / sizeof(parameters[0]) - 1,
	.init = init,
	.acked = acked,
	.lost = lost,
	.timed_out = timed_out,
	.notified = notified,
	.sent = sent,
	.sampled = sampled,
	.resumed = resumed,
	.undone = undone,
};
