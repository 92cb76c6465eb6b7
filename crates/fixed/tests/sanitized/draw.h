/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers, with many extreme ones. */
#ifndef HEADWAY_DRAW_H
#define HEADWAY_DRAW_H

#include <string.h>

#include "abi.h"

static __u64 state = 1;

/* xorshift64* (Vigna 2016). */
static __u64 draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ull;
}

/* Random bits, all bits, or none. */
static __u32 extreme(void)
{
	switch (draw() >> 32 & 3) {
	case 0:
		return 0;
	case 1:
		return ~0u;
	case 2:
		return 1u << (draw() >> 32 & 31);
	default:
		return (__u32)(draw() >> 32);
	}
}

static void fill(void *to, unsigned long size)
{
	for (unsigned long at = 0; at + 4 <= size; at += 4) {
		__u32 word = extreme();

		memcpy((char *)to + at, &word, 4);
	}
}

#endif
