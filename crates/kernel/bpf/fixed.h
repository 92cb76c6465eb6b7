/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/*
 * Whole-number arithmetic for programs that have no floating point. Helper-free: BPF programs
 * include it, and crates/fixed compiles it natively, so that both compute the same bits.
 */
#ifndef HEADWAY_FIXED_H
#define HEADWAY_FIXED_H

#include "abi.h"

/* BPF verifies a function that is not static once, and not along every way that leads to it. */
#if defined(__bpf__)
#define HEADWAY_ONCE __attribute__((noinline))
#else
#define HEADWAY_ONCE static inline
#endif

#define HEADWAY_MS 1000000ull /* ns */

/*
 * How long ago `then` was, 0 where it is yet to come. A record has the time at which its
 * acknowledgement arrived, and an answer that is found there the time at which it is looked for,
 * which is microseconds later.
 */
static inline __u64 headway_since(__u64 now_ns, __u64 then_ns)
{
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

/* One more, or 65535: a limit above that is never reached. */
static inline __u16 headway_count_up(__u16 count)
{
	return count < 0xffff ? count + 1 : count;
}

/*
 * log2(x) in units of 1/65536, off by less than two of them; 0 for x = 0. It squares the mantissa
 * bit by bit.
 */
HEADWAY_ONCE __u32 headway_log2(__u64 x)
{
	__u32 whole = 0, fraction = 0;
	__u64 mantissa, bit;
	int i;

	if (!x)
		return 0;
	for (i = 32; i; i >>= 1) {
		if (x >> whole >> i)
			whole += i;
	}
	/* From 1 to below 2, in units of 2^-31. */
	mantissa = whole > 31 ? x >> (whole - 31) : x << (31 - whole);
	/* Without branches, each of which the verifier would follow. */
	for (i = 0; i < 16; i++) {
		mantissa = mantissa * mantissa >> 31;
		bit = mantissa >> 32;
		mantissa >>= bit;
		fraction = fraction << 1 | (__u32)bit;
	}
	return whole << 16 | fraction;
}

#endif
