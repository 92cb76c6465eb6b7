/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the headers that BPF programs share, for Rust to call. */
#include "fixed.h"
#include "guard.h"
#include "nets.h"
#include "rate_agent.h"

__s64 headway_native_mlp_run(const struct headway_mlp *net, struct headway_mlp_values *values)
{
	return headway_mlp_run(net, values);
}

void headway_native_rate_agent_open(struct headway_rate_agent *a, const struct headway_int8 *net,
				    __u64 now_ns)
{
	headway_rate_agent_open(a, net, now_ns);
}

__u64 headway_native_rate_agent_record(struct headway_rate_agent *a, const struct headway_int8 *net,
				       const struct headway_record *r)
{
	return headway_rate_agent_record(a, net, r);
}

void headway_native_cubic_open(struct headway_cubic *c, __u32 cwnd, __u32 ssthresh)
{
	headway_cubic_open(c, cwnd, ssthresh);
}

void headway_native_cubic_acked(struct headway_cubic *c, __u32 packets, __u64 now_ns, __u64 rtt_ns)
{
	headway_cubic_acked(c, packets, now_ns, rtt_ns);
}

void headway_native_cubic_lose(struct headway_cubic *c, __u64 now_ns, __u64 rtt_ns)
{
	headway_cubic_lose(c, now_ns, rtt_ns);
}

void headway_native_cubic_time_out(struct headway_cubic *c, __u64 now_ns, __s32 is_recovering)
{
	headway_cubic_time_out(c, now_ns, is_recovering);
}

void headway_native_cubic_leave_slow_start(struct headway_cubic *c)
{
	headway_cubic_leave_slow_start(c);
}

void headway_native_guard_open(struct headway_guard *g, __u64 now_ns, __u32 cwnd, __u32 ssthresh)
{
	headway_guard_open(g, now_ns, cwnd, ssthresh);
}

void headway_native_guard_forget(struct headway_guard *g)
{
	headway_guard_forget(g);
}

void headway_native_guard_acquit(struct headway_guard *g)
{
	headway_guard_acquit(g);
}

void headway_native_guard_ask(struct headway_guard *g, __u64 now_ns)
{
	headway_guard_ask(g, now_ns);
}

__s32 headway_native_guard_answer(struct headway_guard *g, const struct headway_limits *l,
				  __u64 decided_ns, __u64 answered_ns, __u64 now_ns)
{
	return headway_guard_answer(g, l, decided_ns, answered_ns, now_ns);
}

__s32 headway_native_guard_judge(struct headway_guard *g, const struct headway_limits *l,
				 const struct headway_record *r)
{
	return headway_guard_judge(g, l, r);
}

__u32 headway_native_guard_cwnd(struct headway_guard *g, const struct headway_limits *l,
				__s64 wanted)
{
	return headway_guard_cwnd(g, l, wanted);
}

__u64 headway_native_guard_rate(struct headway_guard *g, const struct headway_limits *l,
				__u64 wanted)
{
	return headway_guard_rate(g, l, wanted);
}

__s32 headway_native_guard_ignores_loss(const struct headway_guard *g, const struct headway_limits *l,
				  __u64 now_ns, __u32 srtt_us)
{
	return headway_guard_ignores_loss(g, l, now_ns, srtt_us);
}

__u32 headway_native_guard_restart(const struct headway_guard *g, const struct headway_limits *l,
				   const struct headway_record *r)
{
	return headway_guard_restart(g, l, r);
}

__u32 headway_native_guard_reason(const struct headway_guard *g)
{
	return g->reason;
}

__u32 headway_native_guard_trips(const struct headway_guard *g)
{
	return g->trips;
}

__u64 headway_native_guard_until_ns(const struct headway_guard *g)
{
	return g->until_ns;
}

__s64 headway_native_utility(const struct headway_limits *l, __u64 rate, __u64 rtt_us,
			     __u64 least_us)
{
	return headway_utility(l, rate, rtt_us, least_us);
}

/* It uses what the path has carried, also over a longer time than the guard looks back. */
__s64 headway_native_guard_cubic_utility(const struct headway_guard *g,
					 const struct headway_limits *l, __u64 peak, __u32 least_us,
					 __u32 longest_us, __s32 has_lost)
{
	struct headway_path path = { .cubic = g->path.cubic,
				     .peak = peak,
				     .max_rtt_us = longest_us };
	struct headway_record record = { .min_rtt_us = least_us };

	path.full_rtt_us = has_lost || headway_has_queue(l, longest_us, least_us);
	return headway_cubic_utility(&path, l, &record);
}

void headway_native_guard_cubic(const struct headway_guard *g, struct headway_cubic *c)
{
	*c = g->path.cubic;
}
