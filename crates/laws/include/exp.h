/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * exp.h - e^-x in integers, for the probabilities of CDG.
 *
 *   e^-x = e^-16 or 1 * ... * e^-1 or 1 * e^-(a/16) * e^-(b/256) * e^-rest        rest < 1/256
 *
 * by the bits of x. The last factor comes from its series, 1 - r + r^2/2 - r^3/6, the others from tables. Errors: table
 * entries are rounded, by at most 2^-32; products and terms are rounded down, each by less than 2^-31, and no product
 * enlarges an earlier error; the next term of the series is below 10^-11. From 32 on the result is 0. The total error
 * is below 5e-9 (tests/laws/cdg.rs).
 */
#ifndef LASTHOP_LAWS_EXP_H
#define LASTHOP_LAWS_EXP_H

#include "law.h"

/* x has 24 bits behind the point */
#define LH_EXP_ONE (1U << 24)

/* e^-x as a fraction of 2^32; 2^32 itself at x = 0. */
static inline __u64 lh_exp_minus(__u32 x)
{
	/* e^-(2^n), e^-(n/16), e^-(n/256) as fractions of 2^31 */
	static const __u32 powers[5] = { 790015084, 290630308, 39332535, 720401, 242 };
	static const __u32 sixteenths[16] = {
		2147483648, 2017374191, 1895147668, 1780326475, 1672461947, 1571132600, 1475942488, 1386519653,
		1302514674, 1223599299, 1149465165, 1079822591, 1014399448, 952940092, 895204371, 840966680,
	};
	static const __u32 parts_of_256[16] = {
		2147483648, 2139111403, 2130771798, 2122464706, 2114190000, 2105947554, 2097737243, 2089558940,
		2081412522, 2073297864, 2065214841, 2057163332, 2049143212, 2041154360, 2033196653, 2025269970,
	};
	__u64 r = x & 0xffff, e;
	__u32 n;

	if (x >= 32 * LH_EXP_ONE)
		return 0;
	e = (1ULL << 31) - (r << 7) + (r * r >> 18) - (r * r * r / 6 >> 41);
	e = e * parts_of_256[x >> 16 & 15] >> 31;
	e = e * sixteenths[x >> 20 & 15] >> 31;
	/* bit by bit: clang 14 would drop the mask on x >> 24 that the verifier needs */
	for (n = 0; n < 5; n++)
		if (x >> (24 + n) & 1)
			e = e * powers[n] >> 31;
	return e << 1;
}

#endif /* LASTHOP_LAWS_EXP_H */
