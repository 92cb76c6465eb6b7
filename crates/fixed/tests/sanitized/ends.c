/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard with limits at the ends of their ranges, over records that a kernel can send. Where an
 * unsigned number wraps, clang's sanitizer ends the program. It prints the number of trips.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "ranges.h"

#define LIMITS (sizeof(ranges) / sizeof(ranges[0]))

static __u64 state = 1;

/* xorshift64* (Vigna 2016), whose multiplication wraps on purpose. */
__attribute__((no_sanitize("unsigned-integer-overflow"))) static __u64 draw(void)
{
	state ^= state >> 12;
	state ^= state << 25;
	state ^= state >> 27;
	return state * 2685821657736338717ull >> 8;
}

static __u64 below(__u64 end)
{
	return draw() % end;
}

/* A small number, or any number up to the largest. */
static __u32 up_to(__u64 most)
{
	return below(2) ? below(most + 1) : below((most >> below(32)) + 1);
}

static const __u64 usual[] = {
	12500000000ull, 3, 2, 100000, 32, 100000, 2, 500000, 1000, 2, 2, 200000, 2, 1, 32, 2000, 2,
	10000, 5, 10, 2, 10, 64, 2, 13107, 50, 5, 1024, 50000, 2, 10, 32768, 131072, 52428, 8192,
	20, 10000, 0, 5, 600000, 2, 4, 0,
};

/* Every limit of the struct in its order: the first has 64 bits, the others 32. */
static void set(struct headway_limits *l, unsigned long limit, __u64 value)
{
	__u32 word = value;

	if (limit)
		memcpy((char *)l + 8 + 4 * (limit - 1), &word, 4);
	else
		l->max_rate = value;
}

static void limits(struct headway_limits *l, int round)
{
	_Static_assert(sizeof(usual) / sizeof(usual[0]) == LIMITS, "a limit is missing");
	_Static_assert(sizeof(struct headway_limits) == 8 + 4 * (LIMITS - 1), "a limit is missing");
	for (unsigned long limit = 0; limit < LIMITS; limit++) {
		__u64 value = usual[limit];

		/* In some runs all limits are at one end, in others only some. */
		if (round % 8 < 2)
			value = ranges[limit][round % 8];
		else if (!below(round % 8))
			value = ranges[limit][below(2)];
		set(l, limit, value);
	}
	if (l->min_cwnd > l->max_cwnd)
		l->min_cwnd = l->max_cwnd;
}

int main(void)
{
	unsigned long long trips = 0;

	for (int round = 0; round < 4000; round++) {
		struct headway_limits l;
		struct headway_guard g;
		struct headway_record r;
		/* Years after the start, in a flow that has not run for long. */
		__u64 now_ns = 1 + below(1ull << 58), packets = 1ull << below(21);

		memset(&g, 0, sizeof(g));
		memset(&r, 0, sizeof(r));
		limits(&l, round);
		/* A flow that has tripped often. */
		g.level = up_to(300);
		headway_guard_open(&g, now_ns, 1 + up_to(0xffffffff - 1), up_to(0xffffffff));
		r.min_rtt_us = 1 + up_to(0xffffffff - 1);
		for (int i = 0; i < 300; i++) {
			__u64 asked_ns = now_ns;

			now_ns += up_to(below(10) ? 1000000 : 0xffffffff) *
				  (below(20) ? 1ull : 1000ull);
			r.now_ns = now_ns;
			r.delivered += below(packets);
			r.lost += below(3) ? 0 : below(packets);
			r.delivered_ce += !below(8);
			r.in_flight = up_to(1000000);
			r.cwnd = up_to(1000000);
			r.mss = up_to(0xffff);
			r.rtt_us = below(2) ? 0 : up_to(0xffffffff);
			r.srtt_us = up_to(0xffffffff);
			r.min_rtt_us = below(10) ? r.min_rtt_us : 1 + up_to(r.min_rtt_us - 1);
			r.rate_delivered = below(packets);
			r.rate_interval_us = up_to(0xffffffff);
			r.acks = !!below(20);
			r.flags = below(4) ? 0 : 1u << below(7);
			if (below(2))
				headway_guard_ask(&g, asked_ns);
			if (below(4))
				headway_guard_answer(&g, &l, asked_ns, asked_ns, now_ns);
			headway_guard_cwnd(&g, &l, (__s64)draw() - (1ll << 40));
			headway_guard_rate(&g, &l, draw());
			trips += headway_guard_judge(&g, &l, &r) == HEADWAY_TRIP;
			headway_guard_restart(&g, &l, &r);
			headway_guard_ignores_loss(&g, &l, now_ns, r.srtt_us);
		}
	}
	printf("%llu\n", trips);
	return 0;
}
