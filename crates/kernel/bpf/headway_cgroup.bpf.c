// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Gives each TCP connection of a cgroup a controller, as it begins, unless it has another than the
 * default.
 */
#include "kernel.h"

#define SOL_TCP 6
#define TCP_CONGESTION 13
#define BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB 4
#define BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB 5

struct bpf_sock;

struct bpf_sock_ops {
	__u32 op;
	__u32 unused[45];
	struct bpf_sock *sk;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct inet_connection_sock___chosen {
	void *icsk_ca_ops;
};

struct netns_ipv4___chosen {
	void *tcp_congestion_control;
};

struct net___chosen {
	struct netns_ipv4___chosen ipv4;
};

#pragma clang attribute pop

static long (*const bpf_setsockopt)(void *ctx, int level, int name, void *value,
				    int length) = (void *)49;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

char _license[] SEC("license") = "Dual MIT/GPL";

/* Written before the program is loaded. */
const volatile char controller[16] = "headway_owl";

/* Has its program, or its route, chosen a controller for it? */
static __always_inline bool is_chosen(struct bpf_sock *sk)
{
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : 0;
	struct net___chosen *net;

	if (!tp)
		return 0;
	net = (struct net___chosen *)((struct sock *)tp)->__sk_common.skc_net.net;
	return ((struct inet_connection_sock___chosen *)tp)->icsk_ca_ops !=
	       net->ipv4.tcp_congestion_control;
}

SEC("sockops")
int choose(struct bpf_sock_ops *ops)
{
	char name[16];

	if (ops->op != BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB &&
	    ops->op != BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB)
		return 1;
	if (is_chosen(ops->sk))
		return 1;
	for (int i = 0; i < 16; i++)
		name[i] = controller[i];
	bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, sizeof(name));
	return 1;
}
