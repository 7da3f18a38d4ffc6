/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* native.h - the input of bindgen (build.rs): what this machine uses of the headers. */
#include "bound.h"
#include "laws.h"
#include "own.h"

/* The state of the law lastlink; meaningless for another law. */
static inline const struct lh_lastlink *lh_law_lastlink(const struct lh_law *law)
{
	return &law->lastlink;
}
