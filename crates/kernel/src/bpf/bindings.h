/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bindings.h - what build.rs makes Rust of: all that programs and loader tell each other. */
#include "kernel.h"

#include "bound.h"
#include "intf.h"
#include "law_intf.h"
#include "report_intf.h"
