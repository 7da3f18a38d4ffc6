/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* laws.h - any of the laws, behind one struct and one function per event. With a constant name only that law remains. */
#ifndef LASTHOP_LAWS_H
#define LASTHOP_LAWS_H

#include "cdg.h"
#include "cdg_linux.h"
#include "chd.h"
#include "cubic.h"
#include "cubic_rfc9438.h"
#include "hd.h"
#include "lastlink.h"
#include "newreno.h"
#include "ucc.h"

/* src/lib.rs mirrors it, and the two lengths */
enum lh_law_name {
	LH_NEWRENO = 0,
	LH_CUBIC = 1,
	LH_CUBIC_RFC9438 = 2,
	LH_HD = 3,
	LH_CHD = 4,
	LH_CDG = 5,
	LH_CDG_LINUX = 6,
	LH_UCC = 7,
	LH_LASTLINK = 8,
};

#define LH_PARAMETERS_MAX 20
#define LH_STATE_BYTES 320

/* What a law can be told beforehand; src/parameters.rs has names, units, ranges and defaults. */
union lh_parameters {
	__u32 values[LH_PARAMETERS_MAX];
	struct lh_hd_parameters hd;
	struct lh_chd_parameters chd;
	struct lh_cdg_parameters cdg;
	struct lh_cdg_linux_parameters cdg_linux;
	struct lh_ucc_parameters ucc;
	struct lh_lastlink_parameters lastlink;
};

struct lh_law {
	__u32 name; /* enum lh_law_name */
	__u32 reserved;
	union {
		__u64 state[LH_STATE_BYTES / 8];
		struct lh_newreno newreno;
		struct lh_cubic cubic;
		struct lh_cubic_rfc9438 cubic_rfc9438;
		struct lh_hd hd;
		struct lh_chd chd;
		struct lh_cdg cdg;
		struct lh_cdg_linux cdg_linux;
		struct lh_ucc ucc;
		struct lh_lastlink lastlink;
	};
};

static inline void lh_law_init(struct lh_law *law, __u32 name, const union lh_parameters *parameters,
			       const struct lh_start *start)
{
	law->name = name;
	switch (name) {
	case LH_CUBIC:
		return lh_cubic_init(&law->cubic, start);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_init(&law->cubic_rfc9438, start);
	case LH_HD:
		return lh_hd_init(&law->hd, &parameters->hd, start);
	case LH_CHD:
		return lh_chd_init(&law->chd, &parameters->chd, start);
	case LH_CDG:
		return lh_cdg_init(&law->cdg, &parameters->cdg, start);
	case LH_CDG_LINUX:
		return lh_cdg_linux_init(&law->cdg_linux, &parameters->cdg_linux, start);
	case LH_UCC:
		return lh_ucc_init(&law->ucc, &parameters->ucc, start);
	case LH_LASTLINK:
		return lh_lastlink_init(&law->lastlink, &parameters->lastlink, start);
	default:
		return lh_newreno_init(&law->newreno, start);
	}
}

static inline void lh_law_acked(struct lh_law *law, const union lh_parameters *parameters,
				const struct lh_acked *acked, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_acked(&law->cubic, acked, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_acked(&law->cubic_rfc9438, acked, window);
	case LH_HD:
		return lh_hd_acked(&law->hd, &parameters->hd, acked, window);
	case LH_CHD:
		return lh_chd_acked(&law->chd, &parameters->chd, acked, window);
	case LH_CDG:
		return lh_cdg_acked(&law->cdg, &parameters->cdg, acked, window);
	case LH_CDG_LINUX:
		return lh_cdg_linux_acked(&law->cdg_linux, &parameters->cdg_linux, acked, window);
	case LH_UCC:
		return lh_ucc_acked(&law->ucc, &parameters->ucc, acked, window);
	case LH_LASTLINK:
		return lh_lastlink_acked(&law->lastlink, &parameters->lastlink, acked, window);
	default:
		return lh_newreno_acked(&law->newreno, acked, window);
	}
}

