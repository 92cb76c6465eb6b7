// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * A policy in whole numbers and nothing around it, to be run by BPF_PROG_TEST_RUN:
 * crates/headwayd/tests/int8.rs compares each result with the native build's, and times it. A
 * syscall program has no repeat: the loop is here.
 */
#include "../kernel.h"
#include "../rate_agent.h"

char _license[] SEC("license") = "Dual MIT/GPL";

static long (*const bpf_loop)(__u32 times, void *callback, void *context,
			      __u64 flags) = (void *)181;

struct asked {
	__u32 repeat;
	__u32 decisions; /* does each record bring one? */
	__u64 ns;        /* of all repetitions together */
	__s64 result;    /* the network's output, or the rate */
};

#define ONE(map_name, map_value) \
	struct { \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1); \
		__type(key, __u32); \
		__type(value, map_value); \
	} map_name SEC(".maps")

ONE(asked, struct asked);
ONE(policy, struct headway_int8);
ONE(values, struct headway_mlp_values);
ONE(agent, struct headway_rate_agent);
ONE(record, struct headway_record);

#define FIND(map_name) \
	__u32 map_name##_key = 0; \
	typeof(*map_name.value) *the_##map_name = bpf_map_lookup_elem(&map_name, &map_name##_key); \
	if (!the_##map_name) \
		return 1

static long run_net(__u32 i, void *context)
{
	FIND(asked);
	FIND(policy);
	FIND(values);

	the_asked->result = headway_mlp_run(&the_policy->net, the_values);
	return 0;
}

static long take_record(__u32 i, void *context)
{
	FIND(asked);
	FIND(policy);
	FIND(agent);
	FIND(record);

	/* Of one that repeats, each is due, or none is. */
	if (the_asked->repeat > 1)
		the_agent->due_ns = the_asked->decisions ? the_record->now_ns : ~0ull;
	the_asked->result = headway_rate_agent_record(the_agent, the_policy, the_record);
	return 0;
}

static __always_inline int timed(long (*once)(__u32 i, void *context))
{
	__u64 begun;
	FIND(asked);

	begun = bpf_ktime_get_ns();
	bpf_loop(the_asked->repeat, once, 0, 0);
	the_asked->ns = bpf_ktime_get_ns() - begun;
	return 0;
}

SEC("syscall")
int test_net(void *ctx)
{
	return timed(run_net);
}

SEC("syscall")
int test_record(void *ctx)
{
	return timed(take_record);
}

SEC("syscall")
int test_open(void *ctx)
{
	FIND(policy);
	FIND(agent);
	FIND(record);

	headway_rate_agent_open(the_agent, the_policy, the_record->now_ns);
	return 0;
}
