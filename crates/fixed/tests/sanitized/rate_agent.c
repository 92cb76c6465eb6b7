/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The agent under sanitizers, with policies and records of any bytes. It prints the number of
 * decisions.
 */
#include <stdio.h>

#include "draw.h"
#include "rate_agent.h"

int main(void)
{
	unsigned long long decisions = 0;

	for (int round = 0; round < 2000; round++) {
		struct headway_int8 policy;
		struct headway_rate_agent agent;
		struct headway_record record;

		fill(&policy, sizeof(policy));
		policy.generation = 2;
		memset(&agent, 0, sizeof(agent));
		fill(&record, sizeof(record));
		record.now_ns = draw() >> (draw() >> 32 & 63);
		headway_rate_agent_open(&agent, &policy, record.now_ns);
		for (int i = 0; i < 100; i++) {
			__u64 now_ns = record.now_ns;

			fill(&record, sizeof(record));
			/* Some records are back in time, or far ahead. */
			if (draw() >> 32 & 15)
				record.now_ns = now_ns + (draw() >> (20 + (draw() >> 32 & 43)));
			headway_rate_agent_record(&agent, &policy, &record);
		}
		decisions += agent.decisions;
	}
	/* So many of the largest samples in one interval that sums reach their maximum. */
	for (int slope = -1; slope <= 1; slope += 2) {
		struct headway_int8 policy = { .generation = 2, .interval = 0xfffff };
		struct headway_rate_agent agent = { .mean_us = 0 };
		struct headway_record record = { .rtt_us = slope > 0 ? 1 : ~0u };

		headway_rate_agent_open(&agent, &policy, ~0ull);
		agent.due_ns = ~0ull;
		headway_rate_agent_record(&agent, &policy, &record);
		agent.shift = 0;
		agent.due_ns = ~0ull;
		record.now_ns = ~0ull - 1;
		record.rtt_us = slope > 0 ? ~0u : 1;
		for (long i = 0; i < 70000; i++)
			headway_rate_agent_record(&agent, &policy, &record);
		record.now_ns = ~0ull;
		headway_rate_agent_record(&agent, &policy, &record);
		decisions += agent.decisions;
	}
	printf("%llu\n", decisions);
	return 0;
}
