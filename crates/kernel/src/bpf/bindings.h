/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bindings.h - the input of bindgen (build.rs): all declarations that programs and loader share. */
#include "kernel.h"

#include "bound.h"
#include "intf.h"
#include "law_intf.h"
#include "link_report_intf.h"
