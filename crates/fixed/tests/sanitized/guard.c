/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The guard under sanitizers, with limits, records and answers of any bytes. It prints the
 * number of trips.
 */
#include <stdio.h>
#include <stdlib.h>

#include "draw.h"
#include "guard.h"

static void check(int holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	exit(1);
}

/* The default limits, or random ones. */
static struct headway_limits limits(int are_random)
{
	struct headway_limits l = {
		.max_rate = 12500000000ull,
		.rate_gain = 3,
		.min_cwnd = 2,
		.max_cwnd = 100000,
		.wild_answers = 32,
		.answer_us = 100000,
		.answer_rtts = 2,
		.answer_most_us = 500000,
		.answer_keeps_ms = 1000,
		.stale_answers = 2,
		.return_patiences = 2,
		.epoch_us = 200000,
		.epoch_min_rtts = 2,
		.epoch_srtts = 1,
		.queue_share = 32,
		.queue_us = 2000,
		.few_packets = 2,
		.peak_ms = 10000,
		.mean_shift = 5,
		.initial_window = 10,
		.shadow_gain = 2,
		.shadow_packets = 10,
		.beyond = 64,
		.ahead = 2,
		.loss = 13107,
		.loss_packets = 50,
		.epochs = 5,
		.inflation = 1024,
		.inflation_us = 50000,
		.full_rtts = 2,
		.slow_epochs = 10,
		.weight = 32768,
		.margin = 131072,
		.share = 52428,
		.long_margin = 8192,
		.long_epochs = 20,
		.probation_ms = 10000,
		.doublings = 5,
		.pardon_ms = 600000,
		.spared_rtts = 2,
		.least_ssthresh = 4,
	};

	if (are_random) {
		fill(&l, sizeof(l));
		l.max_cwnd = l.max_cwnd > 2 ? l.max_cwnd : 2;
		l.min_cwnd = l.min_cwnd < l.max_cwnd ? l.min_cwnd : l.max_cwnd;
		/* Below the value for no ssthresh, also for a path of 2^32 packets. */
		l.least_ssthresh &= 15;
	}
	return l;
}

int main(void)
{
	unsigned long long trips = 0, returns = 0;

	for (int round = 0; round < 3000; round++) {
		struct headway_limits l = limits(round % 3 == 0);
		struct headway_guard guard;
		struct headway_record record;

		memset(&guard, 0, sizeof(guard));
		fill(&record, sizeof(record));
		record.now_ns = draw() >> (draw() >> 32 & 63);
		headway_guard_open(&guard, record.now_ns, 10, 0);
		for (int i = 0; i < 300; i++) {
			__u64 now_ns = record.now_ns, before = guard.trips;
			int verdict;

			/* Some records are random, others continue the last one. */
			if (draw() >> 32 & 3) {
				record.delivered += draw() >> 58;
				record.lost += (draw() >> 32 & 7) == 0;
				record.acks = draw() >> 63;
			} else {
				fill(&record, sizeof(record));
			}
			record.now_ns = now_ns;
			if (draw() >> 32 & 15)
				record.now_ns += draw() >> (20 + (draw() >> 32 & 43));
			else
				record.now_ns = draw();
			if (draw() >> 58 == 0)
				headway_guard_acquit(&guard);
			if (draw() >> 63)
				headway_guard_ask(&guard, record.now_ns);
			if (draw() >> 63)
				headway_guard_answer(
					&guard, &l, draw() >> 63 ? record.now_ns : draw(),
					draw() >> 63 ? record.now_ns : draw(), record.now_ns);
			__u32 cwnd = headway_guard_cwnd(&guard, &l,
							(__s64)(draw() << (draw() >> 32 & 31)));

			check(cwnd >= l.min_cwnd && cwnd <= l.max_cwnd,
			      "a window beyond its bounds");
			check(headway_guard_rate(&guard, &l, draw()) <= l.max_rate,
			      "a rate beyond its bounds");
			verdict = headway_guard_judge(&guard, &l, &record);
			check(verdict >= HEADWAY_POLICY && verdict <= HEADWAY_RESUME, "no verdict");
			check((guard.reason == HEADWAY_FINE) ==
				      (verdict == HEADWAY_POLICY || verdict == HEADWAY_RESUME),
			      "not a reason");
			check(guard.reason < HEADWAY_REASONS, "an unknown reason");
			check((guard.trips != before) == (verdict == HEADWAY_TRIP),
			      "a trip that is not counted");
			check(headway_guard_restart(&guard, &l, &record) >= l.least_ssthresh,
			      "too small a window to begin with");
			check(guard.path.cubic.cwnd >= HEADWAY_CUBIC_ONE &&
				      guard.path.cubic.cwnd <= HEADWAY_CUBIC_MOST,
			      "no window of Cubic's");
			headway_guard_ignores_loss(&guard, &l, record.now_ns, record.srtt_us);
			trips += verdict == HEADWAY_TRIP;
			returns += verdict == HEADWAY_RESUME;
		}
	}
	check(returns > 100, "too few came back");
	printf("%llu\n", trips);
	return 0;
}
