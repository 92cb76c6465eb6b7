// SPDX-License-Identifier: MIT OR GPL-2.0-only
/* Gives each TCP connection of a cgroup a controller, as it begins. */
#include "kernel.h"

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB 4
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5

struct bpf_sock_ops {
	__u32 op;
};

static long (*const bpf_setsockopt)(void *ctx, int level, int name, void *value, int length) = (void *)49;

char _license[] SEC("license") = "Dual MIT/GPL";

/* Written before the program is loaded. */
const volatile char controller[16] = "headway_owl";

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
	char name[16];

	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB && ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	for (int i = 0; i < 16; i++)
		name[i] = controller[i];
	bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}
