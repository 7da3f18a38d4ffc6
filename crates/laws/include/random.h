/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* random.h - random draws for laws that back off by chance: splitmix64 (Steele, Lea and Flood 2014). */
#ifndef LASTHOP_LAWS_RANDOM_H
#define LASTHOP_LAWS_RANDOM_H

#include "law.h"

/* A probability as a fraction of 2^32: from 0 (never) to LH_CERTAIN (always). */
#define LH_CERTAIN (1ULL << 32)

/* 32 uniform bits. */
static inline __u32 lh_random(__u64 *state)
{
	__u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) >> 32;
}

/* True with `probability`. Draws nothing if it is 0. */
static inline int lh_happens(__u64 *state, __u64 probability)
{
	return probability && lh_random(state) < probability;
}

static inline __u64 lh_probability_of_ppm(__u32 ppm)
{
	return ((__u64)ppm << 32) / 1000000;
}

#endif /* LASTHOP_LAWS_RANDOM_H */
