/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the headers that BPF programs share, for Rust to call. */
#include "fixed.h"
#include "nets.h"
#include "rate_agent.h"

__u32 headway_native_log2(__u64 x)
{
	return headway_log2(x);
}

__s64 headway_native_mlp_run(const struct headway_mlp *net, struct headway_mlp_values *values)
{
	return headway_mlp_run(net, values);
}

void headway_native_rate_agent_open(struct headway_rate_agent *a, const struct headway_int8 *net, __u64 now_ns)
{
	headway_rate_agent_open(a, net, now_ns);
}

__u64 headway_native_rate_agent_record(struct headway_rate_agent *a, const struct headway_int8 *net,
				       const struct headway_record *r)
{
	return headway_rate_agent_record(a, net, r);
}
