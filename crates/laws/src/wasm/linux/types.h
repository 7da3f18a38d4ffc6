/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* The kernel's integers where there is no Linux: for WebAssembly. */
#ifndef LH_WASM_TYPES_H
#define LH_WASM_TYPES_H

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef signed int __s32;
typedef signed long long __s64;
typedef unsigned int __u32;
typedef unsigned long long __u64;

#endif
