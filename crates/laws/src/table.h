/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - what the headers of laws.list say of themselves, for Rust. build.rs preprocesses this and takes from behind the
 * first mark, a call of the macro `laws!` of name.rs, and from behind the second which laws the kernel gets an object for.
 */
#include "laws.h"

LASTHOP_TABLE_BEGINS
#define LH_TABLE_PARAMETER(unit, name, from, to, preset, ...) (unit name from to preset __VA_ARGS__)
#define LH_LAW_ENTRY(law, LAW, Law, label, colour, marker, where, ...)                     \
	{                                                                                  \
		law, Law, label, colour, marker, where, (__VA_ARGS__),           \
			LH_IF(LH_##LAW##_HAS_REPORTED, true, false), LH_IF(LH_##LAW##_HAS_SAMPLED, true, false), \
			LH_IF(LH_##LAW##_ECHOES_MARKS, Each, LH_IF(LH_##LAW##_IS_L4S, L4s, OfHost)), \
			[LH_IF(LH_##LAW##_HAS_PARAMETERS, LH_##LAW##_PARAMETERS(LH_TABLE_PARAMETER), )] \
	}
laws! {
#include "laws.list"
}

LASTHOP_OBJECTS_BEGIN
#define LH_LAW_ENTRY(law, LAW, Law, label, colour, marker, where, ...) \
	law LH_##LAW where LH_IF(LH_##LAW##_HAS_REPORTED, hears, deaf);
#include "laws.list"
