// SPDX-License-Identifier: MIT OR GPL-2.0-only
/*
 * Lists the listening sockets whose controller has a name, and is not the one that is registered by
 * it now. They chose it while an earlier agent had it registered. sock_diag tells names alone, so
 * that it cannot tell the two apart.
 */
#include "kernel.h"

#define TCP_LISTEN 10

static long (*const bpf_probe_read_kernel)(void *to, __u32 size, const void *from) = (void *)113;
static long (*const bpf_seq_write)(void *seq, const void *data, __u32 size) = (void *)127;
static struct tcp_sock *(*const bpf_skc_to_tcp_sock)(void *sk) = (void *)137;

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct bpf_iter_meta {
	void *seq;
};

struct bpf_iter__tcp {
	struct bpf_iter_meta *meta;
	struct sock_common *sk_common;
};

struct sock_common___listener {
	__u8 skc_state;
};

struct inet_connection_sock___listener {
	void *icsk_ca_ops;
};

struct tcp_congestion_ops___listener {
	char name[16];
};

/* kernel/bpf/bpf_struct_ops.c: a controller of BPF lies in the map that it was registered by. */
struct bpf_map {
	__u32 id;
};

struct bpf_struct_ops_value {
	char data[0];
};

struct bpf_struct_ops_map {
	struct bpf_map map;
	struct bpf_struct_ops_value kvalue;
};

#pragma clang attribute pop

#define DATA_OFFSET \
	__builtin_preserve_field_info(((struct bpf_struct_ops_map *)0)->kvalue.data, FIELD_OFFSET)

char _license[] SEC("license") = "Dual MIT/GPL";

/* Written before the program is loaded: the name, and the id of the map that registers it. */
const volatile char controller[16] = "headway_owl";
const volatile __u32 registered = 0;

struct listener {
	__u8 address[16];
	__u16 family;
	__u16 port;
};

SEC("iter/tcp")
int headway_listeners(struct bpf_iter__tcp *context)
{
	struct sock_common *sk = context->sk_common;
	const struct tcp_congestion_ops___listener *ops = 0;
	const struct bpf_struct_ops_map *map;
	struct listener listener = {};
	struct tcp_sock *tp;
	char name[16] = {};
	__u32 id = 0;

	if (!sk || ((struct sock_common___listener *)sk)->skc_state != TCP_LISTEN)
		return 0;
	tp = bpf_skc_to_tcp_sock(sk);
	if (!tp)
		return 0;
	bpf_probe_read_kernel(&ops, sizeof(ops),
			      &((struct inet_connection_sock___listener *)tp)->icsk_ca_ops);
	bpf_probe_read_kernel(name, sizeof(name), &ops->name);
	for (int i = 0; i < 16; i++)
		if (name[i] != controller[i])
			return 0;
	map = (const void *)ops - DATA_OFFSET;
	bpf_probe_read_kernel(&id, sizeof(id), &map->map.id);
	if (id == registered)
		return 0;
	listener.family = sk->skc_family;
	listener.port = sk->skc_num;
	if (listener.family == AF_INET6)
		bpf_probe_read_kernel(listener.address, 16, &sk->skc_v6_rcv_saddr);
	else
		bpf_probe_read_kernel(listener.address, 4, &sk->skc_rcv_saddr);
	bpf_seq_write(context->meta->seq, &listener, sizeof(listener));
	return 0;
}
