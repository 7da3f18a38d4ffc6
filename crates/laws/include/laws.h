/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * laws.h - all laws of laws.list behind one struct and one function per event (see law.h). If the name is a constant,
 * only that law's code remains.
 */
#ifndef LASTHOP_LAWS_H
#define LASTHOP_LAWS_H

#include "law.h"
#include "link_report.h"
#include "laws.list"
#include "reno.h"

enum lh_law_name {
#define LH_LAW_ENTRY(law, LAW, ...) LH_##LAW,
#include "laws.list"
};

/* LH_IF(LH_LAW_HAS_SENT, then, otherwise): `then` if the macro is defined as 1, like IS_ENABLED() in Linux's kconfig.h. */
#define LH_IF(macro, then, otherwise) LH_IF_VALUE(macro, then, otherwise)
#define LH_IF_VALUE(value, then, otherwise) LH_IF_PLACE(LH_PLACE_##value, then, otherwise)
#define LH_IF_PLACE(place, then, otherwise) LH_SECOND(place then, otherwise, )
#define LH_PLACE_1 ,
#define LH_SECOND(first, second, ...) second

#define LH_PARAMETERS_MAX 20

/* The room for a law's state in bytes: one size in the tree and outside it, for simulated connections and the kernel's. */
#define LH_STATE_BYTES 360

/* The parameters of any law. */
union lh_parameters {
	__u32 values[LH_PARAMETERS_MAX];
#define LH_LAW_ENTRY(law, LAW, ...) LH_IF(LH_##LAW##_HAS_PARAMETERS, struct lh_##law##_parameters law;, )
#include "laws.list"
};

struct lh_law {
	__u32 name; /* enum lh_law_name */
	__u32 reserved;
	union {
#define LH_LAW_ENTRY(law, ...) struct lh_##law law;
#include "laws.list"
		__u64 room[LH_STATE_BYTES / 8];
	};
};

#define LH_TEXT(value) LH_TEXT_OF(value)
#define LH_TEXT_OF(value) #value
#define LH_LAW_ENTRY(law, ...)                                                                                \
	_Static_assert(sizeof(struct lh_##law) <= LH_STATE_BYTES, "the state, struct lh_" #law ", is larger than " \
		       LH_TEXT(LH_STATE_BYTES) " bytes: keep less for each connection");
#include "laws.list"

/* Calls an event of a law with its parameters, if it has any. */
#define LH_TELL(member, LAW, event, ...)                                                       \
	LH_IF(LH_##LAW##_HAS_PARAMETERS,                                                       \
	      lh_##member##_##event(&law->member, &parameters->member, __VA_ARGS__),           \
	      lh_##member##_##event(&law->member, __VA_ARGS__))

static inline void lh_law_init(struct lh_law *law, __u32 name, const union lh_parameters *parameters,
			       const struct lh_start *start)
{
	law->name = name;
	switch (name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_TELL(member, LAW, init, start);
#include "laws.list"
	}
}

static inline void lh_law_acked(struct lh_law *law, const union lh_parameters *parameters,
				const struct lh_acked *acked, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_SAMPLED, (void)0, LH_TELL(member, LAW, acked, acked, window));
#include "laws.list"
	}
}

static inline void lh_law_lost(struct lh_law *law, const union lh_parameters *parameters,
			       const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_TELL(member, LAW, lost, lost, window);
#include "laws.list"
	}
}

static inline void lh_law_timed_out(struct lh_law *law, const union lh_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...)                                                \
	case LH_##LAW:                                                                \
		return LH_IF(LH_##LAW##_HAS_TIMED_OUT,                                \
			     LH_TELL(member, LAW, timed_out, lost, window), \
			     LH_TELL(member, LAW, lost, lost, window));
#include "laws.list"
	}
}

static inline void lh_law_notified(struct lh_law *law, const union lh_parameters *parameters,
				   const struct lh_lost *notice, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...)                                              \
	case LH_##LAW:                                                              \
		return LH_IF(LH_##LAW##_HAS_NOTIFIED,                               \
			     LH_TELL(member, LAW, notified, notice, window), \
			     lh_reno_halve(notice, window));
#include "laws.list"
	}
}

static inline void lh_law_reported(struct lh_law *law, const union lh_parameters *parameters,
				   const struct lh_report *report, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_REPORTED, LH_TELL(member, LAW, reported, report, window), (void)0);
#include "laws.list"
	}
}

/* Whether a law has an event for transmissions. */
static inline int lh_law_hears_sent(__u32 name)
{
	switch (name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_SENT, 1, 0);
#include "laws.list"
	}
	return 0;
}

static inline void lh_law_sent(struct lh_law *law, const struct lh_sent *sent)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_SENT, lh_##member##_sent(&law->member, sent), (void)0);
#include "laws.list"
	}
}

/* Whether a law sets its window and pace itself. */
static inline int lh_law_steers(__u32 name)
{
	switch (name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_SAMPLED, 1, 0);
#include "laws.list"
	}
	return 0;
}

static inline void lh_law_sampled(struct lh_law *law, const union lh_parameters *parameters,
				  const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	(void)parameters; /* of laws that have none */
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_SAMPLED, LH_TELL(member, LAW, sampled, sample, steering), (void)0);
#include "laws.list"
	}
}

static inline void lh_law_resumed(struct lh_law *law, const union lh_parameters *parameters,
				  const struct lh_rate_sample *sample, struct lh_steering *steering)
{
	(void)parameters; /* of laws that have none */
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_RESUMED, LH_TELL(member, LAW, resumed, sample, steering), (void)0);
#include "laws.list"
	}
}

static inline void lh_law_undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	switch (law->name) {
#define LH_LAW_ENTRY(member, LAW, ...) \
	case LH_##LAW:                 \
		return LH_IF(LH_##LAW##_HAS_UNDONE, lh_##member##_undone(&law->member, undone, window), (void)0);
#include "laws.list"
	}
}

#endif /* LASTHOP_LAWS_H */
