// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * The guard and nothing around it, to be run by BPF_PROG_TEST_RUN: crates/headwayd/tests/guard.rs
 * compares each result, and the guard's state after each call, with the native build's.
 */
#include "../kernel.h"
#include "../guard.h"

char _license[] SEC("license") = "Dual MIT/GPL";

struct asked {
	__u64 now_ns;
	__u64 decided_ns;  /* test_answer */
	__u64 answered_ns; /* test_answer */
	__u64 wanted;      /* test_cwnd, test_rate */
	__u32 cwnd;        /* test_open */
	__u32 ssthresh;    /* test_open */
	__u64 result;
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
ONE(guard, struct headway_guard);
ONE(limits, struct headway_limits);
ONE(record, struct headway_record);

#define FIND(map_name) \
	__u32 map_name##_key = 0; \
	typeof(*map_name.value) *the_##map_name = bpf_map_lookup_elem(&map_name, &map_name##_key); \
	if (!the_##map_name) \
		return 1

SEC("syscall")
int test_open(void *ctx)
{
	FIND(asked);
	FIND(guard);

	headway_guard_open(the_guard, the_asked->now_ns, the_asked->cwnd, the_asked->ssthresh);
	return 0;
}

SEC("syscall")
int test_forget(void *ctx)
{
	FIND(guard);

	headway_guard_forget(the_guard);
	return 0;
}

SEC("syscall")
int test_acquit(void *ctx)
{
	FIND(guard);

	headway_guard_acquit(the_guard);
	return 0;
}

SEC("syscall")
int test_ask(void *ctx)
{
	FIND(asked);
	FIND(guard);

	headway_guard_ask(the_guard, the_asked->now_ns);
	return 0;
}

SEC("syscall")
int test_answer(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);

	the_asked->result = headway_guard_answer(the_guard, the_limits, the_asked->decided_ns,
						 the_asked->answered_ns, the_asked->now_ns);
	return 0;
}

SEC("syscall")
int test_judge(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);
	FIND(record);

	the_asked->result = headway_guard_judge(the_guard, the_limits, the_record);
	return 0;
}

SEC("syscall")
int test_cwnd(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);

	the_asked->result = headway_guard_cwnd(the_guard, the_limits, (__s64)the_asked->wanted);
	return 0;
}

SEC("syscall")
int test_rate(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);

	the_asked->result = headway_guard_rate(the_guard, the_limits, the_asked->wanted);
	return 0;
}

SEC("syscall")
int test_restart(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);
	FIND(record);

	the_asked->result = headway_guard_restart(the_guard, the_limits, the_record);
	return 0;
}

SEC("syscall")
int test_ignores_loss(void *ctx)
{
	FIND(asked);
	FIND(guard);
	FIND(limits);
	FIND(record);

	the_asked->result =
		headway_guard_ignores_loss(the_guard, the_limits, the_asked->now_ns, the_record->srtt_us);
	return 0;
}
