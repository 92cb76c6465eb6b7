/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the headers that BPF programs share, for Rust to call. */
#include "fixed.h"

__u32 headway_native_log2(__u64 x)
{
	return headway_log2(x);
}
