/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The int8 network and the rate agent as BPF computes them, for a test that compares them with the native build
 * bit for bit (headway_fixed::vectors has inputs). Both maps are mapped by the test, which runs a program by
 * BPF_PROG_TEST_RUN and reads the case's answer and how long it took.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>

#include "rate_agent.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct int8_case {
	struct headway_rate_agent agent;
	struct headway_record record;
	__s64 answer;
	__u64 took_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct headway_int8);
} int8_policy SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct int8_case);
} int8_cases SEC(".maps");

/* answer: the network's output for agent.values.inputs. */
SEC("syscall")
int int8_mlp(void *ctx)
{
	__u32 first = 0;
	struct headway_int8 *policy = bpf_map_lookup_elem(&int8_policy, &first);
	struct int8_case *one = bpf_map_lookup_elem(&int8_cases, &first);
	__u64 begun_ns;

	if (!policy || !one)
		return 1;
	begun_ns = bpf_ktime_get_ns();
	one->answer = headway_mlp_run(&policy->net, &one->agent.values);
	one->took_ns = bpf_ktime_get_ns() - begun_ns;
	return 0;
}

/* answer: the pacing rate after the record. */
SEC("syscall")
int int8_record(void *ctx)
{
	__u32 first = 0;
	struct headway_int8 *policy = bpf_map_lookup_elem(&int8_policy, &first);
	struct int8_case *one = bpf_map_lookup_elem(&int8_cases, &first);
	__u64 begun_ns;

	if (!policy || !one)
		return 1;
	begun_ns = bpf_ktime_get_ns();
	one->answer = (__s64)headway_rate_agent_record(&one->agent, policy, &one->record);
	one->took_ns = bpf_ktime_get_ns() - begun_ns;
	return 0;
}