static inline void lh_law_lost(struct lh_law *law, const union lh_parameters *parameters,
			       const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_lost(&law->cubic, lost, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_lost(&law->cubic_rfc9438, lost, window);
	case LH_HD:
		return lh_hd_lost(&law->hd, &parameters->hd, lost, window);
	case LH_CHD:
		return lh_chd_lost(&law->chd, &parameters->chd, lost, window);
	case LH_CDG:
		return lh_cdg_lost(&law->cdg, &parameters->cdg, lost, window);
	case LH_CDG_LINUX:
		return lh_cdg_linux_lost(&law->cdg_linux, &parameters->cdg_linux, lost, window);
	case LH_UCC:
		return lh_ucc_lost(&law->ucc, &parameters->ucc, lost, window);
	case LH_LASTLINK:
		return lh_lastlink_lost(&law->lastlink, &parameters->lastlink, lost, window);
	default:
		return lh_newreno_lost(&law->newreno, lost, window);
	}
}

static inline void lh_law_timed_out(struct lh_law *law, const union lh_parameters *parameters,
				    const struct lh_lost *lost, struct lh_window *window)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_timed_out(&law->cubic, lost, window);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_timed_out(&law->cubic_rfc9438, lost, window);
	case LH_HD:
		return lh_hd_timed_out(&law->hd, &parameters->hd, lost, window);
	case LH_CHD:
		return lh_chd_timed_out(&law->chd, &parameters->chd, lost, window);
	case LH_CDG:
		return lh_cdg_timed_out(&law->cdg, &parameters->cdg, lost, window);
	case LH_CDG_LINUX:
		return lh_cdg_linux_lost(&law->cdg_linux, &parameters->cdg_linux, lost, window);
	case LH_UCC:
		return lh_ucc_timed_out(&law->ucc, &parameters->ucc, lost, window);
	case LH_LASTLINK:
		return lh_lastlink_timed_out(&law->lastlink, &parameters->lastlink, lost, window);
	default:
		return lh_newreno_timed_out(&law->newreno, lost, window);
	}
}

/*
 * A reduction without a loss: ECN, or a full queue of this host. Nothing that a law could take for a radio error, so those
 * that tolerate losses are not asked: as NewReno. CUBIC reduces as for a loss (RFC 9438 section 4.6).
 */
static inline void lh_law_notified(struct lh_law *law, const union lh_parameters *parameters,
				   const struct lh_lost *notice, struct lh_window *window)
{
	if (law->name == LH_CUBIC || law->name == LH_CUBIC_RFC9438)
		lh_law_lost(law, parameters, notice, window);
	else if (law->name == LH_LASTLINK)
		lh_lastlink_notified(&law->lastlink, notice, window);
	else
		lh_reno_halve(notice, window);
}

static inline void lh_law_sent(struct lh_law *law, const struct lh_sent *sent)
{
	switch (law->name) {
	case LH_CUBIC:
		return lh_cubic_sent(&law->cubic, sent);
	case LH_CUBIC_RFC9438:
		return lh_cubic_rfc9438_sent(&law->cubic_rfc9438, sent);
	case LH_LASTLINK:
		return lh_lastlink_sent(&law->lastlink, sent);
	default:
		return;
	}
}

/* A client has said something of its last link. Before anything was sent it may set the window and ssthresh. */
static inline void lh_law_reported(struct lh_law *law, const union lh_parameters *parameters,
				   const struct lh_report *report, struct lh_window *window)
{
	if (law->name == LH_LASTLINK)
		lh_lastlink_reported(&law->lastlink, &parameters->lastlink, report, window);
}

static inline void lh_law_undone(struct lh_law *law, const struct lh_undone *undone, struct lh_window *window)
{
	/* the others have nothing to restore: Linux's CUBIC keeps what the reduction made of it */
	if (law->name == LH_CUBIC_RFC9438)
		lh_cubic_rfc9438_undone(&law->cubic_rfc9438, undone, window);
}

#endif /* LASTHOP_LAWS_H */
